//! What one term of leading keeps in memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::Notify;
use tokio::sync::broadcast::error::TryRecvError;

use crate::base::clock::SharedClock;
use crate::leader::leases::Leases;
use crate::leader::offers::Offers;
use crate::machine::effect::Effect;
use crate::replica::{AppliedEffects, Replica};

/// One term. Shared by the ticker and the handler of calls; the lock is held for moments, never
/// over an await.
pub struct Term {
    pub replica: Replica,
    pub clock: SharedClock,
    /// Raft's number of the term: every proposal is made under the condition that this node still
    /// leads in it.
    pub number: u64,
    /// Rung when something happened that the ticker should look at.
    pub nudge: Notify,
    /// Held while a round of proposals is under way.
    pub round: AsyncMutex<()>,
    memory: Mutex<Memory>,
}

/// The part behind the lock.
pub struct Memory {
    pub offers: Offers,
    pub leases: Leases,
    /// The term is over: nothing may be promised any more.
    pub closed: bool,
    effects: tokio::sync::broadcast::Receiver<std::sync::Arc<AppliedEffects>>,
}

impl Term {
    #[must_use]
    pub fn new(replica: Replica, clock: SharedClock, number: u64) -> Term {
        // Subscribe before the state is read: an effect may then be seen twice, but none is missed.
        let effects = replica.effects();
        let leases = Leases::with_full_grace(&replica.view().state);
        let memory = Memory { offers: Offers::default(), leases, closed: false, effects };
        let round = AsyncMutex::new(());
        let memory = Mutex::new(memory);
        Term { replica, clock, number, nudge: Notify::new(), round, memory }
    }

    /// The memory, brought up to what this node has applied.
    pub fn memory(&self) -> MutexGuard<'_, Memory> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if !memory.take_in_effects() {
            // Some effects were dropped. Both tables follow from the state, so they are derived
            // again.
            let state = self.replica.view().state;
            memory.leases.resume(&state);
            memory.offers.forget_all();
        }
        memory
    }

    /// Ends all promises of the term.
    pub fn close(&self) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.closed = true;
    }
}

impl Memory {
    /// False when effects were lost on the way.
    fn take_in_effects(&mut self) -> bool {
        let mut complete = true;
        loop {
            match self.effects.try_recv() {
                Ok(applied) => self.take_in(&applied),
                Err(TryRecvError::Lagged(_)) => complete = false,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return complete,
            }
        }
    }

    fn take_in(&mut self, applied: &AppliedEffects) {
        for effect in &applied.effects {
            match effect {
                Effect::Granted { worker, fires: _ } => {
                    self.offers.answered(*worker, applied.index);
                }
                Effect::FireChanged(fire) => self.leases.follow(fire),
                Effect::Fenced { fire: _ } => {}
            }
        }
    }
}
