//! Workers: register, list, drain, remove.

use std::ops::Bound;
use std::sync::Arc;

use crate::base::bounded::Name;
use crate::machine::command::{Command, RegisterWorker};
use crate::machine::reply::Reply;
use crate::machine::state::State;
use crate::model::id::WorkerId;
use crate::model::worker::{Worker, WorkerSpec};
use crate::service::call::{Caller, Freshness, Seen};
use crate::service::error::{Noun, ServiceError};
use crate::service::page::{Cursor, Page, PageRequest, SCAN_MAX};
use crate::service::{Service, not_found, unexpected};

/// A worker, and how many attempts it runs.
#[derive(Clone, Debug)]
pub struct WorkerView {
    pub worker: Arc<Worker>,
    pub held: u32,
}

impl Service {
    /// Begins a session.
    ///
    /// # Errors
    /// As every change.
    pub async fn register_worker(
        &self,
        caller: &Caller,
        tenant: Name,
        spec: WorkerSpec,
    ) -> Result<Seen<Arc<Worker>>, ServiceError> {
        let register = RegisterWorker { tenant: tenant.clone(), spec };
        let command = Command::RegisterWorker(Box::new(register));
        let reply = self.propose(caller, &tenant, command).await?;
        let Reply::Worker(worker) = &reply.value else {
            return Err(unexpected(&reply.value));
        };
        let worker = worker.clone();
        Ok(reply.map(|_| worker))
    }

    /// # Errors
    /// As every read; and when there is no such tenant.
    pub async fn list_workers(
        &self,
        tenant: &Name,
        page: &PageRequest,
        freshness: Freshness,
    ) -> Result<Seen<Page<WorkerView>>, ServiceError> {
        let after = page.after_key::<WorkerId>()?;
        let sight = self.sight_of(freshness, tenant).await?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let workers = sight.state.workers().range((from, Bound::Unbounded));
        let mut shown = Page { items: Vec::new(), next: None };
        for (scanned, (id, worker)) in workers.enumerate() {
            if worker.tenant == *tenant {
                shown.items.push(WorkerView::of(&sight.state, worker));
            }
            if shown.items.len() == page.limit || scanned + 1 == SCAN_MAX {
                shown.next = Some(Cursor::after(&id.to_string()));
                break;
            }
        }
        Ok(sight.show(shown))
    }

    /// Gives the worker no more work; it ends what it has.
    ///
    /// # Errors
    /// As every change.
    pub async fn drain_worker(
        &self,
        caller: &Caller,
        tenant: &Name,
        worker: WorkerId,
    ) -> Result<Seen<WorkerView>, ServiceError> {
        self.known_worker(tenant, worker).await?;
        let reply = self.propose(caller, tenant, Command::DrainWorker { worker }).await?;
        let Reply::Worker(worker) = &reply.value else {
            return Err(unexpected(&reply.value));
        };
        let view = WorkerView::of(&self.inner.replica.view().state, worker);
        Ok(reply.map(|_| view))
    }

    /// Ends a session. What it still holds keeps its lease, and ends by its answer or with that.
    ///
    /// # Errors
    /// As every change.
    pub async fn remove_worker(
        &self,
        caller: &Caller,
        tenant: &Name,
        worker: WorkerId,
    ) -> Result<Seen<()>, ServiceError> {
        self.known_worker(tenant, worker).await?;
        let command = Command::RemoveWorkers { workers: vec![worker] };
        let reply = self.propose(caller, tenant, command).await?;
        Ok(reply.map(|_| ()))
    }

    /// The worker, from this member's own state, or else from a fresh one: it may have registered
    /// elsewhere a moment ago.
    ///
    /// # Errors When the tenant has no such worker.
    pub(in crate::service) async fn known_worker(
        &self,
        tenant: &Name,
        worker: WorkerId,
    ) -> Result<Arc<Worker>, ServiceError> {
        if let Some(found) = worker_in(&self.inner.replica.view().state, tenant, worker) {
            return Ok(found.clone());
        }
        let sight = self.sight_of(Freshness::default(), tenant).await?;
        worker_in(&sight.state, tenant, worker).cloned().ok_or_else(|| unknown_worker(worker))
    }
}

impl WorkerView {
    fn of(state: &State, worker: &Arc<Worker>) -> WorkerView {
        WorkerView { worker: worker.clone(), held: state.index().held_slots(worker.id) }
    }
}

pub(in crate::service) fn worker_in<'a>(
    state: &'a State,
    tenant: &Name,
    worker: WorkerId,
) -> Option<&'a Arc<Worker>> {
    state.workers().get(&worker).filter(|found| found.tenant == *tenant)
}

pub(in crate::service) fn unknown_worker(worker: WorkerId) -> ServiceError {
    let message = format!(
        "there is no worker {worker}; it was silent too long or was removed, so register again"
    );
    not_found(Noun::Worker, message)
}
