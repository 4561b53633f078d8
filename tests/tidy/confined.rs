//! Outside crates stay where the design put them, so that each can be replaced by editing one
//! module.

use std::collections::BTreeSet;

use crate::tidy::source::{Findings, SourceFile, assert_rule_bites};

/// Crate, and the folders or files of `src` that may name it.
const CONFINED: &[(&str, &[&str])] = &[
    ("cron", &["src/recurrence/"]),
    ("chrono", &["src/recurrence/", "src/base/time.rs"]),
    ("jiff", &["src/recurrence/zone.rs"]),
    ("postcard", &["src/machine/"]),
    ("sled", &["src/store/"]),
    ("openraft", &["src/replica/"]),
    ("axum", &["src/api/", "src/console/", "src/node/"]),
    ("utoipa", &["src/api/", "src/wire/"]),
    ("clap", &["src/cli/"]),
    ("reqwest", &["src/client/", "src/worker/", "src/node/"]),
    ("hyper", &["src/replica/", "src/node/"]),
    ("hyper_util", &["src/replica/", "src/node/"]),
    ("getrandom", &["src/base/entropy.rs"]),
    ("tracing_subscriber", &["src/node/", "src/cli/"]),
];

pub fn confined(file: &SourceFile) -> Findings {
    let paths = file.paths();
    // A module of ours may bear a crate's name, as `recurrence::cron` does, once it is imported.
    let ours: BTreeSet<&str> = paths
        .iter()
        .filter(|path| matches!(path.segments[0].as_str(), "crate" | "super" | "self"))
        .filter_map(|path| path.segments.last().map(String::as_str))
        .collect();
    let mut findings = Findings::new();
    for path in &paths {
        let name = path.segments[0].as_str();
        let Some((_, places)) = CONFINED.iter().find(|(confined, _)| *confined == name) else {
            continue;
        };
        let is_allowed = places.iter().any(|place| file.path.starts_with(place));
        if !is_allowed && !ours.contains(name) {
            let says = format!("the crate {name} is confined to {places:?}");
            findings.push(file.finding(path.line, &says));
        }
    }
    findings
}

#[test]
fn escaped_crates_are_found() {
    assert_rule_bites(
        confined,
        &[
            ("src/service/jobs.rs", "use openraft::Raft;"),
            ("src/recurrence/next.rs", "use jiff::tz::TimeZone;"),
            ("src/machine/state.rs", "fn f(d: sled::Db) {}"),
            ("src/model/job.rs", "#[derive(utoipa::ToSchema)]\nstruct A;"),
            ("src/base/clock.rs", "use {chrono::Utc, std::fmt};"),
        ],
        &[
            ("src/base/time.rs", "use chrono::Utc;"),
            ("src/recurrence/zone.rs", "use jiff::tz::TimeZone;"),
            ("src/planner/due.rs", "use crate::recurrence::cron;\nfn f() { cron::parse(); }"),
        ],
    );
}
