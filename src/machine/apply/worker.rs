//! Sessions of workers: registered, drained, removed.

use crate::machine::apply::context::Context;
use crate::machine::apply::tenant::{check_size, expect_tenant};
use crate::machine::command::RegisterWorker;
use crate::machine::reply::{Rejection, Reply};
use crate::model::id::WorkerId;
use crate::model::worker::{Worker, WorkerState};

// Refusals, in order: UnknownTenant, DefinitionTooLarge.
pub(in crate::machine) fn register_worker(
    context: &mut Context<'_>,
    command: &RegisterWorker,
) -> Result<Reply, Rejection> {
    expect_tenant(context.state(), &command.tenant)?;
    check_size(&command.spec)?;
    let worker = Worker {
        id: WorkerId(context.next_seq()),
        tenant: command.tenant.clone(),
        spec: command.spec.clone(),
        state: WorkerState::Live,
        registered_at: context.now(),
    };
    Ok(Reply::Worker(context.put_worker(worker)))
}

// Refusals: UnknownWorker.
pub(in crate::machine) fn drain_worker(
    context: &mut Context<'_>,
    id: WorkerId,
) -> Result<Reply, Rejection> {
    let unknown = Rejection::UnknownWorker { worker: id };
    let worker = context.state().workers().get(&id).ok_or(unknown)?.clone();
    match worker.state {
        WorkerState::Draining => Ok(Reply::Worker(worker)),
        WorkerState::Live => {
            let draining = Worker { state: WorkerState::Draining, ..Worker::clone(&worker) };
            Ok(Reply::Worker(context.put_worker(draining)))
        }
    }
}

// Refusals: none; a worker that is gone already is passed over.
//
// What a removed worker runs keeps its lease: it ends by the worker's answer, which needs only the
// token, or when the lease runs out. A process that still works is never doubled.
pub(in crate::machine) fn remove_workers(context: &mut Context<'_>, ids: &[WorkerId]) -> Reply {
    for id in ids {
        context.drop_worker(*id);
    }
    Reply::Done
}
