//! Answers the calls about fires: ask for one, read, list, cancel.

use crate::api::answer::{Answer, created, ok};
use crate::api::extract::Call;
use crate::api::from_wire::fields::name_error;
use crate::api::from_wire::job::fire_draft;
use crate::api::problem::{Problem, Refusal};
use crate::api::to_wire;
use crate::base::bounded::Name;
use crate::model::id::{FireId, JobKey};
use crate::service::error::FieldError;
use crate::service::fires::{FireFilter, FireStateKind};
use crate::wire;

const STATES: [(&str, FireStateKind); 7] = [
    ("waiting", FireStateKind::Waiting),
    ("ready", FireStateKind::Ready),
    ("running", FireStateKind::Running),
    ("succeeded", FireStateKind::Succeeded),
    ("failed", FireStateKind::Failed),
    ("skipped", FireStateKind::Skipped),
    ("cancelled", FireStateKind::Cancelled),
];

pub(in crate::api) async fn request(mut call: Call) -> Answer {
    let key = call.job_key()?;
    let body: wire::fire::FireRequest = call.json_or_default().await?;
    let draft = fire_draft(&body)?;
    let caller = call.caller()?;
    let tenant = key.tenant.clone();
    let seen = call.service().request_fire(&caller, key, draft).await?;
    let location = format!("/v1/tenants/{tenant}/fires/{}", seen.value.id);
    created(seen.map(|fire| to_wire::fire(&fire)), &location)
}

pub(in crate::api) async fn list(call: Call) -> Answer {
    let (tenant, page, freshness) = (call.tenant()?, call.page()?, call.freshness()?);
    let filter = FireFilter { job: job_filter(&call, &tenant)?, state: state_filter(&call)? };
    let seen = call.service().list_fires(&tenant, &filter, &page, freshness).await?;
    ok(seen.map(|page| to_wire::page(page, |fire| to_wire::fire(fire))))
}

fn job_filter(call: &Call, tenant: &Name) -> Result<Option<JobKey>, Problem> {
    let Some(text) = call.parameter("job") else {
        return Ok(None);
    };
    let Some((group, name)) = text.split_once('/') else {
        let detail = "it is not a group and a job, such as default/backup";
        return Err(Refusal::Query(FieldError::new("?job", detail)).into());
    };
    let read = |text| Name::new(text).map_err(|e| Refusal::Query(name_error("?job", &e)));
    let (group, name) = (read(group)?, read(name)?);
    Ok(Some(JobKey { tenant: tenant.clone(), group, name }))
}

fn state_filter(call: &Call) -> Result<Option<FireStateKind>, Problem> {
    let Some(text) = call.parameter("state") else {
        return Ok(None);
    };
    let found = STATES.iter().find(|(word, _)| *word == text);
    let Some((_, state)) = found else {
        let words: Vec<&str> = STATES.iter().map(|(word, _)| *word).collect();
        let detail = format!("{text:?} is none of {}", words.join(", "));
        return Err(Refusal::Query(FieldError::new("?state", detail)).into());
    };
    Ok(Some(*state))
}

pub(in crate::api) async fn get(call: Call) -> Answer {
    let (tenant, freshness) = (call.tenant()?, call.freshness()?);
    let fire = call.id::<FireId>("fire")?;
    let seen = call.service().get_fire(&tenant, fire, freshness).await?;
    ok(seen.map(|view| to_wire::fire_view(&view)))
}

pub(in crate::api) async fn cancel(call: Call) -> Answer {
    let (tenant, caller) = (call.tenant()?, call.caller()?);
    let fire = call.id::<FireId>("fire")?;
    let seen = call.service().cancel_fire(&caller, &tenant, fire).await?;
    ok(seen.map(|fire| to_wire::fire(&fire)))
}
