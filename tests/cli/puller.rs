//! The life of a worker against a cluster that does what the test wants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use horolog::client::error::ClientError;
use horolog::wire::worker::ExecutorKind;
use horolog::worker::handler::{Ending, Handler, Report, Run, Stop};
use horolog::worker::puller::{Puller, Shutdown};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cli::fake_cluster::FakeCluster;
use crate::cli::support::{PATIENCE, grant, until};

/// Works until the gate opens or it is told to stop, and counts itself meanwhile.
struct Gated {
    gate: watch::Sender<bool>,
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Gated {
    fn new() -> Arc<Gated> {
        let gate = watch::Sender::new(false);
        Arc::new(Gated { gate, running: AtomicUsize::new(0), most: AtomicUsize::new(0) })
    }
}

/// The same, shared with the test.
struct Shared(Arc<Gated>);

impl Handler for Shared {
    fn run(&self, run: Arc<Run>, mut stop: Stop) -> BoxFuture<'static, Report> {
        let gated = Arc::clone(&self.0);
        Box::pin(async move {
            assert!(!run.id().starts_with("bad"), "a bad run");
            let running = gated.running.fetch_add(1, Ordering::SeqCst) + 1;
            gated.most.fetch_max(running, Ordering::SeqCst);
            let mut gate = gated.gate.subscribe();
            let report = tokio::select! {
                _ = gate.wait_for(|open| *open) => Report::succeeded(),
                _ = stop.stopped() => Report { ending: Ending::Stopped, ..Report::succeeded() },
            };
            gated.running.fetch_sub(1, Ordering::SeqCst);
            report
        })
    }
}

struct Worker {
    shutdown: Shutdown,
    life: JoinHandle<Result<(), ClientError>>,
}

impl Worker {
    fn start(cluster: &FakeCluster, gated: &Arc<Gated>, slots: u32, grace: Duration) -> Worker {
        let shutdown = Shutdown::default();
        let handler: Arc<dyn Handler> = Arc::new(Shared(Arc::clone(gated)));
        let puller = Puller {
            client: cluster.client(),
            name: "w".to_owned(),
            pools: BTreeSet::from(["default".to_owned()]),
            slots,
            labels: BTreeMap::new(),
            grace,
            handlers: BTreeMap::from([(ExecutorKind::Worker, handler)]),
        };
        Worker { life: tokio::spawn(puller.run(shutdown.clone())), shutdown }
    }

    async fn end(self) {
        self.shutdown.drain.cancel();
        tokio::time::timeout(PATIENCE, self.life).await.unwrap().unwrap().unwrap();
    }
}

fn work(run: &str) -> serde_json::Value {
    grant(run, "300ms", &json!({ "worker": {} }))
}

#[tokio::test]
async fn no_more_runs_side_by_side_than_slots_and_each_is_answered_once() {
    let cluster = FakeCluster::start().await;
    let gated = Gated::new();
    for i in 1..=5 {
        cluster.give(work(&format!("a-{i}.1")));
    }
    let worker = Worker::start(&cluster, &gated, 2, Duration::ZERO);
    let full = || (gated.running.load(Ordering::SeqCst) == 2).then_some(());
    until("both slots are taken", full).await;
    gated.gate.send_replace(true);
    until("five answers", || (cluster.state().answers.len() == 5).then_some(())).await;
    worker.end().await;
    assert_eq!(gated.most.load(Ordering::SeqCst), 2);
    let state = cluster.state();
    let runs: BTreeSet<&str> =
        state.answers.iter().map(|answer| answer["run"].as_str().unwrap()).collect();
    assert_eq!(runs.len(), 5);
    assert!(state.answers.iter().all(|answer| answer["outcome"] == "succeeded"));
    assert!(state.polls.iter().all(|(max, _)| *max <= 2));
    assert!(state.draining && state.removed);
}

#[tokio::test]
async fn an_answer_is_repeated_until_it_is_acknowledged() {
    let cluster = FakeCluster::start().await;
    let gated = Gated::new();
    gated.gate.send_replace(true);
    cluster.state().refuse_answers = (3, 503);
    cluster.give(work("a-1.1"));
    let worker = Worker::start(&cluster, &gated, 1, Duration::ZERO);
    until("the answer", || cluster.answer_for("a-1.1")).await;
    worker.end().await;
    assert_eq!(cluster.state().refuse_answers.0, 0);
}

#[tokio::test]
async fn an_answer_that_is_refused_for_good_does_not_hold_up_the_others() {
    let cluster = FakeCluster::start().await;
    let gated = Gated::new();
    cluster.state().refuse_answers = (2, 422);
    cluster.give(work("a-1.1"));
    cluster.give(work("a-2.1"));
    let worker = Worker::start(&cluster, &gated, 2, Duration::ZERO);
    let full = || (gated.running.load(Ordering::SeqCst) == 2).then_some(());
    until("both run", full).await;
    gated.gate.send_replace(true);
    until("both refusals", || (cluster.state().refuse_answers.0 == 0).then_some(())).await;
    cluster.give(work("a-3.1"));
    until("a later answer", || cluster.answer_for("a-3.1")).await;
    worker.end().await;
}

#[tokio::test]
async fn a_forgotten_worker_registers_again_and_its_answer_still_arrives() {
    let cluster = FakeCluster::start().await;
    let gated = Gated::new();
    cluster.give(grant("a-1.1", "300s", &json!({ "worker": {} })));
    let worker = Worker::start(&cluster, &gated, 1, Duration::ZERO);
    until("it runs", || (gated.running.load(Ordering::SeqCst) == 1).then_some(())).await;
    // The session of our worker is not the latest any more.
    cluster.state().registered += 1;
    gated.gate.send_replace(true);
    until("the answer", || cluster.answer_for("a-1.1")).await;
    assert_eq!(cluster.state().registered, 3);
    worker.end().await;
}

#[tokio::test]
async fn leases_are_extended_while_a_run_lasts_and_a_cancel_request_stops_it() {
    let cluster = FakeCluster::start().await;
    let gated = Gated::new();
    cluster.give(work("a-1.1"));
    let worker = Worker::start(&cluster, &gated, 1, Duration::ZERO);
    let extended = || cluster.state().extended.get("a-1.1").filter(|count| **count >= 3).copied();
    until("three extensions", extended).await;
    let cancel = json!({
        "run": "a-1.1", "verdict": "extended", "ttl": "300ms", "cancel_requested": true,
    });
    cluster.state().verdicts.insert("a-1.1".to_owned(), cancel);
    let answer = until("the answer", || cluster.answer_for("a-1.1")).await;
    assert_eq!(answer["outcome"], "cancelled");
    worker.end().await;
}

#[tokio::test]
async fn a_run_whose_lease_is_lost_stops_without_an_answer() {
    let cluster = FakeCluster::start().await;
    let gated = Gated::new();
    let stale = json!({ "run": "a-1.1", "verdict": "stale", "current_token": 99 });
    cluster.state().verdicts.insert("a-1.1".to_owned(), stale);
    cluster.give(work("a-1.1"));
    let worker = Worker::start(&cluster, &gated, 1, Duration::ZERO);
    until("it ran", || (gated.most.load(Ordering::SeqCst) == 1).then_some(())).await;
    until("it stopped", || (gated.running.load(Ordering::SeqCst) == 0).then_some(())).await;
    gated.gate.send_replace(true);
    cluster.give(work("a-2.1"));
    until("the slot is free again", || cluster.answer_for("a-2.1")).await;
    worker.end().await;
    assert_eq!(cluster.answer_for("a-1.1"), None);
}

#[tokio::test]
async fn a_worker_that_drains_hands_back_what_it_cannot_finish() {
    let cluster = FakeCluster::start().await;
    let gated = Gated::new();
    cluster.give(work("a-1.1"));
    let worker = Worker::start(&cluster, &gated, 2, Duration::from_millis(50));
    until("it runs", || (gated.running.load(Ordering::SeqCst) == 1).then_some(())).await;
    worker.end().await;
    assert_eq!(cluster.answer_for("a-1.1").unwrap()["outcome"], "released");
}

#[tokio::test]
async fn a_worker_that_drains_lets_work_finish_within_its_grace() {
    let cluster = FakeCluster::start().await;
    let gated = Gated::new();
    cluster.give(work("a-1.1"));
    let worker = Worker::start(&cluster, &gated, 2, PATIENCE);
    until("it runs", || (gated.running.load(Ordering::SeqCst) == 1).then_some(())).await;
    worker.shutdown.drain.cancel();
    until("it drains", || cluster.state().draining.then_some(())).await;
    gated.gate.send_replace(true);
    worker.end().await;
    assert_eq!(cluster.answer_for("a-1.1").unwrap()["outcome"], "succeeded");
}

#[tokio::test]
async fn a_handler_that_panics_fails_its_run_and_nothing_else() {
    let cluster = FakeCluster::start().await;
    let gated = Gated::new();
    gated.gate.send_replace(true);
    cluster.give(work("bad-1.1"));
    cluster.give(work("a-1.1"));
    let worker = Worker::start(&cluster, &gated, 1, Duration::ZERO);
    let answer = until("the answer", || cluster.answer_for("bad-1.1")).await;
    assert_eq!(answer["outcome"], "failed");
    assert_eq!(answer["error"]["kind"], "panic");
    assert!(answer["error"]["message"].as_str().unwrap().contains("a bad run"));
    until("the next", || cluster.answer_for("a-1.1")).await;
    worker.end().await;
}
