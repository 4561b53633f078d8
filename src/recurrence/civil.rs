//! Local dates and times as plain numbers, without any zone.
//!
//! A local second counts the seconds of a wall clock that is never put forward or back, from
//! 1970-01-01T00:00:00 of that clock. Arithmetic on it is exact, and only `next` turns it into an
//! instant.

use chrono::{Datelike, NaiveDate};

/// Seconds of a day on a wall clock that is not changed.
pub const DAY_S: i64 = 86_400;
/// First and last year that the search looks at: the local years around `Timestamp::MIN` and `MAX`.
pub const YEAR_MIN: i32 = 1899;
/// See [`YEAR_MIN`].
pub const YEAR_MAX: i32 = 2200;

/// A date of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    pub year: i32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
}

impl Date {
    /// The date of a local second; dates outside the years of the search become their nearest
    /// bound.
    #[must_use]
    pub fn of(local: i64) -> Date {
        let days = i32::try_from(local.div_euclid(DAY_S)).unwrap_or(if local < 0 {
            i32::MIN
        } else {
            i32::MAX
        });
        let bound = if local < 0 {
            Date { year: YEAR_MIN, month: 1, day: 1 }
        } else {
            Date { year: YEAR_MAX, month: 12, day: 31 }
        };
        let Some(date) = NaiveDate::from_epoch_days(days) else {
            return bound;
        };
        if (YEAR_MIN..=YEAR_MAX).contains(&date.year()) {
            Date { year: date.year(), month: date.month(), day: date.day() }
        } else {
            bound
        }
    }

    /// The local second at which the date begins.
    #[must_use]
    pub fn start(self) -> i64 {
        days_before_month(self.year, self.month).saturating_add(i64::from(self.day) - 1) * DAY_S
    }
}

/// How many days a month has.
#[must_use]
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The weekday of a month's first day, 0 for Sunday.
#[must_use]
pub fn first_weekday(year: i32, month: u32) -> u32 {
    // 1970-01-01 was a Thursday.
    let weekday = (days_before_month(year, month) + 4).rem_euclid(7);
    u32::try_from(weekday).unwrap_or(0)
}

/// Days from 1970-01-01 to the first day of a month.
fn days_before_month(year: i32, month: u32) -> i64 {
    NaiveDate::from_ymd_opt(year, month, 1).map_or(0, |date| i64::from(date.to_epoch_days()))
}
