//! Instants and lengths of time, in whole milliseconds.
//!
//! Everything that is stored or replicated uses these two types. Arithmetic saturates at the bounds
//! instead of wrapping, so that no input can turn a far future into the past.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

const MS_PER_SECOND: i64 = 1_000;
const MS_PER_MINUTE: i64 = 60 * MS_PER_SECOND;
const MS_PER_HOUR: i64 = 60 * MS_PER_MINUTE;
const MS_PER_DAY: i64 = 24 * MS_PER_HOUR;

/// An instant: milliseconds since 1970-01-01T00:00:00Z, between [`Timestamp::MIN`] and
/// [`Timestamp::MAX`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1900-01-01T00:00:00Z. Nothing earlier can be asked for.
    pub const MIN: Timestamp = Timestamp(-2_208_988_800_000);
    /// The horizon, 2200-01-01T00:00:00Z. No schedule yields anything at or after it.
    pub const MAX: Timestamp = Timestamp(7_258_118_400_000);
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// The instant `ms` milliseconds after the epoch, moved to the nearest bound when outside.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Timestamp {
        if ms < Timestamp::MIN.0 {
            Timestamp::MIN
        } else if ms > Timestamp::MAX.0 {
            Timestamp::MAX
        } else {
            Timestamp(ms)
        }
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// This instant moved forward by `span`; saturates at [`Timestamp::MAX`].
    #[must_use]
    pub const fn plus(self, span: Span) -> Timestamp {
        Timestamp::from_ms(self.0.saturating_add(span.0))
    }

    /// This instant moved back by `span`; saturates at [`Timestamp::MIN`].
    #[must_use]
    pub const fn minus(self, span: Span) -> Timestamp {
        Timestamp::from_ms(self.0.saturating_sub(span.0))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Timestamp) -> Span {
        Span::from_ms(self.0.saturating_sub(earlier.0))
    }
}

/// RFC 3339 in UTC; the milliseconds are shown only when there are any.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision =
            if self.0 % MS_PER_SECOND == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
        match DateTime::<Utc>::from_timestamp_millis(self.0) {
            Some(at) => f.write_str(&at.to_rfc3339_opts(precision, true)),
            None => write!(f, "{}ms", self.0),
        }
    }
}

/// Why a text is not an instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    #[error("{text:?} is not an RFC 3339 time such as 2026-12-01T09:30:00Z")]
    Format { text: String },
    #[error("{text:?} lies outside the years 1900 to 2199")]
    Range { text: String },
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Reads an RFC 3339 time with any offset. Digits below a millisecond are cut off.
    fn from_str(text: &str) -> Result<Timestamp, TimestampError> {
        let shown = || text.chars().take(64).collect::<String>();
        let parsed = DateTime::parse_from_rfc3339(text)
            .map_err(|_| TimestampError::Format { text: shown() })?;
        let ms = parsed.timestamp_millis();
        if !(Timestamp::MIN.0..Timestamp::MAX.0).contains(&ms) {
            return Err(TimestampError::Range { text: shown() });
        }
        Ok(Timestamp(ms))
    }
}

/// A length of time in milliseconds, never negative, at most [`Span::MAX`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Span(i64);

impl Span {
    pub const ZERO: Span = Span(0);
    /// Three hundred years, longer than the distance between any two instants.
    pub const MAX: Span = Span(300 * 366 * MS_PER_DAY);

    /// `ms` milliseconds, moved to the nearest bound when outside.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Span {
        if ms < 0 {
            Span::ZERO
        } else if ms > Span::MAX.0 {
            Span::MAX
        } else {
            Span(ms)
        }
    }

    #[must_use]
    pub const fn from_secs(seconds: i64) -> Span {
        Span::from_ms(seconds.saturating_mul(MS_PER_SECOND))
    }

    #[must_use]
    pub const fn from_mins(minutes: i64) -> Span {
        Span::from_ms(minutes.saturating_mul(MS_PER_MINUTE))
    }

    #[must_use]
    pub const fn from_hours(hours: i64) -> Span {
        Span::from_ms(hours.saturating_mul(MS_PER_HOUR))
    }

    #[must_use]
    pub const fn from_days(days: i64) -> Span {
        Span::from_ms(days.saturating_mul(MS_PER_DAY))
    }

    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The same length for the standard library's timers.
    #[must_use]
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0.unsigned_abs())
    }
}

/// The shortest exact form in one unit: `90s`, `15m`, `2h`, `3d`, `250ms`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (MS_PER_DAY, "d"),
            (MS_PER_HOUR, "h"),
            (MS_PER_MINUTE, "m"),
            (MS_PER_SECOND, "s"),
            (1, "ms"),
        ];
        if self.0 == 0 {
            return f.write_str("0s");
        }
        for (unit_ms, name) in units {
            if self.0 % unit_ms == 0 {
                return write!(f, "{}{name}", self.0 / unit_ms);
            }
        }
        Ok(())
    }
}

/// Why a text is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    #[error("{text:?} is not a duration such as 90s, 15m, 1h30m or PT15M")]
    Format { text: String },
    #[error("{text:?} is longer than 300 years")]
    TooLong { text: String },
}

impl FromStr for Span {
    type Err = SpanError;

    /// Reads `90s`, `1h30m`, `250ms`, `2d`, `1w`, or the ISO 8601 forms `PT15M`, `P1DT2H` and
    /// `P2W`.
    /// Years and months are refused, for they have no fixed length; so are signs and fractions.
    fn from_str(text: &str) -> Result<Span, SpanError> {
        let shown = || text.chars().take(64).collect::<String>();
        let format = || SpanError::Format { text: shown() };
        let too_long = || SpanError::TooLong { text: shown() };
        if !text.is_ascii() || text.len() > 64 {
            return Err(format());
        }
        let units = match text.strip_prefix('P') {
            Some(iso) => iso_units(iso).ok_or_else(format)?,
            None => plain_units(text).ok_or_else(format)?,
        };
        let mut total: i64 = 0;
        for (count, unit_ms) in units {
            let part = count.checked_mul(unit_ms).ok_or_else(too_long)?;
            total = total.checked_add(part).ok_or_else(too_long)?;
        }
        if total > Span::MAX.0 {
            return Err(too_long());
        }
        Ok(Span(total))
    }
}

/// Splits `1h30m` into counts and units; units must shrink from left to right.
fn plain_units(text: &str) -> Option<Vec<(i64, i64)>> {
    split_units(text, |name| match name {
        "w" => Some(7 * MS_PER_DAY),
        "d" => Some(MS_PER_DAY),
        "h" => Some(MS_PER_HOUR),
        "m" => Some(MS_PER_MINUTE),
        "s" => Some(MS_PER_SECOND),
        "ms" => Some(1),
        _ => None,
    })
}

fn iso_units(text: &str) -> Option<Vec<(i64, i64)>> {
    let (date, time) = match text.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    let mut units = Vec::new();
    if !date.is_empty() {
        units = split_units(date, |name| match name {
            "W" => Some(7 * MS_PER_DAY),
            "D" => Some(MS_PER_DAY),
            _ => None,
        })?;
    }
    if !time.is_empty() {
        units.extend(split_units(time, |name| match name {
            "H" => Some(MS_PER_HOUR),
            "M" => Some(MS_PER_MINUTE),
            "S" => Some(MS_PER_SECOND),
            _ => None,
        })?);
    }
    if units.is_empty() { None } else { Some(units) }
}

fn split_units(text: &str, unit_ms: impl Fn(&str) -> Option<i64>) -> Option<Vec<(i64, i64)>> {
    let mut units: Vec<(i64, i64)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: i64 = rest[..digits].parse().ok()?;
        let tail = &rest[digits..];
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let unit = unit_ms(&tail[..letters])?;
        if units.last().is_some_and(|&(_, larger)| larger <= unit) {
            return None;
        }
        units.push((count, unit));
        rest = &tail[letters..];
    }
    if units.is_empty() { None } else { Some(units) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print_in_the_documented_forms() {
        let table = [
            ("90s", 90_000, "90s"),
            ("60s", 60_000, "1m"),
            ("1h30m", 5_400_000, "90m"),
            ("250ms", 250, "250ms"),
            ("PT15M", 900_000, "15m"),
            ("P1DT2H", 93_600_000, "26h"),
            ("P2W", 1_209_600_000, "14d"),
            ("0s", 0, "0s"),
        ];
        for (text, ms, shown) in table {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.as_ms(), ms, "{text}");
            assert_eq!(span.to_string(), shown, "{text}");
        }
    }

    #[test]
    fn malformed_durations_are_refused() {
        let table = [
            "",
            "5",
            "s",
            "-5s",
            "+5s",
            "1.5s",
            "1m1h",
            "1s1s",
            "P",
            "PT",
            "P1M",
            "P1Y",
            "1x",
            "١s",
            "9223372036854775807s",
            "9223372036854775807d",
            "99999999999999999999s",
        ];
        for text in table {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn instants_read_any_offset_and_print_in_utc() {
        let at: Timestamp = "2026-12-01T09:30:00+08:00".parse().unwrap();
        assert_eq!(at.to_string(), "2026-12-01T01:30:00Z");
        assert_eq!(at.plus(Span::from_ms(5)).to_string(), "2026-12-01T01:30:00.005Z");
        for text in
            ["", "tomorrow", "2026-13-01T00:00:00Z", "1800-01-01T00:00:00Z", "2200-01-01T00:00:00Z"]
        {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn arithmetic_saturates_at_the_bounds() {
        assert_eq!(Timestamp::MAX.plus(Span::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.minus(Span::MAX), Timestamp::MIN);
        assert_eq!(Timestamp::MIN.since(Timestamp::MAX), Span::ZERO);
        assert_eq!(Timestamp::from_ms(i64::MAX), Timestamp::MAX);
    }
}
