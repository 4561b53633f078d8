//! Which records an entry put or removed, for the store. In order: a later change of a record wins.

use std::sync::Arc;

use crate::base::bounded::Name;
use crate::base::time::Timestamp;
use crate::machine::state::{Meta, RequestRecord};
use crate::model::fire::{AttemptReport, Fire};
use crate::model::id::{GroupKey, JobId, Revision, RunId, TriggerId, WorkerId};
use crate::model::job::{Job, JobSpec};
use crate::model::tenant::{Group, Tenant};
use crate::model::trigger::Trigger;
use crate::model::worker::Worker;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    PutMeta(Meta),
    PutTenant(Arc<Tenant>),
    DropTenant(Name),
    PutGroup(Arc<Group>),
    DropGroup(GroupKey),
    PutJob(Arc<Job>),
    DropJob(JobId),
    /// A replaced definition that an open fire still runs with.
    PutRetiredSpec(JobId, Revision, Arc<JobSpec>),
    DropRetiredSpec(JobId, Revision),
    PutTrigger(Arc<Trigger>),
    DropTrigger(TriggerId),
    /// An open fire.
    PutFire(Arc<Fire>),
    /// An open fire that ended: it leaves memory and becomes history.
    EndFire(Arc<Fire>),
    /// An ended fire that was never open: a skipped occurrence, or a folded run of them.
    PutHistory(Arc<Fire>),
    /// What an attempt left behind; history from the start.
    PutAttempt(RunId, Arc<AttemptReport>),
    /// The job's oldest ended fires and their attempts, this many of them.
    PruneJobHistory(JobId, u32),
    /// Ended fires of any job that were recorded before an instant, at most this many, oldest
    /// first.
    PruneHistory(Timestamp, u32),
    PutWorker(Arc<Worker>),
    DropWorker(WorkerId),
    PutRequest(Arc<RequestRecord>),
    DropRequest(Name, String),
}
