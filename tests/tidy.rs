//! The house's rules as assertions: a rule in prose drifts, a rule that fails the build does not.
//!
//! One file per family of rules. Each rule is a function from a source file to its findings, and
//! stands beside a test that shows it failing on a bad snippet: a rule that cannot fail is no rule.
//! A finding reads `file:line: what is wrong, what would be right`.

mod arrows;
mod confined;
mod manners;
mod matches;
mod papers;
mod shape;
mod source;
mod supply;
mod words;

use crate::tidy::source::{Findings, SourceFile, assert_clean, sources};

type Rule = fn(&SourceFile) -> Findings;

const RUST: &[&str] = &["src", "tests", "jepsen", "bench"];
const PROGRAM: &[&str] = &["src", "jepsen", "bench"];

/// Every rule about a Rust file, and the folders it looks at.
const RULES: &[(Rule, &[&str])] = &[
    (arrows::arrows, &["src"]),
    (arrows::no_super_at_the_root, &["src"]),
    (arrows::black_box, &["jepsen", "bench"]),
    (confined::confined, &["src"]),
    (shape::file_size, PROGRAM),
    (shape::function_size, PROGRAM),
    (shape::line_width, RUST),
    (shape::header, RUST),
    (words::names_and_texts, PROGRAM),
    (manners::banned_paths, &["src", "tests"]),
    (manners::no_floats_in_machine, &["src"]),
    (manners::only_output_prints, &["src"]),
    (manners::nothing_left_over, RUST),
    (manners::imports, PROGRAM),
    (manners::every_allow_has_a_reason, RUST),
    (manners::tests_are_claims, RUST),
];

/// One test, so that the tree is read once: reading it costs more than all the rules.
#[test]
fn the_source_keeps_every_rule() {
    let files = sources(RUST);
    for folder in RUST {
        let is_there = files.iter().any(|file| top(file) == *folder);
        assert!(is_there, "nothing below {folder}: the rules look at the wrong place");
    }
    let enums = matches::enums_of(&files);
    let mut findings = Findings::new();
    for file in &files {
        for (rule, folders) in RULES {
            if folders.contains(&top(file)) {
                findings.extend(rule(file));
            }
        }
        findings.extend(matches::wildcards(file, &enums));
    }
    findings.extend(papers::promises(&files));
    assert_clean(&findings);
}

fn top(file: &SourceFile) -> &str {
    file.path.split('/').next().unwrap_or_default()
}
