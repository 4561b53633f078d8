//! Triggers: when a job fires.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::wire::job::JobRef;

/// The body of `PUT …/triggers/{trigger}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub schedule: Schedule,
    /// Nothing fires before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    /// Nothing fires after this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfire: Option<Misfire>,
    /// Handed to the work instead of the job's own payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub payload: Option<Box<RawValue>>,
}

/// The rule inside a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    Cron(Cron),
    Every(Every),
    /// Once, at an RFC 3339 time.
    At(String),
    /// Once, this long after the definition is taken in. It is read back as `at`.
    After(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cron {
    pub expression: String,
    /// `unix` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// An IANA name such as `Europe/Berlin`, or an offset such as `+05:30`; `UTC` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// `auto` when absent: `first_valid` for a fixed time, `skip` for a frequent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<DstGap>,
    /// `auto` when absent: `first` for a fixed time, `both` for a frequent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_overlap: Option<DstOverlap>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Five fields: minute, hour, day of month, month, day of week.
    #[default]
    Unix,
    /// Six or seven fields: second, minute, hour, day of month, month, day of week, year.
    Quartz,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DstGap {
    #[default]
    Auto,
    FirstValid,
    Skip,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DstOverlap {
    #[default]
    Auto,
    First,
    Last,
    Both,
}

/// At a fixed rate: `anchor`, `anchor + interval`, and so on, and before it alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Every {
    pub interval: String,
    /// `1970-01-01T00:00:00Z` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
}

/// What happens to occurrences that were missed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Misfire {
    /// `fire_once` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<MisfirePolicy>,
    /// An occurrence recorded at most this long after its time is on time; `10s` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
    /// Occurrences older than this never fire; `1d` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Most fires of one catch-up; 1000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MisfirePolicy {
    /// One fire, for the latest missed occurrence.
    #[default]
    FireOnce,
    Skip,
    /// All of them, oldest first.
    FireAll,
}

/// A trigger as it stands.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Trigger {
    pub job: JobRef,
    pub name: String,
    pub spec: TriggerSpec,
    pub status: TriggerStatus,
}

/// Where a trigger stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriggerStatus {
    /// Its strong `ETag` is this number in quotes.
    pub revision: u64,
    pub state: TriggerState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<String>,
    /// Every occurrence up to this instant has been accounted for.
    pub accounted_to: String,
    /// Absent when nothing comes any more, or while no leader has looked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextOccurrence>,
    pub created_at: String,
    pub updated_at: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriggerState {
    Active,
    Paused,
    /// Its schedule yields nothing any more.
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextOccurrence {
    pub scheduled_at: String,
    pub due_at: String,
}

/// The body of `POST /v1/schedules:preview`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    pub schedule: Schedule,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<String>,
    /// Times wanted, 1 to 1000; 10 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Only times after this instant; now when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The job that an `H` in the expression is hashed for, as `tenant/group/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// The coming times of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Preview {
    /// Ascending, in UTC.
    pub times: Vec<String>,
    /// The edition of the time-zone database they were worked out with.
    pub tzdata: String,
}
