//! Why a text is not a cron expression: which field, which part of it, and what would be right.

use crate::base::bounded::clip;
use crate::base::limits::CRON_BYTES_MAX;
use crate::model::schedule::Dialect;
use crate::recurrence::cron::field::Field;

/// Most bytes of the user's text that a message repeats.
const SHOWN_BYTES_MAX: usize = 48;

/// Why a text is not a cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("a cron expression has at most {CRON_BYTES_MAX} bytes, this one has {bytes}")]
    TooLong { bytes: usize },
    #[error("a cron expression here has {}, this one has {found}{hint}", shape(*.dialect))]
    FieldCount {
        dialect: Dialect,
        found: usize,
        /// Empty, or what the text reads as in the other dialect; begins with its own punctuation.
        hint: String,
    },
    #[error(
        "{text:?} is not a cron macro; there are @yearly, @annually, @monthly, @weekly, @daily, \
         @midnight and @hourly{hint}"
    )]
    Macro { text: String, hint: &'static str },
    #[error("{}: {text:?} {problem}", .field.name())]
    Part { field: Field, text: String, problem: String },
    #[error(
        "day-of-month and day-of-week: exactly one of them is ? in quartz, here they are \
         {day_of_month:?} and {day_of_week:?}; write ? for the one that does not matter, such as \
         {example:?}"
    )]
    DayFields { day_of_month: String, day_of_week: String, example: String },
}

impl CronError {
    /// An error about one part of one field.
    pub(super) fn part(field: Field, text: &str, problem: impl Into<String>) -> CronError {
        CronError::Part { field, text: shown(text), problem: problem.into() }
    }

    /// The name of the field at fault; `None` when it is the expression as a whole.
    #[must_use]
    pub fn field_name(&self) -> Option<&'static str> {
        match self {
            CronError::Part { field, .. } => Some(field.name()),
            CronError::DayFields { .. } => Some(Field::DayOfMonth.name()),
            CronError::TooLong { .. } | CronError::FieldCount { .. } | CronError::Macro { .. } => {
                None
            }
        }
    }
}

/// As much of the user's text as a message repeats.
pub(super) fn shown(text: &str) -> String {
    clip(text, SHOWN_BYTES_MAX).to_owned()
}

fn shape(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Unix => "the 5 fields of unix (minute hour day-of-month month day-of-week)",
        Dialect::Quartz => {
            "the 6 or 7 fields of quartz (second minute hour day-of-month month day-of-week [year])"
        }
    }
}
