//! Schedules on their way in: a delay becomes an instant, and what can never fire is refused with
//! the field at fault.

use crate::base::time::{Span, Timestamp};
use crate::model::id::JobKey;
use crate::model::job::Payload;
use crate::model::policy::Misfire;
use crate::model::schedule::{Bounds, Schedule};
use crate::model::trigger::TriggerSpec;
use crate::recurrence::preview::next_times;
use crate::recurrence::zone::tzdata_version;
use crate::recurrence::{Compiled, ScheduleError, validate};
use crate::service::Service;
use crate::service::error::{FieldError, ServiceError};

/// A schedule as a caller gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleDraft {
    Fixed(Schedule),
    /// Once, this long after it is taken in.
    After(Span),
}

/// A trigger as a caller gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerDraft {
    pub description: String,
    pub schedule: ScheduleDraft,
    pub bounds: Bounds,
    pub misfire: Misfire,
    pub payload: Option<Payload>,
}

/// Which times of a schedule are wanted.
#[derive(Clone, Debug)]
pub struct PreviewRequest {
    /// At most `limits::PAGE_SIZE_MAX`.
    pub count: usize,
    /// Only times after this instant; now when `None`.
    pub after: Option<Timestamp>,
}

/// The coming times of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Ascending.
    pub times: Vec<Timestamp>,
    /// The edition of the time-zone database they were worked out with.
    pub tzdata: &'static str,
}

impl Service {
    /// The coming times of a schedule that nobody has stored. An `H` in it is hashed for `job`.
    ///
    /// # Errors
    /// When the schedule is wrong or can never fire.
    pub fn preview_schedule(
        &self,
        schedule: ScheduleDraft,
        bounds: Bounds,
        job: Option<&JobKey>,
        request: &PreviewRequest,
    ) -> Result<Preview, ServiceError> {
        let now = self.now();
        let schedule = settle(schedule, now);
        let hash_key = job.map(hash_key).unwrap_or_default();
        validate(&schedule, &bounds, &hash_key)
            .map_err(|error| ServiceError::invalid(vec![field_error("", &error)]))?;
        preview(&schedule, &bounds, &hash_key, request, now)
    }

    /// The edition of the time-zone database in this program.
    #[must_use]
    pub fn tzdata(&self) -> &'static str {
        tzdata_version()
    }
}

/// What an `H` is hashed for. A leader hashes for the same.
pub(in crate::service) fn hash_key(job: &JobKey) -> String {
    job.to_string()
}

pub(in crate::service) fn preview(
    schedule: &Schedule,
    bounds: &Bounds,
    hash_key: &str,
    request: &PreviewRequest,
    now: Timestamp,
) -> Result<Preview, ServiceError> {
    let compiled =
        Compiled::new(schedule, bounds, hash_key).map_err(|e| ServiceError::internal(&e))?;
    let times = next_times(&compiled, request.after.unwrap_or(now), request.count);
    Ok(Preview { times, tzdata: tzdata_version() })
}

/// The definition to store.
///
/// # Errors
/// The field at fault, with a pointer that begins with `pointer`.
pub(in crate::service) fn settle_trigger(
    draft: TriggerDraft,
    hash_key: &str,
    now: Timestamp,
    pointer: &str,
) -> Result<TriggerSpec, FieldError> {
    let schedule = settle(draft.schedule, now);
    validate(&schedule, &draft.bounds, hash_key).map_err(|error| field_error(pointer, &error))?;
    Ok(TriggerSpec {
        description: draft.description,
        schedule,
        bounds: draft.bounds,
        misfire: draft.misfire,
        payload: draft.payload,
    })
}

fn settle(schedule: ScheduleDraft, now: Timestamp) -> Schedule {
    match schedule {
        ScheduleDraft::Fixed(schedule) => schedule,
        ScheduleDraft::After(delay) => Schedule::At { at: now.plus(delay) },
    }
}

fn field_error(pointer: &str, error: &ScheduleError) -> FieldError {
    let part = match error.field() {
        "zone" => "/schedule/cron/timezone",
        "dst_gap" => "/schedule/cron/dst_gap",
        "interval" => "/schedule/every/interval",
        "at" => "/schedule/at",
        "start_at" => "/start_at",
        "end_at" => "/end_at",
        // A field of the expression, or the expression as a whole.
        _ => "/schedule/cron/expression",
    };
    FieldError::new(format!("{pointer}{part}"), error)
}
