//! Imports go only downward: the table of DESIGN, and nothing beside it.

use crate::tidy::source::{Findings, SourceFile, assert_clean, assert_rule_bites, root, sources};

/// Module of `src`, and the modules it may import. Itself always.
///
/// `replica` and `leader` may name the nouns of `model`, for the signatures of `machine` and
/// `planner` speak of them: see docs/decisions/0001.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("model", &["base"]),
    ("recurrence", &["base", "model"]),
    ("machine", &["base", "model"]),
    ("planner", &["base", "model", "recurrence", "machine"]),
    ("store", &["base", "model", "machine"]),
    ("replica", &["base", "model", "machine", "store"]),
    ("leader", &["base", "model", "machine", "planner", "replica"]),
    ("service", &["base", "model", "recurrence", "machine", "replica"]),
    ("wire", &["base"]),
    ("client", &["base", "wire"]),
    ("worker", &["base", "wire", "client"]),
    ("api", &["base", "model", "wire", "service"]),
    ("console", &["base", "model", "wire", "service"]),
    (
        "node",
        &[
            "base",
            "model",
            "recurrence",
            "machine",
            "planner",
            "store",
            "replica",
            "leader",
            "service",
            "wire",
            "api",
            "console",
        ],
    ),
    // docs/decisions/0004: the command line reads schedules without a server.
    ("cli", &["base", "model", "recurrence", "wire", "client", "worker", "node"]),
    ("main", &["cli"]),
    ("lib", &[]),
];

/// What a black-box member of the workspace may use of the library.
const OUTSIDE_MAY_IMPORT: &[(&str, &[&str])] =
    &[("jepsen/", &["base", "wire", "client", "worker"]), ("bench/", &["wire"])];

fn may_import(module: &str) -> Option<&'static [&'static str]> {
    MAY_IMPORT.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed)
}

pub fn arrows(file: &SourceFile) -> Findings {
    let Some(module) = file.module() else {
        return Findings::new();
    };
    let Some(allowed) = may_import(module) else {
        return vec![file.finding(1, &format!("module {module} has no row in MAY_IMPORT"))];
    };
    let mut findings = Findings::new();
    for path in file.paths() {
        let root = path.segments[0].as_str();
        let target = path.segments[1].as_str();
        // The macro `invariant!` lives in base and is exported at the root.
        let target = if target == "invariant" { "base" } else { target };
        let is_ours = root == "crate" || root == "horolog";
        if is_ours && target != module && !allowed.contains(&target) {
            let says = format!("{module} imports {target}, it may import only {allowed:?}");
            findings.push(file.finding(path.line, &says));
        }
        if root == "super" && target == "super" && !file.is_test(path.line) {
            findings.push(file.finding(path.line, "super::super hides an arrow, say crate::"));
        }
    }
    findings
}

/// In `src/api/mod.rs` a single `super` is already the root, where every module can be reached.
pub fn no_super_at_the_root(file: &SourceFile) -> Findings {
    let depth = file.path.trim_end_matches("/mod.rs").matches('/').count();
    if !file.path.starts_with("src/") || depth > 1 {
        return Findings::new();
    }
    let climbing = file.paths().into_iter().filter(|path| path.segments[0] == "super");
    let climbing = climbing.filter(|path| !file.is_test(path.line));
    climbing.map(|path| file.finding(path.line, "super is the root here, say crate::")).collect()
}

pub fn black_box(file: &SourceFile) -> Findings {
    let row = OUTSIDE_MAY_IMPORT.iter().find(|(folder, _)| file.path.starts_with(folder));
    let Some((folder, allowed)) = row else {
        return Findings::new();
    };
    let mut findings = Findings::new();
    for path in file.paths() {
        let target = path.segments[1].as_str();
        if path.segments[0] == "horolog" && !allowed.contains(&target) {
            let says = format!("{folder} is black-box and uses only {allowed:?}, not {target}");
            findings.push(file.finding(path.line, &says));
        }
    }
    findings
}

#[test]
fn the_table_of_arrows_has_no_cycle_and_no_row_without_a_module() {
    let mut findings = Findings::new();
    for (i, (module, allowed)) in MAY_IMPORT.iter().enumerate() {
        let above = &MAY_IMPORT[i..];
        for target in *allowed {
            if above.iter().any(|(name, _)| name == target) {
                findings.push(format!("{module} may import {target}, which is not below it"));
            }
        }
    }
    let declared = sources(&["src/lib.rs"]);
    for item in &declared[0].syntax.items {
        let syn::Item::Mod(item) = item else { continue };
        let name = item.ident.to_string();
        if may_import(&name).is_none() {
            findings.push(format!("src/lib.rs: module {name} has no row in MAY_IMPORT"));
        }
        if !root().join("src").join(&name).is_dir() {
            findings.push(format!("src/lib.rs: module {name} is not a folder of src"));
        }
    }
    assert_clean(&findings);
}

#[test]
fn upward_imports_are_found() {
    assert_rule_bites(
        arrows,
        &[
            ("src/base/time.rs", "use crate::model::id::JobId;"),
            ("src/model/job.rs", "use crate::{base::time::Span, machine::state::State};"),
            ("src/leader/ticker.rs", "fn f() { crate::service::jobs::list(); }"),
            ("src/service/jobs.rs", "fn f() { g!(crate::leader::ticker::wake()); }"),
            ("src/wire/job.rs", "use crate::model::job::Job;"),
            ("src/client/mod.rs", "use crate::worker::puller::Puller;"),
            ("src/api/jobs.rs", "use crate::replica::propose::propose;"),
            ("src/main.rs", "use horolog::node::config;"),
            ("src/machine/apply/job.rs", "use super::super::super::store::log;"),
            ("src/drawer/mod.rs", "fn f() {}"),
        ],
        &[
            ("src/worker/puller.rs", "use crate::client::retry::Retry;\nuse crate::wire::page;"),
            ("src/base/mod.rs", "/// See [`crate::machine`].\nfn f() {}"),
            ("src/store/log.rs", "fn f() { crate::invariant!(true, \"named\"); }"),
            ("src/main.rs", "fn main() { horolog::cli::run(); }"),
        ],
    );
    assert_rule_bites(
        no_super_at_the_root,
        &[("src/api/mod.rs", "use super::replica::read;"), ("src/api.rs", "use super::node::x;")],
        &[("src/api/jobs.rs", "use super::problem::Problem;")],
    );
    assert_rule_bites(
        black_box,
        &[
            ("jepsen/src/client.rs", "use horolog::machine::state::State;"),
            ("bench/src/cluster.rs", "use horolog::client::retry::Retry;"),
        ],
        &[
            ("jepsen/src/client.rs", "use horolog::client::retry::Retry;"),
            ("bench/src/cluster.rs", "use horolog::wire::cluster::Cluster;"),
        ],
    );
}
