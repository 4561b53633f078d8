//! A job: *what* to run. Its definition is shared and never changed in place: a replaced one is a
//! new revision, so that an open fire keeps the one it was recorded with.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::bounded::Name;
use crate::base::limits;
use crate::base::time::{Span, Timestamp};
use crate::model::id::{JobId, JobKey, Revision};
use crate::model::policy::{Overlap, RetryPolicy, TimeoutPolicy};

/// JSON that Horolog carries but never reads, at most [`limits::PAYLOAD_BYTES_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload(Arc<str>);

impl Payload {
    /// `None` when the text is longer than a payload may be. The caller has checked that it is
    /// JSON.
    #[must_use]
    pub fn new(json: &str) -> Option<Payload> {
        (json.len() <= limits::PAYLOAD_BYTES_MAX).then(|| Payload(Arc::from(json)))
    }

    /// The payload `null`.
    #[must_use]
    pub fn null() -> Payload {
        Payload(Arc::from("null"))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who can run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ExecutorKind {
    /// A program of the user's that pulls work over HTTP and reads the payload itself.
    Worker,
    /// `horolog worker` starts a program.
    Command,
    /// `horolog worker` calls a URL.
    Http,
}

/// How a job is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Executor {
    Worker,
    Command(CommandSpec),
    Http(HttpSpec),
}

impl Executor {
    #[must_use]
    pub fn kind(&self) -> ExecutorKind {
        match self {
            Executor::Worker => ExecutorKind::Worker,
            Executor::Command(_) => ExecutorKind::Command,
            Executor::Http(_) => ExecutorKind::Http,
        }
    }
}

/// A program to start on the worker's machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The program and its arguments; never passed through a shell unless the program is one.
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// The folder it starts in; the worker's own when `None`.
    pub folder: Option<String>,
    /// What it reads from standard input; nothing when `None`.
    pub stdin: Option<String>,
    /// The operating system's user it runs as; the worker's own when `None`.
    pub user: Option<String>,
}

/// A URL to call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpSpec {
    pub method: HttpMethod,
    pub url: String,
    pub headers: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpMethod {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// The definition of a job, as a person writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    pub description: String,
    pub executor: Executor,
    pub payload: Payload,
    /// The named set of workers that runs it.
    pub pool: Name,
    /// 0 to 9; larger goes first inside a pool.
    pub priority: u8,
    pub overlap: Overlap,
    pub retry: RetryPolicy,
    pub timeout: TimeoutPolicy,
    /// How long a worker may be silent before its attempt counts as lost.
    pub lease_ttl: Span,
    /// Ended fires kept.
    pub history_count: u32,
    pub labels: BTreeMap<Name, String>,
}

impl JobSpec {
    /// The largest priority.
    pub const PRIORITY_MAX: u8 = 9;
    /// The priority of a job that does not say.
    pub const PRIORITY_DEFAULT: u8 = 5;
}

/// A job as the cluster keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    pub key: Arc<JobKey>,
    pub revision: Revision,
    pub spec: Arc<JobSpec>,
    /// Since when its triggers yield nothing; `None`: active.
    pub paused_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Ended fires that are on disk.
    pub history_len: u64,
    pub tally: Tally,
}

/// How the fires of a job ended, counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub succeeded: u64,
    pub failed: u64,
    pub skipped: u64,
    pub cancelled: u64,
}
