//! The long polls that wait on this member, one for each worker: a newer one replaces the older.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::machine::effect::Effect;
use crate::model::id::WorkerId;

/// Most polls that wait on one member.
pub(in crate::service) const POLLS_MAX: usize = 20_000;

#[derive(Default)]
pub(in crate::service) struct Polls {
    waiting: Mutex<BTreeMap<WorkerId, Arc<Poll>>>,
}

/// One waiting poll.
#[derive(Default)]
pub(in crate::service) struct Poll {
    /// Keeps one permit, so that a wake between two looks is not lost.
    wake: Notify,
    superseded: AtomicBool,
}

impl Poll {
    /// Returns when somebody woke the poll since the last call.
    pub(in crate::service) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(in crate::service) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::SeqCst)
    }
}

impl Polls {
    /// Takes a poll in and tells the worker's older one to end. `None`: there are too many.
    pub(in crate::service) fn enter(&self, worker: WorkerId) -> Option<Arc<Poll>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= POLLS_MAX && !waiting.contains_key(&worker) {
            return None;
        }
        let poll = Arc::new(Poll::default());
        if let Some(older) = waiting.insert(worker, poll.clone()) {
            older.superseded.store(true, Ordering::SeqCst);
            older.wake.notify_one();
        }
        Some(poll)
    }
    /// Lets a poll go, unless a newer one has its place already.
    pub(in crate::service) fn leave(&self, worker: WorkerId, poll: &Arc<Poll>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.get(&worker).is_some_and(|current| Arc::ptr_eq(current, poll)) {
            waiting.remove(&worker);
        }
    }

    pub(in crate::service) fn is_waiting(&self, worker: WorkerId) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.contains_key(&worker)
    }

    pub(in crate::service) fn wake(&self, worker: WorkerId) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(poll) = waiting.get(&worker) {
            poll.wake.notify_one();
        }
    }

    pub(in crate::service) fn wake_all(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for poll in waiting.values() {
            poll.wake.notify_one();
        }
    }

    pub(in crate::service) fn len(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// The worker that an effect gives work to.
pub(in crate::service) fn granted_to(effect: &Effect) -> Option<WorkerId> {
    match effect {
        Effect::Granted { worker, .. } => Some(*worker),
        Effect::FireChanged(_) | Effect::Fenced { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::Seq;

    #[test]
    fn a_newer_poll_replaces_the_older_and_outlives_its_leaving() {
        let polls = Polls::default();
        let worker = WorkerId(Seq::new(1, 0));
        let older = polls.enter(worker).unwrap();
        let newer = polls.enter(worker).unwrap();
        assert!(older.is_superseded());
        assert!(!newer.is_superseded());
        polls.leave(worker, &older);
        assert!(polls.is_waiting(worker));
        polls.leave(worker, &newer);
        assert!(!polls.is_waiting(worker));
        assert_eq!(polls.len(), 0);
    }

    #[tokio::test]
    async fn a_wake_before_the_wait_is_not_lost() {
        let polls = Polls::default();
        let worker = WorkerId(Seq::new(1, 0));
        let poll = polls.enter(worker).unwrap();
        polls.wake(worker);
        poll.woken().await;
    }
}
