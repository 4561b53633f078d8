//! A fire: the record that one occurrence, or one request, is to be run; its attempts; and how it
//! ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::bounded::Name;
use crate::base::time::{Span, Timestamp};
use crate::model::id::{FireId, JobKey, Revision, RunId, WorkerId};
use crate::model::job::Payload;

/// The right to commit the outcome of an attempt: the index of the log entry that granted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FencingToken(pub u64);

/// Why a fire exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FireReason {
    /// Its occurrence came.
    Schedule,
    /// Its occurrence had been missed and was made up for.
    Catchup,
    /// Somebody asked for it, now or after a delay.
    Manual,
}

/// Why an occurrence did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SkipReason {
    /// An earlier fire of the job was open.
    Overlap,
    /// One fire was waiting for the earlier one already.
    BufferFull,
    /// It was missed, and the trigger's misfire policy skips such occurrences.
    Misfire,
    /// It was missed longer ago than the catch-up window reaches.
    OutsideWindow,
    /// It was missed, and the catch-up had reached its largest count.
    OverCount,
    /// The trigger, its job or its group was paused.
    Paused,
    /// The job had as many open fires as one job may have.
    Overload,
}

/// Where a fire stands. The only changes are those of [`FireState::may_become`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FireState {
    /// Not to be granted before an instant.
    Waiting(WaitCause),
    /// To be granted to the next fitting worker.
    Ready,
    /// Granted: the lease is in [`Fire::lease`].
    Running,
    Succeeded,
    Failed,
    Skipped(SkipReason),
    Cancelled,
}

/// What a waiting fire waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitCause {
    /// Its own `due_at`.
    Due,
    /// The end of its retry delay.
    Retry,
    /// The end of an earlier fire of its job.
    Overlap,
}

impl FireState {
    #[must_use]
    pub fn is_ended(self) -> bool {
        match self {
            FireState::Waiting(_) | FireState::Ready | FireState::Running => false,
            FireState::Succeeded
            | FireState::Failed
            | FireState::Skipped(_)
            | FireState::Cancelled => true,
        }
    }

    /// The legal transitions.
    #[must_use]
    pub fn may_become(self, next: FireState) -> bool {
        match (self, next) {
            (
                FireState::Waiting(_),
                FireState::Waiting(WaitCause::Overlap)
                | FireState::Ready
                | FireState::Skipped(_)
                | FireState::Cancelled,
            )
            | (FireState::Ready, FireState::Running | FireState::Cancelled)
            | (
                FireState::Running,
                FireState::Ready
                | FireState::Waiting(WaitCause::Retry)
                | FireState::Succeeded
                | FireState::Failed
                | FireState::Cancelled,
            ) => true,
            (
                FireState::Waiting(_)
                | FireState::Ready
                | FireState::Running
                | FireState::Succeeded
                | FireState::Failed
                | FireState::Skipped(_)
                | FireState::Cancelled,
                _,
            ) => false,
        }
    }
}

/// A fire as the cluster keeps it: in memory while it is open, on disk only once it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fire {
    pub id: FireId,
    pub job_key: Arc<JobKey>,
    /// The definition it runs with, also when the job is replaced meanwhile.
    pub job_revision: Revision,
    /// The trigger whose occurrence it is; `None` for a request.
    pub trigger: Option<Name>,
    pub reason: FireReason,
    pub scheduled_at: Timestamp,
    pub due_at: Timestamp,
    /// It may run beside other fires of its job, whatever the overlap policy says.
    pub overlap_allowed: bool,
    /// For a folded run of skipped occurrences: the last of them, and how many they are.
    pub folded: Option<Folded>,
    /// Handed to the work instead of the job's own payload.
    pub payload: Option<Payload>,
    /// Stamp and index of the entry that recorded it.
    pub recorded_at: Timestamp,
    pub recorded_index: u64,
    pub state: FireState,
    /// While waiting: not before this instant.
    pub not_before: Timestamp,
    /// While running.
    pub lease: Option<Lease>,
    /// Attempts so far.
    pub attempt_count: u32,
    /// Those of them that were handed back unfinished: they do not count as tries.
    pub released_count: u32,
    /// The latest attempts, oldest first, at most `limits::ATTEMPTS_KEPT_MAX`.
    pub attempts: Vec<Attempt>,
    /// Somebody asked to cancel it while it ran.
    pub cancel_requested_at: Option<Timestamp>,
    /// Refused calls with an older token, kept as evidence.
    pub fenced_count: u32,
    pub ended_at: Option<Timestamp>,
    pub ended_index: Option<u64>,
}

impl Fire {
    /// The key of the run under way or to come: the same for every attempt, and for every spelling
    /// of its instant.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        match &self.trigger {
            Some(trigger) => format!("{}/{}/{}", self.job_key, trigger, self.scheduled_at),
            None => format!("{}/{}", self.job_key, self.id),
        }
    }

    #[must_use]
    pub fn current_run(&self) -> RunId {
        RunId { fire: self.id, attempt: self.attempt_count }
    }
}

/// A run of occurrences with one fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folded {
    pub last_scheduled_at: Timestamp,
    pub count: u64,
}

/// The time-bounded right to run an attempt. How far it was extended is in the leader's memory
/// only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub worker: WorkerId,
    pub token: FencingToken,
    pub granted_at: Timestamp,
    pub ttl: Span,
    /// The latest instant at which the attempt must have ended, by the job's time-out.
    pub deadline: Option<Timestamp>,
}

/// One try of a fire on one worker, as far as it is kept in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub number: u32,
    pub worker: WorkerId,
    pub worker_name: Name,
    pub token: FencingToken,
    pub granted_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub outcome: Option<Outcome>,
    /// The kind of its error, as the worker named it.
    pub error_kind: Option<String>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Succeeded,
    Failed,
    TimedOut,
    Lost,
    Cancelled,
    /// Handed back unfinished by a worker that drains; it does not count as a try.
    Released,
}

/// What an ended attempt left behind; on disk only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptReport {
    /// JSON, at most `limits::RESULT_BYTES_MAX`.
    pub result: Option<String>,
    pub error_message: Option<String>,
    /// The end of what it printed, at most `limits::OUTPUT_BYTES_MAX`.
    pub output: Option<String>,
    pub output_truncated: bool,
    pub exit_code: Option<i32>,
}

impl AttemptReport {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == AttemptReport::default()
    }
}
