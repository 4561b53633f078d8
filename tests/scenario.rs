//! Stories of a cluster in a small language, run against the machine and the planner.
//!
//! A scenario in `tests/scenarios` is commands, each on a line that begins with `> `, and below
//! each what came of it. `HOROLOG_REWRITE=1` writes the outcomes anew; the difference is then
//! reviewed like code. `tests/scenario/world.rs` has the verbs.

mod world;

use std::fs;
use std::path::{Path, PathBuf};

use crate::scenario::world::World;

/// Runs a scenario and yields its text with the outcomes as they are.
fn run(text: &str) -> String {
    let mut world = World::new();
    let mut out = String::new();
    for line in text.lines() {
        let Some(command) = line.strip_prefix("> ") else {
            // Outcomes are indented; everything else is the story's own words.
            if !line.starts_with("  ") {
                out.push_str(line);
                out.push('\n');
            }
            continue;
        };
        out.push_str(line);
        out.push('\n');
        for outcome in world.carry_out(command) {
            out.push_str(&format!("  {outcome}\n"));
        }
    }
    out
}

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Whether outcomes and golden files are to be written anew.
#[allow(clippy::disallowed_methods, reason = "asked of whoever runs the tests, not of a node")]
pub fn rewrites() -> bool {
    std::env::var("HOROLOG_REWRITE").is_ok_and(|value| value == "1")
}

#[test]
fn scenarios_turn_out_as_written() {
    let mut different = Vec::new();
    for path in scenarios() {
        let written = fs::read_to_string(&path).unwrap();
        let found = run(&written);
        if found == written {
            continue;
        }
        if rewrites() {
            fs::write(&path, &found).unwrap();
            continue;
        }
        let mut pairs = written.lines().zip(found.lines()).enumerate();
        let first = pairs.find(|(_, (written, found))| written != found);
        let (line, (written, found)) = first.unwrap_or((0, ("", "(another length)")));
        different.push(format!("{}:{}\n- {written}\n+ {found}", path.display(), line + 1));
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(scenarios().len() >= 10);
}

#[test]
fn a_wrong_outcome_is_found() {
    let story = "# A story.\n\n> create-job a\n  a created at revision 2\n";
    let found = run(story);
    assert_eq!(found, "# A story.\n\n> create-job a\n  a created at revision 1\n");
    assert_ne!(found, story);
}
