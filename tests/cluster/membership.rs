//! Nodes that come, go, move and come back.

use std::time::Duration;

use serde_json::json;

use crate::cluster::firing::{self, TENANT};
use crate::support::poll;
use crate::support::processes::Cluster;

const WITHIN: Duration = Duration::from_secs(60);

/// A node that lost its folder gets a new id, and the state by snapshot, while the others go on
/// firing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_follower_comes_back_by_snapshot_while_firing_goes_on() {
    let mut cluster = Cluster::empty();
    let small_log = ["--snapshot-every".to_owned(), "40".to_owned()];
    let bootstrap = [&["--bootstrap".to_owned()][..], &small_log].concat();
    cluster.add_and_start(&bootstrap);
    cluster.wait_ready(0).await;
    let join = [&cluster.join_flag()[..], &small_log].concat();
    for _ in 0..2 {
        let position = cluster.add_and_start(&join);
        cluster.wait_ready(position).await;
    }
    firing::make_jobs(&cluster, 100).await;
    purged_at_least_once(&cluster).await;

    let leader = cluster.leader().await;
    let wiped = (leader + 1) % 3;
    let old_id = cluster.status(wiped).await.unwrap()["node"].as_u64().unwrap();
    cluster.kill(wiped);
    cluster.wipe(wiped);
    let removed = format!("{}/v1/cluster/members/{old_id}", cluster.base(leader));
    let answer = cluster.http.delete(&removed).await.unwrap();
    assert!(answer.status < 300, "{}", answer.body);

    let peer = format!("127.0.0.1:{}", cluster.nodes[leader].peer_port);
    let join = [&["--join".to_owned(), peer][..], &small_log].concat();
    cluster.start_node(wiped, &join);
    cluster.wait_ready(wiped).await;
    let status = cluster.status(wiped).await.unwrap();
    assert_ne!(status["node"].as_u64(), Some(old_id), "a node id is never used twice");

    // It shows the same jobs and fires as the leader, and goes on following.
    let last = horolog::base::clock::Clock::now(&horolog::base::clock::SystemClock);
    firing::check_every_second_once(&cluster, &cluster.base(wiped), 100, last).await;
}

async fn purged_at_least_once(cluster: &Cluster) {
    poll::reached("the log was cut behind a snapshot", WITHIN, || async {
        let status = cluster.status(0).await?;
        let purged = status["purged_index"].as_u64().unwrap_or(0);
        if purged > 0 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
}

/// K03 for one node: identity is the id, not the address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_keeps_its_id_when_its_addresses_change() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let moved = (leader + 1) % 3;
    let id = cluster.status(moved).await.unwrap()["node"].as_u64();
    assert_eq!(cluster.stop(moved).await, Some(0), "{}", cluster.log_tail(moved));
    cluster.move_node(moved);
    cluster.start_node(moved, &[]);
    cluster.wait_ready(moved).await;

    let port = cluster.nodes[moved].peer_port;
    let expected = format!("127.0.0.1:{port}");
    poll::reached("the leader knows the new address", WITHIN, || async {
        let status = cluster.status(leader).await?;
        let members = status["members"].as_array().cloned().unwrap_or_default();
        let found = members.iter().find(|member| member["node"].as_u64() == id).cloned();
        match found {
            Some(member) if member["peer_addr"] == expected => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    write_here_read_there(&cluster, moved, leader, "moved").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_nodes_go_on_without_two() {
    let mut cluster = Cluster::start(5).await;
    let leader = cluster.leader().await;
    cluster.kill(leader);
    let next = cluster.leader().await;
    let third = cluster.running().into_iter().find(|&position| position != next).unwrap();
    cluster.kill(third);
    let last = cluster.running().into_iter().find(|&position| position != next).unwrap();
    let next = cluster.leader().await;
    write_here_read_there(&cluster, last, next, "with-three-of-five").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_is_a_cluster_for_a_laptop() {
    let mut cluster = Cluster::start(1).await;
    write_here_read_there(&cluster, 0, 0, "alone").await;
    assert_eq!(cluster.stop(0).await, Some(0), "{}", cluster.log_tail(0));
    cluster.start_node(0, &[]);
    cluster.wait_ready(0).await;
    let url = format!("{}{TENANT}/jobs/default/alone", cluster.base(0));
    assert_eq!(cluster.http.get(&url).await.unwrap().status, 200);
}

/// K09: without a majority a write is refused soon, and never carried out later as if it had been
/// acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_writes_are_refused_soon() {
    let mut cluster = Cluster::start(3).await;
    cluster.kill(1);
    cluster.kill(2);
    let url = format!("{}{TENANT}/jobs/default/refused", cluster.base(0));
    let began = tokio::time::Instant::now();
    let answer = cluster.http.put(&url, &json!({"executor": {"worker": {}}})).await.unwrap();
    assert!(matches!(answer.status, 503 | 504), "{} {}", answer.status, answer.body);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let url = format!("{}/readyz", cluster.base(0));
    poll::reached("the node says that it is not ready", WITHIN, || async {
        let ready = cluster.http.get(&url).await?;
        if ready.status == 503 { Ok(()) } else { Err(ready.body.to_string()) }
    })
    .await;
}

async fn write_here_read_there(cluster: &Cluster, here: usize, there: usize, job: &str) {
    let path = format!("{TENANT}/jobs/default/{job}");
    let body = json!({"executor": {"worker": {}}});
    let url = format!("{}{path}", cluster.base(here));
    let written = poll::reached("the cluster takes the write", WITHIN, || async {
        let answer = cluster.http.put(&url, &body).await?;
        if answer.status < 300 { Ok(answer) } else { Err(answer.body.to_string()) }
    })
    .await;
    let read = cluster.http.get(&format!("{}{path}", cluster.base(there))).await.unwrap();
    assert_eq!(read.status, 200, "{} after {written:?}", read.body);
}
