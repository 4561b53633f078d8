//! One member of the Raft group, and the only module that knows openraft.
//!
//! ```text
//! propose --> batches --> openraft --> log_adapter --> store::log       the truth, synced
//!    |                       |
//!    +-> forwards -> leader  | committed
//!                            v
//!                      apply_adapter --> machine, in memory --> view, wait, effects
//!                            +---------> store::records               may lag, not synced
//! ```
//!
//! What the module promises to those above it:
//!
//! - **A proposal is answered when it is durable on a majority and applied here.** A refusal that
//!   is not marked as unknown means that nothing was, is or will be changed by it.
//! - **A linearizable view is never older than the call.** It holds on every member, by ReadIndex.
//! - **`leading` means that this node may act.** It was elected and has applied the first entry
//!   of its term, so its state holds all that was committed before. It may have been deposed since
//!   without knowing; hence `propose_leading`, which the core refuses in any other term.
//! - **An error of the disk is final.** The node stops, says why, and is started again from what
//!   the disk really holds. A proposal that was under way is unknown then.
//! - **Nothing is served before the recovered log is applied** (`recovered`).
//!
//! What it does not know: jobs, schedules, HTTP, who is allowed to do what.
//!
//! Files: `start` (from a folder to running tasks), `inner` (what they share), `types` and `codec`
//! (openraft's names and ours, as bytes), `log_adapter`, `apply_adapter`, `snapshot_adapter`,
//! `bridge`,
//! `overlay` (the adapters), `live` (the applied state), `frames`, `link`, `peers`, `network`,
//! `rpc`, `receive` (between members), `propose`, `read`, `leadership`, `leader_call`, `takeover`,
//! `membership` (what they do).

mod apply_adapter;
mod bridge;
mod codec;
pub mod config;
pub mod error;
mod frames;
pub mod history;
mod inner;
pub mod leader_call;
pub mod leadership;
mod link;
mod live;
mod log_adapter;
mod membership;
mod network;
mod overlay;
mod peers;
mod propose;
mod read;
mod receive;
mod rpc;
mod snapshot_adapter;
pub mod start;
pub mod status;
mod takeover;
mod types;

#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, timeout};

use crate::machine::command::Proposal;
use crate::machine::effect::Effect;
use crate::machine::reply::Reply;
use crate::machine::state::State;
use crate::model::id::NodeId;
use crate::replica::config::Start;
use crate::replica::error::{MemberError, ProposeError, StartError};
use crate::replica::history::History;
use crate::replica::inner::Inner;
use crate::replica::leader_call::{LeaderAnswer, LeaderCall, LeaderHandler};
use crate::replica::leadership::Leadership;
use crate::replica::start::Parts;
use crate::replica::status::ReplicaStatus;

/// How long the leader's own proposals may take before their outcome counts as unknown.
const LEADING_WITHIN: Duration = Duration::from_secs(10);

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

/// The effects of one applied entry that has any. Without any, it says that a snapshot took the
/// place of the state, and so of all effects up to its index.
#[derive(Clone, Debug)]
pub struct AppliedEffects {
    pub index: u64,
    pub effects: Vec<Effect>,
}

/// Sizes in bytes, and how often the log was synced since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskUsage {
    pub log_bytes: u64,
    pub log_syncs: u64,
    pub records_bytes: u64,
}

/// The handle to this member; clones share it.
#[derive(Clone)]
pub struct Replica {
    inner: Arc<Inner>,
}

impl Replica {
    /// Starts this member: finds out whose folder it is, recovers, and serves its peers. It returns
    /// before it has caught up; see [`Replica::recovered`].
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(parts: Parts, how: Start) -> Result<Replica, StartError> {
        let inner = start::start(parts, how).await?;
        Ok(Replica { inner })
    }

    /// Proposes on any node; the leader takes it in one hop. Returns once this node applied it.
    ///
    /// # Errors
    /// See [`ProposeError`]: whether the outcome is known is part of it.
    pub async fn propose(
        &self,
        proposal: Proposal,
        within: Duration,
    ) -> Result<Proposed, ProposeError> {
        propose::propose(&self.inner, &proposal, within).await
    }

    /// Proposes only if this node leads in `term`, all in one append.
    ///
    /// # Errors
    /// [`ProposeError::NotLeader`] when it does not; otherwise as [`Replica::propose`].
    pub async fn propose_leading(
        &self,
        term: u64,
        proposals: Vec<Proposal>,
    ) -> Result<Vec<Proposed>, ProposeError> {
        let deadline = Instant::now() + LEADING_WITHIN;
        propose::propose_leading(&self.inner, term, &proposals, deadline).await
    }

    /// A view that holds everything that was answered before the call, on any node.
    ///
    /// # Errors
    /// Reading changes nothing, so every error may be retried.
    pub async fn linearizable(&self, within: Duration) -> Result<View, ProposeError> {
        read::linearizable(&self.inner, within).await
    }

    /// This node's own state, maybe old.
    #[must_use]
    pub fn view(&self) -> View {
        self.inner.live.view()
    }

    /// The view once this node has applied `index`.
    ///
    /// # Errors
    /// [`ProposeError::Timeout`] when it did not within the time given.
    pub async fn wait_applied(&self, index: u64, within: Duration) -> Result<View, ProposeError> {
        self.inner.wait_applied(index, Instant::now() + within).await
    }

    /// The last applied index.
    #[must_use]
    pub fn applied(&self) -> watch::Receiver<u64> {
        self.inner.live.applied()
    }

    /// The effects of applied entries; a receiver that is too slow loses the oldest.
    #[must_use]
    pub fn effects(&self) -> broadcast::Receiver<Arc<AppliedEffects>> {
        self.inner.live.effects()
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
        call: LeaderCall,
        within: Duration,
    ) -> Result<LeaderAnswer, ProposeError> {
        leader_call::call_leader(&self.inner, call, within).await
    }

    /// Sets who answers when this node leads.
    pub fn set_leader_handler(&self, handler: Arc<dyn LeaderHandler>) {
        let mut current = self.inner.handler.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(handler);
    }

    /// The cold records of this node.
    #[must_use]
    pub fn history(&self) -> History {
        History::new(self.inner.records.clone())
    }

    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        status::status(&self.inner)
    }

    /// What this member keeps on its disk.
    #[must_use]
    pub fn disk_usage(&self) -> DiskUsage {
        DiskUsage {
            log_bytes: self.inner.store.log.disk_bytes(),
            log_syncs: self.inner.store.log.sync_count(),
            records_bytes: self.inner.store.records.disk_bytes(),
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
        let mut recovered = self.inner.recovered.subscribe();
        tokio::select! {
            biased;
            done = recovered.wait_for(|done| *done) => match done {
                Ok(_) => Ok(()),
                Err(_) => Err(self.inner.stopped_error()),
            },
            () = self.inner.stop.cancelled() => Err(self.inner.stopped_error()),
        }
    }

    /// Removes a member. It is told, and stops.
    ///
    /// # Errors
    /// When there is no such member, or it is the last that votes.
    pub async fn remove_member(&self, node: NodeId, within: Duration) -> Result<(), MemberError> {
        membership::remove(&self.inner, node, within).await
    }

    /// Hands leadership to a member, or to the one that is furthest when none is named.
    ///
    /// # Errors
    /// When nobody led, or the member is unknown.
    pub async fn transfer_leadership(
        &self,
        to: Option<NodeId>,
        within: Duration,
    ) -> Result<(), MemberError> {
        membership::transfer(&self.inner, to, within).await
    }

    /// Stops in order: leadership is handed over, the core ends, the records become durable. The
    /// folder is free once every clone of the handle is dropped.
    pub async fn shutdown(&self) {
        let inner = &self.inner;
        if membership::furthest(inner).is_some() {
            // Best effort: without an heir the others elect one after a time-out.
            let within = inner.config.election_max * 2;
            if let Err(error) = membership::transfer(inner, None, within).await {
                tracing::info!(%error, "leadership was not handed over");
            }
        }
        inner.stop_because("it was shut down");
        if let Err(error) = inner.raft.shutdown().await {
            tracing::warn!(%error, "the consensus core did not end well");
        }
        let records = inner.store.records.clone();
        match apply_adapter::blocking(move || records.make_durable()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the records are not durable; the log is"),
            Err(error) => tracing::error!(%error, "the records were not made durable"),
        }
        inner.running.close();
        if timeout(inner.config.election_max * 2, inner.running.wait()).await.is_err() {
            tracing::warn!("parts of the replica did not end in time");
        }
    }
}
