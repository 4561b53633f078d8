//! What any member may ask of the leader's memory: offers of free slots and extensions of leases.
//! None of it is written to the log.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use crate::base::time::Span;
use crate::machine::codec::{CodecError, decode, encode};
use crate::model::fire::FencingToken;
use crate::model::id::{RunId, WorkerId};
use crate::replica::error::ProposeError;
use crate::replica::frames::Kind;
use crate::replica::inner::Inner;
use crate::replica::peers::Purpose;
use crate::replica::propose::call_error;

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

/// See `Replica::call_leader`.
pub(crate) async fn call_leader(
    inner: &Inner,
    call: LeaderCall,
    within: Duration,
) -> Result<LeaderAnswer, ProposeError> {
    let deadline = Instant::now() + within;
    let leader = inner.leader_until(deadline).await?;
    if leader == inner.me {
        return match timeout_at(deadline, answer_here(inner, call)).await {
            Ok(answer) => answer,
            Err(_) => Err(ProposeError::Timeout),
        };
    }
    let within = deadline.saturating_duration_since(Instant::now());
    let mut question = inner.peers.begin(Kind::LeaderCall);
    question.put_slice(&encode("leader call", &call).map_err(codec_error)?);
    let frame = inner.peers.call(leader.0, Purpose::Call, question, within).await;
    let body = frame.map_err(call_error)?.body;
    decode("leader answer", &body).map_err(codec_error)
}

/// The leader's side of another member's call.
pub(crate) async fn handle_leader_call(
    inner: &Inner,
    body: Bytes,
) -> Result<BytesMut, ProposeError> {
    let call = decode("leader call", &body).map_err(codec_error)?;
    let answer = answer_here(inner, call).await?;
    let mut out = inner.peers.begin(Kind::LeaderAnswer);
    out.put_slice(&encode("leader answer", &answer).map_err(codec_error)?);
    Ok(out)
}

async fn answer_here(inner: &Inner, call: LeaderCall) -> Result<LeaderAnswer, ProposeError> {
    let leadership = *inner.leadership.borrow();
    if !leadership.leading {
        return Err(ProposeError::NoLeader);
    }
    let Some(handler) = inner.leader_handler() else {
        return Err(ProposeError::NoLeader);
    };
    handler.handle(leadership.term, call).await
}

fn codec_error(error: CodecError) -> ProposeError {
    ProposeError::Invalid { reason: error.to_string() }
}
