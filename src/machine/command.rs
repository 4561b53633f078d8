//! The commands: every change of the replicated state is one of these.
//!
//! Numbering rules. A variant's place in an enum is its number on disk and on the wire between
//! members, so variants are only ever added at the end, never moved or removed, and a field is
//! never added to one: a changed command is a new variant. `tests/compat/` holds golden bytes of
//! every released one.

use serde::{Deserialize, Serialize};

use crate::base::bounded::Name;
use crate::base::time::Timestamp;
use crate::model::fire::{AttemptReport, FencingToken, FireReason, SkipReason};
use crate::model::id::{FireId, GroupKey, JobKey, Revision, RunId, TriggerId, WorkerId};
use crate::model::job::{JobSpec, Payload};
use crate::model::trigger::{NextDue, TriggerSpec};
use crate::model::worker::WorkerSpec;

/// What the log holds: a proposal with the leader's time on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The leader's clock when it took the proposal in. The machine never goes back: see
    /// `State::stamp`.
    pub stamp: Timestamp,
    pub proposal: Proposal,
}

/// What somebody asks of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Set for calls that carry an idempotency key.
    pub request: Option<RequestIdentity>,
    pub command: Command,
}

impl From<Command> for Proposal {
    fn from(command: Command) -> Proposal {
        Proposal { request: None, command }
    }
}

/// Names one call of one caller, so that its repetition gets the first answer and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestIdentity {
    pub tenant: Name,
    /// At most `limits::REQUEST_KEY_BYTES_MAX` bytes.
    pub key: String,
    /// Of the route and the body: the same key with another body is refused.
    pub body_hash: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// The first entry of a cluster's life.
    Bootstrap {
        cluster_id: String,
    },
    /// Yields a node id that was never used: the index of this entry.
    AllocateNode,
    PutTenant(PutTenant),
    DeleteTenant {
        tenant: Name,
    },
    PauseGroup {
        group: GroupKey,
    },
    ResumeGroup {
        group: GroupKey,
    },
    PutJob(Box<PutJob>),
    DeleteJob {
        job: JobKey,
        precondition: Precondition,
    },
    PauseJob {
        job: JobKey,
    },
    ResumeJob {
        job: JobKey,
    },
    PutTrigger(Box<PutTrigger>),
    DeleteTrigger {
        job: JobKey,
        trigger: Name,
        precondition: Precondition,
    },
    PauseTrigger {
        job: JobKey,
        trigger: Name,
    },
    ResumeTrigger {
        job: JobKey,
        trigger: Name,
    },
    RequestFire(Box<RequestFire>),
    CancelFire {
        fire: FireId,
    },
    RecordFires(RecordFires),
    Grant(Grant),
    RegisterWorker(Box<RegisterWorker>),
    DrainWorker {
        worker: WorkerId,
    },
    RemoveWorkers {
        workers: Vec<WorkerId>,
    },
    AnswerWork(AnswerWork),
    ExpireLeases {
        expired: Vec<ExpiredLease>,
    },
    PruneHistory(PruneHistory),
}

/// What must hold for a definition to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Precondition {
    Always,
    /// `If-None-Match: *`
    Absent,
    /// `If-Match: *`
    Present,
    /// `If-Match: "7"`
    Revision(Revision),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutTenant {
    pub tenant: Name,
    pub description: String,
    pub precondition: Precondition,
}

/// Creates or replaces a job. The same definition again changes nothing, not even the revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutJob {
    pub job: JobKey,
    pub spec: JobSpec,
    /// `None` leaves its triggers as they are; `Some` makes them exactly these, keeping the cursor
    /// of each trigger whose schedule did not change.
    pub triggers: Option<Vec<(Name, TriggerSpec)>>,
    pub precondition: Precondition,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutTrigger {
    pub job: JobKey,
    pub trigger: Name,
    pub spec: TriggerSpec,
    pub precondition: Precondition,
}

/// A fire that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFire {
    pub job: JobKey,
    /// `None`: as soon as a worker is free.
    pub at: Option<Timestamp>,
    /// After this long, counted from the stamp, when `at` is not given.
    pub delay_ms: i64,
    pub payload: Option<Payload>,
    /// Run beside an open fire of the job, whatever its overlap policy says.
    pub allow_overlap: bool,
}

/// What a leader worked out to be due. Every part is checked against the state again: a cursor that
/// has moved, a trigger that was replaced, a fire that is no longer waiting is passed over, so a
/// repeated proposal changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFires {
    pub advances: Vec<TriggerAdvance>,
    /// Waiting fires whose time has come.
    pub due: Vec<FireId>,
    /// Free slots that polls are waiting for: what becomes ready in this entry is granted in it.
    pub offers: Vec<Offer>,
}

/// One step of one trigger's cursor, with a record for every occurrence it passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerAdvance {
    pub trigger: TriggerId,
    pub revision: Revision,
    /// `Cursor::accounted_to` as the leader saw it.
    pub cursor_before: Timestamp,
    /// Oldest first.
    pub fires: Vec<PlannedFire>,
    pub skipped: Vec<SkippedRun>,
    pub cursor_after: Timestamp,
    pub next: NextDue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFire {
    pub scheduled_at: Timestamp,
    pub due_at: Timestamp,
    pub reason: FireReason,
}

/// Occurrences that share one fate and lie next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRun {
    pub reason: SkipReason,
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
}

/// A worker's poll that waits for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub worker: WorkerId,
    pub slots: u32,
}

/// Hands ready fires to workers. At most one pick of a job is taken in one entry, for the entry's
/// index is the token and tokens of a job strictly grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub picks: Vec<Pick>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    pub fire: FireId,
    pub worker: WorkerId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterWorker {
    pub tenant: Name,
    pub spec: WorkerSpec,
}

/// A worker's answers; each has its own verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerWork {
    pub tenant: Name,
    pub answers: Vec<Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub run: RunId,
    pub token: FencingToken,
    pub verdict: AnswerKind,
    pub report: AttemptReport,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerKind {
    Succeeded,
    Failed {
        /// A short word of the worker's, such as `timeout` or `exit`.
        kind: String,
        /// False: another try would fail as well.
        retryable: bool,
        /// Not before this long from now, instead of the policy's delay.
        retry_after_ms: Option<i64>,
    },
    /// It was cancelled, as asked.
    Cancelled,
    /// Handed back unfinished; another worker may have it at once.
    Released,
}

/// A lease that the leader saw run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiredLease {
    pub fire: FireId,
    pub token: FencingToken,
    pub cause: ExpiryCause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExpiryCause {
    /// Its worker was silent for the lease's length.
    Silence,
    /// It ran longer than the job's time-out.
    Timeout,
}

/// Forgets ended fires recorded before an index, in one bounded step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PruneHistory {
    pub recorded_before: Timestamp,
    pub count_max: u32,
}
