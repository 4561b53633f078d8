//! What a leader worked out to be due: cursors move and fires are recorded in one entry, so that no
//! occurrence is forgotten between the two, and none is recorded twice.

use crate::base::time::Timestamp;
use crate::machine::apply::context::Context;
use crate::machine::apply::ending::end_fire_alone;
use crate::machine::apply::gate::{self, Passage};
use crate::machine::apply::grant::grant_offers;
use crate::machine::command::{PlannedFire, RecordFires, SkippedRun, TriggerAdvance};
use crate::machine::reply::Reply;
use crate::machine::state::State;
use crate::model::fire::{Fire, FireReason, FireState, Folded, SkipReason, WaitCause};
use crate::model::id::FireId;
use crate::model::job::{Job, Payload};
use crate::model::trigger::{Cursor, NextDue, Trigger, TriggerState};

// Refusals: none. Parts that do not fit the state (any more) are passed over.
pub(in crate::machine) fn record_fires(context: &mut Context<'_>, command: &RecordFires) -> Reply {
    for advance in &command.advances {
        advance_trigger(context, advance);
    }
    for fire in &command.due {
        wake(context, *fire);
    }
    grant_offers(context, &command.offers);
    Reply::Done
}

/// One fire to be recorded, before the gate has judged it.
pub(in crate::machine) struct NewFire<'a> {
    pub job: &'a Job,
    pub trigger: Option<&'a Trigger>,
    pub reason: FireReason,
    pub scheduled_at: Timestamp,
    pub due_at: Timestamp,
    pub payload: Option<Payload>,
    pub overlap_allowed: bool,
}

impl NewFire<'_> {
    /// The record, in a state that the caller has worked out.
    pub(in crate::machine) fn record(self, context: &mut Context<'_>, state: FireState) -> Fire {
        let id = FireId { job: self.job.id, seq: context.next_seq() };
        let ended = state.is_ended();
        Fire {
            id,
            job_key: self.job.key.clone(),
            job_revision: self.job.revision,
            trigger: self.trigger.map(|trigger| trigger.name.clone()),
            reason: self.reason,
            scheduled_at: self.scheduled_at,
            due_at: self.due_at,
            overlap_allowed: self.overlap_allowed,
            folded: None,
            payload: self.payload,
            recorded_at: context.now(),
            recorded_index: context.index(),
            state,
            not_before: self.due_at,
            lease: None,
            attempt_count: 0,
            released_count: 0,
            attempts: Vec::new(),
            cancel_requested_at: None,
            fenced_count: 0,
            ended_at: ended.then(|| context.now()),
            ended_index: ended.then(|| context.index()),
        }
    }
}

fn advance_trigger(context: &mut Context<'_>, advance: &TriggerAdvance) {
    let state = context.state();
    let Some(trigger) = state.triggers().get(&advance.trigger) else { return };
    let Some(job) = state.jobs().get(&trigger.job) else { return };
    let is_current = trigger.revision == advance.revision
        && trigger.cursor.accounted_to == advance.cursor_before
        && trigger.state == TriggerState::Active
        && !state.is_job_paused(job.id);
    let records = advance.fires.len().saturating_add(advance.skipped.len());
    let fits = records <= context.seqs_left();
    if !is_current || !fits || !is_sound(advance, context.now()) {
        return;
    }
    let (trigger, job) = (trigger.clone(), job.clone());
    for run in &advance.skipped {
        record_skipped(context, &job, &trigger, run);
    }
    for planned in &advance.fires {
        record_planned(context, &job, &trigger, planned);
    }
    let cursor = Cursor { accounted_to: advance.cursor_after, next: advance.next };
    let mut moved = Trigger::clone(&trigger);
    moved.cursor = cursor;
    if cursor.next == NextDue::Never {
        moved.state = TriggerState::Ended;
    }
    // An advance that says what is known already need not be written.
    if moved != *trigger {
        context.put_trigger(moved);
    }
}

/// Whether every occurrence of the advance lies between its cursors, in order and not before its
/// time: what is recorded twice or too early could not be taken back.
fn is_sound(advance: &TriggerAdvance, now: Timestamp) -> bool {
    let TriggerAdvance { cursor_before, cursor_after, .. } = *advance;
    if cursor_after < cursor_before || cursor_after > now {
        return false;
    }
    let mut last = cursor_before;
    for fire in &advance.fires {
        let in_order = fire.scheduled_at > last && fire.scheduled_at <= cursor_after;
        if !in_order || fire.due_at > now {
            return false;
        }
        last = fire.scheduled_at;
    }
    let mut last = cursor_before;
    for run in &advance.skipped {
        let in_order = run.first > last && run.last >= run.first && run.last <= cursor_after;
        let before = advance.fires.partition_point(|fire| fire.scheduled_at < run.first);
        let through = advance.fires.partition_point(|fire| fire.scheduled_at <= run.last);
        if !in_order || run.count == 0 || before != through {
            return false;
        }
        last = run.last;
    }
    match advance.next {
        NextDue::Unknown | NextDue::Never => true,
        NextDue::At { scheduled_at, due_at: _ } => scheduled_at > cursor_after,
    }
}

fn record_planned(context: &mut Context<'_>, job: &Job, trigger: &Trigger, planned: &PlannedFire) {
    let passage = passage(context.state(), job);
    let new = NewFire {
        job,
        trigger: Some(trigger),
        reason: planned.reason,
        scheduled_at: planned.scheduled_at,
        due_at: planned.due_at,
        payload: trigger.spec.payload.clone(),
        overlap_allowed: false,
    };
    let fire = new.record(context, passage.state());
    match passage {
        Passage::Open | Passage::Buffer => context.put_fire(fire),
        Passage::Closed(_) => context.put_history(fire),
    };
}

fn passage(state: &State, job: &Job) -> Passage {
    if gate::overload(state, job.id).is_some() {
        return Passage::Closed(SkipReason::Overload);
    }
    gate::judge(job.spec.overlap, state.index().job_load(job.id))
}

fn record_skipped(context: &mut Context<'_>, job: &Job, trigger: &Trigger, run: &SkippedRun) {
    let new = NewFire {
        job,
        trigger: Some(trigger),
        reason: FireReason::Schedule,
        scheduled_at: run.first,
        due_at: run.first,
        payload: None,
        overlap_allowed: false,
    };
    let mut fire = new.record(context, FireState::Skipped(run.reason));
    if run.count > 1 {
        fire.folded = Some(Folded { last_scheduled_at: run.last, count: run.count });
    }
    context.put_history(fire);
}

/// A waiting fire whose time has come. One that waits for its retry holds its place already; one
/// that waits for its own time passes the gate only now.
fn wake(context: &mut Context<'_>, id: FireId) {
    let Some(fire) = context.state().fires().get(&id) else { return };
    if fire.not_before > context.now() {
        return;
    }
    let state = match fire.state {
        FireState::Waiting(WaitCause::Retry) => FireState::Ready,
        FireState::Waiting(WaitCause::Due) => {
            let Some(job) = context.state().jobs().get(&id.job) else { return };
            let load = context.state().index().job_load(id.job);
            if fire.overlap_allowed {
                FireState::Ready
            } else {
                gate::judge(job.spec.overlap, load).state()
            }
        }
        FireState::Waiting(WaitCause::Overlap)
        | FireState::Ready
        | FireState::Running
        | FireState::Succeeded
        | FireState::Failed
        | FireState::Skipped(_)
        | FireState::Cancelled => return,
    };
    let mut fire = Fire::clone(fire);
    if state.is_ended() {
        end_fire_alone(context, fire, state);
    } else {
        fire.state = state;
        context.put_fire(fire);
    }
}
