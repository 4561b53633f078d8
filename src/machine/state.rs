//! The tables of the replicated state. Copy-on-write: a clone is a consistent view of one index,
//! and costs as much as a pointer.

use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::base::bounded::Name;
use crate::base::time::Timestamp;
use crate::machine::index::Index;
use crate::machine::reply::Reply;
use crate::model::fire::Fire;
use crate::model::id::{FireId, GroupKey, JobId, JobKey, Revision, Seq, TriggerId, WorkerId};
use crate::model::job::{Job, JobSpec};
use crate::model::tenant::{Group, Tenant};
use crate::model::trigger::Trigger;
use crate::model::worker::Worker;

/// What there is one of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Empty before the first entry.
    pub cluster_id: String,
    /// The highest stamp of all applied entries. Time in the machine never goes back.
    pub stamp: Timestamp,
}

/// The remembered answer to a call with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    pub tenant: Name,
    pub key: String,
    pub body_hash: u64,
    pub answered_at: Timestamp,
    pub reply: Reply,
}

/// The whole state. `machine::apply` changes it; everybody else reads.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(in crate::machine) meta: Meta,
    /// Every job's tenant is here.
    pub(in crate::machine) tenants: OrdMap<Name, Arc<Tenant>>,
    /// Only groups that were ever paused.
    pub(in crate::machine) groups: OrdMap<GroupKey, Arc<Group>>,
    pub(in crate::machine) jobs: OrdMap<JobId, Arc<Job>>,
    /// Exactly the replaced definitions that an open fire runs with.
    pub(in crate::machine) retired_specs: OrdMap<(JobId, Revision), Arc<JobSpec>>,
    /// Every trigger's job is in `jobs`.
    pub(in crate::machine) triggers: OrdMap<TriggerId, Arc<Trigger>>,
    /// Open fires only; each one's job is in `jobs`.
    pub(in crate::machine) fires: OrdMap<FireId, Arc<Fire>>,
    pub(in crate::machine) workers: OrdMap<WorkerId, Arc<Worker>>,
    pub(in crate::machine) requests: OrdMap<(Name, String), Arc<RequestRecord>>,
    /// Rebuilt from the tables; never stored.
    pub(in crate::machine) index: Index,
}

impl State {
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The highest stamp applied so far.
    #[must_use]
    pub fn stamp(&self) -> Timestamp {
        self.meta.stamp
    }

    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    #[must_use]
    pub fn tenants(&self) -> &OrdMap<Name, Arc<Tenant>> {
        &self.tenants
    }

    #[must_use]
    pub fn groups(&self) -> &OrdMap<GroupKey, Arc<Group>> {
        &self.groups
    }

    #[must_use]
    pub fn jobs(&self) -> &OrdMap<JobId, Arc<Job>> {
        &self.jobs
    }

    #[must_use]
    pub fn retired_specs(&self) -> &OrdMap<(JobId, Revision), Arc<JobSpec>> {
        &self.retired_specs
    }

    #[must_use]
    pub fn triggers(&self) -> &OrdMap<TriggerId, Arc<Trigger>> {
        &self.triggers
    }

    #[must_use]
    pub fn fires(&self) -> &OrdMap<FireId, Arc<Fire>> {
        &self.fires
    }

    #[must_use]
    pub fn workers(&self) -> &OrdMap<WorkerId, Arc<Worker>> {
        &self.workers
    }

    #[must_use]
    pub fn requests(&self) -> &OrdMap<(Name, String), Arc<RequestRecord>> {
        &self.requests
    }

    #[must_use]
    pub fn job_by_key(&self, key: &JobKey) -> Option<&Arc<Job>> {
        self.jobs.get(self.index.job_by_key.get(key)?)
    }

    #[must_use]
    pub fn trigger_by_name(&self, job: JobId, name: &Name) -> Option<&Arc<Trigger>> {
        self.triggers.get(self.index.trigger_by_name.get(&(job, name.clone()))?)
    }

    /// The definition an open fire runs with.
    #[must_use]
    pub fn spec_of(&self, job: JobId, revision: Revision) -> Option<&Arc<JobSpec>> {
        let current = self.jobs.get(&job)?;
        if current.revision == revision {
            return Some(&current.spec);
        }
        self.retired_specs.get(&(job, revision))
    }

    /// Whether the group is paused; false for one that nobody ever paused.
    #[must_use]
    pub fn is_group_paused(&self, key: &GroupKey) -> bool {
        self.groups.get(key).is_some_and(|group| group.paused_at.is_some())
    }

    /// Whether the job or its group is paused.
    #[must_use]
    pub fn is_job_paused(&self, job: JobId) -> bool {
        let Some(job) = self.jobs.get(&job) else { return false };
        if job.paused_at.is_some() {
            return true;
        }
        // Hardly any cluster has a paused group; the key is built only when there may be one.
        !self.groups.is_empty() && self.is_group_paused(&job.key.group_key())
    }

    /// The jobs of a group, by name.
    pub fn jobs_in(&self, group: &GroupKey) -> impl Iterator<Item = &Arc<Job>> {
        let first = JobKey {
            tenant: group.tenant.clone(),
            group: group.group.clone(),
            name: Name::first(),
        };
        self.index
            .job_by_key
            .range(first..)
            .take_while(move |(key, _)| key.tenant == group.tenant && key.group == group.group)
            .filter_map(|(_, id)| self.jobs.get(id))
    }

    /// The triggers of a job, by name.
    pub fn triggers_of(&self, job: JobId) -> impl Iterator<Item = &Arc<Trigger>> {
        self.index
            .trigger_by_name
            .range((job, Name::first())..)
            .take_while(move |((owner, _), _)| *owner == job)
            .filter_map(|(_, id)| self.triggers.get(id))
    }

    /// The open fires of a job, oldest first.
    pub fn fires_of(&self, job: JobId) -> impl Iterator<Item = &Arc<Fire>> {
        let first = FireId { job, seq: Seq::ZERO };
        self.fires.range(first..).take_while(move |(id, _)| id.job == job).map(|(_, fire)| fire)
    }
}
