//! Tenants, the units of isolation, and the groups of their jobs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::wire::job::JobState;

/// The body of `PUT /v1/tenants/{tenant}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantSpec {
    #[serde(default)]
    pub description: String,
}

/// A tenant: the unit of isolation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tenant {
    pub name: String,
    pub description: String,
    pub created_at: String,
}

/// A name space of jobs inside a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    pub tenant: String,
    pub name: String,
    pub state: JobState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<String>,
}
