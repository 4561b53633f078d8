//! Tenants: put, read, list, delete.

use std::ops::Bound;
use std::sync::Arc;

use crate::base::bounded::Name;
use crate::machine::command::{Command, PutTenant};
use crate::machine::reply::{PutOutcome, Reply};
use crate::model::tenant::Tenant;
use crate::service::call::{Caller, Condition, Freshness, Put, Seen};
use crate::service::error::ServiceError;
use crate::service::page::{Cursor, Page, PageRequest};
use crate::service::{Service, unexpected};

impl Service {
    /// # Errors
    /// As every read; and when the cursor is not one of this list.
    pub async fn list_tenants(
        &self,
        page: &PageRequest,
        freshness: Freshness,
    ) -> Result<Seen<Page<Arc<Tenant>>>, ServiceError> {
        let after = page.after(|key| Name::new(key).ok())?;
        let sight = self.sight(freshness).await?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = sight.state.tenants().range((from, Bound::Unbounded));
        let items: Vec<_> = rest.by_ref().take(page.limit).map(|(_, t)| t.clone()).collect();
        let next = match items.last() {
            Some(last) if rest.next().is_some() => Some(Cursor::after(last.name.as_str())),
            _ => None,
        };
        Ok(sight.show(Page { items, next }))
    }

    /// # Errors
    /// As every read; and when there is no such tenant.
    pub async fn get_tenant(
        &self,
        tenant: &Name,
        freshness: Freshness,
    ) -> Result<Seen<Arc<Tenant>>, ServiceError> {
        let sight = self.sight_of(freshness, tenant).await?;
        let found = sight.state.tenants().get(tenant).cloned();
        let found = found.ok_or_else(|| ServiceError::internal("a tenant left a fixed state"))?;
        Ok(sight.show(found))
    }

    /// # Errors
    /// As every change.
    pub async fn put_tenant(
        &self,
        caller: &Caller,
        tenant: Name,
        description: String,
        condition: Condition,
    ) -> Result<Seen<Put<Arc<Tenant>>>, ServiceError> {
        let command = Command::PutTenant(PutTenant {
            tenant: tenant.clone(),
            description,
            precondition: condition.into(),
        });
        let reply = self.propose(caller, &tenant, command).await?;
        let Reply::Tenant(tenant, outcome) = &reply.value else {
            return Err(unexpected(&reply.value));
        };
        let put = Put { value: tenant.clone(), created: *outcome == PutOutcome::Created };
        Ok(reply.map(|_| put))
    }

    /// # Errors
    /// As every change; and while the tenant has jobs, or is the one that cannot be deleted.
    pub async fn delete_tenant(
        &self,
        caller: &Caller,
        tenant: Name,
    ) -> Result<Seen<()>, ServiceError> {
        let command = Command::DeleteTenant { tenant: tenant.clone() };
        let reply = self.propose(caller, &tenant, command).await?;
        Ok(reply.map(|_| ()))
    }
}
