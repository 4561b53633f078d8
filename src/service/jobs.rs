//! Jobs: put, read, list, pause, resume, delete.

use std::ops::Bound;
use std::sync::Arc;

use crate::base::bounded::Name;
use crate::machine::command::{Command, PutJob};
use crate::machine::reply::{PutOutcome, Reply};
use crate::machine::state::State;
use crate::model::id::{JobId, JobKey};
use crate::model::job::{Job, JobSpec};
use crate::model::trigger::{Trigger, TriggerSpec};
use crate::service::call::{Caller, Condition, Freshness, Put, Seen};
use crate::service::error::{Noun, ServiceError};
use crate::service::page::{Cursor, Page, PageRequest, SCAN_MAX};
use crate::service::schedules::{TriggerDraft, hash_key, settle_trigger};
use crate::service::{Service, not_found, unexpected};

/// A job as a caller gives it.
#[derive(Clone, Debug)]
pub struct JobDraft {
    pub spec: JobSpec,
    /// `None` leaves the triggers as they are; `Some` makes them exactly these.
    pub triggers: Option<Vec<(Name, TriggerDraft)>>,
}

/// A job, and what belongs to it.
#[derive(Clone, Debug)]
pub struct JobView {
    pub job: Arc<Job>,
    /// By name.
    pub triggers: Vec<Arc<Trigger>>,
    /// Fires that have not ended.
    pub open_fires: u32,
}

/// Which jobs of a tenant are wanted.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    pub group: Option<Name>,
    pub name_prefix: Option<String>,
    /// Only those that are paused themselves, or only those that are not.
    pub paused: Option<bool>,
}

impl Service {
    /// # Errors
    /// As every read; and when there is no such tenant.
    pub async fn list_jobs(
        &self,
        tenant: &Name,
        filter: &JobFilter,
        page: &PageRequest,
        freshness: Freshness,
    ) -> Result<Seen<Page<JobView>>, ServiceError> {
        let after = page.after(|key| {
            let (group, name) = key.split_once('/')?;
            Some((Name::new(group).ok()?, Name::new(name).ok()?))
        })?;
        let sight = self.sight_of(freshness, tenant).await?;
        let from = first_key(tenant, filter, after);
        Ok(sight.show(page_of_jobs(&sight.state, from, filter, page.limit)))
    }

    /// # Errors
    /// As every read; and when there is no such job.
    pub async fn get_job(
        &self,
        key: &JobKey,
        freshness: Freshness,
    ) -> Result<Seen<JobView>, ServiceError> {
        let sight = self.sight_of(freshness, &key.tenant).await?;
        let job = job_in(&sight.state, key)?;
        Ok(sight.show(JobView::of(&sight.state, job)))
    }

    /// Creates or replaces a job. An open fire keeps the definition it was recorded with.
    ///
    /// # Errors
    /// As every change; and for schedules that are wrong or can never fire, all of them at once.
    pub async fn put_job(
        &self,
        caller: &Caller,
        key: JobKey,
        draft: JobDraft,
        condition: Condition,
    ) -> Result<Seen<Put<JobView>>, ServiceError> {
        let triggers = draft.triggers.map(|drafts| self.settle_all(&key, drafts)).transpose()?;
        let tenant = key.tenant.clone();
        let command = Command::PutJob(Box::new(PutJob {
            job: key,
            spec: draft.spec,
            triggers,
            precondition: condition.into(),
        }));
        let reply = self.propose(caller, &tenant, command).await?;
        let Reply::Job(job, outcome) = &reply.value else {
            return Err(unexpected(&reply.value));
        };
        let created = *outcome == PutOutcome::Created;
        let value = self.view_of_job(job);
        Ok(reply.map(|_| Put { value, created }))
    }

    /// Deletes a job with its triggers; its open fires end as cancelled.
    ///
    /// # Errors
    /// As every change.
    pub async fn delete_job(
        &self,
        caller: &Caller,
        key: JobKey,
        condition: Condition,
    ) -> Result<Seen<()>, ServiceError> {
        let tenant = key.tenant.clone();
        let command = Command::DeleteJob { job: key, precondition: condition.into() };
        let reply = self.propose(caller, &tenant, command).await?;
        Ok(reply.map(|_| ()))
    }

    /// Its triggers yield nothing until it is resumed. Fires that were recorded already go on.
    ///
    /// # Errors
    /// As every change.
    pub async fn pause_job(
        &self,
        caller: &Caller,
        key: JobKey,
    ) -> Result<Seen<JobView>, ServiceError> {
        let tenant = key.tenant.clone();
        self.change_job(caller, &tenant, Command::PauseJob { job: key }).await
    }

    /// What was missed meanwhile is treated by each trigger's misfire policy.
    ///
    /// # Errors
    /// As every change.
    pub async fn resume_job(
        &self,
        caller: &Caller,
        key: JobKey,
    ) -> Result<Seen<JobView>, ServiceError> {
        let tenant = key.tenant.clone();
        self.change_job(caller, &tenant, Command::ResumeJob { job: key }).await
    }

    async fn change_job(
        &self,
        caller: &Caller,
        tenant: &Name,
        command: Command,
    ) -> Result<Seen<JobView>, ServiceError> {
        let reply = self.propose(caller, tenant, command).await?;
        let Reply::Job(job, _) = &reply.value else {
            return Err(unexpected(&reply.value));
        };
        let value = self.view_of_job(job);
        Ok(reply.map(|_| value))
    }

    /// The job as a command left it, with what this member has applied beside it.
    fn view_of_job(&self, job: &Arc<Job>) -> JobView {
        JobView::of(&self.inner.replica.view().state, job)
    }

    fn settle_all(
        &self,
        key: &JobKey,
        drafts: Vec<(Name, TriggerDraft)>,
    ) -> Result<Vec<(Name, TriggerSpec)>, ServiceError> {
        let (now, hash_key) = (self.now(), hash_key(key));
        let mut errors = Vec::new();
        let mut specs = Vec::with_capacity(drafts.len());
        for (name, draft) in drafts {
            let pointer = format!("/triggers/{name}");
            match settle_trigger(draft, &hash_key, now, &pointer) {
                Ok(spec) => specs.push((name, spec)),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(specs) } else { Err(ServiceError::invalid(errors)) }
    }
}

impl JobView {
    fn of(state: &State, job: &Arc<Job>) -> JobView {
        JobView {
            job: job.clone(),
            triggers: state.triggers_of(job.id).cloned().collect(),
            open_fires: state.index().job_load(job.id).open,
        }
    }
}

/// The job with a key.
///
/// # Errors
/// When there is none.
pub(in crate::service) fn job_in<'a>(
    state: &'a State,
    key: &JobKey,
) -> Result<&'a Arc<Job>, ServiceError> {
    let missing = || not_found(Noun::Job, format!("there is no job {key}"));
    state.job_by_key(key).ok_or_else(missing)
}

/// Where the range of a page begins.
fn first_key(tenant: &Name, filter: &JobFilter, after: Option<(Name, Name)>) -> Bound<JobKey> {
    if let Some((group, name)) = after {
        return Bound::Excluded(JobKey { tenant: tenant.clone(), group, name });
    }
    let group = filter.group.clone().unwrap_or_else(Name::first);
    let prefix = filter.name_prefix.as_deref().filter(|_| filter.group.is_some());
    let name = prefix.and_then(|prefix| Name::new(prefix).ok()).unwrap_or_else(Name::first);
    Bound::Included(JobKey { tenant: tenant.clone(), group, name })
}

fn page_of_jobs(
    state: &State,
    from: Bound<JobKey>,
    filter: &JobFilter,
    limit: usize,
) -> Page<JobView> {
    let tenant = match &from {
        Bound::Included(key) | Bound::Excluded(key) => key.tenant.clone(),
        Bound::Unbounded => Name::first(),
    };
    let prefix = filter.name_prefix.as_deref().unwrap_or_default();
    let mut page = Page { items: Vec::new(), next: None };
    let keys = state.index().job_by_key().range::<_, JobKey>((from, Bound::Unbounded));
    for (scanned, (key, id)) in keys.enumerate() {
        let is_past_group = filter.group.as_ref().is_some_and(|group| *group != key.group);
        if key.tenant != tenant || is_past_group {
            break;
        }
        let has_prefix = key.name.as_str().starts_with(prefix);
        let is_past_prefix = filter.group.is_some() && key.name.as_str() > prefix && !has_prefix;
        if is_past_prefix {
            break;
        }
        if has_prefix && let Some(view) = wanted(state, *id, filter) {
            page.items.push(view);
        }
        if page.items.len() == limit || scanned + 1 == SCAN_MAX {
            page.next = Some(Cursor::after(&format!("{}/{}", key.group, key.name)));
            break;
        }
    }
    page
}

fn wanted(state: &State, id: JobId, filter: &JobFilter) -> Option<JobView> {
    let job = state.jobs().get(&id)?;
    let fits = filter.paused.is_none_or(|paused| job.paused_at.is_some() == paused);
    fits.then(|| JobView::of(state, job))
}

#[cfg(test)]
mod tests;
