//! The rule inside a trigger.

use serde::{Deserialize, Serialize};

use crate::base::time::{Span, Timestamp};

/// When a trigger fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schedule {
    Cron(CronSource),
    /// At a fixed rate: `anchor`, `anchor + interval`, and so on, and before it alike.
    Every {
        interval: Span,
        anchor: Timestamp,
    },
    /// Once.
    At {
        at: Timestamp,
    },
}

/// A cron expression as it was written, and how it is to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CronSource {
    pub text: String,
    pub dialect: Dialect,
    /// An IANA name such as `Europe/Berlin`, or a fixed offset such as `+05:30`.
    pub zone: String,
    pub dst_gap: DstGap,
    pub dst_overlap: DstOverlap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dialect {
    Unix,
    Quartz,
}

/// What happens to a local time that the clock skips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DstGap {
    /// `FirstValid` for a fixed time, `Skip` for a frequent one.
    #[default]
    Auto,
    /// It fires at the first instant after the gap.
    FirstValid,
    Skip,
}

/// What happens to a local time that the clock shows twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DstOverlap {
    /// `First` for a fixed time, `Both` for a frequent one.
    #[default]
    Auto,
    First,
    Last,
    Both,
}

/// The time outside of which a trigger yields nothing; both ends belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    pub start_at: Option<Timestamp>,
    pub end_at: Option<Timestamp>,
}
