//! Notices at once that the leader's process has died.
//!
//! A process that is killed leaves closed connections behind, and a port on which nobody listens.
//! A follower whose connection from the leader ends tries that port; when it is refused, the leader
//! is gone, and there is no reason to wait for a time-out. The follower then gives up the lease it
//! had granted and stands for election when its turn comes. Nothing here matters for safety:
//! it is an ordinary election with an ordinary majority, only earlier. Reads do not rely on leases.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver;
use openraft::raft::TransferLeaderRequest;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::replica::inner::Inner;
use crate::replica::types::Vote;

/// How often a port that still accepts is tried.
const PROBES: u32 = 6;

/// A connection on which `leader` sent entries has ended.
pub(crate) async fn connection_ended(inner: &Arc<Inner>, leader: u64) {
    if inner.stop.is_cancelled() || inner.takeover.swap(true, Ordering::SeqCst) {
        return;
    }
    take_over(inner, leader).await;
    inner.takeover.store(false, Ordering::SeqCst);
}

async fn take_over(inner: &Inner, leader: u64) {
    let Some(vote) = vote_for(inner, leader) else {
        return;
    };
    if !is_refused(inner, leader).await {
        return;
    }
    tracing::warn!(node = inner.me.0, leader, "the leader's process is gone");
    // Named to the dead leader, the request only ends the lease on this node.
    let end_lease = TransferLeaderRequest::new(vote, leader, None);
    if inner.raft.handle_transfer_leader(end_lease).await.is_err() {
        return;
    }
    let wait = turn(inner, leader);
    tokio::select! {
        () = sleep(wait) => {}
        () = inner.stop.cancelled() => return,
    }
    if vote_for(inner, leader) != Some(vote) {
        return;
    }
    let stand = TransferLeaderRequest::new(vote, inner.me.0, None);
    match inner.raft.handle_transfer_leader(stand).await {
        Ok(Ok(())) => tracing::info!(node = inner.me.0, "standing for election"),
        Ok(Err(refusal)) => tracing::info!(%refusal, "not standing for election"),
        Err(error) => tracing::debug!(%error, "the core has stopped"),
    }
}

/// Two that stand at the same moment would split the votes, so everybody waits for its turn: one
/// after the other in the order of their ids, far enough apart for an election.
fn turn(inner: &Inner, leader: u64) -> Duration {
    let server = inner.raft.server_metrics();
    let voters = server.borrow_watched().membership_config.voter_ids().collect::<BTreeSet<_>>();
    let before = voters.iter().filter(|id| **id != leader && **id < inner.me.0).count();
    let slot = inner.config.election_min / 8;
    slot * u32::try_from(before).unwrap_or(u32::MAX)
}

/// The vote this node holds, while it follows that leader and has a vote itself.
fn vote_for(inner: &Inner, leader: u64) -> Option<Vote> {
    let server = inner.raft.server_metrics();
    let metrics = server.borrow_watched();
    let follows = metrics.vote.committed && metrics.vote.leader_id.voted_for == leader;
    let is_voter = metrics.membership_config.voter_ids().any(|id| id == inner.me.0);
    (follows && is_voter && leader != inner.me.0).then_some(metrics.vote)
}

/// Whether nobody listens where the member was. A member that cannot be reached is not refused: it
/// may live behind a broken network. A process that is being taken down closes its connections
/// before its port, so one that still accepts is tried again.
async fn is_refused(inner: &Inner, node: u64) -> bool {
    let Some(address) = inner.peers.address(node) else {
        return false;
    };
    for _ in 0..PROBES {
        match timeout(inner.config.heartbeat, TcpStream::connect(&address.peer)).await {
            Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => return true,
            Ok(Ok(_)) => sleep(inner.config.heartbeat / 4).await,
            Ok(Err(_)) | Err(_) => return false,
        }
    }
    false
}
