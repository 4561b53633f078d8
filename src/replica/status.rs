//! How a member stands: what operators and health checks are shown.

use openraft::async_runtime::instant::Instant;
use openraft::async_runtime::watch::WatchReceiver;

use crate::model::id::NodeId;
use crate::replica::inner::Inner;

/// One member, as this member knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    pub node: NodeId,
    pub peer_address: String,
    pub api_address: String,
    /// False: a learner, which follows the log and has no vote, or a member that is on its way in
    /// or out.
    pub is_voter: bool,
    /// The last index known to be on its disk; only the leader knows it, of the others.
    pub matched_index: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaStatus {
    pub node: NodeId,
    pub cluster_id: String,
    pub term: u64,
    pub leader: Option<NodeId>,
    /// This node leads and has applied the first entry of its term.
    pub leading: bool,
    /// A leader that no majority has answered, or a follower that has heard no leader, for longer
    /// than two elections take.
    pub cut_off: bool,
    /// Everything that was in the log when this node started is applied.
    pub recovered: bool,
    /// Why it stopped, once it has.
    pub stopped: Option<String>,
    /// As committed, in the order of their ids.
    pub members: Vec<MemberStatus>,
    pub last_log_index: u64,
    pub committed_index: u64,
    pub applied_index: u64,
    /// The last index in the newest snapshot.
    pub snapshot_index: u64,
    /// The last index that is no longer in the log.
    pub purged_index: u64,
    /// Appends to the log since the start; less than the entries, where they were batched.
    pub log_appends: u64,
    /// Flushes of the log since the start; less than the appends, where they shared one.
    pub log_flushes: u64,
}

pub(crate) fn status(inner: &Inner) -> ReplicaStatus {
    let leadership = *inner.leadership.borrow();
    let metrics = inner.raft.metrics().borrow_watched().clone();
    let membership = metrics.committed_membership_config.membership();
    // While the voters change, the old ones and the new ones both have to agree.
    let votes = |id: &u64| membership.get_joint_config().iter().all(|config| config.contains(id));
    let matched = |id: &u64| {
        if *id == metrics.id {
            return metrics.last_log_index;
        }
        metrics.replication.as_ref()?.get(id)?.map(|matched| matched.index)
    };
    let members = membership.nodes().map(|(id, node)| MemberStatus {
        node: NodeId(*id),
        peer_address: node.peer.clone(),
        api_address: node.api.clone(),
        is_voter: votes(id),
        matched_index: matched(id),
    });
    let is_alone = membership.voter_ids().count() <= 1;
    let quorum_is_silent = metrics
        .last_quorum_acked
        .is_some_and(|acked| acked.elapsed() > inner.config.election_max * 2);
    let leads_nobody = leadership.leading && !is_alone && quorum_is_silent;
    ReplicaStatus {
        node: inner.me,
        cluster_id: inner.cluster_id.clone(),
        term: metrics.current_term,
        leader: leadership.leader,
        leading: leadership.leading,
        cut_off: leads_nobody || inner.is_leader_silent(),
        recovered: *inner.recovered.borrow(),
        stopped: inner.stopped.borrow().clone(),
        members: members.collect(),
        last_log_index: metrics.last_log_index.unwrap_or(0),
        committed_index: metrics.local_committed.map_or(0, |id| id.index),
        applied_index: *inner.live.applied().borrow(),
        snapshot_index: metrics.snapshot.map_or(0, |id| id.index),
        purged_index: metrics.purged.map_or(0, |id| id.index),
        log_appends: inner.pace.appends(),
        log_flushes: inner.store.log.sync_count(),
    }
}
