//! Groups: the name spaces of a tenant's jobs. A group exists by being named by a job, or by having
//! been paused.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::base::bounded::Name;
use crate::base::time::Timestamp;
use crate::machine::command::Command;
use crate::machine::reply::Reply;
use crate::machine::state::State;
use crate::model::id::{GroupKey, JobKey};
use crate::model::tenant::Group;
use crate::service::call::{Caller, Freshness, Seen};
use crate::service::error::ServiceError;
use crate::service::page::{Cursor, Page, PageRequest};
use crate::service::{Service, unexpected};

impl Service {
    /// # Errors
    /// As every read; and when there is no such tenant.
    pub async fn list_groups(
        &self,
        tenant: &Name,
        page: &PageRequest,
        freshness: Freshness,
    ) -> Result<Seen<Page<Group>>, ServiceError> {
        let after = page.after(|key| Name::new(key).ok())?;
        let sight = self.sight_of(freshness, tenant).await?;
        let mut found = groups_after(&sight.state, tenant, after, page.limit + 1);
        let has_more = found.len() > page.limit;
        found.truncate(page.limit);
        let next = match found.last() {
            Some(last) if has_more => Some(Cursor::after(last.key.group.as_str())),
            _ => None,
        };
        Ok(sight.show(Page { items: found, next }))
    }

    /// New occurrences of its jobs' triggers do not fire until it is resumed.
    ///
    /// # Errors
    /// As every change.
    pub async fn pause_group(
        &self,
        caller: &Caller,
        group: GroupKey,
    ) -> Result<Seen<Arc<Group>>, ServiceError> {
        let tenant = group.tenant.clone();
        self.change_group(caller, &tenant, Command::PauseGroup { group }).await
    }

    /// # Errors
    /// As every change.
    pub async fn resume_group(
        &self,
        caller: &Caller,
        group: GroupKey,
    ) -> Result<Seen<Arc<Group>>, ServiceError> {
        let tenant = group.tenant.clone();
        self.change_group(caller, &tenant, Command::ResumeGroup { group }).await
    }

    async fn change_group(
        &self,
        caller: &Caller,
        tenant: &Name,
        command: Command,
    ) -> Result<Seen<Arc<Group>>, ServiceError> {
        let reply = self.propose(caller, tenant, command).await?;
        let Reply::Group(group) = &reply.value else {
            return Err(unexpected(&reply.value));
        };
        let group = group.clone();
        Ok(reply.map(|_| group))
    }
}

/// At most `count` groups, by name: those of the jobs, found by leaping from one group to the next,
/// and those that were paused.
fn groups_after(state: &State, tenant: &Name, after: Option<Name>, count: usize) -> Vec<Group> {
    let mut paused_since: BTreeMap<Name, Option<Timestamp>> = BTreeMap::new();
    let first = after.clone().unwrap_or_else(Name::first);
    let from = GroupKey { tenant: tenant.clone(), group: first };
    let recorded = state
        .groups()
        .range((Bound::Excluded(from), Bound::Unbounded))
        .take_while(|(key, _)| key.tenant == *tenant)
        .take(count);
    for (key, group) in recorded {
        paused_since.insert(key.group.clone(), group.paused_at);
    }
    let mut last = after;
    for _ in 0..count {
        let Some(group) = group_after(state, tenant, last.as_ref()) else {
            break;
        };
        let key = GroupKey { tenant: tenant.clone(), group: group.clone() };
        let paused_at = state.groups().get(&key).and_then(|found| found.paused_at);
        paused_since.insert(group.clone(), paused_at);
        last = Some(group);
    }
    let group_of =
        |(group, paused_at)| Group { key: GroupKey { tenant: tenant.clone(), group }, paused_at };
    paused_since.into_iter().take(count).map(group_of).collect()
}

/// The first group after one that a job of the tenant names.
fn group_after(state: &State, tenant: &Name, after: Option<&Name>) -> Option<Name> {
    let jobs = state.index().job_by_key();
    let name = if after.is_some() { Name::last() } else { Name::first() };
    let group = after.cloned().unwrap_or_else(Name::first);
    let from = JobKey { tenant: tenant.clone(), group, name };
    let (key, _) = jobs.range::<_, JobKey>((Bound::Excluded(from), Bound::Unbounded)).next()?;
    (key.tenant == *tenant).then(|| key.group.clone())
}
