//! Answers the calls about jobs: put, read, list, pause, resume, delete.

use crate::api::answer::{Answer, nothing, ok, put as answer_put, tagged};
use crate::api::extract::Call;
use crate::api::from_wire::job::job_draft;
use crate::api::problem::{Problem, Refusal};
use crate::api::to_wire;
use crate::service::error::FieldError;
use crate::service::jobs::JobFilter;
use crate::wire;

pub(in crate::api) async fn list(call: Call) -> Answer {
    let (tenant, page, freshness) = (call.tenant()?, call.page()?, call.freshness()?);
    let filter = filter(&call)?;
    let seen = call.service().list_jobs(&tenant, &filter, &page, freshness).await?;
    ok(seen.map(|page| to_wire::page(page, to_wire::job)))
}

fn filter(call: &Call) -> Result<JobFilter, Problem> {
    let paused = match call.parameter("state") {
        None => None,
        Some("active") => Some(false),
        Some("paused") => Some(true),
        Some(other) => {
            let detail = format!("{other:?} is neither active nor paused");
            return Err(Refusal::Query(FieldError::new("?state", detail)).into());
        }
    };
    let group = call.name_parameter("group")?;
    let name_prefix = call.parameter("name_prefix").map(str::to_owned);
    Ok(JobFilter { group, name_prefix, paused })
}

pub(in crate::api) async fn get(call: Call) -> Answer {
    let (key, freshness) = (call.job_key()?, call.freshness()?);
    let seen = call.service().get_job(&key, freshness).await?;
    let revision = seen.value.job.revision;
    tagged(seen.map(|view| to_wire::job(&view)), revision)
}

pub(in crate::api) async fn put(mut call: Call) -> Answer {
    let (key, condition) = (call.job_key()?, call.condition()?);
    let body: wire::job::JobSpec = call.json().await?;
    let draft = job_draft(&body)?;
    let caller = call.caller()?;
    let seen = call.service().put_job(&caller, key, draft, condition).await?;
    let (is_new, revision) = (seen.value.created, seen.value.value.job.revision);
    answer_put(seen.map(|put| to_wire::job(&put.value)), is_new, Some(revision))
}

pub(in crate::api) async fn delete(call: Call) -> Answer {
    let (key, condition, caller) = (call.job_key()?, call.condition()?, call.caller()?);
    nothing(call.service().delete_job(&caller, key, condition).await?)
}

pub(in crate::api) async fn pause(call: Call) -> Answer {
    let (key, caller) = (call.job_key()?, call.caller()?);
    let seen = call.service().pause_job(&caller, key).await?;
    ok(seen.map(|view| to_wire::job(&view)))
}

pub(in crate::api) async fn resume(call: Call) -> Answer {
    let (key, caller) = (call.job_key()?, call.caller()?);
    let seen = call.service().resume_job(&caller, key).await?;
    ok(seen.map(|view| to_wire::job(&view)))
}
