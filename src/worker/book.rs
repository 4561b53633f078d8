//! The runs a worker holds: their leases, and how they are told to stop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::worker::handler::{Run, Stop, StopReason, StopSender, stop_pair};

/// A run is held from its grant until its answer is acknowledged, and takes a slot for as long.
#[derive(Debug, Default)]
pub struct Book {
    held: Mutex<BTreeMap<String, Held>>,
    /// Counts what was taken and released, so that no waiter can miss it.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Held {
    run: Arc<Run>,
    /// The session it was granted to.
    session: String,
    stop: StopSender,
    extend_at: Instant,
}

/// A lease that is to be extended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub run: String,
    pub token: u64,
    pub session: String,
}

impl Book {
    #[must_use]
    pub fn new() -> Book {
        Book::default()
    }

    /// Begins to hold a run; `None` when it is held already, which a repeated grant is.
    pub fn take(&self, run: &Arc<Run>, session: &str) -> Option<Stop> {
        let mut held = self.lock();
        if held.contains_key(run.id()) {
            return None;
        }
        let (sender, stop) = stop_pair();
        let entry = Held {
            run: Arc::clone(run),
            session: session.to_owned(),
            stop: sender,
            extend_at: Instant::now() + run.extend_every,
        };
        held.insert(run.id().to_owned(), entry);
        drop(held);
        self.changed();
        Some(stop)
    }

    /// Ends to hold a run: its slot is free.
    pub fn release(&self, run: &str) {
        self.lock().remove(run);
        self.changed();
    }

    /// The runs that are held.
    #[must_use]
    pub fn holding(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Tells one run to stop.
    pub fn stop(&self, run: &str, reason: StopReason) {
        if let Some(held) = self.lock().get(run) {
            held.stop.stop(reason);
        }
    }

    /// Tells every run to stop.
    pub fn stop_all(&self, reason: StopReason) {
        for held in self.lock().values() {
            held.stop.stop(reason);
        }
    }

    /// Why a run was told to stop, if it was.
    #[must_use]
    pub fn stop_reason(&self, run: &str) -> Option<StopReason> {
        self.lock().get(run)?.stop.reason()
    }

    /// Changes whenever a run is taken or released.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Ends when fewer than `count` runs are held.
    pub async fn below(&self, count: usize) {
        let mut changes = self.changes();
        while self.len() >= count {
            // The sender lives as long as we do.
            let _ = changes.changed().await;
        }
    }

    /// When the next lease is to be extended.
    #[must_use]
    pub fn next_extension(&self) -> Option<Instant> {
        self.lock().values().map(|held| held.extend_at).min()
    }

    /// The leases to extend by `until`, the most urgent first, at most `count_max`, of one session.
    #[must_use]
    pub fn due(&self, until: Instant, count_max: usize) -> Vec<Due> {
        let held = self.lock();
        let mut due: Vec<&Held> = held.values().filter(|held| held.extend_at <= until).collect();
        due.sort_by_key(|held| held.extend_at);
        let session = due.first().map(|held| held.session.clone()).unwrap_or_default();
        let of_session = due.into_iter().filter(|held| held.session == session).take(count_max);
        of_session
            .map(|held| Due {
                run: held.run.id().to_owned(),
                token: held.run.grant.token,
                session: held.session.clone(),
            })
            .collect()
    }

    /// Puts the next extension of a run off.
    pub fn extend_again(&self, run: &str, at: Instant) {
        if let Some(held) = self.lock().get_mut(run) {
            held.extend_at = at;
        }
    }

    /// How often a run is to be extended.
    #[must_use]
    pub fn extend_every(&self, run: &str) -> Option<Duration> {
        self.lock().get(run).map(|held| held.run.extend_every)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Nothing panics while the lock is held, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
