//! Polls that wait for work, each with its free slots.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant};

use crate::machine::command::Offer;
use crate::model::id::WorkerId;

/// An offer that is not repeated is forgotten after this long: the node that held the poll is gone.
const OFFER_TTL: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub struct Offers {
    waiting: BTreeMap<WorkerId, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    slots: u32,
    /// The node that offers had applied this index: grants up to it are known to the poll already.
    seen_index: u64,
    until: Instant,
}

impl Offers {
    /// Takes in an offer; a newer one of the same worker replaces the older.
    pub fn put(&mut self, worker: WorkerId, slots: u32, seen_index: u64, now: Instant) {
        let until = now + OFFER_TTL;
        self.waiting.insert(worker, Waiting { slots, seen_index, until });
    }

    pub fn withdraw(&mut self, worker: WorkerId) {
        self.waiting.remove(&worker);
    }

    /// The worker was granted work at an index: unless its poll knew of that, it is being answered
    /// now.
    pub fn answered(&mut self, worker: WorkerId, index: u64) {
        let being_answered =
            self.waiting.get(&worker).is_some_and(|waiting| waiting.seen_index < index);
        if being_answered {
            self.waiting.remove(&worker);
        }
    }

    pub fn forget_all(&mut self) {
        self.waiting.clear();
    }

    /// The offers that hold, in the order of the workers' ids.
    pub fn current(&mut self, now: Instant) -> Vec<Offer> {
        self.waiting.retain(|_, waiting| waiting.until > now);
        self.waiting
            .iter()
            .map(|(worker, waiting)| Offer { worker: *worker, slots: waiting.slots })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::Seq;

    fn worker(number: u64) -> WorkerId {
        WorkerId(Seq::new(number, 0))
    }

    #[test]
    fn a_grant_the_poll_had_seen_does_not_use_up_its_new_offer() {
        let now = Instant::now();
        let mut offers = Offers::default();
        offers.put(worker(1), 4, 10, now);
        offers.answered(worker(1), 10);
        assert_eq!(offers.current(now), [Offer { worker: worker(1), slots: 4 }]);
        offers.answered(worker(1), 11);
        assert_eq!(offers.current(now), []);
    }

    #[test]
    fn an_offer_that_is_not_repeated_is_forgotten() {
        let now = Instant::now();
        let mut offers = Offers::default();
        offers.put(worker(1), 4, 10, now);
        assert_eq!(offers.current(now + OFFER_TTL), []);
    }
}
