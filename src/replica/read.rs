//! Linearizable reads on any member, by ReadIndex.
//!
//! The leader notes its commit index and asks a majority whether it still leads; whoever has
//! applied that index may answer. Requests that wait while a round is under way share the next one.
//! No lease is used: the clock of a suspended machine stands still.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use openraft::ReadPolicy;
use openraft::errors::{LinearizableReadError, RaftError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::model::id::NodeId;
use crate::replica::View;
use crate::replica::codec::Reader;
use crate::replica::error::ProposeError;
use crate::replica::frames::Kind;
use crate::replica::inner::Inner;
use crate::replica::peers::Purpose;
use crate::replica::propose::{call_error, enqueue};

type IndexAnswer = Result<u64, ProposeError>;

/// Somebody who waits for a round.
pub(crate) struct ReadRequest(oneshot::Sender<IndexAnswer>);

/// Who is asked in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// A majority, by this node, which leads.
    Here,
    /// The leader, by this node.
    AtLeader,
}

/// See `Replica::linearizable`.
pub(crate) async fn linearizable(inner: &Inner, within: Duration) -> Result<View, ProposeError> {
    let deadline = Instant::now() + within;
    loop {
        let leader = inner.leader_until(deadline).await?;
        let queue = if leader == inner.me { &inner.reads_here } else { &inner.reads_at_leader };
        match ask(inner, queue, deadline).await {
            Ok(index) => return inner.wait_applied(index, deadline).await,
            // Reading changes nothing, so every refusal but the last is tried again.
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(
                error @ (ProposeError::Stopped(_)
                | ProposeError::Overloaded
                | ProposeError::Invalid { .. }),
            ) => return Err(error),
            Err(_) => inner.leadership_moves(deadline).await,
        }
    }
}

async fn ask(inner: &Inner, queue: &mpsc::Sender<ReadRequest>, deadline: Instant) -> IndexAnswer {
    let (answer, answered) = oneshot::channel();
    enqueue(queue, ReadRequest(answer), inner)?;
    match timeout_at(deadline, answered).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(inner.stopped_error()),
        Err(_) => Err(ProposeError::Timeout),
    }
}

/// Runs one round after the other, until the node stops.
pub(crate) async fn run_rounds(
    inner: Arc<Inner>,
    mut queue: mpsc::Receiver<ReadRequest>,
    round: Round,
) {
    loop {
        let first = tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            request = queue.recv() => match request {
                Some(request) => request,
                None => return,
            },
        };
        // Only those that are here before the round begins may share it.
        let mut sharing = vec![first];
        while let Ok(request) = queue.try_recv() {
            sharing.push(request);
        }
        let index = match round {
            Round::Here => index_here(&inner).await,
            Round::AtLeader => index_at_leader(&inner).await,
        };
        for ReadRequest(answer) in sharing {
            let _ = answer.send(index.clone());
        }
    }
}

async fn index_here(inner: &Inner) -> IndexAnswer {
    match inner.raft.get_read_linearizer(ReadPolicy::ReadIndex).await {
        Ok(linearizer) => Ok(linearizer.read_log_id().index()),
        Err(RaftError::Fatal(_)) => Err(inner.stopped_error()),
        Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => {
            let leader = forward.leader_id.map(NodeId);
            Err(ProposeError::NotLeader { term: 0, leader })
        }
        Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_))) => {
            Err(ProposeError::NoLeader)
        }
    }
}

async fn index_at_leader(inner: &Inner) -> IndexAnswer {
    let leader = inner.leader_elsewhere()?;
    let question = inner.peers.begin(Kind::ReadIndex);
    let within = inner.config.election_max;
    let frame = inner.peers.call(leader.0, Purpose::Call, question, within).await;
    let mut input = Reader(frame.map_err(call_error)?.body);
    input.u64("read index").map_err(|error| ProposeError::Unknown { reason: error.to_string() })
}

/// The leader's side of another member's round.
pub(crate) async fn handle_read_index(inner: &Inner) -> Result<BytesMut, ProposeError> {
    let deadline = Instant::now() + inner.config.election_max;
    let index = ask(inner, &inner.reads_here, deadline).await?;
    let mut out = inner.peers.begin(Kind::ReadAt);
    out.put_u64_le(index);
    Ok(out)
}
