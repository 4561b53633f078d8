//! A state from its records, as a store or a snapshot hands them back.

use std::sync::Arc;

use crate::machine::index::{Index, due_position};
use crate::machine::invariant::{self, InvariantError};
use crate::machine::state::{Meta, RequestRecord, State};
use crate::model::fire::Fire;
use crate::model::id::{JobId, Revision};
use crate::model::job::{Job, JobSpec};
use crate::model::tenant::{Group, Tenant};
use crate::model::trigger::Trigger;
use crate::model::worker::Worker;

/// Collects records in any order; nothing can be read before [`StateBuilder::finish`].
#[derive(Debug, Default)]
pub struct StateBuilder {
    state: State,
}

impl StateBuilder {
    #[must_use]
    pub fn new() -> StateBuilder {
        StateBuilder::default()
    }

    pub fn put_meta(&mut self, meta: Meta) {
        self.state.meta = meta;
    }

    pub fn put_tenant(&mut self, tenant: Tenant) {
        self.state.tenants.insert(tenant.name.clone(), Arc::new(tenant));
    }

    pub fn put_group(&mut self, group: Group) {
        self.state.groups.insert(group.key.clone(), Arc::new(group));
    }

    pub fn put_job(&mut self, job: Job) {
        self.state.jobs.insert(job.id, Arc::new(job));
    }

    pub fn put_retired_spec(&mut self, job: JobId, revision: Revision, spec: JobSpec) {
        self.state.retired_specs.insert((job, revision), Arc::new(spec));
    }

    pub fn put_trigger(&mut self, trigger: Trigger) {
        self.state.triggers.insert(trigger.id, Arc::new(trigger));
    }

    /// An open fire.
    pub fn put_fire(&mut self, mut fire: Fire) {
        if let Some(job) = self.state.jobs.get(&fire.id.job) {
            // One address for all fires of a job, instead of one for each.
            if job.key == fire.job_key {
                fire.job_key = Arc::clone(&job.key);
            }
        }
        self.state.fires.insert(fire.id, Arc::new(fire));
    }

    pub fn put_worker(&mut self, worker: Worker) {
        self.state.workers.insert(worker.id, Arc::new(worker));
    }

    pub fn put_request(&mut self, request: RequestRecord) {
        let key = (request.tenant.clone(), request.key.clone());
        self.state.requests.insert(key, Arc::new(request));
    }

    /// Builds the index and checks everything.
    ///
    /// # Errors
    /// The invariant that the records break.
    pub fn finish(self) -> Result<State, InvariantError> {
        let mut state = self.state;
        state.rebuild_index();
        invariant::check_tables(&state)?;
        Ok(state)
    }
}

impl State {
    /// Works the index out from the tables, after they were loaded.
    pub(in crate::machine) fn rebuild_index(&mut self) {
        self.index = Index::of(self);
    }
}

impl Index {
    /// The index that follows from the tables. What lacks an owner is left out, and is found by
    /// `machine::invariant`.
    pub(in crate::machine) fn of(state: &State) -> Index {
        let mut index = Index::default();
        for job in state.jobs.values() {
            index.job_by_key.insert(Arc::clone(&job.key), job.id);
        }
        for trigger in state.triggers.values() {
            index.trigger_by_name.insert((trigger.job, trigger.name.clone()), trigger.id);
            if let Some(position) = due_position(trigger)
                && !state.is_job_paused(trigger.job)
            {
                index.due_triggers.insert(position);
            }
        }
        for fire in state.fires.values() {
            if let Some(spec) = state.spec_of(fire.id.job, fire.job_revision) {
                index.move_fire(None, Some(fire), spec);
            }
        }
        for request in state.requests.values() {
            let age = (request.answered_at, request.tenant.clone(), request.key.clone());
            index.requests_by_age.insert(age);
        }
        index
    }
}
