//! The fields of a cron expression: their names, ranges and the words they know.

use crate::model::schedule::Dialect;

/// Last year a quartz year field may name; everything later lies beyond the horizon.
pub const YEAR_LAST: u16 = 2199;
/// First year a quartz year field may name.
pub const YEAR_FIRST: u16 = 1970;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// A field, in the order in which quartz writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
    Year,
}

/// Fields in quartz's order; unix has those from minute to day-of-week.
pub const FIELDS: [Field; 7] = [
    Field::Second,
    Field::Minute,
    Field::Hour,
    Field::DayOfMonth,
    Field::Month,
    Field::DayOfWeek,
    Field::Year,
];

impl Field {
    /// The name used in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::DayOfMonth => "day-of-month",
            Field::Month => "month",
            Field::DayOfWeek => "day-of-week",
            Field::Year => "year",
        }
    }

    /// Smallest number the field may hold.
    #[must_use]
    pub const fn min(self, dialect: Dialect) -> u16 {
        match self {
            Field::Second | Field::Minute | Field::Hour => 0,
            Field::DayOfMonth | Field::Month => 1,
            Field::DayOfWeek => match dialect {
                Dialect::Unix => 0,
                Dialect::Quartz => 1,
            },
            Field::Year => YEAR_FIRST,
        }
    }

    /// Largest number of the field's cycle: where `*` and `a/n` end, and where a range wraps.
    #[must_use]
    pub const fn max(self, dialect: Dialect) -> u16 {
        match self {
            Field::Second | Field::Minute => 59,
            Field::Hour => 23,
            Field::DayOfMonth => 31,
            Field::Month => 12,
            Field::DayOfWeek => match dialect {
                Dialect::Unix => 6,
                Dialect::Quartz => 7,
            },
            Field::Year => YEAR_LAST,
        }
    }

    /// Largest number a user may write: unix also knows Sunday as 7.
    #[must_use]
    pub const fn written_max(self, dialect: Dialect) -> u16 {
        match (self, dialect) {
            (Field::DayOfWeek, Dialect::Unix) => 7,
            _ => self.max(dialect),
        }
    }

    /// Largest step: a longer one would only ever hit the field's first value.
    #[must_use]
    pub const fn step_max(self, dialect: Dialect) -> u16 {
        match self {
            Field::Year => YEAR_LAST - YEAR_FIRST,
            Field::Second
            | Field::Minute
            | Field::Hour
            | Field::DayOfMonth
            | Field::Month
            | Field::DayOfWeek => self.written_max(dialect),
        }
    }

    /// The number of a three-letter name, in any case.
    #[must_use]
    pub fn number_of(self, name: &str, dialect: Dialect) -> Option<u16> {
        let names: &[&str] = match self {
            Field::Month => &MONTHS,
            Field::DayOfWeek => &WEEKDAYS,
            Field::Second | Field::Minute | Field::Hour | Field::DayOfMonth | Field::Year => &[],
        };
        let index = names.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        Some(self.min(dialect) + u16::try_from(index).ok()?)
    }

    /// What the field may hold, for a message.
    #[must_use]
    pub const fn allowed(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Field::Second | Field::Minute, _) => "0-59, *, a,b, a-b, */n, a/n, H",
            (Field::Hour, _) => "0-23, *, a,b, a-b, */n, a/n, H",
            (Field::DayOfMonth, Dialect::Unix) => {
                "1-31, *, a,b, a-b, */n, a/n, L, L-n, LW, nW, L-nW, H"
            }
            (Field::DayOfMonth, Dialect::Quartz) => {
                "1-31, *, ?, a,b, a-b, */n, a/n, L, L-n, LW, nW, L-nW, H"
            }
            (Field::Month, _) => "1-12, JAN-DEC, *, a,b, a-b, */n, a/n, H",
            (Field::DayOfWeek, Dialect::Unix) => {
                "0-7 (0 and 7 = SUN, 1 = MON), SUN-SAT, *, a,b, a-b, */n, a/n, nL, n#k, H"
            }
            (Field::DayOfWeek, Dialect::Quartz) => {
                "1-7 (1 = SUN, 7 = SAT), SUN-SAT, *, ?, a,b, a-b, */n, a/n, L, nL, n#k, H"
            }
            (Field::Year, _) => "1970-2199, *, a,b, a-b, */n, a/n",
        }
    }
}
