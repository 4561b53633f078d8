//! How members come in, move, and leave.

use std::sync::Arc;

use horolog::replica::config::Start;
use horolog::replica::error::{MemberError, StartError};

use crate::cluster_in_process::support::{cluster, has_tenant, leader, start, tenant, try_start};
use crate::support::poll::{LONG, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_ids_are_never_used_twice() {
    let mut members = cluster(3).await;
    let mut ids: Vec<u64> = members.iter().map(|member| member.id().0).collect();
    let gone = members.pop().unwrap();
    members[0].replica.remove_member(gone.id(), LONG).await.unwrap();
    gone.stop().await;
    let again = start(Start::Join(vec![members[0].peer.clone()])).await;
    ids.push(again.id().0);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4, "{ids:?}");
    assert_eq!(ids[0], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_member_is_told_and_stops() {
    let members = cluster(3).await;
    let place = leader(&members).await;
    let (asked, removed) = ((place + 1) % 3, (place + 2) % 3);
    let id = members[removed].id();
    members[asked].replica.remove_member(id, LONG).await.unwrap();
    let mut stopped = members[removed].replica.stopped();
    let told = tokio::time::timeout(LONG, stopped.wait_for(Option::is_some)).await;
    let reason = told.unwrap().unwrap().clone().unwrap();
    assert!(reason.contains("removed"), "{reason}");
    members[asked].replica.propose(tenant("after"), LONG).await.unwrap();
    assert_eq!(members[asked].replica.status().members.len(), 2);
    let unknown = members[asked].replica.remove_member(id, LONG).await;
    assert_eq!(unknown, Err(MemberError::Unknown(id)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_can_be_removed_and_the_last_voter_cannot() {
    let mut members = cluster(2).await;
    let place = leader(&members).await;
    let gone = members.remove(place);
    members[0].replica.remove_member(gone.id(), LONG).await.unwrap();
    let left = &members[0];
    until("the other one leads", || async { left.replica.leadership().borrow().leading }).await;
    left.replica.propose(tenant("alone"), LONG).await.unwrap();
    let last = left.replica.remove_member(left.id(), LONG).await;
    assert_eq!(last, Err(MemberError::LastVoter(left.id())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_member_comes_back_by_snapshot_while_writes_go_on() {
    let mut members = cluster(3).await;
    let wiped = members.pop().unwrap();
    let id = wiped.id();
    wiped.stop().await;
    members[0].replica.remove_member(id, LONG).await.unwrap();
    let writer = members[0].replica.clone();
    let writes = tokio::spawn(async move {
        for number in 0..600 {
            writer.propose(tenant(&format!("tenant-{number}")), LONG).await.unwrap();
        }
    });
    let first = members[0].replica.clone();
    until("the log was purged", || async { first.status().purged_index > 0 }).await;
    let back = start(Start::Join(vec![members[1].peer.clone()])).await;
    until("it votes", || async {
        let members = first.status().members;
        members.iter().any(|member| member.node == back.id() && member.is_voter)
    })
    .await;
    writes.await.unwrap();
    let view = back.replica.linearizable(LONG).await.unwrap();
    for number in 0..600 {
        assert!(has_tenant(&view, &format!("tenant-{number}")), "{number}");
    }
    assert!(back.replica.status().purged_index > 0, "its log begins behind the snapshot");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_lags_behind_the_log_catches_up_by_snapshot() {
    let mut members = cluster(3).await;
    let place = leader(&members).await;
    let (folder, peer) = members.remove((place + 1) % 3).stop().await;
    for number in 0..400 {
        members[0].replica.propose(tenant(&format!("tenant-{number}")), LONG).await.unwrap();
    }
    let back = try_start(&folder, &peer, Start::Restart).await.unwrap();
    back.replica.recovered().await.unwrap();
    let view = back.replica.linearizable(LONG).await.unwrap();
    assert!((0..400).all(|number| has_tenant(&view, &format!("tenant-{number}"))));
    let (folder, peer) = back.stop().await;
    let back = try_start(&folder, &peer, Start::Restart).await.unwrap();
    back.replica.recovered().await.unwrap();
    let view = back.replica.view();
    assert!((0..400).all(|number| has_tenant(&view, &format!("tenant-{number}"))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_under_another_address_announces_it() {
    let mut members = cluster(3).await;
    let place = leader(&members).await;
    let moved = members.remove((place + 1) % 3);
    let id = moved.id();
    let (folder, before) = moved.stop().await;
    members[0].replica.propose(tenant("meanwhile"), LONG).await.unwrap();
    let moved = try_start(&folder, "127.0.0.1:0", Start::Restart).await.unwrap();
    assert_ne!(moved.peer, before);
    let first = &members[0].replica;
    until("the new address is written down", || async {
        let members = first.status().members;
        members.iter().any(|member| member.node == id && member.peer_address == moved.peer)
    })
    .await;
    let view = moved.replica.linearizable(LONG).await.unwrap();
    assert!(has_tenant(&view, "meanwhile"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_another_cluster_is_refused() {
    let ours = cluster(1).await;
    let theirs = cluster(1).await.pop().unwrap();
    let (folder, _) = theirs.stop().await;
    let how = Start::Join(vec![ours[0].peer.clone()]);
    let refused = try_start(&folder, "127.0.0.1:0", how).await.err().unwrap();
    assert!(matches!(refused, StartError::OtherCluster { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_without_a_member_needs_to_be_told_how_to_begin() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let refused = try_start(&folder, "127.0.0.1:0", Start::Restart).await.err().unwrap();
    assert!(matches!(refused, StartError::NoIdentity), "{refused}");
}
