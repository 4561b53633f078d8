//! Answers the calls about triggers, and about schedules that nobody has stored.

use crate::api::answer::{Answer, nothing, ok, put as answer_put, tagged};
use crate::api::extract::Call;
use crate::api::from_wire::trigger::{PREVIEW_COUNT_DEFAULT, preview_draft, trigger};
use crate::api::problem::{Problem, Refusal};
use crate::api::to_wire;
use crate::base::limits;
use crate::service::call::Seen;
use crate::service::error::FieldError;
use crate::service::schedules::PreviewRequest;
use crate::wire;

pub(in crate::api) async fn list(call: Call) -> Answer {
    let (key, freshness) = (call.job_key()?, call.freshness()?);
    let seen = call.service().list_triggers(&key, freshness).await?;
    ok(seen.map(|triggers| wire::page::Page {
        items: triggers.iter().map(|trigger| to_wire::trigger(&key, trigger)).collect(),
        next_cursor: None,
    }))
}

pub(in crate::api) async fn get(call: Call) -> Answer {
    let (key, name, freshness) = (call.job_key()?, call.name("trigger")?, call.freshness()?);
    let seen = call.service().get_trigger(&key, &name, freshness).await?;
    let revision = seen.value.revision;
    tagged(seen.map(|trigger| to_wire::trigger(&key, &trigger)), revision)
}

pub(in crate::api) async fn put(mut call: Call) -> Answer {
    let (key, name, condition) = (call.job_key()?, call.name("trigger")?, call.condition()?);
    let body: wire::trigger::TriggerSpec = call.json().await?;
    let draft = trigger(&body)?;
    let caller = call.caller()?;
    let service = call.service();
    let seen = service.put_trigger(&caller, key.clone(), name, draft, condition).await?;
    let (is_new, revision) = (seen.value.created, seen.value.value.revision);
    answer_put(seen.map(|put| to_wire::trigger(&key, &put.value)), is_new, Some(revision))
}

pub(in crate::api) async fn delete(call: Call) -> Answer {
    let (key, name) = (call.job_key()?, call.name("trigger")?);
    let (condition, caller) = (call.condition()?, call.caller()?);
    nothing(call.service().delete_trigger(&caller, key, name, condition).await?)
}

pub(in crate::api) async fn pause(call: Call) -> Answer {
    let (key, name, caller) = (call.job_key()?, call.name("trigger")?, call.caller()?);
    let seen = call.service().pause_trigger(&caller, key.clone(), name).await?;
    ok(seen.map(|trigger| to_wire::trigger(&key, &trigger)))
}

pub(in crate::api) async fn resume(call: Call) -> Answer {
    let (key, name, caller) = (call.job_key()?, call.name("trigger")?, call.caller()?);
    let seen = call.service().resume_trigger(&caller, key.clone(), name).await?;
    ok(seen.map(|trigger| to_wire::trigger(&key, &trigger)))
}

pub(in crate::api) async fn preview(call: Call) -> Answer {
    let (key, name, freshness) = (call.job_key()?, call.name("trigger")?, call.freshness()?);
    let request = preview_request(&call)?;
    let seen = call.service().preview_trigger(&key, &name, &request, freshness).await?;
    ok(seen.map(|preview| to_wire::preview(&preview)))
}

fn preview_request(call: &Call) -> Result<PreviewRequest, Problem> {
    let count = call.parsed::<u32>("count")?.unwrap_or(PREVIEW_COUNT_DEFAULT) as usize;
    if !(1..=limits::PAGE_SIZE_MAX).contains(&count) {
        let detail = format!("{count} lies outside 1 to {}", limits::PAGE_SIZE_MAX);
        let error = FieldError::new("?count", detail).limited(limits::PAGE_SIZE_MAX as u64);
        return Err(Refusal::Query(error).into());
    }
    Ok(PreviewRequest { count, after: call.parsed("after")? })
}

pub(in crate::api) async fn preview_any(mut call: Call) -> Answer {
    let body: wire::trigger::PreviewRequest = call.json().await?;
    let draft = preview_draft(&body)?;
    let service = call.service();
    let job = draft.job.as_ref();
    let preview = service.preview_schedule(draft.schedule, draft.bounds, job, &draft.request)?;
    let value = to_wire::preview(&preview);
    ok(Seen { value, index: service.applied_index(), lag: None })
}
