//! A second implementation, written to be obviously right instead of fast.
//!
//! It walks instants minute by minute, asks the time-zone library for the local time of each, and
//! matches it against the text of the fields, value by value. It shares nothing with the evaluator
//! but the text.

use horolog::base::time::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

const MINUTE_MS: i64 = 60_000;

/// A unix expression with plain numbers only, as its five words.
pub(crate) struct Naive<'a> {
    words: [&'a str; 5],
    zone: TimeZone,
}

impl<'a> Naive<'a> {
    pub(crate) fn new(text: &'a str, zone: &str) -> Naive<'a> {
        let words: Vec<&str> = text.split(' ').collect();
        let words = words.try_into().expect("five words");
        Naive { words, zone: TimeZoneDatabase::bundled().get(zone).expect("a zone") }
    }

    /// The occurrences after `after` and not after `until`, of a zone whose offsets are whole
    /// minutes.
    pub(crate) fn between(&self, after: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let mut minute_ms = (after.as_ms().div_euclid(MINUTE_MS) + 1) * MINUTE_MS;
        let mut found = Vec::new();
        while minute_ms <= until.as_ms() {
            if self.fires_at(minute_ms) {
                found.push(Timestamp::from_ms(minute_ms));
            }
            minute_ms += MINUTE_MS;
        }
        found
    }

    fn fires_at(&self, minute_ms: i64) -> bool {
        let local = self.local(minute_ms);
        if self.matches(local) && (self.is_frequent() || !self.is_second_pass(minute_ms, local)) {
            return true;
        }
        !self.is_frequent() && self.ends_a_gap_with_a_match(minute_ms, local)
    }

    fn ends_a_gap_with_a_match(&self, minute_ms: i64, local: DateTime) -> bool {
        let before = self.local(minute_ms - MINUTE_MS);
        let mut skipped = before + jiff::Span::new().minutes(1);
        while skipped < local {
            if self.matches(skipped) && self.exists(skipped.date()) {
                return true;
            }
            skipped += jiff::Span::new().minutes(1);
        }
        false
    }

    fn is_second_pass(&self, minute_ms: i64, local: DateTime) -> bool {
        match self.zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Fold { before, .. } => {
                let first = before.to_timestamp(local).expect("in range");
                first.as_millisecond() != minute_ms
            }
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => false,
        }
    }

    /// Whether any minute of the date exists: one that is wholly skipped has none.
    fn exists(&self, date: Date) -> bool {
        let mut minutes = (0..24).flat_map(|hour| (0..60).map(move |minute| (hour, minute)));
        minutes.any(|(hour, minute)| {
            let local = date.at(hour, minute, 0, 0);
            let offset = self.zone.to_ambiguous_timestamp(local).offset();
            !matches!(offset, AmbiguousOffset::Gap { .. })
        })
    }

    fn matches(&self, local: DateTime) -> bool {
        let [minute, hour, day, month, weekday] = self.words;
        let in_time = word_has(minute, local.minute(), 0, 59)
            && word_has(hour, local.hour(), 0, 23)
            && word_has(month, local.month(), 1, 12);
        let sunday_zero = local.weekday().to_sunday_zero_offset();
        let by_day = word_has(day, local.day(), 1, 31);
        let by_weekday =
            word_has(weekday, sunday_zero, 0, 6) || sunday_zero == 0 && word_has(weekday, 7, 0, 6);
        let in_date = match (day, weekday) {
            ("*", _) | (_, "*") => by_day && by_weekday,
            _ => by_day || by_weekday,
        };
        in_time && in_date
    }

    fn is_frequent(&self) -> bool {
        self.words[..2].iter().any(|word| word.contains(['*', '/']))
    }

    fn local(&self, minute_ms: i64) -> DateTime {
        let instant = jiff::Timestamp::from_millisecond(minute_ms).expect("in range");
        instant.to_zoned_datetime(self.zone.clone()).datetime()
    }
}

fn word_has(word: &str, value: i8, min: i8, max: i8) -> bool {
    word.split(',').any(|part| part_has(part, value, min, max))
}

fn part_has(part: &str, value: i8, min: i8, max: i8) -> bool {
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, step.parse().expect("a step")),
        None => (part, 1),
    };
    let (start, end): (i8, i8) = match range.split_once('-') {
        Some((start, end)) => (start.parse().expect("a start"), end.parse().expect("an end")),
        None if range == "*" => (min, max),
        None => {
            let start = range.parse().expect("a value");
            (start, if part.contains('/') { max } else { start })
        }
    };
    (start..=end).contains(&value) && (value - start) % step == 0
}
