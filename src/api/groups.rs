//! Answers the calls about groups: list, pause, resume.

use crate::api::answer::{Answer, ok};
use crate::api::extract::Call;
use crate::api::to_wire;

pub(in crate::api) async fn list(call: Call) -> Answer {
    let (tenant, page, freshness) = (call.tenant()?, call.page()?, call.freshness()?);
    let seen = call.service().list_groups(&tenant, &page, freshness).await?;
    ok(seen.map(|page| to_wire::page(page, to_wire::group)))
}

pub(in crate::api) async fn pause(call: Call) -> Answer {
    let (group, caller) = (call.group_key()?, call.caller()?);
    let seen = call.service().pause_group(&caller, group).await?;
    ok(seen.map(|group| to_wire::group(&group)))
}

pub(in crate::api) async fn resume(call: Call) -> Answer {
    let (group, caller) = (call.group_key()?, call.caller()?);
    let seen = call.service().resume_group(&caller, group).await?;
    ok(seen.map(|group| to_wire::group(&group)))
}
