//! Reading the list of one field.

use crate::base::hash::stable_hash;
use crate::model::schedule::Dialect;
use crate::recurrence::cron::error::CronError;
use crate::recurrence::cron::field::Field;
use crate::recurrence::cron::item::Item;

/// `H` in day-of-month stays within the days that every month has.
const HASHED_DAY_MAX: u16 = 28;
/// Longest distance `L-n` may count back: the 1st of a month of 31 days.
const LAST_BEFORE_MAX: u16 = 30;
/// A month holds a weekday at most five times.
const NTH_MAX: u16 = 5;

/// Reads the word of one field.
#[derive(Clone, Copy)]
pub(super) struct FieldReader<'a> {
    pub(super) field: Field,
    pub(super) dialect: Dialect,
    pub(super) hash_key: &'a str,
}

impl FieldReader<'_> {
    /// The items of a list, sorted and without repetition.
    pub(super) fn read_list(self, word: &str) -> Result<Vec<Item>, CronError> {
        let mut items = Vec::new();
        for part in word.split(',') {
            items.push(self.read_part(part)?);
        }
        if items.len() > 1 && items.contains(&Item::Unset) {
            return Err(self.error(word, "mixes ? with other parts; ? stands alone"));
        }
        if items.contains(&Item::All) {
            return Ok(vec![Item::All]);
        }
        items.sort_unstable();
        items.dedup();
        Ok(items)
    }

    fn read_part(self, part: &str) -> Result<Item, CronError> {
        if part.is_empty() {
            return Err(self.error(part, "is an empty part of a list; write values between commas"));
        }
        if let Some(item) = self.read_question_mark(part)? {
            return Ok(item);
        }
        if let Some(item) = self.read_day_word(part)? {
            return Ok(item);
        }
        let (base, step) = match part.split_once('/') {
            Some((base, step)) => (base, Some(self.read_step(part, step)?)),
            None => (part, None),
        };
        if let Some(hashed) = base.strip_prefix(['H', 'h']) {
            return self.read_hashed(part, hashed, step);
        }
        if base == "*" {
            return Ok(match step {
                None | Some(1) => Item::All,
                Some(step) => Item::Every { step },
            });
        }
        if let Some((start, end)) = base.split_once('-') {
            return self.read_range(part, start, end, step);
        }
        let start = self.read_value(part, base)?;
        Ok(match step {
            // Sunday written as 7 is the last day of a unix week: nothing follows it.
            Some(_) if start > self.field.max(self.dialect) => Item::Value(self.folded(start)),
            Some(step) => Item::From { start, step },
            None => Item::Value(self.folded(start)),
        })
    }

    fn read_question_mark(self, part: &str) -> Result<Option<Item>, CronError> {
        if part != "?" {
            return Ok(None);
        }
        match (self.field, self.dialect) {
            (Field::DayOfMonth | Field::DayOfWeek, Dialect::Quartz) => Ok(Some(Item::Unset)),
            (Field::DayOfMonth | Field::DayOfWeek, Dialect::Unix) => Ok(Some(Item::All)),
            _ => Err(self.error(part, "stands only in day-of-month or day-of-week; use *")),
        }
    }

    /// `L`, `LW`, `L-n`, `L-nW`, `nW`, `nL` and `n#k`.
    fn read_day_word(self, part: &str) -> Result<Option<Item>, CronError> {
        let upper = part.to_ascii_uppercase();
        match self.field {
            Field::DayOfMonth => self.read_month_day_word(part, &upper),
            Field::DayOfWeek => self.read_weekday_word(part, &upper),
            Field::Second | Field::Minute | Field::Hour | Field::Month | Field::Year => Ok(None),
        }
    }

    fn read_month_day_word(self, part: &str, upper: &str) -> Result<Option<Item>, CronError> {
        if let Some(rest) = upper.strip_prefix('L') {
            let (rest, weekday) = match rest.strip_suffix('W') {
                Some(rest) => (rest, true),
                None => (rest, false),
            };
            let before = match rest.strip_prefix('-') {
                Some(digits) => number(digits).filter(|n| (1..=LAST_BEFORE_MAX).contains(n)),
                None if rest.is_empty() => Some(0),
                None => None,
            };
            let Some(before) = before else {
                let problem = "is none of L, LW, L-n and L-nW, where n is 1 to 30";
                return Err(self.error(part, problem));
            };
            return Ok(Some(match weekday {
                true => Item::LastWeekday { before },
                false => Item::LastDay { before },
            }));
        }
        let Some(day) = upper.strip_suffix('W') else {
            return Ok(None);
        };
        match number(day).filter(|day| (1..=31).contains(day)) {
            Some(day) => Ok(Some(Item::NearestWeekday { day })),
            None => Err(self.error(part, "is not nW, the weekday nearest to day n of 1 to 31")),
        }
    }

    fn read_weekday_word(self, part: &str, upper: &str) -> Result<Option<Item>, CronError> {
        if upper == "L" {
            return match self.dialect {
                // Quartz's own reading: the last day of the week.
                Dialect::Quartz => Ok(Some(Item::Value(self.field.max(self.dialect)))),
                Dialect::Unix => Err(self.error(
                    part,
                    "has two readings: quartz takes it as every Saturday, which is 6 in unix; the \
                     last Saturday of the month is 6L",
                )),
            };
        }
        if let Some((weekday, nth)) = upper.split_once('#') {
            let weekday = self.read_value(part, weekday)?;
            let Some(nth) = number(nth).filter(|nth| (1..=NTH_MAX).contains(nth)) else {
                return Err(self.error(part, "is not n#k, the k-th weekday n with k of 1 to 5"));
            };
            return Ok(Some(Item::Nth { weekday: self.folded(weekday), nth }));
        }
        match upper.strip_suffix('L') {
            Some(weekday) => {
                let weekday = self.folded(self.read_value(part, weekday)?);
                Ok(Some(Item::LastOf { weekday }))
            }
            None => Ok(None),
        }
    }

    fn read_step(self, part: &str, step: &str) -> Result<u16, CronError> {
        let max = self.field.step_max(self.dialect);
        match number(step).filter(|step| (1..=max).contains(step)) {
            Some(step) => Ok(step),
            None => Err(self.error(part, format!("has a step that is not a number of 1 to {max}"))),
        }
    }

    fn read_range(
        self,
        part: &str,
        start_text: &str,
        end_text: &str,
        step: Option<u16>,
    ) -> Result<Item, CronError> {
        let start = self.read_value(part, start_text)?;
        let mut end = self.read_value(part, end_text)?;
        // A unix week may be said to end on Sunday: SAT-SUN.
        let named_sunday = end == 0 && end_text.eq_ignore_ascii_case("SUN");
        if self.field == Field::DayOfWeek && named_sunday && start > 0 {
            end = 7;
        }
        let wraps = self.dialect == Dialect::Quartz && self.field != Field::Year;
        if start > end && !wraps {
            return Err(self.error(part, self.reversed_range(start, end, start_text, end_text)));
        }
        if start == end && step.is_none() {
            return Ok(Item::Value(self.folded(start)));
        }
        Ok(Item::Range { start, end, step })
    }

    fn reversed_range(self, start: u16, end: u16, start_text: &str, end_text: &str) -> String {
        if self.field == Field::Year {
            return "ends before it begins".to_owned();
        }
        let (min, max) = (self.field.min(self.dialect), self.field.max(self.dialect));
        let tail = if start >= max { start.to_string() } else { format!("{start_text}-{max}") };
        let head = if end <= min { min.to_string() } else { format!("{min}-{end_text}") };
        format!(
            "runs backwards: it would wrap in quartz, unix ranges do not; write {tail},{head} to \
             go over the end, or swap its ends"
        )
    }

    /// What follows an `H`: nothing, or the range to choose from.
    fn read_hashed(self, part: &str, rest: &str, step: Option<u16>) -> Result<Item, CronError> {
        if self.field == Field::Year {
            return Err(self.error(part, "stands in no year; a year is never chosen by hash"));
        }
        let range = match rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            Some(range) => {
                let Some((start, end)) = range.split_once('-') else {
                    return Err(self.error(part, "is none of H, H/n, H(a-b) and H(a-b)/n"));
                };
                let (start, end) = (self.read_value(part, start)?, self.read_value(part, end)?);
                if start > end {
                    return Err(self.error(part, "has a range that ends before it begins"));
                }
                Some((start, end))
            }
            None if rest.is_empty() => None,
            None => return Err(self.error(part, "is none of H, H/n, H(a-b) and H(a-b)/n")),
        };
        Ok(self.resolve_hashed(range, step))
    }

    fn resolve_hashed(self, range: Option<(u16, u16)>, step: Option<u16>) -> Item {
        let (min, max) = (self.field.min(self.dialect), self.field.max(self.dialect));
        let default_last = if self.field == Field::DayOfMonth { HASHED_DAY_MAX } else { max };
        let (first, last) = range.unwrap_or((min, default_last));
        let choices = (last - first + 1).min(step.unwrap_or(u16::MAX));
        let hash = stable_hash(&[self.hash_key.as_bytes(), self.field.name().as_bytes()]);
        let shift = u16::try_from(hash % u64::from(choices)).unwrap_or(0);
        let start = first + shift;
        match (range, step) {
            (_, None) => Item::Value(self.folded(start)),
            (None, Some(step)) => Item::From { start, step },
            (Some(_), Some(step)) => Item::Range { start, end: last, step: Some(step) },
        }
    }

    fn read_value(self, part: &str, text: &str) -> Result<u16, CronError> {
        if let Some(value) = self.field.number_of(text, self.dialect) {
            return Ok(value);
        }
        let allowed = self.field.allowed(self.dialect);
        let Some(value) = number(text) else {
            return Err(self.error(part, format!("is not understood; allowed are {allowed}")));
        };
        let (min, max) = (self.field.min(self.dialect), self.field.written_max(self.dialect));
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        let other_reading = match (self.field, self.dialect, value) {
            (Field::DayOfWeek, Dialect::Quartz, 0) => {
                " (Sunday is 0 in unix, but 1 or SUN in quartz)"
            }
            _ => "",
        };
        let problem = format!("lies outside {min}-{max}{other_reading}; allowed are {allowed}");
        Err(self.error(part, problem))
    }

    /// Unix's second name for Sunday folded into the first.
    fn folded(self, value: u16) -> u16 {
        match (self.field, self.dialect) {
            (Field::DayOfWeek, Dialect::Unix) => value % 7,
            _ => value,
        }
    }

    fn error(self, part: &str, problem: impl Into<String>) -> CronError {
        CronError::part(self.field, part, problem)
    }
}

/// A number of one to four ASCII digits.
fn number(text: &str) -> Option<u16> {
    let plain = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}
