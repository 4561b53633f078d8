//! What the program is made of: every crate has its reason, comes from crates.io, and no advisory
//! is ignored in silence. `deny.toml` holds the rest of the policy.

use std::fs;

use crate::tidy::source::{Findings, assert_clean, root};

const REASONS: &str = "docs/decisions/0001-workspace-and-dependencies.md";
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Both unmaintained, both brought by sled 0.34.7.
const IGNORED_ADVISORIES: &[&str] = &["RUSTSEC-2025-0057", "RUSTSEC-2024-0384"];

fn unexplained(manifest: &toml::Table, reasons: &str) -> Findings {
    let rows: Vec<&str> = reasons.lines().filter(|line| line.starts_with("| ")).collect();
    let explained: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|names| names.split([',', ':', '*']))
        .map(str::trim)
        .collect();
    let mut findings = Findings::new();
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let Some(crates) = manifest.get(section).and_then(toml::Value::as_table) else {
            continue;
        };
        let ours = |name: &str| name == "horolog";
        for name in crates.keys().filter(|name| !ours(name) && !explained.contains(&name.as_str()))
        {
            findings.push(format!("Cargo.toml: {name} has no row with its reason in {REASONS}"));
        }
    }
    findings
}

fn foreign(lock: &toml::Table) -> Findings {
    let packages = lock.get("package").and_then(toml::Value::as_array).unwrap();
    let mut findings = Findings::new();
    for package in packages {
        let source = package.get("source").and_then(toml::Value::as_str);
        if source.is_some_and(|source| source != CRATES_IO) {
            let name = package.get("name").and_then(toml::Value::as_str).unwrap_or_default();
            findings.push(format!("Cargo.lock: {name} comes from {source:?}, not from crates.io"));
        }
    }
    findings
}

fn ignored(policy: &toml::Table) -> Findings {
    let ignored = policy.get("advisories").and_then(|section| section.get("ignore"));
    let mut findings = Findings::new();
    for entry in ignored.and_then(toml::Value::as_array).unwrap_or(&Vec::new()) {
        let field = |name: &str| entry.get(name).and_then(toml::Value::as_str);
        let id = field("id").unwrap_or_default();
        if !IGNORED_ADVISORIES.contains(&id) || field("reason").is_none() {
            findings.push(format!("deny.toml: {id:?} is ignored without a decision or a reason"));
        }
    }
    findings
}

fn read(name: &str) -> toml::Table {
    let text = fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    text.parse().unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn every_crate_has_its_reason_and_comes_from_crates_io() {
    let reasons = fs::read_to_string(root().join(REASONS)).unwrap();
    let mut findings = foreign(&read("Cargo.lock"));
    for manifest in ["Cargo.toml", "jepsen/Cargo.toml", "bench/Cargo.toml"] {
        findings.extend(unexplained(&read(manifest), &reasons));
    }
    assert_clean(&findings);
}

#[test]
fn only_the_two_explained_advisories_are_ignored() {
    assert_clean(&ignored(&read("deny.toml")));
}

#[test]
fn unexplained_crates_are_found() {
    let table = |text: &str| -> toml::Table { text.parse().unwrap() };

    let manifest =
        table("[dependencies]\nserde = \"1\"\nleft = \"1\"\n[dev-dependencies]\nx = \"1\"");
    let findings = unexplained(&manifest, "| serde, bytes | JSON |\n| *for tests:* x | a reason |");
    assert_eq!(findings.len(), 1, "left has no reason: {findings:?}");

    let lock = table("[[package]]\nname = \"a\"\nsource = \"git+https://example.com/a\"");
    assert_eq!(foreign(&lock).len(), 1);

    let other = table("[advisories]\nignore = [{ id = \"RUSTSEC-2020-0001\", reason = \"x\" }]");
    assert_eq!(ignored(&other).len(), 1);
    let silent = table("[advisories]\nignore = [{ id = \"RUSTSEC-2025-0057\" }]");
    assert_eq!(ignored(&silent).len(), 1);
}
