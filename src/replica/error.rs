//! Why a call to the replica did not do what it was asked to do.

use crate::model::id::NodeId;

/// Why a proposal, a read or a call of the leader has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Nothing was proposed.
    #[error("the cluster has no leader at the moment")]
    NoLeader,
    /// Nothing was proposed.
    #[error("this member does not lead in term {term}")]
    NotLeader { term: u64, leader: Option<NodeId> },
    /// It may or may not have been carried out, now or later.
    #[error("no answer within the time given; whether it was carried out is not known")]
    Timeout,
    /// It may or may not have been carried out, now or later.
    #[error("{reason}; whether it was carried out is not known")]
    Unknown { reason: String },
    /// Nothing was proposed.
    #[error("too many proposals wait on this member; try again later")]
    Overloaded,
    /// Nothing was proposed.
    #[error("the proposal cannot be taken: {reason}")]
    Invalid { reason: String },
    /// This member has stopped, and says why. Whether a proposal that was under way is carried
    /// out is not known.
    #[error("this member has stopped: {0}")]
    Stopped(String),
}

impl ProposeError {
    /// Whether the change may have been made nevertheless.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        match self {
            ProposeError::Timeout | ProposeError::Unknown { .. } | ProposeError::Stopped(_) => true,
            ProposeError::NoLeader
            | ProposeError::NotLeader { .. }
            | ProposeError::Overloaded
            | ProposeError::Invalid { .. } => false,
        }
    }

    /// Whether nothing was changed and the same call may succeed a little later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            ProposeError::NoLeader | ProposeError::NotLeader { .. } | ProposeError::Overloaded => {
                true
            }
            ProposeError::Timeout
            | ProposeError::Unknown { .. }
            | ProposeError::Invalid { .. }
            | ProposeError::Stopped(_) => false,
        }
    }
}

/// Why a member did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the folder holds no member; start with --bootstrap, or with --join and a peer")]
    NoIdentity,
    #[error(
        "the folder belongs to cluster {found}, and {peer} to cluster {other}; use another folder"
    )]
    OtherCluster { found: String, peer: String, other: String },
    #[error(
        "the folder belongs to member {node} of cluster {cluster} but holds no log; if the member \
         never came in start it with the flags of its first start, otherwise the log was lost, so \
         remove the folder and join as a new member"
    )]
    NoLog { cluster: String, node: u64 },
    #[error("none of the peers {peers:?} let this member in; the last one said: {last}")]
    JoinRefused { peers: Vec<String>, last: String },
    #[error("a setting is not possible: {0}")]
    Config(String),
    #[error("the store: {0}")]
    Store(String),
    #[error("the consensus core: {0}")]
    Core(String),
}

/// Why a change of the members was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    #[error("there is no member {0}")]
    Unknown(NodeId),
    #[error("member {0} is the last one that votes, and a cluster needs one")]
    LastVoter(NodeId),
    #[error("another change of the members is under way; try again later")]
    Busy,
    #[error("member {node} is {lag} entries behind the leader, too far to vote")]
    Lagging { node: NodeId, lag: u64 },
    #[error(transparent)]
    Propose(#[from] ProposeError),
}
