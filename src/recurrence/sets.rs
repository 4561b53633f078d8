//! The values an expression stands for, as bit sets: which times of day, and which days of which
//! months.
//!
//! Every question the search asks is answered by a few shifts and counts, whatever the expression.

use crate::recurrence::civil::{self, YEAR_MAX, YEAR_MIN};
use crate::recurrence::cron::CronExpr;
use crate::recurrence::cron::field::Field;
use crate::recurrence::cron::item::Item;

const HOUR_S: i64 = 3_600;
const MINUTE_S: i64 = 60;
/// Years of the search, one bit each.
const YEAR_WORDS: usize = 5;
const _: () = assert!((YEAR_MAX - YEAR_MIN) < 64 * YEAR_WORDS as i32);

/// The times of day of an expression. None of its three sets is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSet {
    hours: u64,
    minutes: u64,
    seconds: u64,
}

/// The days of an expression: years, months, and a rule for the days of one month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaySet {
    years: [u64; YEAR_WORDS],
    months: u64,
    month_days: MonthDays,
    weekdays: Weekdays,
}

/// The day-of-month field. Bits of `plain` and `nearest` are days, those of the others distances
/// from the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MonthDays {
    unrestricted: bool,
    plain: u64,
    last: u64,
    last_weekday: u64,
    nearest: u64,
}

/// The day-of-week field; bit 0 is Sunday.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Weekdays {
    unrestricted: bool,
    plain: u64,
    last: u64,
    /// `nth[k - 1]`: weekdays whose k-th occurrence in the month counts.
    nth: [u64; 5],
}

impl TimeSet {
    #[must_use]
    pub fn of(expr: &CronExpr) -> TimeSet {
        TimeSet {
            hours: plain_bits(expr, Field::Hour),
            minutes: plain_bits(expr, Field::Minute),
            seconds: plain_bits(expr, Field::Second),
        }
    }

    /// The first time of day at or after `tod`, in seconds; `None` when the day has no more.
    #[must_use]
    pub fn at_or_after(&self, tod: i64) -> Option<i64> {
        let (hour, minute, second) = split(tod);
        if has(self.hours, hour) {
            if has(self.minutes, minute)
                && let Some(second) = bit_from(self.seconds, second)
            {
                return Some(join(hour, minute, second));
            }
            if let Some(minute) = bit_from(self.minutes, minute + 1) {
                return Some(join(hour, minute, lowest(self.seconds)));
            }
        }
        let hour = bit_from(self.hours, hour + 1)?;
        Some(join(hour, lowest(self.minutes), lowest(self.seconds)))
    }

    /// The first time of a day.
    #[must_use]
    pub fn first(&self) -> i64 {
        join(lowest(self.hours), lowest(self.minutes), lowest(self.seconds))
    }

    /// How many times of day lie before `tod`, which may be a whole day.
    #[must_use]
    pub fn count_before(&self, tod: i64) -> u64 {
        let (hour, minute, second) = split(tod);
        let per_minute = count(self.seconds);
        let per_hour = count(self.minutes) * per_minute;
        let mut before = count(self.hours & below(hour)) * per_hour;
        if has(self.hours, hour) {
            before += count(self.minutes & below(minute)) * per_minute;
            if has(self.minutes, minute) {
                before += count(self.seconds & below(second));
            }
        }
        before
    }

    /// The time of day that `index` others of the set precede; the last one when there are fewer.
    #[must_use]
    pub fn nth(&self, index: u64) -> i64 {
        let per_minute = count(self.seconds);
        let per_hour = count(self.minutes) * per_minute;
        let hour = nth_bit(self.hours, index / per_hour);
        let minute = nth_bit(self.minutes, index % per_hour / per_minute);
        let second = nth_bit(self.seconds, index % per_minute);
        join(hour, minute, second)
    }
}

impl DaySet {
    #[must_use]
    pub fn of(expr: &CronExpr) -> DaySet {
        DaySet {
            years: year_bits(expr),
            months: plain_bits(expr, Field::Month),
            month_days: MonthDays::of(expr),
            weekdays: Weekdays::of(expr),
        }
    }

    /// Whether the year field allows a year.
    #[must_use]
    pub fn has_year(&self, year: i32) -> bool {
        if !(YEAR_MIN..=YEAR_MAX).contains(&year) {
            return false;
        }
        let index = year_index(year);
        self.years[index / 64] >> (index % 64) & 1 == 1
    }

    /// The first allowed month at or after `month`.
    #[must_use]
    pub fn month_from(&self, month: u32) -> Option<u32> {
        bit_from(self.months, month)
    }

    /// The allowed days of a month, bit 1 for its first. Both day fields must agree, but where both
    /// are restricted (which only unix can say) one of them is enough.
    #[must_use]
    pub fn days_of(&self, year: i32, month: u32) -> u64 {
        if !has(self.months, month) || !self.has_year(year) {
            return 0;
        }
        let length = civil::days_in_month(year, month);
        let first_weekday = civil::first_weekday(year, month);
        let by_month_day = self.month_days.of_month(length, first_weekday);
        let by_weekday = self.weekdays.of_month(length, first_weekday);
        if self.month_days.unrestricted || self.weekdays.unrestricted {
            by_month_day & by_weekday
        } else {
            by_month_day | by_weekday
        }
    }

    /// The same days without the year field.
    #[must_use]
    pub fn in_any_year(self) -> DaySet {
        DaySet { years: [u64::MAX; YEAR_WORDS], ..self }
    }
}

impl MonthDays {
    fn of(expr: &CronExpr) -> MonthDays {
        let mut days = MonthDays {
            unrestricted: expr.is_unrestricted(Field::DayOfMonth),
            plain: plain_bits(expr, Field::DayOfMonth),
            ..MonthDays::default()
        };
        for item in expr.items(Field::DayOfMonth) {
            match *item {
                Item::LastDay { before } => days.last |= 1 << before,
                Item::LastWeekday { before } => days.last_weekday |= 1 << before,
                Item::NearestWeekday { day } => days.nearest |= 1 << day,
                Item::All
                | Item::Unset
                | Item::Every { .. }
                | Item::Value(_)
                | Item::From { .. }
                | Item::Range { .. }
                | Item::LastOf { .. }
                | Item::Nth { .. } => {}
            }
        }
        days
    }

    fn of_month(self, length: u32, first_weekday: u32) -> u64 {
        let whole_month = below(length + 1) & !1;
        if self.unrestricted {
            return whole_month;
        }
        let mut days = self.plain;
        for before in bits(self.last) {
            days |= length.checked_sub(before).map_or(0, |day| 1 << day);
        }
        for before in bits(self.last_weekday) {
            let day = length.checked_sub(before).filter(|&day| day >= 1);
            days |= day.map_or(0, |day| 1 << nearest_weekday(day, length, first_weekday));
        }
        for day in bits(self.nearest & whole_month) {
            days |= 1 << nearest_weekday(day, length, first_weekday);
        }
        days & whole_month
    }
}

impl Weekdays {
    fn of(expr: &CronExpr) -> Weekdays {
        let offset = Field::DayOfWeek.min(expr.dialect());
        let sunday_zero = |weekday: u16| (weekday - offset) % 7;
        let mut days = Weekdays {
            unrestricted: expr.is_unrestricted(Field::DayOfWeek),
            ..Weekdays::default()
        };
        for item in expr.items(Field::DayOfWeek) {
            for weekday in item.values(Field::DayOfWeek, expr.dialect()) {
                days.plain |= 1 << sunday_zero(weekday);
            }
            match *item {
                Item::LastOf { weekday } => days.last |= 1 << sunday_zero(weekday),
                Item::Nth { weekday, nth } => {
                    if let Some(set) = days.nth.get_mut(usize::from(nth) - 1) {
                        *set |= 1 << sunday_zero(weekday);
                    }
                }
                Item::All
                | Item::Unset
                | Item::Every { .. }
                | Item::Value(_)
                | Item::From { .. }
                | Item::Range { .. }
                | Item::LastDay { .. }
                | Item::LastWeekday { .. }
                | Item::NearestWeekday { .. } => {}
            }
        }
        days
    }

    fn of_month(self, length: u32, first_weekday: u32) -> u64 {
        let whole_month = below(length + 1) & !1;
        if self.unrestricted {
            return whole_month;
        }
        let mut days = 0;
        for day in 1..=7 {
            let weekday = (first_weekday + day - 1) % 7;
            if has(self.plain, weekday) {
                days |= (1 << day) | (1 << (day + 7)) | (1 << (day + 14)) | (1 << (day + 21));
                days |= 1 << (day + 28);
            }
            if has(self.last, weekday) {
                let last = if day + 28 <= length { day + 28 } else { day + 21 };
                days |= 1 << last;
            }
            for (set, week) in self.nth.into_iter().zip(0..) {
                if has(set, weekday) {
                    days |= 1 << (day + 7 * week);
                }
            }
        }
        days & whole_month
    }
}

/// The weekday (Monday to Friday) nearest to a day, inside its month.
fn nearest_weekday(day: u32, length: u32, first_weekday: u32) -> u32 {
    match (first_weekday + day - 1) % 7 {
        6 if day > 1 => day - 1,
        6 => day + 2,
        0 if day < length => day + 1,
        0 => day - 2,
        _ => day,
    }
}

/// The plain values of a field.
fn plain_bits(expr: &CronExpr, field: Field) -> u64 {
    let mut set = 0;
    for item in expr.items(field) {
        for value in item.values(field, expr.dialect()) {
            set |= 1 << value;
        }
    }
    set
}

fn year_bits(expr: &CronExpr) -> [u64; YEAR_WORDS] {
    if expr.is_unrestricted(Field::Year) {
        return [u64::MAX; YEAR_WORDS];
    }
    let mut years = [0; YEAR_WORDS];
    for item in expr.items(Field::Year) {
        for year in item.values(Field::Year, expr.dialect()) {
            let index = year_index(i32::from(year));
            years[index / 64] |= 1 << (index % 64);
        }
    }
    years
}

fn year_index(year: i32) -> usize {
    usize::try_from(year - YEAR_MIN).unwrap_or(0)
}

/// Hour, minute and second of a time of day; hour 24 for a whole day.
fn split(tod: i64) -> (u32, u32, u32) {
    let part = |value: i64| u32::try_from(value).unwrap_or(0);
    (part(tod / HOUR_S), part(tod % HOUR_S / MINUTE_S), part(tod % MINUTE_S))
}

fn join(hour: u32, minute: u32, second: u32) -> i64 {
    i64::from(hour) * HOUR_S + i64::from(minute) * MINUTE_S + i64::from(second)
}

fn count(set: u64) -> u64 {
    u64::from(set.count_ones())
}

fn has(set: u64, bit: u32) -> bool {
    bit < u64::BITS && set >> bit & 1 == 1
}

/// The bits lower than `bit`.
fn below(bit: u32) -> u64 {
    1_u64.checked_shl(bit).map_or(u64::MAX, |next| next - 1)
}

fn lowest(set: u64) -> u32 {
    set.trailing_zeros() % u64::BITS
}

/// The lowest member at or above `bit`.
fn bit_from(set: u64, bit: u32) -> Option<u32> {
    let rest = set & !below(bit);
    (rest != 0).then(|| rest.trailing_zeros())
}

/// The member that `index` smaller ones precede; the largest when there are fewer.
fn nth_bit(set: u64, index: u64) -> u32 {
    let mut rest = set;
    for _ in 0..index {
        let fewer = rest & rest.wrapping_sub(1);
        if fewer == 0 {
            break;
        }
        rest = fewer;
    }
    lowest(rest)
}

/// The members, ascending.
fn bits(set: u64) -> impl Iterator<Item = u32> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let bit = (rest != 0).then(|| rest.trailing_zeros())?;
        rest &= rest - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::schedule::Dialect;
    use crate::recurrence::cron::parse::parse;

    fn times(text: &str) -> TimeSet {
        TimeSet::of(&parse(text, Dialect::Quartz, "").unwrap())
    }

    #[test]
    fn times_of_day_are_counted_and_found_by_rank() {
        for text in ["*/7 3,9,58 1-3,23 * * ?", "0 0 0 * * ?", "59 59 23 * * ?", "* * * * * ?"] {
            let set = times(text);
            let mut listed = Vec::new();
            let mut from = 0;
            while let Some(tod) = set.at_or_after(from) {
                listed.push(tod);
                from = tod + 1;
            }
            assert_eq!(set.count_before(86_400), listed.len() as u64, "{text}");
            for (rank, &tod) in listed.iter().enumerate() {
                assert_eq!(set.count_before(tod), rank as u64, "{text}");
                assert_eq!(set.nth(rank as u64), tod, "{text}");
            }
            assert_eq!(set.first(), listed[0]);
        }
    }

    #[test]
    fn days_of_a_month_follow_both_day_fields() {
        let days = |text: &str, dialect, year, month| -> Vec<u32> {
            let set = DaySet::of(&parse(text, dialect, "").unwrap());
            bits(set.days_of(year, month)).collect()
        };
        let quartz = |text, year, month| days(text, Dialect::Quartz, year, month);
        let unix = |text, year, month| days(text, Dialect::Unix, year, month);
        assert_eq!(quartz("0 0 0 31W * ?", 2024, 2), [] as [u32; 0], "W never clamps");
        assert_eq!(quartz("0 0 0 31W * ?", 2024, 3), [29]);
        assert_eq!(quartz("0 0 0 1W * ?", 2025, 11), [3], "W never leaves its month");
        assert_eq!(quartz("0 0 0 L-30 * ?", 2024, 2), [] as [u32; 0]);
        assert_eq!(quartz("0 0 0 L-30 * ?", 2024, 3), [1]);
        assert_eq!(quartz("0 0 0 ? * 6L", 2024, 2), [23]);
        assert_eq!(unix("0 0 30 2 1", 2024, 2), [5, 12, 19, 26], "or");
        assert_eq!(unix("0 0 13 * 5", 2024, 9), [6, 13, 20, 27], "or");
    }
}
