//! A trigger: *when* a job fires, and how far its time has been accounted for.

use serde::{Deserialize, Serialize};

use crate::base::bounded::Name;
use crate::base::time::Timestamp;
use crate::model::id::{JobId, Revision, TriggerId};
use crate::model::job::Payload;
use crate::model::policy::Misfire;
use crate::model::schedule::{Bounds, Schedule};

/// The definition of a trigger, as a person writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerSpec {
    pub description: String,
    pub schedule: Schedule,
    pub bounds: Bounds,
    pub misfire: Misfire,
    /// Handed to the work instead of the job's own payload.
    pub payload: Option<Payload>,
}

/// A trigger as the cluster keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    pub id: TriggerId,
    pub job: JobId,
    pub name: Name,
    pub revision: Revision,
    pub spec: TriggerSpec,
    pub state: TriggerState,
    pub cursor: Cursor,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The latest pause of the trigger, its job or its group, for the reason of what did not fire
    /// inside it.
    pub last_pause: Option<PauseSpan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TriggerState {
    Active,
    Paused {
        since: Timestamp,
    },
    /// Its schedule yields nothing any more.
    Ended,
}

/// A time during which a trigger was paused; `until` is `None` while it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseSpan {
    pub from: Timestamp,
    pub until: Option<Timestamp>,
}

/// The trigger's persisted position. Every occurrence up to and including `accounted_to` has ended
/// in exactly one record; none after it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub accounted_to: Timestamp,
    pub next: NextDue,
}

/// When the next occurrence is. Worked out by a leader and written into the log, never by apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NextDue {
    /// No leader has looked yet.
    Unknown,
    At {
        scheduled_at: Timestamp,
        due_at: Timestamp,
    },
    /// There is none.
    Never,
}
