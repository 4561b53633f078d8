//! When: schedules as arithmetic. No state, no clock, no I/O; the same question always has the same
//! answer.
//!
//! **Nominal and actual.** A schedule speaks of nominal times: `30 2 * * *` is half past two on the
//! wall clock of a zone. What is stored, compared and replicated are instants. The map from one to
//! the other is not a function: where the clock is put forward some nominal times have no instant
//! (a gap), where it is put back some have two (an overlap), and at the date line whole dates are
//! missing. The rule here:
//!
//! - A fixed expression (no `*` and no `/` in minute or hour) fires once on every local date that
//!   exists: a time inside a gap fires at the first instant after it, a time inside an overlap on
//!   the first pass.
//! - A frequent expression counts elapsed time: it fires at every real instant whose local time
//!   matches, through both passes of an overlap, and at none inside a gap.
//! - A local date that does not exist does not fire.
//! - `dst_gap` and `dst_overlap` choose otherwise for one trigger.
//!
//! **Order.** Occurrences are strictly increasing instants, without repetition; `next_after(t)` is
//! the first one strictly after `t`, which has milliseconds while occurrences of cron have whole
//! seconds. It is total: for any schedule and any instant it ends within a bound that is stated in
//! `next`, and from [`Timestamp::MAX`] on there is nothing.
//!
//! **Who asks.** The service validates and shows the next times before it stores a schedule. The
//! planner computes occurrences on the leader, and the log carries the result. Apply never asks:
//! members with different time-zone tables still agree.
//!
//! | file | says |
//! | --- | --- |
//! | `cron` | reading both dialects; the normal form |
//! | `sets` | the values of the fields as bit sets |
//! | `civil` | local dates without a zone |
//! | `zone` | where offsets come from |
//! | `next` | the search |
//! | `misfire` | which missed occurrences fire |
//! | `preview` | the next few times |

pub mod civil;
pub mod cron;
pub mod misfire;
pub mod next;
pub mod preview;
pub mod sets;
pub mod zone;

use std::sync::Arc;

use crate::base::limits::{DELAY_MAX, INTERVAL_MIN};
use crate::base::time::{Span, Timestamp};
use crate::model::schedule::{Bounds, CronSource, DstGap, DstOverlap, Schedule};
use crate::recurrence::cron::CronExpr;
use crate::recurrence::cron::error::CronError;
use crate::recurrence::cron::field::Field;
use crate::recurrence::cron::parse::parse;
use crate::recurrence::next::{CronSearch, Passes, Stride};
use crate::recurrence::sets::{DaySet, TimeSet};
use crate::recurrence::zone::Zone;

const MS: Span = Span::from_ms(1);

/// A schedule that was read and is ready to be asked. Cheap to clone and to share.
#[derive(Clone, Debug)]
pub struct Compiled {
    rule: Rule,
    bounds: Bounds,
}

#[derive(Clone, Debug)]
enum Rule {
    Cron(Arc<CronRule>),
    Every { interval: Span, anchor: Timestamp },
    At { at: Timestamp },
}

/// A leader keeps one for each trigger, so it holds bit sets and a text, not the lists they come
/// from.
#[derive(Debug)]
struct CronRule {
    normal: Box<str>,
    search: CronSearch,
}

/// Why a schedule is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error(transparent)]
    Cron(#[from] CronError),
    #[error(
        "zone: {zone:?} is neither an IANA name such as Europe/Berlin nor a fixed offset such as \
         +05:30"
    )]
    UnknownZone { zone: String },
    #[error("interval: {interval} lies outside {INTERVAL_MIN} to {DELAY_MAX}")]
    Interval { interval: Span },
    #[error("end_at: {end} lies before start_at {start}; nothing could fire")]
    EndBeforeStart { start: Timestamp, end: Timestamp },
    #[error("{field}: never fires, {why}")]
    NeverFires { field: &'static str, why: String },
}

impl ScheduleError {
    /// The part of the schedule at fault: a field of the expression such as `day-of-month`, or
    /// `cron`, `zone`, `interval`, `at`, `start_at`, `end_at`, `dst_gap`.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            ScheduleError::Cron(error) => error.field_name().unwrap_or("cron"),
            ScheduleError::UnknownZone { .. } => "zone",
            ScheduleError::Interval { .. } => "interval",
            ScheduleError::EndBeforeStart { .. } => "end_at",
            ScheduleError::NeverFires { field, .. } => field,
        }
    }
}

impl Compiled {
    /// Reads a schedule. `hash_key` names what `H` is hashed from: the job and trigger it belongs
    /// to.
    ///
    /// # Errors
    /// [`ScheduleError`], except `NeverFires`: a schedule without occurrences can be asked, and
    /// says `None`.
    pub fn new(
        schedule: &Schedule,
        bounds: &Bounds,
        hash_key: &str,
    ) -> Result<Compiled, ScheduleError> {
        if let (Some(start), Some(end)) = (bounds.start_at, bounds.end_at)
            && end < start
        {
            return Err(ScheduleError::EndBeforeStart { start, end });
        }
        let rule = match schedule {
            Schedule::Cron(source) => {
                let expr = parse(&source.text, source.dialect, hash_key)?;
                Rule::Cron(Arc::new(CronRule::new(source, &expr)?))
            }
            Schedule::Every { interval, .. }
                if *interval < INTERVAL_MIN || *interval > DELAY_MAX =>
            {
                return Err(ScheduleError::Interval { interval: *interval });
            }
            Schedule::Every { interval, anchor } => {
                Rule::Every { interval: *interval, anchor: *anchor }
            }
            Schedule::At { at } => Rule::At { at: *at },
        };
        Ok(Compiled { rule, bounds: *bounds })
    }

    /// The first occurrence strictly after an instant, at or after `start_at`, at or before
    /// `end_at` and before [`Timestamp::MAX`]; `None` when there is none.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let next = self.rule.next_after(self.not_before_start(after))?;
        self.within_end(next)
    }

    /// The last occurrence at or before `at` and at or after `not_before`; `None` when there is
    /// none.
    #[must_use]
    pub fn latest_at_or_before(&self, at: Timestamp, not_before: Timestamp) -> Option<Timestamp> {
        let at = self.bounds.end_at.map_or(at, |end| at.min(end));
        let mut latest = self.next_after(not_before.minus(MS)).filter(|&first| first <= at)?;
        // Next is monotone, so the answer can be closed in on: it is at or after `latest`, and at
        // or before `bound`, after which the next occurrence lies beyond `at`.
        let mut bound = at;
        let mut reach = Span::from_secs(1);
        while at.minus(reach) > latest {
            let probe = at.minus(reach);
            match self.next_after(probe).filter(|&next| next <= at) {
                Some(next) => {
                    latest = next;
                    break;
                }
                None => bound = probe,
            }
            reach = Span::from_ms(reach.as_ms().saturating_mul(2));
        }
        while latest < bound {
            let probe = latest.plus(Span::from_ms(bound.since(latest).as_ms() / 2));
            match self.next_after(probe).filter(|&next| next <= at) {
                Some(next) => latest = next,
                None => bound = probe,
            }
        }
        Some(latest)
    }

    /// The next occurrences after `after` and not after `until`, as many as one step can count and
    /// at most `count_max`; `None` when there is none. Calling it until it says `None` takes one
    /// step a local day for cron, and one step in all for an interval.
    #[must_use]
    pub fn stride_after(
        &self,
        after: Timestamp,
        until: Timestamp,
        count_max: u64,
    ) -> Option<Stride> {
        let after = self.not_before_start(after);
        let until = self.bounds.end_at.map_or(until, |end| until.min(end));
        self.rule.stride_after(after, until, count_max)
    }

    /// One spelling for one meaning: numbers instead of names, macros and `H` resolved.
    #[must_use]
    pub fn normal_form(&self) -> String {
        match &self.rule {
            Rule::Cron(cron) => cron.normal.to_string(),
            Rule::Every { interval, anchor } => format!("every {interval} from {anchor}"),
            Rule::At { at } => format!("at {at}"),
        }
    }

    fn not_before_start(&self, after: Timestamp) -> Timestamp {
        self.bounds.start_at.map_or(after, |start| after.max(start.minus(MS)))
    }

    fn within_end(&self, next: Timestamp) -> Option<Timestamp> {
        let inside = self.bounds.end_at.is_none_or(|end| next <= end);
        inside.then_some(next)
    }
}

/// Refuses what [`Compiled::new`] refuses, and what can never fire.
///
/// # Errors
/// [`ScheduleError`], which names the part at fault. A schedule whose occurrences all lie in the
/// past is not refused here, for this module knows no present: ask `next_after(now)`.
pub fn validate(schedule: &Schedule, bounds: &Bounds, hash_key: &str) -> Result<(), ScheduleError> {
    let compiled = Compiled::new(schedule, bounds, hash_key)?;
    if compiled.next_after(Timestamp::MIN).is_some() {
        return Ok(());
    }
    let never = |field: &'static str, why: &str| {
        Err(ScheduleError::NeverFires { field, why: why.to_owned() })
    };
    if let (Rule::Cron(cron), Schedule::Cron(source)) = (&compiled.rule, schedule) {
        let expr = parse(&source.text, source.dialect, hash_key)?;
        if let Some(error) = cron.impossible_date(&expr) {
            return Err(error);
        }
        if cron.search.next_after(Timestamp::MIN).is_none() {
            return never("dst_gap", "its only local times are skipped by the zone's changes");
        }
    }
    if bounds.end_at.is_some() {
        return never("end_at", "no occurrence lies between start_at and end_at");
    }
    if bounds.start_at.is_some() {
        return never("start_at", "its last occurrence lies before start_at");
    }
    never("at", "it lies outside the years 1900 to 2199")
}

impl Rule {
    fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Rule::Cron(cron) => cron.search.next_after(after),
            Rule::Every { interval, anchor } => next_multiple(*interval, *anchor, after),
            Rule::At { at } => (*at > after && *at < Timestamp::MAX).then_some(*at),
        }
    }

    fn stride_after(&self, after: Timestamp, until: Timestamp, count_max: u64) -> Option<Stride> {
        if let Rule::Cron(cron) = self {
            return cron.search.stride_after(after, until, count_max);
        }
        let first = self.next_after(after).filter(|&first| first <= until && count_max > 0)?;
        let Rule::Every { interval, .. } = self else {
            return Some(Stride { first, last: first, count: 1 });
        };
        let until = until.min(Timestamp::MAX.minus(MS));
        let more = until.since(first).as_ms() / interval.as_ms();
        let more = more.min(i64::try_from(count_max - 1).unwrap_or(i64::MAX));
        let last = first.plus(Span::from_ms(more * interval.as_ms()));
        Some(Stride { first, last, count: more.unsigned_abs() + 1 })
    }
}

/// The first instant after `after` that lies a whole number of intervals from the anchor.
fn next_multiple(interval: Span, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
    let distance_ms = after.as_ms() - anchor.as_ms();
    let periods = distance_ms.div_euclid(interval.as_ms()) + 1;
    let next_ms = anchor.as_ms() + periods * interval.as_ms();
    (next_ms < Timestamp::MAX.as_ms()).then(|| Timestamp::from_ms(next_ms))
}

impl CronRule {
    fn new(source: &CronSource, expr: &CronExpr) -> Result<CronRule, ScheduleError> {
        let zone = Zone::named(&source.zone).map_err(|_| ScheduleError::UnknownZone {
            zone: source.zone.chars().take(64).collect(),
        })?;
        let frequent = expr.is_frequent();
        let gap_fires = match source.dst_gap {
            DstGap::Auto => !frequent,
            DstGap::FirstValid => true,
            DstGap::Skip => false,
        };
        let passes = match source.dst_overlap {
            DstOverlap::Auto if frequent => Passes::Both,
            DstOverlap::Auto | DstOverlap::First => Passes::First,
            DstOverlap::Last => Passes::Last,
            DstOverlap::Both => Passes::Both,
        };
        let (times, days) = (TimeSet::of(expr), DaySet::of(expr));
        let search = CronSearch { times, days, zone, gap_fires, passes };
        Ok(CronRule { normal: expr.to_string().into_boxed_str(), search })
    }

    /// Why no date matches; `None` when one does.
    fn impossible_date(&self, expr: &CronExpr) -> Option<ScheduleError> {
        if self.search.has_dates() {
            return None;
        }
        let any_year = CronSearch { days: self.search.days.in_any_year(), ..self.search.clone() };
        let day_field = if expr.is_unrestricted(Field::DayOfMonth) {
            Field::DayOfWeek
        } else {
            Field::DayOfMonth
        };
        let day = expr.field_text(day_field);
        let month = expr.field_text(Field::Month);
        let year = expr.field_text(Field::Year);
        Some(if any_year.has_dates() {
            let why = format!("no year of {year:?} has the day {day:?} in month {month:?}");
            ScheduleError::NeverFires { field: Field::Year.name(), why }
        } else {
            let why = format!("no month of {month:?} ever has the day {day:?}");
            ScheduleError::NeverFires { field: day_field.name(), why }
        })
    }
}
