//! What any member may ask of the leader's memory: offers of free slots and extensions of leases.
//! None of it is written to the log.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::base::time::Span;
use crate::model::fire::FencingToken;
use crate::model::id::{RunId, WorkerId};
use crate::replica::error::ProposeError;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaderCall {
    /// A worker's poll waits for work. The node that holds it has applied `seen_index`: grants up
    /// to it are known to the poll, and do not use up the offer.
    Offer { worker: WorkerId, slots: u32, seen_index: u64 },
    /// The poll is over; what was granted meanwhile is in the state at the answered index.
    Withdraw { worker: WorkerId },
    /// A worker still holds these attempts.
    Extend { worker: WorkerId, runs: Vec<(RunId, FencingToken)> },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaderAnswer {
    Offered,
    Withdrawn {
        applied_index: u64,
    },
    /// In the order of the runs.
    Extended(Vec<ExtendVerdict>),
    UnknownWorker,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExtendVerdict {
    Extended { ttl: Span, cancel_requested: bool },
    Stale { current: Option<FencingToken> },
    NotOpen,
}

/// The leader's side, set by whoever keeps the leader's memory.
pub trait LeaderHandler: Send + Sync {
    /// Called on the leader only, with the term in which it leads.
    fn handle(
        &self,
        term: u64,
        call: LeaderCall,
    ) -> BoxFuture<'static, Result<LeaderAnswer, ProposeError>>;
}
