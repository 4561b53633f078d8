//! Orders and sums over the tables, so that nothing has to be searched for. All of it follows from
//! the tables and is rebuilt when they are loaded; `machine::invariant` compares the two.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::base::bounded::Name;
use crate::base::time::Timestamp;
use crate::model::fire::{Fire, FireState, WaitCause};
use crate::model::id::{FireId, JobId, JobKey, Revision, TriggerId, WorkerId};
use crate::model::job::{ExecutorKind, JobSpec};
use crate::model::trigger::{NextDue, Trigger, TriggerState};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    pub(in crate::machine) job_by_key: OrdMap<Arc<JobKey>, JobId>,
    pub(in crate::machine) trigger_by_name: OrdMap<(JobId, Name), TriggerId>,
    /// Active triggers of unpaused jobs in unpaused groups, by the time at which a leader must look
    /// at them: the due time of the next occurrence, or `Timestamp::MIN` while the next one is
    /// unknown.
    pub(in crate::machine) due_triggers: OrdSet<(Timestamp, TriggerId)>,
    /// Fires that wait for an instant, by that instant.
    pub(in crate::machine) waiting: OrdSet<(Timestamp, FireId)>,
    pub(in crate::machine) ready: OrdSet<ReadyKey>,
    /// Fires that wait for an earlier one of their job to end.
    pub(in crate::machine) buffered: OrdSet<FireId>,
    /// Running fires with a time-out, by their deadline.
    pub(in crate::machine) deadlines: OrdSet<(Timestamp, FireId)>,
    pub(in crate::machine) running: OrdSet<(WorkerId, FireId)>,
    pub(in crate::machine) held_slots: OrdMap<WorkerId, u32>,
    pub(in crate::machine) job_load: OrdMap<JobId, JobLoad>,
    pub(in crate::machine) open_by_revision: OrdMap<(JobId, Revision), u32>,
    pub(in crate::machine) requests_by_age: OrdSet<(Timestamp, Name, String)>,
}

/// The order in which ready fires are granted: inside a tenant's pool by priority, then by due
/// time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadyKey {
    pub tenant: Name,
    pub pool: Name,
    pub executor: ExecutorKind,
    /// `JobSpec::PRIORITY_MAX` minus the priority, so that the ascending order is the order of
    /// granting.
    pub rank: u8,
    pub due_at: Timestamp,
    pub fire: FireId,
}

/// The open fires of one job, as the overlap policy counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobLoad {
    /// Ready, running or waiting for a retry.
    pub active: u32,
    /// Waiting for an earlier fire to end.
    pub buffered: u32,
    /// All open fires, those that wait for their time included.
    pub open: u32,
}

impl Index {
    #[must_use]
    pub fn job_by_key(&self) -> &OrdMap<Arc<JobKey>, JobId> {
        &self.job_by_key
    }

    #[must_use]
    pub fn due_triggers(&self) -> &OrdSet<(Timestamp, TriggerId)> {
        &self.due_triggers
    }

    #[must_use]
    pub fn waiting(&self) -> &OrdSet<(Timestamp, FireId)> {
        &self.waiting
    }

    #[must_use]
    pub fn ready(&self) -> &OrdSet<ReadyKey> {
        &self.ready
    }

    /// Fires that wait for an earlier one of their job to end.
    #[must_use]
    pub fn buffered(&self) -> &OrdSet<FireId> {
        &self.buffered
    }

    #[must_use]
    pub fn deadlines(&self) -> &OrdSet<(Timestamp, FireId)> {
        &self.deadlines
    }

    /// Running fires by the worker that holds them.
    #[must_use]
    pub fn running(&self) -> &OrdSet<(WorkerId, FireId)> {
        &self.running
    }

    /// How many attempts the worker runs.
    #[must_use]
    pub fn held_slots(&self, worker: WorkerId) -> u32 {
        self.held_slots.get(&worker).copied().unwrap_or(0)
    }

    #[must_use]
    pub fn job_load(&self, job: JobId) -> JobLoad {
        self.job_load.get(&job).copied().unwrap_or_default()
    }

    /// How many open fires run with a definition.
    #[must_use]
    pub fn open_with(&self, job: JobId, revision: Revision) -> u32 {
        self.open_by_revision.get(&(job, revision)).copied().unwrap_or(0)
    }

    /// Takes a fire from the place of its old form to that of its new one; `None` is outside of the
    /// table of open fires. Both forms run with `spec`.
    pub(in crate::machine) fn move_fire(
        &mut self,
        old: Option<&Fire>,
        new: Option<&Fire>,
        spec: &JobSpec,
    ) {
        let left = old.map(place_of);
        let entered = new.map(place_of);
        if left == entered {
            return;
        }
        if let (Some(fire), Some(place)) = (old, left) {
            self.leave(fire, place, spec);
        }
        if let (Some(fire), Some(place)) = (new, entered) {
            self.enter(fire, place, spec);
        }
        if let Some(fire) = old.or(new) {
            self.count_fire(fire, left, entered);
        }
    }

    fn enter(&mut self, fire: &Fire, place: Place, spec: &JobSpec) {
        match place {
            Place::Waiting { until, retry: _ } => {
                self.waiting.insert((until, fire.id));
            }
            Place::Buffered => {
                self.buffered.insert(fire.id);
            }
            Place::Ready => {
                self.ready.insert(ReadyKey::of(fire, spec));
            }
            Place::Running { worker, deadline } => {
                self.running.insert((worker, fire.id));
                if let Some(deadline) = deadline {
                    self.deadlines.insert((deadline, fire.id));
                }
                *self.held_slots.entry(worker).or_insert(0) += 1;
            }
            Place::Nowhere => {}
        }
    }

    fn leave(&mut self, fire: &Fire, place: Place, spec: &JobSpec) {
        match place {
            Place::Waiting { until, retry: _ } => {
                self.waiting.remove(&(until, fire.id));
            }
            Place::Buffered => {
                self.buffered.remove(&fire.id);
            }
            Place::Ready => {
                self.ready.remove(&ReadyKey::of(fire, spec));
            }
            Place::Running { worker, deadline } => {
                self.running.remove(&(worker, fire.id));
                if let Some(deadline) = deadline {
                    self.deadlines.remove(&(deadline, fire.id));
                }
                self.release_slot(worker);
            }
            Place::Nowhere => {}
        }
    }

    fn release_slot(&mut self, worker: WorkerId) {
        let held = self.held_slots(worker);
        if held > 1 {
            self.held_slots.insert(worker, held - 1);
        } else {
            self.held_slots.remove(&worker);
        }
    }

    fn count_fire(&mut self, fire: &Fire, left: Option<Place>, entered: Option<Place>) {
        let job = fire.id.job;
        let before = left.map_or_else(JobLoad::default, Place::load);
        let after = entered.map_or_else(JobLoad::default, Place::load);
        if before != after {
            let load = self.job_load(job).moved(before, after);
            if load == JobLoad::default() {
                self.job_load.remove(&job);
            } else {
                self.job_load.insert(job, load);
            }
        }
        if before.open != after.open {
            let key = (job, fire.job_revision);
            let open = self.open_with(job, fire.job_revision);
            let open = (open + after.open).saturating_sub(before.open);
            if open == 0 {
                self.open_by_revision.remove(&key);
            } else {
                self.open_by_revision.insert(key, open);
            }
        }
    }
}

/// Where a leader must look at a trigger, when neither its job nor its group is paused.
pub(in crate::machine) fn due_position(trigger: &Trigger) -> Option<(Timestamp, TriggerId)> {
    match trigger.state {
        TriggerState::Paused { .. } | TriggerState::Ended => None,
        TriggerState::Active => match trigger.cursor.next {
            NextDue::Unknown => Some((Timestamp::MIN, trigger.id)),
            NextDue::At { scheduled_at: _, due_at } => Some((due_at, trigger.id)),
            NextDue::Never => None,
        },
    }
}

impl ReadyKey {
    fn of(fire: &Fire, spec: &JobSpec) -> ReadyKey {
        ReadyKey {
            tenant: fire.job_key.tenant.clone(),
            pool: spec.pool.clone(),
            executor: spec.executor.kind(),
            rank: JobSpec::PRIORITY_MAX.saturating_sub(spec.priority),
            due_at: fire.due_at,
            fire: fire.id,
        }
    }
}

impl JobLoad {
    fn moved(self, before: JobLoad, after: JobLoad) -> JobLoad {
        JobLoad {
            active: (self.active + after.active).saturating_sub(before.active),
            buffered: (self.buffered + after.buffered).saturating_sub(before.buffered),
            open: (self.open + after.open).saturating_sub(before.open),
        }
    }
}

/// Which of the orders a fire stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Waiting {
        until: Timestamp,
        retry: bool,
    },
    Buffered,
    Ready,
    Running {
        worker: WorkerId,
        deadline: Option<Timestamp>,
    },
    /// A form that an open fire never has; `machine::invariant` reports it.
    Nowhere,
}

impl Place {
    fn load(self) -> JobLoad {
        let (active, buffered) = match self {
            Place::Waiting { until: _, retry } => (u32::from(retry), 0),
            Place::Buffered => (0, 1),
            Place::Ready | Place::Running { .. } => (1, 0),
            Place::Nowhere => (0, 0),
        };
        JobLoad { active, buffered, open: 1 }
    }
}

fn place_of(fire: &Fire) -> Place {
    match fire.state {
        FireState::Waiting(WaitCause::Due) => {
            Place::Waiting { until: fire.not_before, retry: false }
        }
        FireState::Waiting(WaitCause::Retry) => {
            Place::Waiting { until: fire.not_before, retry: true }
        }
        FireState::Waiting(WaitCause::Overlap) => Place::Buffered,
        FireState::Ready => Place::Ready,
        FireState::Running => fire.lease.map_or(Place::Nowhere, |lease| Place::Running {
            worker: lease.worker,
            deadline: lease.deadline,
        }),
        FireState::Succeeded | FireState::Failed | FireState::Skipped(_) | FireState::Cancelled => {
            Place::Nowhere
        }
    }
}
