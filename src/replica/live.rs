//! What the members' tasks share of the applied state: the machine, how far it is, who waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::{broadcast, oneshot, watch};

use crate::machine::Machine;
use crate::replica::types::LogId;
use crate::replica::{AppliedEffects, View};

/// Effects a slow receiver may lag behind before it loses the oldest.
const EFFECTS_KEPT: usize = 8_192;

/// The machine and the last entry it took.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) machine: Machine,
    pub(crate) last: Option<LogId>,
}

/// The applied state, shared. Only the apply adapter writes.
#[derive(Debug)]
pub(crate) struct Live {
    published: RwLock<Published>,
    last: watch::Sender<Option<LogId>>,
    applied: watch::Sender<u64>,
    effects: broadcast::Sender<Arc<AppliedEffects>>,
    waiters: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    applied: Option<u64>,
    next: u64,
    by_index: BTreeMap<(u64, u64), oneshot::Sender<()>>,
}

impl Live {
    pub(crate) fn new(machine: Machine, last: Option<LogId>) -> Live {
        let index = last.map_or(0, |id| id.index);
        let waiters = Waiters { applied: last.map(|id| id.index), ..Waiters::default() };
        Live {
            published: RwLock::new(Published { machine, last }),
            last: watch::Sender::new(last),
            applied: watch::Sender::new(index),
            effects: broadcast::Sender::new(EFFECTS_KEPT),
            waiters: Mutex::new(waiters),
        }
    }

    pub(crate) fn view(&self) -> View {
        let published = self.read();
        View {
            state: published.machine.state().clone(),
            applied_index: published.last.map_or(0, |id| id.index),
        }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Published> {
        self.published.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the apply adapter, which calls [`Live::advanced`] once the guard is gone.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Published> {
        self.published.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes everybody who waits for an index up to this one.
    pub(crate) fn advanced(&self, last: LogId) {
        let woken = {
            let mut waiters = self.waiters();
            waiters.applied = Some(last.index);
            let later = waiters.by_index.split_off(&(last.index.saturating_add(1), 0));
            std::mem::replace(&mut waiters.by_index, later)
        };
        for (_, waiter) in woken {
            // The one who waited may have given up.
            let _ = waiter.send(());
        }
        self.applied.send_replace(last.index);
        self.last.send_replace(Some(last));
    }

    pub(crate) fn tell_effects(&self, effects: AppliedEffects) {
        // Without a receiver nobody wants to know.
        let _ = self.effects.send(Arc::new(effects));
    }

    /// Returns once `index` is applied. May be dropped at any time.
    pub(crate) async fn reached(&self, index: u64) {
        let (waiter, woken) = oneshot::channel();
        let key = {
            let mut waiters = self.waiters();
            if waiters.applied.is_some_and(|applied| applied >= index) {
                return;
            }
            waiters.next += 1;
            let key = (index, waiters.next);
            waiters.by_index.insert(key, waiter);
            key
        };
        let _registration = Registration { live: self, key };
        // The sender lives in the table until it is used, so this does not end early.
        let _ = woken.await;
    }

    pub(crate) fn applied(&self) -> watch::Receiver<u64> {
        self.applied.subscribe()
    }

    pub(crate) fn last(&self) -> watch::Receiver<Option<LogId>> {
        self.last.subscribe()
    }

    pub(crate) fn effects(&self) -> broadcast::Receiver<Arc<AppliedEffects>> {
        self.effects.subscribe()
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a waiter out of the table when its future is dropped.
struct Registration<'a> {
    live: &'a Live,
    key: (u64, u64),
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.live.waiters().by_index.remove(&self.key);
    }
}
