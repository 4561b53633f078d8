//! One member of the Raft group, and the only module that knows openraft.

pub mod config;
pub mod error;
pub mod history;
pub mod leader_call;
pub mod leadership;
pub mod status;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, watch};

use crate::machine::command::Proposal;
use crate::machine::effect::Effect;
use crate::machine::reply::Reply;
use crate::machine::state::State;
use crate::model::id::NodeId;
use crate::replica::error::{MemberError, ProposeError};
use crate::replica::history::History;
use crate::replica::leader_call::{LeaderAnswer, LeaderCall, LeaderHandler};
use crate::replica::leadership::Leadership;
use crate::replica::status::ReplicaStatus;

/// A proposal that was committed and applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// The index of its log entry.
    pub index: u64,
    pub reply: Reply,
}

/// The state as of one index.
#[derive(Clone, Debug)]
pub struct View {
    pub state: State,
    pub applied_index: u64,
}

/// The effects of one applied entry that has any.
#[derive(Clone, Debug)]
pub struct AppliedEffects {
    pub index: u64,
    pub effects: Vec<Effect>,
}

/// The handle to this member; clones share it.
#[derive(Clone)]
pub struct Replica {
    inner: Arc<Inner>,
}

struct Inner {
    applied: watch::Sender<u64>,
    leadership: watch::Sender<Leadership>,
    stopped: watch::Sender<Option<String>>,
    effects: broadcast::Sender<Arc<AppliedEffects>>,
}

fn unbuilt() -> ProposeError {
    ProposeError::Stopped("not started".to_owned())
}

impl Replica {
    /// Proposes on any node; the leader takes it in one hop. Returns once this node applied it.
    ///
    /// # Errors
    /// See [`ProposeError`]: whether the outcome is known is part of it.
    pub async fn propose(
        &self,
        _proposal: Proposal,
        _within: Duration,
    ) -> Result<Proposed, ProposeError> {
        Err(unbuilt())
    }

    /// Proposes only if this node leads in `term`, all in one append.
    ///
    /// # Errors
    /// [`ProposeError::NotLeader`] when it does not; otherwise as [`Replica::propose`].
    pub async fn propose_leading(
        &self,
        _term: u64,
        _proposals: Vec<Proposal>,
    ) -> Result<Vec<Proposed>, ProposeError> {
        Err(unbuilt())
    }

    /// A view that holds everything that was answered before the call, on any node.
    ///
    /// # Errors
    /// Reading changes nothing, so every error may be retried.
    pub async fn linearizable(&self, _within: Duration) -> Result<View, ProposeError> {
        Err(unbuilt())
    }

    /// This node's own state, maybe old.
    #[must_use]
    pub fn view(&self) -> View {
        View { state: State::default(), applied_index: *self.inner.applied.borrow() }
    }

    /// The view once this node has applied `index`.
    ///
    /// # Errors
    /// [`ProposeError::Timeout`] when it did not within the time given.
    pub async fn wait_applied(&self, _index: u64, _within: Duration) -> Result<View, ProposeError> {
        Err(unbuilt())
    }

    /// The last applied index.
    #[must_use]
    pub fn applied(&self) -> watch::Receiver<u64> {
        self.inner.applied.subscribe()
    }

    /// The effects of applied entries; a receiver that is too slow loses the oldest.
    #[must_use]
    pub fn effects(&self) -> broadcast::Receiver<Arc<AppliedEffects>> {
        self.inner.effects.subscribe()
    }

    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.inner.leadership.subscribe()
    }

    /// Asks the leader, here or in one hop.
    ///
    /// # Errors
    /// [`ProposeError::NoLeader`] while there is none that can answer.
    pub async fn call_leader(
        &self,
        _call: LeaderCall,
        _within: Duration,
    ) -> Result<LeaderAnswer, ProposeError> {
        Err(unbuilt())
    }

    /// Sets who answers when this node leads.
    pub fn set_leader_handler(&self, _handler: Arc<dyn LeaderHandler>) {}

    /// The cold records of this node.
    #[must_use]
    pub fn history(&self) -> History {
        History {}
    }

    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        ReplicaStatus {
            node: NodeId(0),
            cluster_id: String::new(),
            term: 0,
            leader: None,
            leading: false,
            recovered: false,
            stopped: self.inner.stopped.borrow().clone(),
            members: Vec::new(),
            last_log_index: 0,
            committed_index: 0,
            applied_index: 0,
            snapshot_index: 0,
            purged_index: 0,
        }
    }

    /// Why this node stopped, once it has: its disk failed, it was removed, or it was shut down.
    #[must_use]
    pub fn stopped(&self) -> watch::Receiver<Option<String>> {
        self.inner.stopped.subscribe()
    }

    /// Returns when everything that was in the log at the start is applied. Nothing is served
    /// before.
    ///
    /// # Errors
    /// [`ProposeError::Stopped`] when the node stopped first.
    pub async fn recovered(&self) -> Result<(), ProposeError> {
        Err(unbuilt())
    }

    /// Removes a member. It is told, and stops.
    ///
    /// # Errors
    /// When there is no such member, or it is the last that votes.
    pub async fn remove_member(&self, _node: NodeId, _within: Duration) -> Result<(), MemberError> {
        Err(MemberError::Propose(unbuilt()))
    }

    /// Hands leadership to a member, or to the one that is furthest when none is named.
    ///
    /// # Errors
    /// When nobody led, or the member is unknown.
    pub async fn transfer_leadership(
        &self,
        _to: Option<NodeId>,
        _within: Duration,
    ) -> Result<(), MemberError> {
        Err(MemberError::Propose(unbuilt()))
    }

    /// Stops in order: leadership is handed over, the records are made durable.
    pub async fn shutdown(&self) {}
}
