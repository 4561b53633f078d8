//! Pages stay true: linked, complete, naming tests and modules that exist; nothing is left lying
//! about.

use std::collections::BTreeSet;

use crate::tidy::source::{Findings, SourceFile, TextFile, assert_clean, root, sources, texts};

const DECISION_HEADINGS: &[&str] =
    &["## Context", "## Choice", "## Measured", "## What would change our mind"];
const PROMISES: usize = 12;

/// Words and paths that never stay, in two halves so that this file does not find itself.
const LEFT_OVERS: &[(&str, &str)] =
    &[("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("/wo", "rk/"), ("/ro", "ot/"), ("/ho", "me/")];

/// Targets of relative links, without their anchors.
fn links(page: &TextFile) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (i, line) in page.text.lines().enumerate() {
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', '#', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((resolve(&page.path, target), i + 1));
            }
        }
    }
    found
}

/// `docs/a.md` and `../src/x.rs` give `src/x.rs`.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn dead_links(page: &TextFile, exists: impl Fn(&str) -> bool) -> Findings {
    let dead = links(page).into_iter().filter(|(target, _)| !exists(target));
    dead.map(|(target, line)| format!("{}:{line}: no such file: {target}", page.path)).collect()
}

fn unlinked(pages: &[TextFile]) -> Findings {
    let is_map = |page: &&TextFile| page.path == "README.md" || page.path == "docs/architecture.md";
    let linked: BTreeSet<String> =
        pages.iter().filter(is_map).flat_map(links).map(|(target, _)| target).collect();
    let lost = pages.iter().filter(|page| {
        page.path.starts_with("docs/")
            && page.path != "docs/architecture.md"
            && !linked.contains(&page.path)
    });
    let says = "no link leads here from README.md or docs/architecture.md";
    lost.map(|page| format!("{}:1: {says}", page.path)).collect()
}

fn decision(page: &TextFile) -> Findings {
    let missing = DECISION_HEADINGS
        .iter()
        .filter(|heading| !page.text.lines().any(|line| line.trim_end() == **heading));
    missing.map(|heading| format!("{}:1: a decision has {heading:?}", page.path)).collect()
}

/// Each promise has a section that names tests that exist, or says "Not yet".
fn guarantees(page: &TextFile, tests: &BTreeSet<String>) -> Findings {
    let mut findings = Findings::new();
    for number in 1..=PROMISES {
        let heading = format!("## P{number} ");
        let Some(at) = page.text.find(&heading) else {
            findings.push(format!("{}:1: no section {heading:?}", page.path));
            continue;
        };
        let line = page.text[..at].lines().count() + 1;
        let section = &page.text[at + heading.len()..];
        let section = section.split("\n## ").next().unwrap_or_default();
        let named: Vec<&str> = held_by(section);
        if named.is_empty() && !section.contains("Not yet") {
            let says = format!("P{number} names no test in \"Held by:\" and is not \"Not yet\"");
            findings.push(format!("{}:{line}: {says}", page.path));
        }
        for name in named.into_iter().filter(|name| !tests.contains(*name)) {
            findings.push(format!("{}:{line}: P{number} names no test: {name}", page.path));
        }
    }
    findings
}

/// The promises against the tests that these files hold.
pub fn promises(files: &[SourceFile]) -> Findings {
    let pages = texts(&["docs/guarantees.md"], &["md"]);
    assert_eq!(pages.len(), 1, "docs/guarantees.md is missing");
    let functions = files.iter().flat_map(SourceFile::test_functions);
    guarantees(&pages[0], &functions.map(|(name, _)| name.to_owned()).collect())
}

/// Names in backticks in the paragraphs that begin with `Held by:`.
fn held_by(section: &str) -> Vec<&str> {
    let paragraphs = section.split("\n\n").filter(|text| text.trim_start().starts_with("Held by:"));
    paragraphs.flat_map(|text| text.split('`').skip(1).step_by(2)).collect()
}

fn left_overs(file: &TextFile) -> Findings {
    let mut findings = Findings::new();
    for word in LEFT_OVERS.iter().map(|(head, tail)| format!("{head}{tail}")) {
        if !file.text.contains(&word) {
            continue;
        }
        let is_path = word.starts_with('/');
        let parts =
            |line: &str| line.split(|c: char| !c.is_alphanumeric()).any(|part| part == word);
        for (i, line) in file.text.lines().enumerate() {
            if line.contains(&word) && (is_path || parts(line)) {
                let says = format!("{word} is left over, finish it or file it");
                findings.push(format!("{}:{}: {says}", file.path, i + 1));
            }
        }
    }
    findings
}

fn unused_scenarios(scenarios: &[TextFile], tests: &[TextFile]) -> Findings {
    let reads_all = tests
        .iter()
        .any(|file| file.text.contains("tests/scenarios") && file.text.contains("read_dir"));
    let mut findings = Findings::new();
    for scenario in scenarios {
        let name = scenario.path.rsplit('/').next().unwrap_or_default();
        let is_named = tests.iter().any(|file| file.text.contains(name));
        if !reads_all && !is_named {
            findings.push(format!("{}:1: no test reads this scenario", scenario.path));
        }
        if scenario.text.trim().is_empty() {
            findings.push(format!("{}:1: an empty scenario tells nothing", scenario.path));
        }
    }
    findings
}

fn pages() -> Vec<TextFile> {
    texts(&["README.md", "CHANGELOG.md", "docs", "jepsen", "bench"], &["md"])
}

#[test]
fn every_page_is_linked_and_no_link_is_dead() {
    let pages = pages();
    let mut findings = unlinked(&pages);
    for page in &pages {
        findings.extend(dead_links(page, |target| root().join(target).exists()));
    }
    assert_clean(&findings);
}

#[test]
fn every_decision_can_be_revisited() {
    let decisions = texts(&["docs/decisions"], &["md"]);
    assert_clean(&decisions.iter().flat_map(decision).collect::<Findings>());
}

#[test]
fn the_code_map_names_every_module() {
    let pages = texts(&["docs/architecture.md"], &["md"]);
    assert_eq!(pages.len(), 1, "docs/architecture.md is missing");
    let mut findings = Findings::new();
    for item in &sources(&["src/lib.rs"])[0].syntax.items {
        let syn::Item::Mod(item) = item else { continue };
        let entry = format!("`src/{}`", item.ident);
        if !pages[0].text.contains(&entry) {
            findings.push(format!("docs/architecture.md:1: the code map lacks {entry}"));
        }
    }
    assert_clean(&findings);
}

#[test]
fn every_scenario_is_used() {
    let scenarios = texts(&["tests/scenarios"], &["txt"]);
    let tests = texts(&["tests"], &["rs"]);
    let tests: Vec<TextFile> =
        tests.into_iter().filter(|file| !file.path.starts_with("tests/tidy")).collect();
    assert_clean(&unused_scenarios(&scenarios, &tests));
}

#[test]
fn nothing_unfinished_and_no_path_of_one_machine_is_left() {
    let places = [
        "src",
        "tests",
        "jepsen",
        "bench",
        "docs",
        ".ci",
        ".config",
        "README.md",
        "CHANGELOG.md",
        "Cargo.toml",
        "clippy.toml",
        "deny.toml",
    ];
    let mut files =
        texts(&places, &["rs", "md", "toml", "txt", "html", "css", "js", "json", "tsv", "sh"]);
    files.extend(texts(&[".ci"], &[""]));
    assert!(
        files.iter().any(|file| file.path == ".ci/run"),
        "the scripts of .ci are not looked at"
    );
    assert_clean(&files.iter().flat_map(left_overs).collect::<Findings>());
}

#[test]
fn untrue_pages_are_found() {
    let page = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };

    let map = page("README.md", "[a](docs/a.md) [b](docs/no.md#x) [c](https://example.com/x)");
    assert_eq!(dead_links(&map, |target| target == "docs/a.md").len(), 1);
    assert_eq!(unlinked(&[map, page("docs/a.md", ""), page("docs/b.md", "")]).len(), 1);
    assert_eq!(resolve("docs/how-to/a.md", "../../src/x.rs"), "src/x.rs");

    assert_eq!(decision(&page("docs/decisions/1.md", "## Context\n## Choice\n")).len(), 2);

    let tests = BTreeSet::from(["tokens_grow".to_owned()]);
    let section = |number: usize| match number {
        1 => "## P1 A\n\nHeld by: `tokens_grow`.\n\n".to_owned(),
        2 => "## P2 B\n\nHeld by: `no_such_test`.\n\n".to_owned(),
        3 => "## P3 C\n\nSee `tokens_grow`.\n\n".to_owned(),
        n => format!("## P{n} D\n\nNot yet.\n\n"),
    };
    let text: String = (1..PROMISES).map(section).collect();
    let findings = guarantees(&page("docs/guarantees.md", &text), &tests);
    assert_eq!(
        findings.len(),
        3,
        "P2 names no test, P3 holds by none, P12 is missing: {findings:?}"
    );

    let (head, tail) = LEFT_OVERS[0];
    assert_eq!(left_overs(&page("src/x.rs", &format!("// {head}{tail}: later"))).len(), 1);
    let (head, tail) = LEFT_OVERS[3];
    assert_eq!(left_overs(&page("src/x.rs", &format!("\"{head}{tail}x\""))).len(), 1);
    assert_eq!(left_overs(&page("src/x.rs", "homework, methodology, mktemp -t x.XXXXXX")).len(), 0);

    let story = page("tests/scenarios/a.txt", "tick");
    let by_name = page("tests/scenario.rs", "run(\"a.txt\")");
    let by_folder = page("tests/scenario.rs", "read_dir(\"tests/scenarios\")");
    assert_eq!(unused_scenarios(&[story], &[]).len(), 1);
    let story = page("tests/scenarios/a.txt", "tick");
    assert_eq!(unused_scenarios(&[story], &[by_name]).len(), 0);
    let story = page("tests/scenarios/a.txt", "");
    assert_eq!(unused_scenarios(&[story], &[by_folder]).len(), 1);
}
