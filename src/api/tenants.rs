//! Answers the calls about tenants: put, read, list, delete.

use crate::api::answer::{Answer, nothing, ok, put as answer_put};
use crate::api::extract::Call;
use crate::api::from_wire::fields::Fields;
use crate::api::to_wire;
use crate::base::limits;
use crate::wire;

pub(in crate::api) async fn list(call: Call) -> Answer {
    let (page, freshness) = (call.page()?, call.freshness()?);
    let seen = call.service().list_tenants(&page, freshness).await?;
    ok(seen.map(|page| to_wire::page(page, |tenant| to_wire::tenant(tenant))))
}

pub(in crate::api) async fn get(call: Call) -> Answer {
    let (tenant, freshness) = (call.tenant()?, call.freshness()?);
    let seen = call.service().get_tenant(&tenant, freshness).await?;
    ok(seen.map(|tenant| to_wire::tenant(&tenant)))
}

pub(in crate::api) async fn put(mut call: Call) -> Answer {
    let (tenant, condition) = (call.tenant()?, call.condition()?);
    let body: wire::tenant::TenantSpec = call.json_or_default().await?;
    let mut fields = Fields::default();
    let text = fields.text("/description", &body.description, limits::TEXT_BYTES_MAX);
    let description = fields.finish(text)?;
    let caller = call.caller()?;
    let seen = call.service().put_tenant(&caller, tenant, description, condition).await?;
    let is_new = seen.value.created;
    answer_put(seen.map(|put| to_wire::tenant(&put.value)), is_new, None)
}

pub(in crate::api) async fn delete(call: Call) -> Answer {
    let (tenant, caller) = (call.tenant()?, call.caller()?);
    nothing(call.service().delete_tenant(&caller, tenant).await?)
}
