//! Workers: registering, taking work, extending leases, answering.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::wire::fire::{FireReason, FireState};
use crate::wire::job::Executor;

/// The body of `POST …/workers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerSpec {
    pub name: String,
    /// `["default"]` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pools: Option<BTreeSet<String>>,
    /// `["worker"]` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executors: Option<BTreeSet<ExecutorKind>>,
    /// Attempts it runs side by side.
    pub slots: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Who can run a job.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorKind {
    Worker,
    Command,
    Http,
}

/// The answer to a registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Registered {
    /// The id of this session, for every later call.
    pub worker: String,
    /// Silent for longer than this, the worker is forgotten and has to register again.
    pub ttl: String,
    /// The longest `wait` of an acquire.
    pub wait_max: String,
    /// Most runs of one extend and most answers of one answer.
    pub batch_max: u32,
}

/// A worker's session as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    pub id: String,
    pub tenant: String,
    pub name: String,
    pub pools: BTreeSet<String>,
    pub executors: BTreeSet<ExecutorKind>,
    pub slots: u32,
    /// Slots that are taken.
    pub held: u32,
    pub labels: BTreeMap<String, String>,
    pub state: WorkerState,
    pub registered_at: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    Live,
    /// Gets no more work; ends what it has.
    Draining,
}

/// The body of `POST …/workers/{worker}:acquire`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcquireRequest {
    /// Most grants wanted.
    pub max: u32,
    /// How long to wait for work, at most `60s`; not at all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// The runs the worker knows of; none when absent. Every other run that is granted to it is
    /// handed out by this call, again if need be, so that an answer that was lost on its way costs
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holding: Option<Vec<String>>,
}

/// Empty when the wait ended without work, and for a poll that a newer one of the same worker
/// replaced.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AcquireResponse {
    pub grants: Vec<Grant>,
}

/// One attempt to run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    /// Names the attempt in extends and answers.
    pub run: String,
    pub fire: String,
    /// Counted from 1.
    pub attempt: u32,
    pub tenant: String,
    pub group: String,
    pub job: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    pub reason: FireReason,
    pub scheduled_at: String,
    pub due_at: String,
    /// The same for every attempt: what was done under it once need not be done again.
    pub idempotency_key: String,
    /// Grows with every grant of the job. Send it along to whatever the work writes to, so that it
    /// can refuse an older one.
    pub token: u64,
    pub lease: GrantLease,
    /// The latest instant at which the attempt must have ended, when its job has a time-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    #[schema(value_type = Object)]
    pub payload: Box<RawValue>,
    pub executor: Executor,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantLease {
    /// Silent for longer than this, the attempt counts as lost.
    pub ttl: String,
    /// How often to extend it.
    pub extend_every: String,
}

/// The body of `POST …/workers/{worker}:extend`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendRequest {
    pub runs: Vec<HeldRun>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldRun {
    pub run: String,
    pub token: u64,
}

/// In the order of the runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExtendResponse {
    pub verdicts: Vec<ExtendVerdict>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExtendVerdict {
    pub run: String,
    pub verdict: ExtendOutcome,
    /// With `extended`: from now on, the worker may be silent for this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// With `extended`: somebody asked to cancel it; stop, and answer `cancelled`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// With `stale`: the token of the attempt that holds the fire, when one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_token: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExtendOutcome {
    Extended,
    /// The code `stale-token`: the attempt is another worker's now. Drop the work.
    Stale,
    /// The fire has ended, or never was. Drop the work.
    NotOpen,
}

/// The body of `POST …/workers/{worker}:answer`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRequest {
    pub answers: Vec<Answer>,
}

/// How one attempt ended.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub run: String,
    pub token: u64,
    pub outcome: AnswerOutcome,
    /// Any JSON, at most 8 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub result: Option<Box<RawValue>>,
    /// With `failed`: what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AnswerError>,
    /// The end of what it printed, at most 8 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// There was more than `output` holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerOutcome {
    Succeeded,
    Failed,
    /// It was cancelled, as asked.
    Cancelled,
    /// Handed back unfinished; another worker may have it at once. It does not count as a try.
    Released,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerError {
    /// A short word, such as `timeout` or `exit`; `error` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// False: another try would fail as well. True when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Not before this long from now, instead of the retry policy's delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<String>,
}

/// In the order of the answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnswerResponse {
    pub verdicts: Vec<AnswerVerdict>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnswerVerdict {
    pub run: String,
    pub verdict: AnswerStatus,
    /// With `taken`: how the fire stands now. With `already`: how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<FireState>,
    /// With `stale`: the token of the attempt that holds the fire, when one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_token: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStatus {
    Taken,
    /// This attempt was answered before; the repetition changed nothing.
    Already,
    /// The code `stale-token`: the attempt had lost its right, and nothing was changed. Drop the
    /// work.
    Stale,
    /// No fire with this id was found. Drop the work.
    NotFound,
}
