//! Jobs: what to run.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::wire::trigger::{TriggerSpec, TriggerStatus};

/// The address of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct JobRef {
    pub tenant: String,
    pub group: String,
    pub name: String,
}

/// The body of `PUT …/jobs/{group}/{job}`, and the `spec` of every job that is read: the one can be
/// sent back as the other.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub executor: Executor,
    /// Any JSON; handed to the work. `null` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub payload: Option<Box<RawValue>>,
    /// The set of workers that runs it; `default` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// 0 to 9, larger goes first; 5 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// `skip` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// From the grant to the answer; no bound when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How long a worker may be silent before its attempt counts as lost; `30s` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Ended fires kept; 1000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When present, the job's triggers become exactly these; when absent, they stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggers: Option<BTreeMap<String, TriggerSpec>>,
}

/// Who runs a job, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    /// A program of yours that pulls work over HTTP and reads the payload itself.
    Worker(WorkerExecutor),
    /// `horolog worker` starts a program.
    Command(CommandExecutor),
    /// `horolog worker` calls a URL.
    Http(HttpExecutor),
}

/// Takes no settings: `{"worker": {}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerExecutor {}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandExecutor {
    /// The program and its arguments. No shell reads them, unless the program is one.
    pub argv: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The folder it starts in; the worker's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// What it reads from standard input; nothing when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The operating system's user it runs as; the worker's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpExecutor {
    /// `POST` when absent.
    #[serde(default)]
    pub method: HttpMethod,
    pub url: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    Get,
    #[default]
    Post,
    Put,
    Patch,
    Delete,
}

/// What happens when a job fires while an earlier fire of it is open: `"skip"`, `"buffer_one"`,
/// `"allow"`, or `{"allow": {"max": 3}}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    #[default]
    Skip,
    BufferOne,
    Allow(AllowOverlap),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AllowOverlap {
    /// Most fires side by side; no bound when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

/// By hand, because `"allow"` alone is a form of its own.
impl<'de> Deserialize<'de> for Overlap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Overlap, D::Error> {
        deserializer.deserialize_any(OverlapVisitor)
    }
}

struct OverlapVisitor;

const OVERLAPS: &[&str] = &["skip", "buffer_one", "allow"];

impl<'de> Visitor<'de> for OverlapVisitor {
    type Value = Overlap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"skip\", \"buffer_one\", \"allow\" or {\"allow\": {\"max\": 3}}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Overlap, E> {
        match text {
            "skip" => Ok(Overlap::Skip),
            "buffer_one" => Ok(Overlap::BufferOne),
            "allow" => Ok(Overlap::Allow(AllowOverlap::default())),
            unknown => Err(E::unknown_variant(unknown, OVERLAPS)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Overlap, A::Error> {
        let Some(key) = map.next_key::<String>()? else {
            return Err(A::Error::missing_field("allow"));
        };
        if key != "allow" {
            return Err(A::Error::unknown_field(&key, &["allow"]));
        }
        let allow = map.next_value()?;
        match map.next_key::<String>()? {
            Some(extra) => Err(A::Error::unknown_field(&extra, &["allow"])),
            None => Ok(Overlap::Allow(allow)),
        }
    }
}

/// When a failed attempt is tried again: attempt n+1 waits `first_delay × factor^(n-1)`, at most
/// `max_delay`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Attempts in all, the first one included; 1 means no retry; 3 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// `10s` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_delay: Option<String>,
    /// At least 1, kept to two decimals; 2 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// `10m` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<String>,
}

/// A job as it stands.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub tenant: String,
    pub group: String,
    pub name: String,
    /// Its strong `ETag` is this number in quotes.
    pub revision: u64,
    pub state: JobState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<String>,
    pub created_at: String,
    pub updated_at: String,
    /// The definition, with every default spelled out and with its triggers.
    pub spec: JobSpec,
    /// Where each of its triggers stands.
    pub triggers: BTreeMap<String, TriggerStatus>,
    /// Fires that have not ended.
    pub open_fires: u32,
    /// Ended fires that are kept.
    pub ended_fires: u64,
    pub tally: Tally,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Active,
    Paused,
}

/// How the fires of a job ended, counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tally {
    pub succeeded: u64,
    pub failed: u64,
    pub skipped: u64,
    pub cancelled: u64,
}
