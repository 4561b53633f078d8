//! Triggers: put, deleted, paused and resumed.

use std::sync::Arc;

use crate::base::bounded::Name;
use crate::base::limits;
use crate::base::time::Timestamp;
use crate::machine::apply::context::Context;
use crate::machine::apply::job::find_job;
use crate::machine::apply::tenant::{allows_absent, check_precondition, check_size};
use crate::machine::command::{Precondition, PutTrigger};
use crate::machine::reply::{PutOutcome, Rejection, Reply};
use crate::machine::state::State;
use crate::model::id::{JobId, JobKey, Revision, TriggerId};
use crate::model::trigger::{Cursor, NextDue, PauseSpan, Trigger, TriggerSpec, TriggerState};

// Refusals, in order: UnknownTenant, UnknownJob, UnknownTrigger (a precondition wants one), Exists
// or RevisionMismatch, DefinitionTooLarge, TooManyTriggers.
pub(in crate::machine) fn put_trigger(
    context: &mut Context<'_>,
    command: &PutTrigger,
) -> Result<Reply, Rejection> {
    let job = find_job(context.state(), &command.job)?;
    let name = &command.trigger;
    let Some(old) = context.state().trigger_by_name(job.id, name).cloned() else {
        if !allows_absent(command.precondition) {
            return Err(unknown_trigger(&command.job, name));
        }
        check_size(&command.spec)?;
        let limit = limits::TRIGGERS_PER_JOB_MAX;
        if context.state().triggers_of(job.id).take(limit).count() >= limit {
            return Err(Rejection::TooManyTriggers { limit: limit as u64 });
        }
        let trigger = create_trigger(context, job.id, name, &command.spec);
        return Ok(Reply::Trigger(trigger, PutOutcome::Created));
    };
    check_precondition(command.precondition, old.revision)?;
    if old.spec == command.spec {
        return Ok(Reply::Trigger(old, PutOutcome::Unchanged));
    }
    check_size(&command.spec)?;
    let trigger = replace_trigger(context, &old, &command.spec);
    Ok(Reply::Trigger(trigger, PutOutcome::Replaced))
}

/// A new trigger begins at the stamp: what its schedule would have yielded before never fires.
pub(in crate::machine) fn create_trigger(
    context: &mut Context<'_>,
    job: JobId,
    name: &Name,
    spec: &TriggerSpec,
) -> Arc<Trigger> {
    let now = context.now();
    let trigger = Trigger {
        id: TriggerId(context.next_seq()),
        job,
        name: name.clone(),
        revision: Revision::FIRST,
        spec: spec.clone(),
        state: TriggerState::Active,
        cursor: Cursor { accounted_to: now, next: NextDue::Unknown },
        created_at: now,
        updated_at: now,
        last_pause: None,
    };
    context.put_trigger(trigger)
}

/// Keeps the cursor of a trigger whose schedule stays; a changed schedule begins at the stamp.
pub(in crate::machine) fn replace_trigger(
    context: &mut Context<'_>,
    old: &Trigger,
    spec: &TriggerSpec,
) -> Arc<Trigger> {
    let now = context.now();
    let mut trigger = old.clone();
    let same_times = old.spec.schedule == spec.schedule && old.spec.bounds == spec.bounds;
    if !same_times {
        trigger.cursor = Cursor { accounted_to: now, next: NextDue::Unknown };
        if trigger.state == TriggerState::Ended {
            trigger.state = TriggerState::Active;
        }
    }
    trigger.spec = spec.clone();
    trigger.revision = old.revision.next();
    trigger.updated_at = now;
    context.put_trigger(trigger)
}

// Refusals, in order: UnknownTenant, UnknownJob, UnknownTrigger, Exists or RevisionMismatch.
pub(in crate::machine) fn delete_trigger(
    context: &mut Context<'_>,
    job: &JobKey,
    name: &Name,
    precondition: Precondition,
) -> Result<Reply, Rejection> {
    let trigger = find_trigger(context.state(), job, name)?;
    check_precondition(precondition, trigger.revision)?;
    context.drop_trigger(trigger.id);
    Ok(Reply::Trigger(trigger, PutOutcome::Deleted))
}

// Refusals, in order: UnknownTenant, UnknownJob, UnknownTrigger. Pausing what is paused or has
// ended changes nothing.
pub(in crate::machine) fn pause_trigger(
    context: &mut Context<'_>,
    job: &JobKey,
    name: &Name,
) -> Result<Reply, Rejection> {
    let trigger = find_trigger(context.state(), job, name)?;
    match trigger.state {
        TriggerState::Paused { .. } | TriggerState::Ended => {
            Ok(Reply::Trigger(trigger, PutOutcome::Unchanged))
        }
        TriggerState::Active => {
            let since = context.now();
            let state = TriggerState::Paused { since };
            let paused = Trigger { state, ..Trigger::clone(&trigger) };
            Ok(Reply::Trigger(context.put_trigger(paused), PutOutcome::Replaced))
        }
    }
}

// Refusals, in order: UnknownTenant, UnknownJob, UnknownTrigger.
pub(in crate::machine) fn resume_trigger(
    context: &mut Context<'_>,
    job: &JobKey,
    name: &Name,
) -> Result<Reply, Rejection> {
    let trigger = find_trigger(context.state(), job, name)?;
    match trigger.state {
        TriggerState::Active | TriggerState::Ended => {
            Ok(Reply::Trigger(trigger, PutOutcome::Unchanged))
        }
        TriggerState::Paused { since } => {
            let mut resumed = Trigger::clone(&trigger);
            resumed.state = TriggerState::Active;
            resumed.last_pause = Some(pause_until(&resumed, since, context.now()));
            Ok(Reply::Trigger(context.put_trigger(resumed), PutOutcome::Replaced))
        }
    }
}

/// Notes on each trigger of a job that a pause of the job or its group has ended.
pub(in crate::machine) fn note_pause_end(context: &mut Context<'_>, job: JobId, since: Timestamp) {
    let now = context.now();
    let triggers: Vec<Arc<Trigger>> = context.state().triggers_of(job).map(Arc::clone).collect();
    for trigger in triggers {
        if trigger.state == TriggerState::Ended {
            continue;
        }
        let since = since.max(trigger.created_at);
        let mut trigger = Trigger::clone(&trigger);
        trigger.last_pause = Some(pause_until(&trigger, since, now));
        context.put_trigger(trigger);
    }
}

/// The pause that ends now, together with an earlier one that it overlaps: a trigger, its job and
/// its group may have been paused across each other.
fn pause_until(trigger: &Trigger, since: Timestamp, now: Timestamp) -> PauseSpan {
    let earlier = trigger.last_pause.filter(|pause| pause.until.is_none_or(|end| end >= since));
    let from = earlier.map_or(since, |pause| pause.from.min(since));
    PauseSpan { from, until: Some(now) }
}

fn find_trigger(state: &State, job: &JobKey, name: &Name) -> Result<Arc<Trigger>, Rejection> {
    let owner = find_job(state, job)?;
    let trigger = state.trigger_by_name(owner.id, name);
    trigger.cloned().ok_or_else(|| unknown_trigger(job, name))
}

fn unknown_trigger(job: &JobKey, trigger: &Name) -> Rejection {
    Rejection::UnknownTrigger { job: job.clone(), trigger: trigger.clone() }
}
