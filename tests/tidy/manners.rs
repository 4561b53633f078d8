//! Calls and forms that stay out: clocks, chance, order, floats, printing, sleeping, re-exports,
//! globs.

use crate::tidy::source::{Findings, Kind, SourceFile, assert_rule_bites};

/// The pure band: arithmetic on values, the same on every member and on every day.
const PURE: &[&str] = &["base", "model", "recurrence", "machine", "planner"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Every line of `src`, test code too.
    Everything,
    /// Lines of `src` outside tests.
    Program,
    /// Pure modules, test code too.
    PureBand,
    /// Pure modules outside tests.
    PureProgram,
    /// Test code of `src`, and `tests/`.
    Tests,
}

/// A path that is not written: one whose segments contain one of `paths` in a row.
struct Ban {
    paths: &'static [&'static [&'static str]],
    reach: Reach,
    except: &'static [&'static str],
    instead: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        paths: &[
            &["SystemTime"],
            &["std", "time", "Instant"],
            &["Utc", "now"],
            &["Local", "now"],
            &["Zoned", "now"],
            &["Timestamp", "now"],
        ],
        reach: Reach::Everything,
        except: &["src/base/clock.rs"],
        instead: "only base/clock.rs reads the clock, take a Clock or a stamp",
    },
    Ban {
        paths: &[&["tokio"], &["std", "fs"], &["std", "net"], &["std", "process"]],
        reach: Reach::PureProgram,
        except: &[],
        instead: "the pure band does no I/O and waits for nothing, hand the value in",
    },
    Ban {
        paths: &[&["HashMap"], &["HashSet"]],
        reach: Reach::PureBand,
        except: &[],
        instead: "its order differs between members, use BTreeMap or imbl::OrdMap",
    },
    Ban {
        paths: &[&["getrandom"], &["rand"], &["fastrand"], &["uuid"], &["RandomState"]],
        reach: Reach::Everything,
        except: &["src/base/entropy.rs"],
        instead: "only base/entropy.rs asks for randomness, take an Entropy",
    },
    Ban {
        paths: &[&["env", "var"], &["env", "vars"], &["env", "var_os"], &["env", "vars_os"]],
        reach: Reach::Program,
        except: &["src/node/config.rs"],
        instead: "only node/config.rs reads the environment, make it a config key",
    },
    Ban {
        paths: &[&["thread", "sleep"], &["time", "sleep"], &["time", "sleep_until"]],
        reach: Reach::Tests,
        except: &["tests/support/poll.rs"],
        instead: "a test does not sleep for a guess, poll a condition with tests/support/poll.rs",
    },
];

pub fn banned_paths(file: &SourceFile) -> Findings {
    let mut findings = Findings::new();
    let paths = file.paths();
    for ban in BANS {
        if ban.except.contains(&file.path.as_str()) {
            continue;
        }
        for path in &paths {
            let is_banned = ban.paths.iter().any(|banned| contains_run(&path.segments, banned));
            if is_banned && reaches(ban.reach, file, path.line) {
                let says = format!("{}: {}", path.segments.join("::"), ban.instead);
                findings.push(file.finding(path.line, &says));
            }
        }
    }
    findings
}

fn reaches(reach: Reach, file: &SourceFile, line: usize) -> bool {
    let in_src = file.path.starts_with("src/");
    match reach {
        Reach::Everything => in_src,
        Reach::Program => in_src && !file.is_test(line),
        Reach::PureBand => file.is_in(PURE),
        Reach::PureProgram => file.is_in(PURE) && !file.is_test(line),
        Reach::Tests => file.is_test(line),
    }
}

fn contains_run(segments: &[String], run: &[&str]) -> bool {
    segments.windows(run.len()).any(|window| window.iter().eq(run))
}

pub fn no_floats_in_machine(file: &SourceFile) -> Findings {
    let mut findings = Findings::new();
    for token in &file.tokens {
        let is_float = match token.kind {
            Kind::Ident => matches!(token.text.as_str(), "f32" | "f64"),
            Kind::Literal => is_float_literal(&token.text),
            Kind::Punct => false,
        };
        if is_float && file.is_in(&["machine"]) && !file.is_test(token.line) {
            let says = format!("{}: no floats in the machine, count in whole units", token.text);
            findings.push(file.finding(token.line, &says));
        }
    }
    findings
}

fn is_float_literal(text: &str) -> bool {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    let is_hex = text.starts_with("0x");
    is_number && !is_hex && (text.contains('.') || text.ends_with("f32") || text.ends_with("f64"))
}

pub fn only_output_prints(file: &SourceFile) -> Findings {
    let mut findings = Findings::new();
    for (name, line) in file.macros() {
        let prints = matches!(name, "print" | "println" | "eprint" | "eprintln");
        let in_src = file.path.starts_with("src/") && file.path != "src/cli/output.rs";
        if prints && in_src && !file.is_test(line) {
            findings.push(file.finding(line, "only cli/output.rs prints, log with tracing"));
        }
    }
    findings
}

pub fn nothing_left_over(file: &SourceFile) -> Findings {
    let unfinished = |name: &str| matches!(name, "todo" | "unimplemented" | "dbg");
    let called = file.macros().into_iter().filter(|(name, _)| unfinished(name));
    called.map(|(name, line)| file.finding(line, &format!("{name}! is unfinished work"))).collect()
}

pub fn imports(file: &SourceFile) -> Findings {
    let mut findings = Findings::new();
    for path in file.paths() {
        let is_glob = path.segments.last().is_some_and(|last| last == "*");
        if is_glob && !file.is_test(path.line) {
            findings.push(file.finding(path.line, "a glob hides where a name comes from, name it"));
        }
    }
    for item in &file.syntax.items {
        let syn::Item::Use(item) = item else { continue };
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        let line = item.use_token.span.start().line;
        if is_public && file.path != "src/lib.rs" && !file.is_test(line) {
            findings
                .push(file.finding(line, "a re-export gives a thing two homes, use its own path"));
        }
    }
    findings
}

pub fn every_allow_has_a_reason(file: &SourceFile) -> Findings {
    let mut findings = Findings::new();
    let text = |i: usize| file.tokens.get(i).map_or("", |token| token.text.as_str());
    for (i, token) in file.tokens.iter().enumerate() {
        let is_attribute = token.text == "#";
        let at = if text(i + 1) == "!" { i + 2 } else { i + 1 };
        let is_allow = text(at) == "[" && matches!(text(at + 1), "allow" | "expect");
        if !is_attribute || !is_allow {
            continue;
        }
        let inside = file.tokens[at..].iter().take_while(|token| token.text != "]");
        if !inside.into_iter().any(|token| token.text == "reason") {
            findings.push(file.finding(token.line, "an allow without `reason = \"..\"`"));
        }
    }
    findings
}

pub fn tests_are_claims(file: &SourceFile) -> Findings {
    let prefixed = file.test_functions().into_iter().filter(|(name, _)| name.starts_with("test_"));
    let says = "a test is named as a claim, without a test_ prefix";
    prefixed.map(|(_, line)| file.finding(line, says)).collect()
}

#[test]
fn banned_calls_are_found() {
    assert_rule_bites(
        banned_paths,
        &[
            ("src/leader/ticker.rs", "use std::time::{Duration, SystemTime};"),
            ("src/leader/ticker.rs", "use std::time::{Duration, Instant};"),
            ("src/recurrence/next.rs", "fn f() { chrono::Utc::now(); }"),
            ("src/machine/state.rs", "use std::collections::HashMap;"),
            ("src/planner/due.rs", "fn f() { std::collections::HashSet::<u8>::new(); }"),
            ("src/planner/due.rs", "use tokio::time::Instant;"),
            ("src/model/job.rs", "fn f() { std::fs::read(p); }"),
            ("src/service/jobs.rs", "fn f() { rand::random::<u64>(); }"),
            ("src/cli/args.rs", "fn f() { std::env::var(\"X\"); }"),
            ("tests/cluster/restart.rs", "async fn f() { tokio::time::sleep(d).await; }"),
            ("src/store/log.rs", "#[cfg(test)]\nmod tests { fn f() { std::thread::sleep(d); } }"),
        ],
        &[
            ("src/base/clock.rs", "use std::time::SystemTime;"),
            ("src/leader/ticker.rs", "use std::time::Duration;\nuse tokio::time::Instant;"),
            ("src/node/serve.rs", "use std::collections::HashMap;"),
            ("src/node/config.rs", "fn f() { std::env::var(\"X\"); }"),
            ("src/leader/ticker.rs", "async fn f() { tokio::time::sleep(d).await; }"),
            ("tests/support/poll.rs", "async fn f() { tokio::time::sleep(d).await; }"),
        ],
    );
    assert_rule_bites(
        no_floats_in_machine,
        &[
            ("src/machine/state.rs", "struct A(f64);"),
            ("src/machine/state.rs", "const A: B = 1.5;"),
            ("src/machine/state.rs", "const A: B = g(1f32);"),
        ],
        &[("src/machine/state.rs", "const A: u64 = 0xf32; fn f() { a.0; }")],
    );
}

#[test]
fn banned_forms_are_found() {
    assert_rule_bites(
        only_output_prints,
        &[("src/node/mod.rs", "fn f() { println!(\"x\"); }"), ("src/main.rs", "eprintln!();")],
        &[("src/cli/output.rs", "fn f() { println!(\"x\"); }")],
    );
    assert_rule_bites(
        nothing_left_over,
        &[("src/x.rs", "fn f() { todo!() }"), ("jepsen/src/x.rs", "fn f() { dbg!(1); }")],
        &[("src/x.rs", "fn f() { assert!(todo != 1); }")],
    );
    assert_rule_bites(
        imports,
        &[
            ("src/x.rs", "pub use crate::a::B;"),
            ("src/x.rs", "pub(crate) use crate::a::B;"),
            ("src/x.rs", "use crate::a::*;"),
        ],
        &[
            ("src/lib.rs", "pub use crate::a::B;"),
            ("src/x.rs", "use crate::a::B;\n#[cfg(test)]\nmod tests { use super::*; }"),
        ],
    );
    assert_rule_bites(
        every_allow_has_a_reason,
        &[
            ("src/x.rs", "#[allow(dead_code)]\nfn f() {}"),
            ("src/x.rs", "#![allow(dead_code)]\nfn f() {}"),
            ("src/x.rs", "macro_rules! m { () => { #[allow(dead_code)] fn f() {} } }"),
        ],
        &[("src/x.rs", "#[allow(dead_code, reason = \"the reader's half\")]\nfn f() {}")],
    );
    assert_rule_bites(
        tests_are_claims,
        &[("src/x.rs", "#[tokio::test]\nasync fn test_tokens() {}")],
        &[("src/x.rs", "#[test]\nfn tokens_grow() {}\nfn test_bed() {}")],
    );
}
