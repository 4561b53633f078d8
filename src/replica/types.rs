//! openraft's type configuration, and the way from its names to ours and back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use openraft::impls::leader_id_std;
use openraft::vote::leader_id_std::CommittedLeaderId;
use openraft::{Membership, StoredMembership};

use crate::machine::reply::Reply;
use crate::replica::apply_adapter::ApplyAdapter;
use crate::store::log::{LogPosition, Vote as StoredVote};

/// What openraft's tasks run on. One alias, so that a deterministic runtime can take its place.
#[allow(deprecated, reason = "the other path needs one more direct dependency")]
pub(crate) type Runtime = openraft::impls::TokioRuntime;

openraft::declare_raft_types!(
    /// A log entry carries a stamped proposal as bytes; applying it yields the machine's reply.
    pub(crate) TypeConfig:
        D = StampedProposal,
        R = Reply,
        NodeId = u64,
        Node = PeerNode,
        LeaderId = leader_id_std::LeaderId<u64, u64>,
        AsyncRuntime = Runtime,
);

pub(crate) type Raft = openraft::Raft<TypeConfig, ApplyAdapter>;
pub(crate) type LogId = openraft::LogId<CommittedLeaderId<u64>>;
pub(crate) type Vote = openraft::Vote<leader_id_std::LeaderId<u64, u64>>;
pub(crate) type Members = Membership<u64, PeerNode>;
pub(crate) type StoredMembers = StoredMembership<CommittedLeaderId<u64>, u64, PeerNode>;
pub(crate) type EntryPayload = openraft::EntryPayload<StampedProposal, u64, PeerNode>;
pub(crate) type Entry = openraft::Entry<CommittedLeaderId<u64>, EntryPayload>;

/// An entry's bytes: the leader's stamp, then the proposal (`machine::codec`).
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StampedProposal(pub(crate) Bytes);

impl fmt::Debug for StampedProposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl fmt::Display for StampedProposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Where a member is reached; part of every membership in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerNode {
    pub(crate) peer: String,
    pub(crate) api: String,
}

pub(crate) fn log_id(term: u64, index: u64) -> LogId {
    LogId { leader_id: CommittedLeaderId::new(term), index }
}

/// As the records and snapshots name it.
pub(crate) fn position_of(id: LogId) -> LogPosition {
    LogPosition { term: id.leader_id.term, index: id.index }
}

pub(crate) fn log_id_of(position: LogPosition) -> LogId {
    log_id(position.term, position.index)
}

pub(crate) fn stored_vote(vote: &Vote) -> StoredVote {
    StoredVote {
        term: vote.leader_id.term,
        node_id: vote.leader_id.voted_for,
        committed: vote.committed,
    }
}

pub(crate) fn vote_of(vote: StoredVote) -> Vote {
    match vote.committed {
        true => Vote::new_committed(vote.term, vote.node_id),
        false => Vote::new(vote.term, vote.node_id),
    }
}

/// A membership from parts that were read; none when they contradict each other.
pub(crate) fn members(
    configs: Vec<BTreeSet<u64>>,
    nodes: BTreeMap<u64, PeerNode>,
) -> Option<Members> {
    Membership::new(configs, nodes).ok()
}
