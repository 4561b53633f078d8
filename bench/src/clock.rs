//! The system's clock in microseconds, to compare a worker's start with its due time.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::error::{Error, Result};

/// Microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "lateness is measured against the system's clock")]
pub fn now_us() -> i64 {
    Utc::now().timestamp_micros()
}

/// Reads an RFC 3339 time into microseconds since 1970.
///
/// # Errors
/// When it is none.
pub fn parse_us(text: &str) -> Result<i64> {
    let time = DateTime::parse_from_rfc3339(text);
    let time = time.map_err(|e| Error::Wrong(format!("{text:?} is no RFC 3339 time: {e}")))?;
    Ok(time.timestamp_micros())
}

/// RFC 3339 with milliseconds, in UTC.
///
/// # Errors
/// When the time is beyond what the calendar can write.
pub fn format_us(at_us: i64) -> Result<String> {
    let time = DateTime::from_timestamp_micros(at_us);
    let time = time.ok_or_else(|| Error::Wrong(format!("{at_us} us is beyond the calendar")))?;
    Ok(time.to_rfc3339_opts(SecondsFormat::Millis, true))
}
