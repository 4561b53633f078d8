//! Tenants, and the groups of their jobs.

use std::sync::Arc;

use serde::Serialize;

use crate::base::bounded::Name;
use crate::base::limits;
use crate::machine::apply::context::Context;
use crate::machine::apply::trigger::note_pause_end;
use crate::machine::codec::encode;
use crate::machine::command::{Precondition, PutTenant};
use crate::machine::reply::{PutOutcome, Rejection, Reply};
use crate::machine::state::State;
use crate::model::id::{GroupKey, JobId, JobKey, Revision, WorkerId};
use crate::model::tenant::{Group, Tenant};

/// The tenant, or the refusal that says there is none.
pub(in crate::machine) fn expect_tenant<'a>(
    state: &'a State,
    name: &Name,
) -> Result<&'a Arc<Tenant>, Rejection> {
    let unknown = || Rejection::UnknownTenant { tenant: name.clone() };
    state.tenants().get(name).ok_or_else(unknown)
}

/// What a precondition says of a definition that exists at `current`. A missing one is the
/// caller's to judge, for it knows its noun.
pub(in crate::machine) fn check_precondition(
    precondition: Precondition,
    current: Revision,
) -> Result<(), Rejection> {
    match precondition {
        Precondition::Always | Precondition::Present => Ok(()),
        Precondition::Absent => Err(Rejection::Exists { current }),
        Precondition::Revision(asked) if asked == current => Ok(()),
        Precondition::Revision(_) => Err(Rejection::RevisionMismatch { current }),
    }
}

/// Whether a precondition can hold for a definition that does not exist.
pub(in crate::machine) fn allows_absent(precondition: Precondition) -> bool {
    match precondition {
        Precondition::Always | Precondition::Absent => true,
        Precondition::Present | Precondition::Revision(_) => false,
    }
}

/// Refuses a definition that is too large to be stored.
pub(in crate::machine) fn check_size<T: Serialize>(spec: &T) -> Result<(), Rejection> {
    let bytes = encode("definition", spec).map_or(usize::MAX, |bytes| bytes.len());
    if bytes <= limits::DEFINITION_BYTES_MAX {
        return Ok(());
    }
    let limit = limits::DEFINITION_BYTES_MAX as u64;
    Err(Rejection::DefinitionTooLarge { bytes: bytes as u64, limit })
}

// Refusals, in order: UnknownTenant (a precondition wants one), Exists or RevisionMismatch. A
// tenant has no revisions: it is always at the first.
pub(in crate::machine) fn put_tenant(
    context: &mut Context<'_>,
    command: &PutTenant,
) -> Result<Reply, Rejection> {
    let name = command.tenant.clone();
    let Some(old) = context.state().tenants().get(&name).cloned() else {
        if !allows_absent(command.precondition) {
            return Err(Rejection::UnknownTenant { tenant: name });
        }
        let created_at = context.now();
        let tenant = Tenant { name, description: command.description.clone(), created_at };
        return Ok(Reply::Tenant(context.put_tenant(tenant), PutOutcome::Created));
    };
    check_precondition(command.precondition, Revision::FIRST)?;
    if old.description == command.description {
        return Ok(Reply::Tenant(old, PutOutcome::Unchanged));
    }
    let description = command.description.clone();
    let tenant = Tenant { name, description, created_at: old.created_at };
    Ok(Reply::Tenant(context.put_tenant(tenant), PutOutcome::Replaced))
}

// Refusals, in order: UnknownTenant, TenantProtected, TenantNotEmpty.
pub(in crate::machine) fn delete_tenant(
    context: &mut Context<'_>,
    name: &Name,
) -> Result<Reply, Rejection> {
    let tenant = expect_tenant(context.state(), name)?.clone();
    if *name == Name::default_name() {
        return Err(Rejection::TenantProtected { tenant: name.clone() });
    }
    let jobs = jobs_of(context.state(), name);
    if jobs > 0 {
        return Err(Rejection::TenantNotEmpty { tenant: name.clone(), jobs });
    }
    let workers = context.state().workers().values();
    let workers: Vec<WorkerId> =
        workers.filter(|worker| worker.tenant == *name).map(|worker| worker.id).collect();
    for worker in workers {
        context.drop_worker(worker);
    }
    let first = GroupKey { tenant: name.clone(), group: Name::first() };
    let groups = context.state().groups().range(first..).map(|(key, _)| key);
    let groups: Vec<GroupKey> = groups.take_while(|key| key.tenant == *name).cloned().collect();
    for group in groups {
        context.drop_group(&group);
    }
    context.drop_tenant(name);
    Ok(Reply::Tenant(tenant, PutOutcome::Deleted))
}

fn jobs_of(state: &State, tenant: &Name) -> u64 {
    let first = JobKey { tenant: tenant.clone(), group: Name::first(), name: Name::first() };
    let keys = state.index().job_by_key().range(first..);
    keys.take_while(|(key, _)| key.tenant == *tenant).count() as u64
}

// Refusals: UnknownTenant. Pausing a paused group keeps the time of its pause.
pub(in crate::machine) fn pause_group(
    context: &mut Context<'_>,
    key: &GroupKey,
) -> Result<Reply, Rejection> {
    expect_tenant(context.state(), &key.tenant)?;
    if let Some(group) = context.state().groups().get(key)
        && group.paused_at.is_some()
    {
        return Ok(Reply::Group(Arc::clone(group)));
    }
    let group = Group { key: key.clone(), paused_at: Some(context.now()) };
    Ok(Reply::Group(context.put_group(group)))
}

// Refusals: UnknownTenant.
pub(in crate::machine) fn resume_group(
    context: &mut Context<'_>,
    key: &GroupKey,
) -> Result<Reply, Rejection> {
    expect_tenant(context.state(), &key.tenant)?;
    let resumed = Group { key: key.clone(), paused_at: None };
    let since = context.state().groups().get(key).and_then(|group| group.paused_at);
    let Some(since) = since else {
        return Ok(Reply::Group(resumed.into()));
    };
    let group = context.put_group(resumed);
    let jobs: Vec<JobId> = context.state().jobs_in(key).map(|job| job.id).collect();
    for job in jobs {
        note_pause_end(context, job, since);
    }
    Ok(Reply::Group(group))
}
