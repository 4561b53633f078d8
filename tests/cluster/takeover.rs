//! The leader dies, or is paused, or everybody dies at once, while 200 jobs fire every second.

use std::time::Duration;

use horolog::base::clock::{Clock, SystemClock};
use horolog::base::time::{Span, Timestamp};
use serde_json::json;

use crate::cluster::firing::{self, TENANT, Worker};
use crate::support::poll;
use crate::support::processes::Cluster;

const JOBS: usize = 200;
const WITHIN: Duration = Duration::from_secs(60);

/// P1, P2: none lost, none doubled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_the_leader_neither_loses_nor_doubles_a_fire() {
    let mut cluster = Cluster::start(3).await;
    firing::make_jobs(&cluster, JOBS).await;
    let worker = Worker::start((0..3).map(|position| cluster.base(position)).collect());
    for _ in 0..2 {
        fires_pass(Span::from_secs(3)).await;
        let leader = cluster.leader().await;
        cluster.kill(leader);
        let next = cluster.leader().await;
        assert_ne!(next, leader);
        fires_pass(Span::from_secs(2)).await;
        cluster.start_node(leader, &[]);
        cluster.wait_ready(leader).await;
    }
    let end = SystemClock.now();
    fires_pass(Span::from_secs(2)).await;
    let leader = cluster.leader().await;
    firing::check_every_second_once(&cluster, &cluster.base(leader), JOBS, end).await;
    worker.stop();
}

/// P7: paused for ten seconds and resumed, the old leader changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_paused_changes_nothing_after_it_resumes() {
    let cluster = Cluster::start(3).await;
    firing::make_jobs(&cluster, JOBS).await;
    let worker = Worker::start((0..3).map(|position| cluster.base(position)).collect());
    fires_pass(Span::from_secs(3)).await;

    let old = cluster.leader().await;
    cluster.pause(old);
    let others: Vec<usize> = (0..3).filter(|&position| position != old).collect();
    let new = poll::reached("another node leads", WITHIN, || async {
        for &position in &others {
            let status = cluster.status(position).await?;
            if status["leader"] == status["node"] {
                return Ok(position);
            }
        }
        Err("none of the others leads".to_owned())
    })
    .await;
    let term = cluster.status(new).await.unwrap()["term"].as_u64().unwrap();
    fires_pass(Span::from_secs(10)).await;
    cluster.resume(old);

    // It follows now; what it is asked goes to the new leader or is refused, never answered from
    // its old term.
    poll::reached("the old leader follows", WITHIN, || async {
        let status = cluster.status(old).await?;
        let follows = status["leader"] != status["node"] && status["term"].as_u64() >= Some(term);
        if follows { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    let end = SystemClock.now();
    fires_pass(Span::from_secs(2)).await;
    firing::check_every_second_once(&cluster, &cluster.base(new), JOBS, end).await;
    firing::check_every_second_once(&cluster, &cluster.base(old), JOBS, end).await;
    worker.stop();
}

/// P1: proposals of the leader go unanswered while both followers hang. No election follows, as
/// they come back to the leader that they know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn firing_goes_on_after_all_followers_hung() {
    let cluster = Cluster::start(3).await;
    firing::make_jobs(&cluster, 20).await;
    let worker = Worker::start((0..3).map(|position| cluster.base(position)).collect());
    fires_pass(Span::from_secs(3)).await;

    let leader = cluster.leader().await;
    let followers: Vec<usize> = (0..3).filter(|&position| position != leader).collect();
    for &follower in &followers {
        cluster.pause(follower);
    }
    // Longer than the leader waits for the answer to one proposal.
    fires_pass(Span::from_secs(15)).await;
    for &follower in &followers {
        cluster.resume(follower);
    }

    let end = SystemClock.now();
    fires_pass(Span::from_secs(2)).await;
    firing::check_every_second_once(&cluster, &cluster.base(leader), 20, end).await;
    worker.stop();
}

/// P5: what was acknowledged survives `kill -9` of all nodes at once. P1: the downtime is accounted
/// for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_all_nodes_at_once_loses_nothing_acknowledged() {
    let mut cluster = Cluster::start(3).await;
    firing::make_jobs(&cluster, 20).await;
    let skip = json!({
        "executor": {"worker": {}},
        "triggers": {"tick": {
            "schedule": {"every": {"interval": "1s"}},
            "misfire": {"policy": "skip", "grace": "1s"},
        }},
    });
    let skipping = format!("{TENANT}/jobs/default/skipping");
    let made = cluster.http.put(&format!("{}{skipping}", cluster.base(1)), &skip).await.unwrap();
    assert_eq!(made.status, 201, "{}", made.body);

    // Writes go on until the kill; the acknowledged ones are remembered.
    let mut acknowledged = Vec::new();
    for number in 0..200 {
        let url = format!("{}{TENANT}/jobs/written/job-{number}", cluster.base(number % 3));
        let answer = cluster.http.put(&url, &json!({"executor": {"worker": {}}})).await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.body);
        acknowledged.push((number, answer.index.unwrap()));
    }
    for position in 0..3 {
        cluster.kill(position);
    }
    fires_pass(Span::from_secs(5)).await;
    for position in 0..3 {
        cluster.start_node(position, &[]);
    }
    for position in 0..3 {
        cluster.wait_ready(position).await;
    }

    for (number, _) in &acknowledged {
        let url = format!("{}{TENANT}/jobs/written/job-{number}", cluster.base(0));
        let answer = cluster.http.get(&url).await.unwrap();
        assert_eq!(answer.status, 200, "job-{number}: {}", answer.body);
    }
    let end = SystemClock.now();
    fires_pass(Span::from_secs(2)).await;
    firing::check_every_second_once(&cluster, &cluster.base(2), 20, end).await;
    the_downtime_was_skipped_with_a_reason(&cluster).await;
}

/// The policy `skip` leaves one record for the run of missed occurrences, with a reason.
async fn the_downtime_was_skipped_with_a_reason(cluster: &Cluster) {
    let base = cluster.base(1);
    poll::reached("the downtime is on record", WITHIN, || async {
        let fires = firing::all_fires(&cluster.http, &base, "default/skipping").await?;
        let missed: u64 = fires
            .iter()
            .filter(|fire| fire["skip_reason"] == "misfire")
            .map(|fire| fire["folded"]["count"].as_u64().unwrap_or(1))
            .sum();
        if missed >= 3 { Ok(()) } else { Err(format!("{missed} in {fires:?}")) }
    })
    .await;
}

/// Lets the cluster fire for a while, by the wall clock that the schedules follow.
async fn fires_pass(span: Span) {
    let until: Timestamp = SystemClock.now().plus(span);
    poll::let_pass(until.since(SystemClock.now()).to_std()).await;
}
