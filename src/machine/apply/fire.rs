//! Fires that people ask for, and their cancelling.

use crate::base::limits;
use crate::base::time::{Span, Timestamp};
use crate::machine::apply::context::Context;
use crate::machine::apply::ending::end_fire;
use crate::machine::apply::gate::{self, Passage};
use crate::machine::apply::job::find_job;
use crate::machine::apply::record::NewFire;
use crate::machine::command::RequestFire;
use crate::machine::reply::{Rejection, Reply};
use crate::model::fire::{Fire, FireReason, FireState, WaitCause};
use crate::model::id::{FireId, JobId};

// Refusals, in order: UnknownTenant, UnknownJob, Overlap, TooManyOpenFires.
pub(in crate::machine) fn request_fire(
    context: &mut Context<'_>,
    command: &RequestFire,
) -> Result<Reply, Rejection> {
    let job = find_job(context.state(), &command.job)?;
    let now = context.now();
    let delay = Span::from_ms(command.delay_ms.min(limits::DELAY_MAX.as_ms()));
    let at = command.at.unwrap_or_else(|| now.plus(delay));
    let at = Timestamp::from_ms(at.as_ms());
    let state = if at > now {
        FireState::Waiting(WaitCause::Due)
    } else if command.allow_overlap {
        FireState::Ready
    } else {
        let load = context.state().index().job_load(job.id);
        match gate::judge(job.spec.overlap, load) {
            Passage::Open => FireState::Ready,
            Passage::Buffer => FireState::Waiting(WaitCause::Overlap),
            Passage::Closed(_) => return Err(overlap_rejection(context, job.id)),
        }
    };
    if let Some(limit) = gate::overload(context.state(), job.id) {
        return Err(Rejection::TooManyOpenFires { limit });
    }
    let new = NewFire {
        job: &job,
        trigger: None,
        reason: FireReason::Manual,
        scheduled_at: at,
        due_at: at,
        payload: command.payload.clone(),
        overlap_allowed: command.allow_overlap,
    };
    let fire = new.record(context, state);
    Ok(Reply::Fire(context.put_fire(fire)))
}

fn overlap_rejection(context: &Context<'_>, job: JobId) -> Rejection {
    match gate::blocker(context.state(), job) {
        Some(open) => Rejection::Overlap { open },
        // A policy that allows no fire at all.
        None => Rejection::TooManyOpenFires { limit: 0 },
    }
}

// Refusals: UnknownFire, also for one that has ended.
pub(in crate::machine) fn cancel_fire(
    context: &mut Context<'_>,
    id: FireId,
) -> Result<Reply, Rejection> {
    let fire = context.state().fires().get(&id).ok_or(Rejection::UnknownFire { fire: id })?;
    let mut fire = Fire::clone(fire);
    match fire.state {
        FireState::Running => {
            if fire.cancel_requested_at.is_none() {
                fire.cancel_requested_at = Some(context.now());
                return Ok(Reply::Fire(context.put_fire(fire)));
            }
            Ok(Reply::Fire(fire.into()))
        }
        FireState::Waiting(_)
        | FireState::Ready
        | FireState::Succeeded
        | FireState::Failed
        | FireState::Skipped(_)
        | FireState::Cancelled => {
            let ended = end_fire(context, fire, FireState::Cancelled);
            Ok(Reply::Fire(ended))
        }
    }
}
