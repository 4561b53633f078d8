//! Answers the calls that nodes make to the leader: offers of slots, and extensions of leases.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::base::time::Span;
use crate::leader::term::Term;
use crate::machine::state::State;
use crate::model::fire::{FencingToken, FireState};
use crate::model::id::{RunId, WorkerId};
use crate::replica::error::ProposeError;
use crate::replica::leader_call::{ExtendVerdict, LeaderAnswer, LeaderCall, LeaderHandler};

/// How long a confirmation of leadership may take.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);

pub struct TermHandler {
    term: Arc<Term>,
}

impl TermHandler {
    #[must_use]
    pub fn new(term: Arc<Term>) -> TermHandler {
        TermHandler { term }
    }
}

impl LeaderHandler for TermHandler {
    fn handle(
        &self,
        _term: u64,
        call: LeaderCall,
    ) -> BoxFuture<'static, Result<LeaderAnswer, ProposeError>> {
        let term = self.term.clone();
        Box::pin(async move {
            match call {
                LeaderCall::Offer { worker, slots, seen_index } => {
                    offer(&term, worker, slots, seen_index)
                }
                LeaderCall::Withdraw { worker } => withdraw(&term, worker).await,
                LeaderCall::Extend { worker, runs } => extend(&term, worker, &runs).await,
            }
        })
    }
}

fn offer(
    term: &Term,
    worker: WorkerId,
    slots: u32,
    seen_index: u64,
) -> Result<LeaderAnswer, ProposeError> {
    let view = term.replica.view();
    // A worker registered a moment ago may be known to the node that asks and not yet to this one.
    if view.applied_index >= seen_index && !view.state.workers().contains_key(&worker) {
        return Ok(LeaderAnswer::UnknownWorker);
    }
    let mut memory = term.memory();
    if memory.closed {
        return Err(ProposeError::NoLeader);
    }
    let now = Instant::now();
    memory.leases.heard_of(worker, now);
    memory.offers.put(worker, slots, seen_index, now);
    drop(memory);
    term.nudge.notify_one();
    Ok(LeaderAnswer::Offered)
}

/// No round that begins from now on uses the offer; one under way may. Once it is over, the
/// answer's index tells the node what it must have applied to know of every grant made on the
/// offer.
async fn withdraw(term: &Term, worker: WorkerId) -> Result<LeaderAnswer, ProposeError> {
    {
        let mut memory = term.memory();
        if memory.closed {
            return Err(ProposeError::NoLeader);
        }
        memory.offers.withdraw(worker);
    }
    let round_is_over = term.round.lock().await;
    drop(round_is_over);
    Ok(LeaderAnswer::Withdrawn { applied_index: term.replica.view().applied_index })
}

/// Prolongs leases. The leadership is confirmed after the call came in and before anything is
/// promised: any later leader begins its own count, of one full length, after that moment, and so
/// after the worker's own count began. The state is read under the lock of the leases, so that one
/// that the log has ended meanwhile is not promised again.
async fn extend(
    term: &Term,
    worker: WorkerId,
    runs: &[(RunId, FencingToken)],
) -> Result<LeaderAnswer, ProposeError> {
    term.replica.linearizable(CONFIRM_WITHIN).await?;
    let mut memory = term.memory();
    if memory.closed {
        return Err(ProposeError::NoLeader);
    }
    let now = Instant::now();
    memory.leases.heard_of(worker, now);
    let state = term.replica.view().state;
    let verdicts = runs
        .iter()
        .map(|&(run, token)| match lease_of(&state, worker, run, token) {
            Ok((ttl, cancel_requested)) => {
                if memory.leases.extend(run.fire, token, ttl.to_std(), now) {
                    ExtendVerdict::Extended { ttl, cancel_requested }
                } else {
                    ExtendVerdict::Stale { current: None }
                }
            }
            Err(refusal) => refusal,
        })
        .collect();
    Ok(LeaderAnswer::Extended(verdicts))
}

/// The length of the lease that a worker holds on a run, and whether the run is to be cancelled.
fn lease_of(
    state: &State,
    worker: WorkerId,
    run: RunId,
    token: FencingToken,
) -> Result<(Span, bool), ExtendVerdict> {
    let fire = state.fires().get(&run.fire).ok_or(ExtendVerdict::NotOpen)?;
    let lease = fire.lease.filter(|_| fire.state == FireState::Running);
    match lease {
        Some(lease)
            if lease.token == token
                && lease.worker == worker
                && fire.attempt_count == run.attempt =>
        {
            Ok((lease.ttl, fire.cancel_requested_at.is_some()))
        }
        other => Err(ExtendVerdict::Stale { current: other.map(|lease| lease.token) }),
    }
}
