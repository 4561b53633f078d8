//! How attempts and fires end: the retry decision, the last state, and what an end sets free.

use std::sync::Arc;

use crate::base::bounded::clip;
use crate::base::limits;
use crate::base::time::Span;
use crate::machine::apply::context::Context;
use crate::machine::apply::gate;
use crate::model::fire::{Fire, FireState, Outcome, WaitCause};
use crate::model::policy::RetryPolicy;

/// How the attempt under way ended.
pub(in crate::machine) struct AttemptEnd<'a> {
    pub outcome: Outcome,
    /// The worker's word for its error.
    pub error_kind: Option<&'a str>,
    /// False: another try would fail as well.
    pub retryable: bool,
    /// Instead of the policy's delay.
    pub retry_after: Option<Span>,
}

impl AttemptEnd<'_> {
    /// An end without an error of the worker's.
    pub(in crate::machine) fn plain(outcome: Outcome) -> AttemptEnd<'static> {
        AttemptEnd { outcome, error_kind: None, retryable: true, retry_after: None }
    }
}

/// Ends the attempt of a running fire, and with it the fire unless it is tried again. Yields the
/// fire's new state.
pub(in crate::machine) fn end_attempt(
    context: &mut Context<'_>,
    fire: &Fire,
    end: &AttemptEnd<'_>,
) -> FireState {
    let now = context.now();
    let mut fire = fire.clone();
    fire.lease = None;
    if end.outcome == Outcome::Released {
        fire.released_count = fire.released_count.saturating_add(1);
    }
    if let Some(attempt) = fire.attempts.last_mut() {
        attempt.ended_at = Some(now);
        attempt.outcome = Some(end.outcome);
        let kind = end.error_kind.map(|kind| clip(kind, limits::NAME_BYTES_MAX).to_owned());
        attempt.error_kind = kind;
    }
    let retry = context.state().spec_of(fire.id.job, fire.job_revision).map(|spec| spec.retry);
    let (state, delay) = state_after(&fire, end, retry);
    if state.is_ended() {
        end_fire(context, fire, state);
        return state;
    }
    fire.state = state;
    fire.not_before = now.plus(delay);
    context.put_fire(fire);
    state
}

/// Ends a fire for good and lets the next one of its job go on.
pub(in crate::machine) fn end_fire(
    context: &mut Context<'_>,
    fire: Fire,
    state: FireState,
) -> Arc<Fire> {
    let job = fire.id.job;
    let ended = end_fire_alone(context, fire, state);
    gate::release_buffered(context, job);
    ended
}

/// Ends a fire without a look at those behind it: the whole job goes.
pub(in crate::machine) fn end_fire_alone(
    context: &mut Context<'_>,
    mut fire: Fire,
    state: FireState,
) -> Arc<Fire> {
    fire.state = state;
    fire.lease = None;
    fire.ended_at = Some(context.now());
    fire.ended_index = Some(context.index());
    context.end_fire(fire)
}

/// The state after an attempt, with the delay before the next one. `fire` counts the attempt.
fn state_after(fire: &Fire, end: &AttemptEnd<'_>, retry: Option<RetryPolicy>) -> (FireState, Span) {
    let ended = |state| (state, Span::ZERO);
    match end.outcome {
        Outcome::Succeeded => return ended(FireState::Succeeded),
        Outcome::Cancelled => return ended(FireState::Cancelled),
        Outcome::Failed | Outcome::TimedOut | Outcome::Lost | Outcome::Released => {}
    }
    if fire.cancel_requested_at.is_some() {
        return ended(FireState::Cancelled);
    }
    if end.outcome == Outcome::Released {
        return (FireState::Ready, Span::ZERO);
    }
    let tries = fire.attempt_count.saturating_sub(fire.released_count);
    let delay = retry.and_then(|policy| policy.delay_after(tries));
    let Some(delay) = delay.filter(|_| end.retryable) else {
        return ended(FireState::Failed);
    };
    let delay = end.retry_after.unwrap_or(delay);
    let delay = Span::from_ms(delay.as_ms().min(limits::DELAY_MAX.as_ms()));
    if delay.is_zero() {
        return (FireState::Ready, delay);
    }
    (FireState::Waiting(WaitCause::Retry), delay)
}
