//! The life of a worker: register, take as much work as there are free slots, run it side by side,
//! and on the way out finish or hand back what is held.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::clock::SystemClock;
use crate::base::time::Span;
use crate::client::error::ClientError;
use crate::client::transport::Client;
use crate::wire::job::Executor;
use crate::wire::worker::{AcquireRequest, ExecutorKind, Grant, WorkerSpec};
use crate::worker::book::Book;
use crate::worker::handler::{Failure, Handler, Report, Run, Stop, StopReason};
use crate::worker::leases::keep_leases;
use crate::worker::outbox::Outbox;
use crate::worker::session::{Session, is_forgotten};

/// How long a poll waits for work; shorter than what proxies cut off.
const POLL_WAIT: Duration = Duration::from_secs(30);
/// A poll that comes back empty sooner than this was replaced or refused, and is not repeated at
/// once.
const EMPTY_TOO_SOON: Duration = Duration::from_millis(100);
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long a stopped run may take to end, and its answer to be acknowledged, before the worker
/// gives up on it.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// Who a worker is and what it runs.
pub struct Puller {
    pub client: Client,
    pub name: String,
    pub pools: BTreeSet<String>,
    /// Runs side by side; at least 1.
    pub slots: u32,
    pub labels: BTreeMap<String, String>,
    /// How long runs may go on after a shutdown began.
    pub grace: Duration,
    /// What runs each kind of executor; the kinds without one are not asked for.
    pub handlers: BTreeMap<ExecutorKind, Arc<dyn Handler>>,
}

/// How a worker is told to end.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// Take no more work, and let what is held finish within the grace.
    pub drain: CancellationToken,
    /// Do not wait: stop what is held now, and hand it back.
    pub hurry: CancellationToken,
}

/// What the loops share.
struct Shared {
    client: Client,
    session: Session,
    book: Book,
    outbox: Outbox,
    slots: usize,
    handlers: BTreeMap<ExecutorKind, Arc<dyn Handler>>,
    runs: TaskTracker,
}

/// Work that nobody keeps the lease of must not go on.
struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.book.stop_all(StopReason::Draining);
    }
}

impl Puller {
    /// Runs until a shutdown, and returns when everything that was held is finished or handed back.
    /// Dropped before, it stops what it holds without an answer.
    ///
    /// # Errors
    /// [`ClientError`] when the cluster refuses the registration.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), ClientError> {
        let spec = WorkerSpec {
            name: self.name,
            pools: Some(self.pools),
            executors: Some(self.handlers.keys().copied().collect()),
            slots: self.slots,
            labels: self.labels,
        };
        let session = tokio::select! {
            session = Session::begin(self.client.clone(), spec) => session?,
            () = shutdown.drain.cancelled() => return Ok(()),
        };
        let shared = Arc::new(Shared {
            client: self.client,
            session,
            book: Book::new(),
            outbox: Outbox::new(),
            slots: self.slots.max(1) as usize,
            handlers: self.handlers,
            runs: TaskTracker::new(),
        });
        let _guard = StopOnDrop(Arc::clone(&shared));
        let background = async {
            tokio::join!(
                shared.session.keep(),
                keep_leases(&shared.client, &shared.session, &shared.book),
                shared.outbox.deliver(&shared.client, &shared.session, &shared.book),
            );
        };
        let life = async {
            tokio::select! {
                never = take_work(&shared) => never,
                () = shutdown.drain.cancelled() => {}
            }
            drain(&shared, self.grace, &shutdown.hurry).await;
        };
        tokio::select! {
            () = life => {}
            () = background => {}
        }
        Ok(())
    }
}

/// Polls for work whenever a slot is free. Never ends.
async fn take_work(shared: &Arc<Shared>) {
    let mut pause = PAUSE_FIRST;
    loop {
        shared.book.below(shared.slots).await;
        let asked_at = Instant::now();
        let id = shared.session.id();
        match poll(shared, &id, POLL_WAIT).await {
            Ok(grants) => {
                pause = PAUSE_FIRST;
                let came_too_soon = grants.is_empty() && asked_at.elapsed() < EMPTY_TOO_SOON;
                for grant in grants {
                    start(shared, grant, &id);
                }
                if came_too_soon {
                    tokio::time::sleep(PAUSE_FIRST).await;
                }
            }
            Err(error) if is_forgotten(&error) => shared.session.renew(&id).await,
            Err(error) => {
                tracing::warn!(%error, "cannot ask for work, trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

async fn poll(shared: &Shared, id: &str, wait: Duration) -> Result<Vec<Grant>, ClientError> {
    let free = shared.slots.saturating_sub(shared.book.len()).max(1);
    let wait = wait.min(shared.session.wait_max());
    let wait_span = Span::from_ms(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
    let request = AcquireRequest {
        max: u32::try_from(free).unwrap_or(u32::MAX),
        wait: Some(wait_span.to_string()),
        holding: Some(shared.book.holding()),
    };
    Ok(shared.client.acquire(id, &request, wait).await?.grants)
}

fn start(shared: &Arc<Shared>, grant: Grant, session: &str) {
    let kind = kind_of(&grant.executor);
    let run = Arc::new(Run::of(grant, &SystemClock));
    let Some(stop) = shared.book.take(&run, session) else {
        return;
    };
    let shared = Arc::clone(shared);
    let tracker = shared.runs.clone();
    tracker.spawn(async move {
        let report = match shared.handlers.get(&kind) {
            Some(handler) => attend(&shared.book, handler.as_ref(), &run, stop).await,
            None => {
                let message = format!("this worker has no handler for {kind:?}");
                Report::failed(Failure::permanent("executor", message))
            }
        };
        let reason = shared.book.stop_reason(run.id());
        match report.into_answer(&run, reason) {
            Some(answer) => shared.outbox.push(answer),
            None => shared.book.release(run.id()),
        }
    });
}

/// Runs one attempt, stops it at the job's time-out, and survives its panic.
async fn attend(book: &Book, handler: &dyn Handler, run: &Arc<Run>, stop: Stop) -> Report {
    let running = AssertUnwindSafe(handler.run(Arc::clone(run), stop)).catch_unwind();
    let mut running = std::pin::pin!(running);
    let timer = async {
        match run.time_left {
            Some(time_left) => tokio::time::sleep(time_left).await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        biased;
        ended = &mut running => ended,
        () = timer => {
            book.stop(run.id(), StopReason::TimedOut);
            running.await
        }
    };
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let message = format!("the handler panicked: {}", text.unwrap_or_default());
        Report::failed(Failure::retryable("panic", message))
    })
}

/// The way out. The order matters: no more grants, then the ones on their way, then the grace,
/// then handing back.
async fn drain(shared: &Arc<Shared>, grace: Duration, hurry: &CancellationToken) {
    let id = shared.session.id();
    tracing::info!(held = shared.book.len(), ?grace, "draining");
    if let Err(error) = shared.client.drain_worker(&id).await {
        tracing::warn!(%error, "cannot tell the cluster that this worker drains");
    }
    // Our last poll may have been granted work that we did not hear of.
    if let Ok(grants) = poll(shared, &id, Duration::ZERO).await {
        for grant in grants {
            start(shared, grant, &id);
        }
    }
    tokio::select! {
        () = shared.book.below(1) => {}
        () = tokio::time::sleep(grace) => {}
        () = hurry.cancelled() => {}
    }
    shared.book.stop_all(StopReason::Draining);
    if tokio::time::timeout(LAST_WORDS, shared.book.below(1)).await.is_err() {
        tracing::error!(held = shared.book.len(), "runs did not end, their leases will run out");
    }
    let _ = shared.client.remove_worker(&id).await;
    tracing::info!("drained");
}

fn kind_of(executor: &Executor) -> ExecutorKind {
    match executor {
        Executor::Worker(_) => ExecutorKind::Worker,
        Executor::Command(_) => ExecutorKind::Command,
        Executor::Http(_) => ExecutorKind::Http,
    }
}
