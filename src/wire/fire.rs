//! Fires and their attempts.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::wire::job::JobRef;

/// The body of `POST …/jobs/{group}/{job}:fire`; all of it may be left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FireRequest {
    /// Not before this RFC 3339 time. Not together with `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Not before this long from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// Handed to the work instead of the job's own payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub payload: Option<Box<RawValue>>,
    /// Run beside an open fire of the job, whatever its overlap policy says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_overlap: bool,
}

/// The record that one occurrence, or one request, is to be run, and how that went.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Fire {
    pub id: String,
    pub job: JobRef,
    /// The revision of the definition it runs with.
    pub job_revision: u64,
    /// Absent for a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    pub reason: FireReason,
    pub scheduled_at: String,
    pub due_at: String,
    pub state: FireState,
    /// With `waiting`: what for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitCause>,
    /// With `waiting` for `due` or `retry`: until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<String>,
    /// With `skipped`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<SkipReason>,
    /// This record stands for a run of occurrences, the first of which is `scheduled_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<Folded>,
    /// The same for every attempt, and for every spelling of the scheduled time.
    pub idempotency_key: String,
    /// Its own payload, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub payload: Option<Box<RawValue>>,
    /// Attempts so far, also those that are no longer listed.
    pub attempt_count: u32,
    /// Those of them that were handed back unfinished, which do not count as tries.
    pub released_count: u32,
    /// The latest attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Refused calls with an older token.
    pub fenced_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested_at: Option<String>,
    pub recorded_at: String,
    pub recorded_index: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_index: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FireReason {
    Schedule,
    /// Its occurrence had been missed and was made up for.
    Catchup,
    Manual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FireState {
    Waiting,
    Ready,
    Running,
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// Its own `due_at`.
    Due,
    /// The end of its retry delay.
    Retry,
    /// The end of an earlier fire of its job.
    Overlap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    Overlap,
    BufferFull,
    Misfire,
    OutsideWindow,
    OverCount,
    Paused,
    Overload,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Folded {
    pub last_scheduled_at: String,
    pub count: u64,
}

/// One try of a fire on one worker.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// Counted from 1.
    pub number: u32,
    /// The id that the worker answers with.
    pub run: String,
    pub worker: String,
    pub worker_name: String,
    pub token: u64,
    pub granted_at: String,
    /// While it runs, and its job has a time-out: the latest instant at which it must have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AttemptError>,
    /// The end of what it printed. Only when a single fire is read, as are the three fields below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub result: Option<Box<RawValue>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptError {
    /// A short word, such as `timeout` or `exit`.
    pub kind: String,
    /// Only when a single fire is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Succeeded,
    Failed,
    TimedOut,
    Lost,
    Cancelled,
    Released,
}

/// Data of the event `gap` in `…/fires:watch`: changes after the first index and before the second
/// are no longer at hand, so read the list again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WatchGap {
    pub after_index: u64,
    pub before_index: u64,
}
