//! Watching fires: a bounded ring of the latest changes, by the index of the log. A watcher that
//! was away for longer than the ring reaches is told so, and reads the list again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::base::bounded::Name;
use crate::machine::effect::Effect;
use crate::model::fire::Fire;
use crate::replica::AppliedEffects;
use crate::service::Service;
use crate::service::call::Freshness;
use crate::service::error::{ErrorKind, ServiceError};

/// Changes that are kept.
const RING_MAX: usize = 16_384;
/// Most watches on one member.
const WATCHES_MAX: usize = 1_000;
/// Most changes that are handed to a watcher at a time.
const BATCH_MAX: usize = 256;

/// What a watcher is told.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// A fire as it stands after the entry at `index`. A watcher has all of that entry only with
    /// its `last` event.
    Changed { index: u64, fire: Arc<Fire>, last: bool },
    /// Changes after the first index and before the second are no longer at hand.
    Gap { after: u64, before: u64 },
}

/// One caller's watch over a tenant's fires.
pub struct FireWatch {
    service: Service,
    tenant: Name,
    /// Everything up to this index was told.
    position: u64,
    head: watch::Receiver<u64>,
    _permit: OwnedSemaphorePermit,
}

impl Service {
    /// Watches the fires of a tenant: those that change after `after`, or after now.
    ///
    /// # Errors
    /// As every read; when there is no such tenant; and when there are too many watches.
    pub async fn watch_fires(
        &self,
        tenant: &Name,
        after: Option<u64>,
        freshness: Freshness,
    ) -> Result<FireWatch, ServiceError> {
        self.sight_of(freshness, tenant).await?;
        let permits = self.inner.ring.permits.clone();
        let permit = permits.try_acquire_owned().map_err(|_| too_many_watches())?;
        let head = self.inner.ring.head.subscribe();
        let position = after.unwrap_or_else(|| *head.borrow());
        Ok(FireWatch {
            service: self.clone(),
            tenant: tenant.clone(),
            position,
            head,
            _permit: permit,
        })
    }
}

impl FireWatch {
    /// The next events, at least one; `None` when this member closes.
    pub async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        loop {
            self.head.borrow_and_update();
            let events = self.service.inner.ring.after(&mut self.position, &self.tenant);
            if !events.is_empty() {
                return Some(events);
            }
            tokio::select! {
                changed = self.head.changed() => changed.ok()?,
                () = self.service.inner.closing.cancelled() => return None,
            }
        }
    }
}

pub(in crate::service) struct Ring {
    changes: Mutex<Changes>,
    /// The index of the newest change.
    head: watch::Sender<u64>,
    /// One for each watch.
    permits: Arc<Semaphore>,
}

struct Changes {
    kept: VecDeque<(u64, Arc<Fire>)>,
    /// Everything after this index is in the ring.
    floor: u64,
    /// Changes were lost on the way here, so that the floor lies just below the next one.
    has_lost: bool,
}

impl Ring {
    /// An empty ring of a member that has applied `index`.
    pub(in crate::service) fn starting_after(index: u64) -> Ring {
        let changes = Changes { kept: VecDeque::new(), floor: index, has_lost: false };
        Ring {
            changes: Mutex::new(changes),
            head: watch::Sender::new(index),
            permits: Arc::new(Semaphore::new(WATCHES_MAX)),
        }
    }

    pub(in crate::service) fn push(&self, applied: &AppliedEffects) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced_by_snapshot = applied.effects.is_empty();
        if changes.has_lost || replaced_by_snapshot {
            changes.kept.clear();
            changes.floor = applied.index.saturating_sub(u64::from(!replaced_by_snapshot));
            changes.has_lost = false;
        }
        for effect in &applied.effects {
            match effect {
                Effect::FireChanged(fire) => changes.kept.push_back((applied.index, fire.clone())),
                Effect::Granted { .. } | Effect::Fenced { .. } => {}
            }
        }
        while changes.kept.len() > RING_MAX {
            if let Some((index, _)) = changes.kept.pop_front() {
                changes.floor = index;
            }
        }
        drop(changes);
        self.head.send_replace(applied.index);
    }

    /// Changes between the last one and the next one are missing.
    pub(in crate::service) fn lose(&self) {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).has_lost = true;
    }

    /// The events of a tenant after a position, which moves behind them.
    fn after(&self, position: &mut u64, tenant: &Name) -> Vec<WatchEvent> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events = Vec::new();
        if *position < changes.floor {
            events.push(WatchEvent::Gap { after: *position, before: changes.floor + 1 });
            *position = changes.floor;
        }
        let first = changes.kept.partition_point(|(index, _)| *index <= *position);
        for (index, fire) in changes.kept.range(first..) {
            // An entry is never told in part, so that its index is a place to resume from.
            if events.len() >= BATCH_MAX && *index > *position {
                break;
            }
            *position = *index;
            if fire.job_key.tenant == *tenant {
                events.push(WatchEvent::Changed { index: *index, fire: fire.clone(), last: false });
            }
        }
        drop(changes);
        mark_last(&mut events);
        events
    }
}

/// Marks the last event of each entry.
fn mark_last(events: &mut [WatchEvent]) {
    let mut next_index = None;
    for event in events.iter_mut().rev() {
        if let WatchEvent::Changed { index, last, .. } = event {
            *last = next_index != Some(*index);
            next_index = Some(*index);
        }
    }
}

fn too_many_watches() -> ServiceError {
    let limit = WATCHES_MAX as u64;
    let message = format!("{limit} callers watch on this member, the most it takes");
    ServiceError::new(ErrorKind::TooManyWaiting { limit }, message)
}

#[cfg(test)]
mod tests;
