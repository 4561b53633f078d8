//! The handler against real processes.

use std::path::Path;

use tokio::time::Instant;

use super::*;
use crate::base::limits::OUTPUT_BYTES_MAX;
use crate::worker::handler::tests::run_of;
use crate::worker::handler::{StopSender, stop_pair};

const HANDLER: CommandHandler = CommandHandler { kill_grace: Duration::from_millis(400) };
const PATIENCE: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Arc<Run> {
    command(&serde_json::json!({ "argv": ["/bin/sh", "-c", script] }))
}

fn command(spec: &serde_json::Value) -> Arc<Run> {
    run_of(&serde_json::json!({ "command": spec }).to_string(), "{\"n\":1}")
}

async fn report(run: Arc<Run>) -> Report {
    let (sender, stop) = stop_pair();
    let report = tokio::time::timeout(PATIENCE, HANDLER.run(run, stop)).await.unwrap();
    drop(sender);
    report
}

/// Starts a run that will not end, and waits until it has written to a file.
async fn started(
    run: Arc<Run>,
    sign: &Path,
) -> (StopSender, tokio::task::JoinHandle<Report>, String) {
    let (sender, stop) = stop_pair();
    let handle = tokio::spawn(HANDLER.run(run, stop));
    let text = until(|| std::fs::read_to_string(sign).ok().filter(|text| text.ends_with('\n')));
    (sender, handle, text.await)
}

async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let give_up_at = Instant::now() + PATIENCE;
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up_at, "it did not happen in time");
        tick.tick().await;
    }
}

/// A process that is gone, or dead and not yet collected by the process it was left to.
fn is_gone(id: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{}/stat", id.trim())) {
        Err(_) => true,
        Ok(stat) => stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')),
    }
}

fn output(report: &Report) -> &str {
    &report.output.as_ref().unwrap().text
}

#[tokio::test]
async fn exit_codes_and_signals_become_outcomes() {
    let fine = report(shell("exit 0")).await;
    assert!(matches!(fine.ending, Ending::Succeeded(None)), "{fine:?}");
    assert_eq!(fine.exit_code, Some(0));
    let failed = report(shell("exit 3")).await;
    assert!(matches!(&failed.ending, Ending::Failed(f) if f.kind == "exit" && f.retryable));
    assert_eq!(failed.exit_code, Some(3));
    let killed = report(shell("kill -9 $$")).await;
    assert!(matches!(&killed.ending, Ending::Failed(f) if f.kind == "signal"), "{killed:?}");
    assert_eq!(killed.exit_code, None);
}

#[tokio::test]
async fn both_outputs_are_kept_in_their_order() {
    let report = report(shell("echo one; echo two >&2; echo three; echo four >&2")).await;
    assert_eq!(output(&report), "one\ntwo\nthree\nfour\n");
}

#[tokio::test]
async fn the_program_gets_its_input_folder_variables_and_fields() {
    let folder = tempfile::tempdir().unwrap();
    let script = "cat; pwd; echo $A $HOROLOG_TOKEN $HOROLOG_ATTEMPT \"$HOROLOG_PAYLOAD\"";
    let run = command(&serde_json::json!({
        "argv": ["sh", "-c", script],
        "stdin": "in\n",
        "folder": folder.path(),
        "env": { "A": "b", "HOROLOG_TOKEN": "forged" },
    }));
    let report = report(run).await;
    let place = folder.path().canonicalize().unwrap();
    assert_eq!(output(&report), format!("in\n{}\nb 77 2 {{\"n\":1}}\n", place.display()));
}

#[tokio::test]
async fn input_that_nobody_reads_is_no_failure() {
    let text = "x".repeat(1_000_000);
    let run = command(&serde_json::json!({ "argv": ["/bin/true"], "stdin": text }));
    assert!(matches!(report(run).await.ending, Ending::Succeeded(_)));
}

#[tokio::test]
async fn what_cannot_be_started_says_why_and_is_not_tried_again() {
    let table = [
        (serde_json::json!({ "argv": ["/no/such/program"] }), "/no/such/program"),
        (serde_json::json!({ "argv": ["/etc/passwd"] }), "Permission denied"),
        (serde_json::json!({ "argv": ["true"], "folder": "/no/such" }), "/no/such"),
        (serde_json::json!({ "argv": [] }), "no program"),
        (serde_json::json!({ "argv": ["true"], "user": "no-such-user" }), "no-such-user"),
    ];
    for (spec, part) in table {
        match report(command(&spec)).await.ending {
            Ending::Failed(failure) => {
                assert!(!failure.retryable, "{spec}");
                assert!(failure.message.contains(part), "{spec}: {}", failure.message);
            }
            other @ (Ending::Succeeded(_) | Ending::Stopped) => panic!("{spec}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_hundred_megabytes_of_output_keep_only_their_end() {
    let report = report(shell("yes | head -c 100000000; echo the end")).await;
    let kept = report.output.as_ref().unwrap();
    assert!(kept.truncated);
    assert!(kept.text.len() <= OUTPUT_BYTES_MAX);
    assert!(kept.text.starts_with("[cut: the end of 100000008 bytes"), "{}", &kept.text[..60]);
    assert!(kept.text.ends_with("the end\n"));
}

#[tokio::test]
async fn a_cancelled_program_goes_with_all_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let sign = folder.path().join("ids");
    // A grandchild of the shell, started by another shell.
    let script = format!("sh -c 'sleep 1000 & echo $! > {}; wait'; wait", sign.display());
    let (sender, handle, grandchild) = started(shell(&script), &sign).await;
    assert!(!is_gone(&grandchild));
    sender.stop(StopReason::Cancelled);
    let report = handle.await.unwrap();
    assert!(matches!(report.ending, Ending::Stopped));
    assert!(output(&report).contains("[cancelled: SIGTERM ended it]"), "{}", output(&report));
    until(|| is_gone(&grandchild).then_some(())).await;
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed_and_the_record_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let sign = folder.path().join("ids");
    let script = format!("trap '' TERM; echo $$ > {}; while :; do sleep 1; done", sign.display());
    let (sender, handle, id) = started(shell(&script), &sign).await;
    sender.stop(StopReason::TimedOut);
    let report = handle.await.unwrap();
    assert!(output(&report).contains("[timed out: SIGKILL ended it"), "{}", output(&report));
    until(|| is_gone(&id).then_some(())).await;
}

#[tokio::test]
async fn what_a_program_says_while_it_is_stopped_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let sign = folder.path().join("ids");
    let script = format!(
        "trap 'echo tidying up; exit 0' TERM; echo $$ > {}; while :; do sleep 0.05; done",
        sign.display()
    );
    let (sender, handle, _) = started(shell(&script), &sign).await;
    sender.stop(StopReason::Cancelled);
    let report = handle.await.unwrap();
    assert!(output(&report).contains("tidying up"), "{}", output(&report));
}

#[tokio::test]
async fn what_is_left_of_the_group_ends_with_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let sign = folder.path().join("ids");
    let script = format!("sleep 1000 & echo $! > {}; exit 0", sign.display());
    let report = report(shell(&script)).await;
    assert!(matches!(report.ending, Ending::Succeeded(_)));
    let left_over = std::fs::read_to_string(&sign).unwrap();
    until(|| is_gone(&left_over).then_some(())).await;
}

#[tokio::test]
async fn a_dropped_run_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let sign = folder.path().join("ids");
    let script = format!("sleep 1000 & echo $! > {}; wait", sign.display());
    let (_sender, handle, child) = started(shell(&script), &sign).await;
    handle.abort();
    until(|| is_gone(&child).then_some(())).await;
}
