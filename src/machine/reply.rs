//! What the machine answers: the result of a command, or the business's refusal of it.
//!
//! A refusal is replicated like a result. It changed nothing, apart from being remembered under the
//! caller's idempotency key.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::bounded::Name;
use crate::model::fire::{FencingToken, Fire, FireState};
use crate::model::id::{FireId, JobKey, NodeId, Revision, RunId, WorkerId};
use crate::model::job::Job;
use crate::model::tenant::{Group, Tenant};
use crate::model::trigger::Trigger;
use crate::model::worker::Worker;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Carried out, with nothing to say.
    Done,
    Node(NodeId),
    Tenant(Arc<Tenant>, PutOutcome),
    Group(Arc<Group>),
    Job(Arc<Job>, PutOutcome),
    Trigger(Arc<Trigger>, PutOutcome),
    Fire(Arc<Fire>),
    Worker(Arc<Worker>),
    /// In the order of the answers.
    Answers(Vec<AnswerVerdict>),
    Rejected(Rejection),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PutOutcome {
    Created,
    Replaced,
    /// It was the same already.
    Unchanged,
    Deleted,
}

/// What became of one answer of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerVerdict {
    /// Taken; the fire stands as told.
    Taken { run: RunId, state: FireState },
    /// Another attempt holds the fire, or none does. Nothing was changed, and the fire shows the
    /// refusal.
    Stale { run: RunId, current: Option<FencingToken> },
    /// No such open fire: it has ended, or never was. Its history tells which.
    NotOpen { run: RunId },
}

/// Why a command was refused, in the order in which the reasons are looked for: who and what first,
/// then the precondition, then the state, then the limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    #[error("the cluster was bootstrapped already")]
    AlreadyBootstrapped,
    #[error("the idempotency key {key:?} was used for another request")]
    RequestKeyReused { key: String },
    #[error("there is no tenant {tenant}")]
    UnknownTenant { tenant: Name },
    #[error("there is no job {job}")]
    UnknownJob { job: JobKey },
    #[error("job {job} has no trigger {trigger}")]
    UnknownTrigger { job: JobKey, trigger: Name },
    #[error("there is no open fire {fire}")]
    UnknownFire { fire: FireId },
    #[error(
        "there is no worker {worker}; it was silent too long or was removed, so register again"
    )]
    UnknownWorker { worker: WorkerId },
    #[error("it exists already, at revision {}", current.0)]
    Exists { current: Revision },
    #[error("it is at revision {}, not at the one asked for", current.0)]
    RevisionMismatch { current: Revision },
    #[error("fire {open} of the job is open and its overlap policy lets no other run beside it")]
    Overlap { open: FireId },
    #[error("fire {fire} has ended already")]
    FireEnded { fire: FireId, state: FireState },
    #[error("tenant {tenant} still has {jobs} jobs")]
    TenantNotEmpty { tenant: Name, jobs: u64 },
    #[error("the tenant {tenant} cannot be deleted")]
    TenantProtected { tenant: Name },
    #[error("the cluster has {limit} jobs, the most it takes")]
    TooManyJobs { limit: u64 },
    #[error("a job has at most {limit} triggers")]
    TooManyTriggers { limit: u64 },
    #[error("there are {limit} open fires, the most that are taken")]
    TooManyOpenFires { limit: u64 },
    #[error("a definition has at most {limit} bytes when it is stored, this one has {bytes}")]
    DefinitionTooLarge { bytes: u64, limit: u64 },
}
