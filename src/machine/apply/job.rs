//! Jobs: put, deleted, paused and resumed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::bounded::Name;
use crate::base::limits;
use crate::machine::apply::context::Context;
use crate::machine::apply::ending::end_fire_alone;
use crate::machine::apply::gate::release_buffered;
use crate::machine::apply::tenant::{allows_absent, check_precondition, check_size, expect_tenant};
use crate::machine::apply::trigger::{create_trigger, note_pause_end, replace_trigger};
use crate::machine::command::{Precondition, PutJob};
use crate::machine::reply::{PutOutcome, Rejection, Reply};
use crate::machine::state::State;
use crate::model::fire::{Fire, FireState, Outcome};
use crate::model::id::{FireId, JobId, JobKey, Revision, TriggerId};
use crate::model::job::{Job, Tally};
use crate::model::trigger::{Trigger, TriggerSpec};

type Declared<'a> = BTreeMap<&'a Name, &'a TriggerSpec>;

/// The job, or the refusal that says which part of its address is unknown.
pub(in crate::machine) fn find_job(state: &State, key: &JobKey) -> Result<Arc<Job>, Rejection> {
    if let Some(job) = state.job_by_key(key) {
        return Ok(Arc::clone(job));
    }
    expect_tenant(state, &key.tenant)?;
    Err(Rejection::UnknownJob { job: key.clone() })
}

// Refusals, in order: UnknownTenant, UnknownJob (a precondition wants one), Exists or
// RevisionMismatch, DefinitionTooLarge, TooManyTriggers, TooManyJobs.
pub(in crate::machine) fn put_job(
    context: &mut Context<'_>,
    command: &PutJob,
) -> Result<Reply, Rejection> {
    expect_tenant(context.state(), &command.job.tenant)?;
    let old = context.state().job_by_key(&command.job).cloned();
    match &old {
        Some(old) => check_precondition(command.precondition, old.revision)?,
        None if allows_absent(command.precondition) => {}
        None => return Err(Rejection::UnknownJob { job: command.job.clone() }),
    }
    check_size(&command.spec)?;
    for (_, trigger) in command.triggers.iter().flatten() {
        check_size(trigger)?;
    }
    let declared: Option<Declared<'_>> = command
        .triggers
        .as_ref()
        .map(|triggers| triggers.iter().map(|(name, spec)| (name, spec)).collect());
    if declared.as_ref().is_some_and(|triggers| triggers.len() > limits::TRIGGERS_PER_JOB_MAX) {
        return Err(Rejection::TooManyTriggers { limit: limits::TRIGGERS_PER_JOB_MAX as u64 });
    }
    let Some(old) = old else {
        return create_job(context, command, declared.as_ref());
    };
    let same_triggers =
        declared.as_ref().is_none_or(|declared| are_declared(context.state(), old.id, declared));
    if *old.spec == command.spec && same_triggers {
        return Ok(Reply::Job(old, PutOutcome::Unchanged));
    }
    Ok(replace_job(context, &old, command, declared.as_ref()))
}

fn are_declared(state: &State, job: JobId, declared: &Declared<'_>) -> bool {
    let mut existing = 0;
    for trigger in state.triggers_of(job) {
        existing += 1;
        if declared.get(&trigger.name) != Some(&&trigger.spec) {
            return false;
        }
    }
    existing == declared.len()
}

fn create_job(
    context: &mut Context<'_>,
    command: &PutJob,
    declared: Option<&Declared<'_>>,
) -> Result<Reply, Rejection> {
    if context.state().jobs().len() >= limits::JOBS_MAX {
        return Err(Rejection::TooManyJobs { limit: limits::JOBS_MAX as u64 });
    }
    let now = context.now();
    let id = JobId(context.next_seq());
    let job = context.put_job(Job {
        id,
        key: Arc::new(command.job.clone()),
        revision: Revision::FIRST,
        spec: Arc::new(command.spec.clone()),
        paused_at: None,
        created_at: now,
        updated_at: now,
        history_len: 0,
        tally: Tally::default(),
    });
    for (name, spec) in declared.into_iter().flatten() {
        create_trigger(context, job.id, name, spec);
    }
    Ok(Reply::Job(job, PutOutcome::Created))
}

/// A pause, the history and the open fires stay; the fires keep the definition they have.
fn replace_job(
    context: &mut Context<'_>,
    old: &Job,
    command: &PutJob,
    declared: Option<&Declared<'_>>,
) -> Reply {
    let mut job = old.clone();
    job.revision = old.revision.next();
    job.updated_at = context.now();
    if *old.spec != command.spec {
        job.spec = Arc::new(command.spec.clone());
    }
    let job = context.put_job(job);
    if let Some(declared) = declared {
        declare_triggers(context, job.id, declared);
    }
    release_buffered(context, job.id);
    Reply::Job(job, PutOutcome::Replaced)
}

fn declare_triggers(context: &mut Context<'_>, job: JobId, declared: &Declared<'_>) {
    let existing: Vec<Arc<Trigger>> = context.state().triggers_of(job).map(Arc::clone).collect();
    for trigger in &existing {
        match declared.get(&trigger.name) {
            None => context.drop_trigger(trigger.id),
            Some(spec) if **spec == trigger.spec => {}
            Some(spec) => {
                replace_trigger(context, trigger, spec);
            }
        }
    }
    for (name, spec) in declared {
        if context.state().trigger_by_name(job, name).is_none() {
            create_trigger(context, job, name, spec);
        }
    }
}

// Refusals, in order: UnknownTenant, UnknownJob, Exists or RevisionMismatch.
//
// Its open fires end as cancelled and stay in the history.
pub(in crate::machine) fn delete_job(
    context: &mut Context<'_>,
    key: &JobKey,
    precondition: Precondition,
) -> Result<Reply, Rejection> {
    let job = find_job(context.state(), key)?;
    check_precondition(precondition, job.revision)?;
    let fires: Vec<FireId> = context.state().fires_of(job.id).map(|fire| fire.id).collect();
    for id in fires {
        cancel_for_deletion(context, id);
    }
    let triggers = context.state().triggers_of(job.id);
    let triggers: Vec<TriggerId> = triggers.map(|trigger| trigger.id).collect();
    for trigger in triggers {
        context.drop_trigger(trigger);
    }
    context.drop_job(job.id);
    Ok(Reply::Job(job, PutOutcome::Deleted))
}

fn cancel_for_deletion(context: &mut Context<'_>, id: FireId) {
    let Some(fire) = context.state().fires().get(&id) else { return };
    let mut fire = Fire::clone(fire);
    if fire.state == FireState::Running
        && let Some(attempt) = fire.attempts.last_mut()
    {
        attempt.ended_at = Some(context.now());
        attempt.outcome = Some(Outcome::Cancelled);
    }
    end_fire_alone(context, fire, FireState::Cancelled);
}

// Refusals, in order: UnknownTenant, UnknownJob. Pausing a paused job keeps the time of its pause.
pub(in crate::machine) fn pause_job(
    context: &mut Context<'_>,
    key: &JobKey,
) -> Result<Reply, Rejection> {
    let job = find_job(context.state(), key)?;
    if job.paused_at.is_some() {
        return Ok(Reply::Job(job, PutOutcome::Unchanged));
    }
    let paused = Job { paused_at: Some(context.now()), ..Job::clone(&job) };
    Ok(Reply::Job(context.put_job(paused), PutOutcome::Replaced))
}

// Refusals, in order: UnknownTenant, UnknownJob.
pub(in crate::machine) fn resume_job(
    context: &mut Context<'_>,
    key: &JobKey,
) -> Result<Reply, Rejection> {
    let job = find_job(context.state(), key)?;
    let Some(since) = job.paused_at else {
        return Ok(Reply::Job(job, PutOutcome::Unchanged));
    };
    let resumed = Job { paused_at: None, ..Job::clone(&job) };
    let resumed = context.put_job(resumed);
    note_pause_end(context, resumed.id, since);
    Ok(Reply::Job(resumed, PutOutcome::Replaced))
}
