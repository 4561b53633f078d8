//! Schedules: vectors computed by independent implementations, field reports, and properties.

mod cases;
mod naive;
mod properties;
mod vectors;

use horolog::base::time::Timestamp;
use horolog::model::schedule::{Bounds, CronSource, Dialect, DstGap, DstOverlap, Schedule};
use horolog::recurrence::{Compiled, ScheduleError};

/// A cron schedule with the default choices for changes of the clock.
pub(crate) fn cron(text: &str, dialect: Dialect, zone: &str) -> Schedule {
    Schedule::Cron(CronSource {
        text: text.to_owned(),
        dialect,
        zone: zone.to_owned(),
        dst_gap: DstGap::Auto,
        dst_overlap: DstOverlap::Auto,
    })
}

/// The same, ready to be asked.
pub(crate) fn compiled(
    text: &str,
    dialect: Dialect,
    zone: &str,
) -> Result<Compiled, ScheduleError> {
    Compiled::new(&cron(text, dialect, zone), &Bounds::default(), "tenant/group/job/trigger")
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}
