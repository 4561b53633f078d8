//! The overlap gate: may one more fire of a job run now? Scheduled, caught-up and requested fires
//! all come through here, and nothing else decides it.

use std::sync::Arc;

use crate::base::limits;
use crate::machine::apply::context::Context;
use crate::machine::index::JobLoad;
use crate::machine::state::State;
use crate::model::fire::{Fire, FireState, SkipReason, WaitCause};
use crate::model::id::{FireId, JobId, Seq};
use crate::model::policy::Overlap;

/// Open fires that are looked at to name the one that stands in the way.
const BLOCKERS_SEEN_MAX: usize = 64;

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Passage {
    /// It may run.
    Open,
    /// It waits for the earlier one to end.
    Buffer,
    /// It does not run.
    Closed(SkipReason),
}

impl Passage {
    /// The state of a fire that the gate has judged.
    pub(in crate::machine) fn state(self) -> FireState {
        match self {
            Passage::Open => FireState::Ready,
            Passage::Buffer => FireState::Waiting(WaitCause::Overlap),
            Passage::Closed(reason) => FireState::Skipped(reason),
        }
    }
}

/// Judges one more fire of a job that has `load` already.
pub(in crate::machine) fn judge(overlap: Overlap, load: JobLoad) -> Passage {
    match overlap {
        Overlap::Skip if load.active == 0 => Passage::Open,
        Overlap::Skip => Passage::Closed(SkipReason::Overlap),
        Overlap::BufferOne if load.active == 0 => Passage::Open,
        Overlap::BufferOne if load.buffered == 0 => Passage::Buffer,
        Overlap::BufferOne => Passage::Closed(SkipReason::BufferFull),
        Overlap::Allow { max: None } => Passage::Open,
        Overlap::Allow { max: Some(max) } if load.active < max => Passage::Open,
        Overlap::Allow { max: Some(_) } => Passage::Closed(SkipReason::Overlap),
    }
}

/// Whether the job, or the cluster, has as many open fires as it may have; with that number.
pub(in crate::machine) fn overload(state: &State, job: JobId) -> Option<u64> {
    let in_job = state.index().job_load(job).open as usize;
    if in_job >= limits::OPEN_FIRES_PER_JOB_MAX {
        return Some(limits::OPEN_FIRES_PER_JOB_MAX as u64);
    }
    (state.fires().len() >= limits::OPEN_FIRES_MAX).then_some(limits::OPEN_FIRES_MAX as u64)
}

/// The oldest fire that stands in the way of another one of the job. Where many wait for their own
/// time before it, the first of those, for this only serves a message.
pub(in crate::machine) fn blocker(state: &State, job: JobId) -> Option<FireId> {
    let blocks = |fire: &Fire| match fire.state {
        FireState::Waiting(WaitCause::Due) => false,
        FireState::Waiting(WaitCause::Retry | WaitCause::Overlap)
        | FireState::Ready
        | FireState::Running => true,
        FireState::Succeeded | FireState::Failed | FireState::Skipped(_) | FireState::Cancelled => {
            false
        }
    };
    let mut seen = state.fires_of(job).take(BLOCKERS_SEEN_MAX);
    let first = state.fires_of(job).next();
    seen.find(|fire| blocks(fire)).or(first).map(|fire| fire.id)
}

/// Lets a buffered fire of the job run if the way is free now. Every end of an active fire, and
/// every change of the policy, is followed by this.
pub(in crate::machine) fn release_buffered(context: &mut Context<'_>, job: JobId) {
    let Some(fire) = first_buffered(context.state(), job) else { return };
    let Some(owner) = context.state().jobs().get(&job) else { return };
    let load = context.state().index().job_load(job);
    let is_free = match owner.spec.overlap {
        Overlap::Skip | Overlap::BufferOne => load.active == 0,
        Overlap::Allow { max } => load.active == 0 || max.is_none_or(|max| load.active < max),
    };
    if is_free {
        let mut fire = Fire::clone(&fire);
        fire.state = FireState::Ready;
        context.put_fire(fire);
    }
}

fn first_buffered(state: &State, job: JobId) -> Option<Arc<Fire>> {
    let first = FireId { job, seq: Seq::ZERO };
    let id = state.index().buffered().range(first..).next()?;
    if id.job != job {
        return None;
    }
    state.fires().get(id).map(Arc::clone)
}
