//! What a member does when its disk fails or hangs.

use std::sync::Arc;

use horolog::replica::config::Start;
use horolog::replica::error::ProposeError;
use horolog::store::fault::Faults;

use crate::cluster_in_process::support::{
    Member, cluster, has_tenant, leader, tenant, try_start_on,
};
use crate::support::poll::{LONG, until};

/// A cluster of three whose last member's disk obeys the returned faults.
async fn with_a_bad_disk() -> (Vec<Member>, Faults) {
    let mut members = cluster(2).await;
    let faults = Faults::default();
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let how = Start::Join(vec![members[0].peer.clone()]);
    members.push(try_start_on(&folder, "127.0.0.1:0", how, faults.clone()).await.unwrap());
    let (first, id) = (&members[0].replica, members[2].id());
    until("the third one votes", || async {
        first.status().members.iter().any(|member| member.node == id && member.is_voter)
    })
    .await;
    (members, faults)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_flush_stops_the_member_and_the_others_go_on() {
    let (members, faults) = with_a_bad_disk().await;
    faults.fail_next_sync();
    members[0].replica.propose(tenant("during"), LONG).await.unwrap();
    let mut stopped = members[2].replica.stopped();
    let told = tokio::time::timeout(LONG, stopped.wait_for(Option::is_some)).await;
    let reason = told.unwrap().unwrap().clone().unwrap();
    assert!(!reason.is_empty());
    let refused = members[2].replica.propose(tenant("refused"), LONG).await.unwrap_err();
    assert!(matches!(refused, ProposeError::Stopped(_)), "{refused}");
    members[0].replica.propose(tenant("after"), LONG).await.unwrap();
    let view = members[1].replica.linearizable(LONG).await.unwrap();
    assert!(has_tenant(&view, "during") && has_tenant(&view, "after"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_disk_hangs_hands_over_and_acknowledges_nothing_alone() {
    let (members, faults) = with_a_bad_disk().await;
    let place = leader(&members).await;
    if place != 2 {
        members[place].replica.transfer_leadership(Some(members[2].id()), LONG).await.unwrap();
    }
    let bad = &members[2].replica;
    until("it leads", || async { bad.leadership().borrow().leading }).await;
    faults.hold_syncs();
    // The majority is the other two, so it is acknowledged without the leader's own disk.
    members[0].replica.propose(tenant("during"), LONG).await.unwrap();
    until("another one leads", || async {
        members[..2].iter().any(|member| member.replica.leadership().borrow().leading)
    })
    .await;
    members[0].replica.propose(tenant("after"), LONG).await.unwrap();
    faults.release_syncs();
    until("it follows and catches up", || async { has_tenant(&bad.view(), "after") }).await;
}
