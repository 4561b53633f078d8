//! Triggers of a job: put, read, list, pause, resume, delete, preview.

use std::sync::Arc;

use crate::base::bounded::Name;
use crate::machine::command::{Command, PutTrigger};
use crate::machine::reply::{PutOutcome, Reply};
use crate::machine::state::State;
use crate::model::id::JobKey;
use crate::model::trigger::Trigger;
use crate::service::call::{Caller, Condition, Freshness, Put, Seen};
use crate::service::error::{Noun, ServiceError};
use crate::service::jobs::job_in;
use crate::service::schedules::{
    Preview, PreviewRequest, TriggerDraft, hash_key, preview, settle_trigger,
};
use crate::service::{Service, not_found, unexpected};

impl Service {
    /// All triggers of a job, by name: they are few.
    ///
    /// # Errors
    /// As every read; and when there is no such job.
    pub async fn list_triggers(
        &self,
        key: &JobKey,
        freshness: Freshness,
    ) -> Result<Seen<Vec<Arc<Trigger>>>, ServiceError> {
        let sight = self.sight_of(freshness, &key.tenant).await?;
        let job = job_in(&sight.state, key)?;
        Ok(sight.show(sight.state.triggers_of(job.id).cloned().collect()))
    }

    /// # Errors
    /// As every read; and when there is no such trigger.
    pub async fn get_trigger(
        &self,
        key: &JobKey,
        name: &Name,
        freshness: Freshness,
    ) -> Result<Seen<Arc<Trigger>>, ServiceError> {
        let sight = self.sight_of(freshness, &key.tenant).await?;
        Ok(sight.show(trigger_in(&sight.state, key, name)?.clone()))
    }

    /// The coming times of a trigger, whether it is paused or not.
    ///
    /// # Errors
    /// As every read; and when there is no such trigger.
    pub async fn preview_trigger(
        &self,
        key: &JobKey,
        name: &Name,
        request: &PreviewRequest,
        freshness: Freshness,
    ) -> Result<Seen<Preview>, ServiceError> {
        let sight = self.sight_of(freshness, &key.tenant).await?;
        let spec = &trigger_in(&sight.state, key, name)?.spec;
        let now = self.now();
        let shown = preview(&spec.schedule, &spec.bounds, &hash_key(key), request, now)?;
        Ok(sight.show(shown))
    }

    /// Creates or replaces a trigger. A replaced schedule never fires for what lies in the past.
    ///
    /// # Errors
    /// As every change; and when the schedule is wrong or can never fire.
    pub async fn put_trigger(
        &self,
        caller: &Caller,
        key: JobKey,
        name: Name,
        draft: TriggerDraft,
        condition: Condition,
    ) -> Result<Seen<Put<Arc<Trigger>>>, ServiceError> {
        let spec = settle_trigger(draft, &hash_key(&key), self.now(), "")
            .map_err(|error| ServiceError::invalid(vec![error]))?;
        let tenant = key.tenant.clone();
        let command = Command::PutTrigger(Box::new(PutTrigger {
            job: key,
            trigger: name,
            spec,
            precondition: condition.into(),
        }));
        let reply = self.propose(caller, &tenant, command).await?;
        let Reply::Trigger(trigger, outcome) = &reply.value else {
            return Err(unexpected(&reply.value));
        };
        let put = Put { value: trigger.clone(), created: *outcome == PutOutcome::Created };
        Ok(reply.map(|_| put))
    }

    /// # Errors
    /// As every change.
    pub async fn delete_trigger(
        &self,
        caller: &Caller,
        key: JobKey,
        name: Name,
        condition: Condition,
    ) -> Result<Seen<()>, ServiceError> {
        let tenant = key.tenant.clone();
        let precondition = condition.into();
        let command = Command::DeleteTrigger { job: key, trigger: name, precondition };
        let reply = self.propose(caller, &tenant, command).await?;
        Ok(reply.map(|_| ()))
    }

    /// # Errors
    /// As every change.
    pub async fn pause_trigger(
        &self,
        caller: &Caller,
        key: JobKey,
        name: Name,
    ) -> Result<Seen<Arc<Trigger>>, ServiceError> {
        let tenant = key.tenant.clone();
        let command = Command::PauseTrigger { job: key, trigger: name };
        self.change_trigger(caller, &tenant, command).await
    }

    /// What was missed meanwhile is treated by its misfire policy.
    ///
    /// # Errors
    /// As every change.
    pub async fn resume_trigger(
        &self,
        caller: &Caller,
        key: JobKey,
        name: Name,
    ) -> Result<Seen<Arc<Trigger>>, ServiceError> {
        let tenant = key.tenant.clone();
        let command = Command::ResumeTrigger { job: key, trigger: name };
        self.change_trigger(caller, &tenant, command).await
    }

    async fn change_trigger(
        &self,
        caller: &Caller,
        tenant: &Name,
        command: Command,
    ) -> Result<Seen<Arc<Trigger>>, ServiceError> {
        let reply = self.propose(caller, tenant, command).await?;
        let Reply::Trigger(trigger, _) = &reply.value else {
            return Err(unexpected(&reply.value));
        };
        let trigger = trigger.clone();
        Ok(reply.map(|_| trigger))
    }
}

fn trigger_in<'a>(
    state: &'a State,
    key: &JobKey,
    name: &Name,
) -> Result<&'a Arc<Trigger>, ServiceError> {
    let job = job_in(state, key)?;
    let missing = || not_found(Noun::Trigger, format!("job {key} has no trigger {name}"));
    state.trigger_by_name(job.id, name).ok_or_else(missing)
}
