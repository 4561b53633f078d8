//! Orders and sums over the tables, so that nothing has to be searched for. All of it follows from
//! the tables and is rebuilt when they are loaded; `machine::invariant` compares the two.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::base::bounded::Name;
use crate::base::time::Timestamp;
use crate::model::id::{FireId, JobId, JobKey, Revision, TriggerId, WorkerId};
use crate::model::job::ExecutorKind;

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
}
