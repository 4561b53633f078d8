//! How a member stands: what operators and health checks are shown.

use crate::model::id::NodeId;

/// One member, as this member knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    pub node: NodeId,
    pub peer_address: String,
    pub api_address: String,
    /// False: a learner, which follows the log and has no vote.
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
    /// Everything that was in the log when this node started is applied.
    pub recovered: bool,
    /// Why it stopped, once it has.
    pub stopped: Option<String>,
    /// In the order of their ids.
    pub members: Vec<MemberStatus>,
    pub last_log_index: u64,
    pub committed_index: u64,
    pub applied_index: u64,
    /// The last index in the newest snapshot.
    pub snapshot_index: u64,
    /// The last index that is no longer in the log.
    pub purged_index: u64,
}
