//! The program itself: its help, its exit codes, and what goes to which stream.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

fn horolog(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_horolog"));
    for variable in ["HOROLOG_SERVER", "HOROLOG_TENANT", "NO_COLOR", "COLUMNS"] {
        command.env_remove(variable);
    }
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    horolog(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Compares with a file that is reviewed like code. What is new is put where it can be copied from.
#[test]
fn help_says_what_it_said_when_it_was_last_reviewed() {
    let table = [
        ("horolog", &[] as &[&str], include_str!("help/horolog.txt")),
        ("serve", &["serve"], include_str!("help/serve.txt")),
        ("dev", &["dev"], include_str!("help/dev.txt")),
        ("worker", &["worker"], include_str!("help/worker.txt")),
        ("job", &["job"], include_str!("help/job.txt")),
        ("job-apply", &["job", "apply"], include_str!("help/job-apply.txt")),
        ("job-fire", &["job", "fire"], include_str!("help/job-fire.txt")),
        ("trigger", &["trigger"], include_str!("help/trigger.txt")),
        ("fire", &["fire"], include_str!("help/fire.txt")),
        ("cluster", &["cluster"], include_str!("help/cluster.txt")),
        ("cron-next", &["cron", "next"], include_str!("help/cron-next.txt")),
        ("import-crontab", &["import", "crontab"], include_str!("help/import-crontab.txt")),
    ];
    let mut changed = Vec::new();
    for (name, words, reviewed) in table {
        let output = run(&[words, &["--help"]].concat());
        assert_eq!(output.status.code(), Some(0));
        if text(&output.stdout) != reviewed {
            let path = format!("{}/{name}.txt", env!("CARGO_TARGET_TMPDIR"));
            std::fs::write(&path, &output.stdout).unwrap();
            changed.push(path);
        }
    }
    assert!(changed.is_empty(), "review and copy to tests/cli/help: {}", changed.join(" "));
}

#[test]
fn exit_codes_tell_refused_input_from_a_cluster_that_is_away() {
    let away = "http://127.0.0.1:1";
    let table: &[(&[&str], i32, &str)] = &[
        (&["cron", "next", "0 3 * * *", "--count", "1"], 0, ""),
        (&["cron", "next", "61 * * * *"], 2, "61"),
        (&["cron", "next", "* * * * *", "--tz", "Mars/Base"], 2, "Mars/Base"),
        (&["cron", "next", "* * * * *", "--after", "yesterday"], 2, "RFC 3339"),
        (&["no-such-command"], 2, "no-such-command"),
        (&["job", "get", "a/b/c"], 2, "group/name"),
        (&["job", "apply", "/no/such/file"], 2, "/no/such/file"),
        (&["job", "fire", "a", "--payload", "{"], 2, "not JSON"),
        (&["-s", "ftp://x", "job", "list"], 2, "ftp"),
        (&["-s", "a b", "job", "list"], 2, "a b"),
    ];
    for (arguments, code, part) in table {
        let output = run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert!(*code == 0 || output.stdout.is_empty(), "{arguments:?}");
    }
    let output = run(&["-s", away, "cluster", "status"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains(away));
}

#[test]
fn cron_next_prints_one_json_array_of_utc_instants() {
    let output = run(&[
        "cron",
        "next",
        "0 30 2 * * ?",
        "--dialect",
        "quartz",
        "--tz",
        "Europe/Berlin",
        "--after",
        "2026-03-28T00:00:00Z",
        "--count",
        "3",
        "-o",
        "json",
    ]);
    let times: Vec<String> = serde_json::from_slice(&output.stdout).unwrap();
    // On the 29th half past two does not exist, and three o'clock is the first instant after.
    let expected = ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"];
    assert_eq!(times, expected);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = horolog(&["cron", "next", "* * * * *", "--count", "1000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((status.code(), said.as_str()), (Some(0), ""));
}

#[test]
fn an_import_reports_on_standard_output_and_fails_when_a_line_is_refused() {
    let import = |input: &str, format: &str| -> Output {
        let mut child = horolog(&["import", "crontab", "-", "--dry-run", "-o", format])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let fine = import("0 3 * * * backup\n", "table");
    assert_eq!(fine.status.code(), Some(0));
    assert!(text(&fine.stdout).contains("backup-"), "{}", text(&fine.stdout));
    assert!(text(&fine.stderr).contains("read in UTC"), "{}", text(&fine.stderr));
    let refused = import("@reboot x\nA=1\n0 3 * * * b\n", "json");
    assert_eq!(refused.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!((&report["taken"], &report["refused"]), (&2.into(), &1.into()));
    assert_eq!(report["lines"][0]["verdict"], "refused");
}
