//! Answers the calls of workers: registering, taking work, extending, answering.

use crate::api::answer::{Answer, created, nothing, ok};
use crate::api::extract::Call;
use crate::api::from_wire::work;
use crate::api::to_wire;
use crate::model::id::WorkerId;
use crate::wire;

pub(in crate::api) async fn list(call: Call) -> Answer {
    let (tenant, page, freshness) = (call.tenant()?, call.page()?, call.freshness()?);
    let seen = call.service().list_workers(&tenant, &page, freshness).await?;
    ok(seen.map(|page| to_wire::page(page, to_wire::worker)))
}

pub(in crate::api) async fn register(mut call: Call) -> Answer {
    let tenant = call.tenant()?;
    let body: wire::worker::WorkerSpec = call.json().await?;
    let spec = work::worker_spec(&body)?;
    let caller = call.caller()?;
    let seen = call.service().register_worker(&caller, tenant.clone(), spec).await?;
    let location = format!("/v1/tenants/{tenant}/workers/{}", seen.value.id);
    created(seen.map(|worker| to_wire::registered(&worker)), &location)
}

pub(in crate::api) async fn remove(call: Call) -> Answer {
    let (tenant, caller) = (call.tenant()?, call.caller()?);
    let worker = call.id::<WorkerId>("worker")?;
    nothing(call.service().remove_worker(&caller, &tenant, worker).await?)
}

pub(in crate::api) async fn drain(call: Call) -> Answer {
    let (tenant, caller) = (call.tenant()?, call.caller()?);
    let worker = call.id::<WorkerId>("worker")?;
    let seen = call.service().drain_worker(&caller, &tenant, worker).await?;
    ok(seen.map(|view| to_wire::worker(&view)))
}

pub(in crate::api) async fn acquire(mut call: Call) -> Answer {
    let (tenant, worker) = (call.tenant()?, call.id::<WorkerId>("worker")?);
    let body: wire::worker::AcquireRequest = call.json().await?;
    let ask = work::ask(worker, &body)?;
    let seen = call.service().acquire(&tenant, ask).await?;
    ok(seen.map(|grants| wire::worker::AcquireResponse {
        grants: grants.iter().map(to_wire::grant).collect(),
    }))
}

pub(in crate::api) async fn extend(mut call: Call) -> Answer {
    let (tenant, worker) = (call.tenant()?, call.id::<WorkerId>("worker")?);
    let body: wire::worker::ExtendRequest = call.json().await?;
    let runs = work::held_runs(&body)?;
    let seen = call.service().extend(&tenant, worker, runs).await?;
    ok(seen.map(|verdicts| wire::worker::ExtendResponse {
        verdicts: body
            .runs
            .iter()
            .zip(verdicts)
            .map(|(held, verdict)| to_wire::extension(&held.run, verdict))
            .collect(),
    }))
}

pub(in crate::api) async fn answer(mut call: Call) -> Answer {
    let (tenant, worker) = (call.tenant()?, call.id::<WorkerId>("worker")?);
    let body: wire::worker::AnswerRequest = call.json().await?;
    let answers = work::answers(&body)?;
    let caller = call.caller()?;
    let seen = call.service().answer(&caller, &tenant, worker, answers).await?;
    ok(seen.map(|verdicts| wire::worker::AnswerResponse {
        verdicts: body
            .answers
            .iter()
            .zip(verdicts)
            .map(|(answer, verdict)| to_wire::verdict(&answer.run, verdict))
            .collect(),
    }))
}
