//! Triggers and their schedules. What a schedule means is the service's to judge; here it is only
//! read.

use crate::api::from_wire::fields::Fields;
use crate::base::bounded::Name;
use crate::base::limits;
use crate::base::time::{Span, Timestamp};
use crate::model::id::JobKey;
use crate::model::policy::{Misfire, MisfirePolicy};
use crate::model::schedule::{Bounds, CronSource, Dialect, DstGap, DstOverlap, Schedule};
use crate::service::error::ServiceError;
use crate::service::schedules::{PreviewRequest, ScheduleDraft, TriggerDraft};
use crate::wire;

/// Times of a preview when the caller does not say how many.
pub(in crate::api) const PREVIEW_COUNT_DEFAULT: u32 = 10;

/// A trigger inside a larger body, at `pointer`.
pub(in crate::api) fn trigger_draft(
    fields: &mut Fields,
    pointer: &str,
    body: &wire::trigger::TriggerSpec,
) -> TriggerDraft {
    let at = |part: &str| format!("{pointer}{part}");
    let description = body.description.as_deref().unwrap_or_default();
    TriggerDraft {
        description: fields.text(at("/description"), description, limits::TEXT_BYTES_MAX),
        schedule: schedule_draft(fields, &at("/schedule"), &body.schedule),
        bounds: Bounds {
            start_at: fields.time_if(at("/start_at"), body.start_at.as_deref()),
            end_at: fields.time_if(at("/end_at"), body.end_at.as_deref()),
        },
        misfire: misfire(fields, &at("/misfire"), body.misfire.as_ref()),
        payload: body.payload.as_ref().map(|json| fields.payload(at("/payload"), json)),
    }
}

/// A trigger that is a body of its own.
pub(in crate::api) fn trigger(
    body: &wire::trigger::TriggerSpec,
) -> Result<TriggerDraft, ServiceError> {
    let mut fields = Fields::default();
    let draft = trigger_draft(&mut fields, "", body);
    fields.finish(draft)
}

/// A schedule that nobody has stored, and which of its times are wanted.
pub(in crate::api) struct PreviewDraft {
    pub(in crate::api) schedule: ScheduleDraft,
    pub(in crate::api) bounds: Bounds,
    pub(in crate::api) job: Option<JobKey>,
    pub(in crate::api) request: PreviewRequest,
}

pub(in crate::api) fn preview_draft(
    body: &wire::trigger::PreviewRequest,
) -> Result<PreviewDraft, ServiceError> {
    let mut fields = Fields::default();
    let count = body.count.unwrap_or(PREVIEW_COUNT_DEFAULT);
    let most = u32::try_from(limits::PAGE_SIZE_MAX).unwrap_or(u32::MAX);
    let draft = PreviewDraft {
        schedule: schedule_draft(&mut fields, "/schedule", &body.schedule),
        bounds: Bounds {
            start_at: fields.time_if("/start_at", body.start_at.as_deref()),
            end_at: fields.time_if("/end_at", body.end_at.as_deref()),
        },
        job: body.job.as_deref().map(|text| job_key(&mut fields, text)),
        request: PreviewRequest {
            count: fields.number("/count", count, 1, most) as usize,
            after: fields.time_if("/after", body.after.as_deref()),
        },
    };
    fields.finish(draft)
}

fn job_key(fields: &mut Fields, text: &str) -> JobKey {
    let parts: Vec<&str> = text.split('/').collect();
    let [tenant, group, name] = parts.as_slice() else {
        fields.refuse("/job", "it is not an address such as default/default/backup");
        let name = Name::default_name;
        return JobKey { tenant: name(), group: name(), name: name() };
    };
    JobKey {
        tenant: fields.name("/job", tenant),
        group: fields.name("/job", group),
        name: fields.name("/job", name),
    }
}

fn schedule_draft(
    fields: &mut Fields,
    pointer: &str,
    schedule: &wire::trigger::Schedule,
) -> ScheduleDraft {
    match schedule {
        wire::trigger::Schedule::Cron(cron) => {
            ScheduleDraft::Fixed(Schedule::Cron(cron_source(fields, pointer, cron)))
        }
        wire::trigger::Schedule::Every(every) => {
            let at = format!("{pointer}/every");
            let interval = fields.span(
                format!("{at}/interval"),
                &every.interval,
                limits::INTERVAL_MIN,
                limits::DELAY_MAX,
            );
            let anchor = fields.time_if(format!("{at}/anchor"), every.anchor.as_deref());
            let anchor = anchor.unwrap_or(Timestamp::EPOCH);
            ScheduleDraft::Fixed(Schedule::Every { interval, anchor })
        }
        wire::trigger::Schedule::At(text) => {
            let at = fields.time(format!("{pointer}/at"), text);
            ScheduleDraft::Fixed(Schedule::At { at })
        }
        wire::trigger::Schedule::After(text) => {
            let pointer = format!("{pointer}/after");
            ScheduleDraft::After(fields.span(pointer, text, Span::ZERO, limits::DELAY_MAX))
        }
    }
}

fn cron_source(fields: &mut Fields, pointer: &str, cron: &wire::trigger::Cron) -> CronSource {
    let at = format!("{pointer}/cron");
    let zone = cron.timezone.as_deref().unwrap_or("UTC");
    CronSource {
        text: fields.text(format!("{at}/expression"), &cron.expression, limits::CRON_BYTES_MAX),
        dialect: match cron.dialect.unwrap_or_default() {
            wire::trigger::Dialect::Unix => Dialect::Unix,
            wire::trigger::Dialect::Quartz => Dialect::Quartz,
        },
        zone: fields.text(format!("{at}/timezone"), zone, limits::NAME_BYTES_MAX),
        dst_gap: match cron.dst_gap.unwrap_or_default() {
            wire::trigger::DstGap::Auto => DstGap::Auto,
            wire::trigger::DstGap::FirstValid => DstGap::FirstValid,
            wire::trigger::DstGap::Skip => DstGap::Skip,
        },
        dst_overlap: match cron.dst_overlap.unwrap_or_default() {
            wire::trigger::DstOverlap::Auto => DstOverlap::Auto,
            wire::trigger::DstOverlap::First => DstOverlap::First,
            wire::trigger::DstOverlap::Last => DstOverlap::Last,
            wire::trigger::DstOverlap::Both => DstOverlap::Both,
        },
    }
}

fn misfire(
    fields: &mut Fields,
    pointer: &str,
    misfire: Option<&wire::trigger::Misfire>,
) -> Misfire {
    let mut policy = Misfire::default();
    let Some(misfire) = misfire else {
        return policy;
    };
    policy.policy = match misfire.policy.unwrap_or_default() {
        wire::trigger::MisfirePolicy::FireOnce => MisfirePolicy::FireOnce,
        wire::trigger::MisfirePolicy::Skip => MisfirePolicy::Skip,
        wire::trigger::MisfirePolicy::FireAll => MisfirePolicy::FireAll,
    };
    if let Some(text) = &misfire.grace {
        let at = format!("{pointer}/grace");
        policy.grace = fields.span(at, text, Span::ZERO, limits::DELAY_MAX);
    }
    if let Some(text) = &misfire.window {
        let at = format!("{pointer}/window");
        policy.window = fields.span(at, text, Span::ZERO, limits::DELAY_MAX);
    }
    if let Some(count) = misfire.count {
        let at = format!("{pointer}/count");
        policy.count_max = fields.number(at, count, 1, limits::CATCHUP_COUNT_MAX);
    }
    policy
}
