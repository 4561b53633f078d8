//! The next occurrence of a cron schedule strictly after an instant.
//!
//! The search has two levels. Inside one stretch of a zone with one offset, local time and instants
//! run in step: the next local time that matches is found field by field, never second by second.
//! Between stretches the clock jumps: forward over local times that do not exist, or back over
//! local times that happen twice. Walking the stretches in order makes the result strictly
//! increasing by construction, whatever the policies for gaps and overlaps are.
//!
//! The bound: one question to the fields looks at no month twice, so it takes at most
//! [`MONTH_STEPS_MAX`] steps, and a walk asks at most [`GAP_STEPS_MAX`] questions a stretch. No
//! stretch is visited twice.

use crate::base::time::Timestamp;
use crate::recurrence::civil::{DAY_S, Date, YEAR_MAX, YEAR_MIN};
use crate::recurrence::sets::{DaySet, TimeSet};
use crate::recurrence::zone::{Segment, Zone};

/// Most months (and ends of years) one question to the fields looks at.
pub const MONTH_STEPS_MAX: u32 = 13 * (YEAR_MAX - YEAR_MIN + 1).unsigned_abs();
/// Most questions about one gap: no gap touches more than three dates.
const GAP_STEPS_MAX: u32 = 4;

/// A cron schedule ready to be asked.
#[derive(Clone, Debug)]
pub struct CronSearch {
    pub times: TimeSet,
    pub days: DaySet,
    pub zone: Zone,
    /// Whether a local time inside a gap fires at the first instant after it.
    pub gap_fires: bool,
    pub passes: Passes,
}

/// Which of two equal local times fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    First,
    Last,
    Both,
}

/// One or more consecutive occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
}

/// An occurrence as the search finds it.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// Seconds from the epoch.
    instant: i64,
    /// Its local time and its stretch, unless it stands for a local time inside a gap.
    place: Option<(i64, Segment)>,
}

/// What is known of the fields: no local time in `from..found` matches, `found` does (`i64::MAX`:
/// none does).
#[derive(Clone, Copy, Debug)]
struct Known {
    from: i64,
    found: i64,
}

impl CronSearch {
    /// The first occurrence strictly after `after`; `None` when there is none before
    /// [`Timestamp::MAX`].
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.find_after(after, &mut 0).map(|found| to_timestamp(found.instant))
    }

    /// The next occurrences after `after` and not after `until` as far as they can be counted in
    /// one step: those of one local day, at most `count_max` of them.
    #[must_use]
    pub fn stride_after(
        &self,
        after: Timestamp,
        until: Timestamp,
        count_max: u64,
    ) -> Option<Stride> {
        let found = self.find_after(after, &mut 0)?;
        let first = to_timestamp(found.instant);
        if first > until || count_max == 0 {
            return None;
        }
        let Some((local, segment)) = found.place else {
            return Some(Stride { first, last: first, count: 1 });
        };
        let day_start = local.div_euclid(DAY_S) * DAY_S;
        let until_local = until.as_ms().div_euclid(1_000) + segment.offset;
        let (_, limit) = self.own_part(&segment);
        let end = (day_start + DAY_S).min(limit).min(until_local + 1);
        let rank = self.times.count_before(local - day_start);
        let in_reach = self.times.count_before(end - day_start).saturating_sub(rank);
        let count = in_reach.clamp(1, count_max);
        let last_local = day_start + self.times.nth(rank + count - 1);
        Some(Stride { first, last: to_timestamp(last_local - segment.offset), count })
    }

    /// Whether any date at all matches, whatever the zone.
    #[must_use]
    pub fn has_dates(&self) -> bool {
        self.match_from(Date { year: YEAR_MIN, month: 1, day: 1 }.start(), &mut 0).is_some()
    }

    fn find_after(&self, after: Timestamp, steps: &mut u32) -> Option<Found> {
        let from = after.as_ms().div_euclid(1_000) + 1;
        let index = self.zone.index_at(from);
        let mut known = Known { from: i64::MAX, found: i64::MIN };
        let mut lower = None;
        for segment in self.zone.segments_from(index) {
            let (own_start, own_end) = self.own_part(segment);
            let start = lower.unwrap_or(from + segment.offset).max(own_start);
            let local = self.ask(&mut known, start, steps);
            if local < own_end {
                let instant = local - segment.offset;
                return before_horizon(Found { instant, place: Some((local, *segment)) });
            }
            if self.gap_fires && self.gap_matches(segment, &mut known, steps) {
                return before_horizon(Found { instant: segment.end, place: None });
            }
            lower = Some(segment.end.saturating_add(segment.offset_after));
        }
        None
    }

    /// The local times of a stretch that fire in it, as start and end: without a pass that the
    /// policy leaves out.
    fn own_part(&self, segment: &Segment) -> (i64, i64) {
        let mut start = segment.start + segment.offset;
        let mut end = segment.end + segment.offset;
        if self.passes == Passes::First && segment.offset_before > segment.offset {
            start = segment.start + segment.offset_before;
        }
        if self.passes == Passes::Last && segment.offset_after < segment.offset {
            end = segment.end + segment.offset_after;
        }
        (start, end)
    }

    /// Whether a matching local time lies in the gap after a stretch, on a date that exists.
    fn gap_matches(&self, segment: &Segment, known: &mut Known, steps: &mut u32) -> bool {
        let gap_start = segment.end + segment.offset;
        let gap_end = segment.end + segment.offset_after;
        let mut from = gap_start;
        for _ in 0..GAP_STEPS_MAX {
            if from >= gap_end {
                return false;
            }
            let local = self.ask(known, from, steps);
            if local >= gap_end {
                return false;
            }
            let day_start = local.div_euclid(DAY_S) * DAY_S;
            let date_exists = day_start < gap_start || day_start + DAY_S > gap_end;
            if date_exists {
                return true;
            }
            from = day_start + DAY_S;
        }
        false
    }

    /// The first matching local time at or after `from`, or `i64::MAX`; asks the fields only when
    /// it must.
    fn ask(&self, known: &mut Known, from: i64, steps: &mut u32) -> i64 {
        if from < known.from || from > known.found {
            let found = self.match_from(from, steps).unwrap_or(i64::MAX);
            *known = Known { from, found };
        }
        known.found
    }

    /// The first matching local time at or after `from`, by field.
    fn match_from(&self, from: i64, steps: &mut u32) -> Option<i64> {
        let date = Date::of(from);
        let tod = from.rem_euclid(DAY_S);
        let today = self.days.days_of(date.year, date.month) >> date.day & 1 == 1;
        if today
            && date.start() == from - tod
            && let Some(tod) = self.times.at_or_after(tod)
        {
            return Some(date.start() + tod);
        }
        let (mut year, mut month, mut day_min) = (date.year, date.month, date.day + 1);
        for _ in 0..MONTH_STEPS_MAX {
            *steps += 1;
            let next_month =
                if self.days.has_year(year) { self.days.month_from(month) } else { None };
            let Some(next_month) = next_month else {
                if year >= YEAR_MAX {
                    return None;
                }
                (year, month, day_min) = (year + 1, 1, 1);
                continue;
            };
            if next_month > month {
                (month, day_min) = (next_month, 1);
            }
            let days = self.days.days_of(year, month) >> day_min << day_min;
            if days != 0 {
                let start = Date { year, month, day: days.trailing_zeros() }.start();
                return Some(start + self.times.first());
            }
            (month, day_min) = (month + 1, 1);
        }
        None
    }
}

fn before_horizon(found: Found) -> Option<Found> {
    (to_timestamp(found.instant) < Timestamp::MAX).then_some(found)
}

fn to_timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_ms(seconds.saturating_mul(1_000))
}

#[cfg(test)]
mod tests;
