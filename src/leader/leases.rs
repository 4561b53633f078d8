//! When each lease runs out, and when each worker was last heard of; by the monotonic clock, in
//! memory only.
//!
//! A lease is prolonged without a log entry. That is safe because only the leader of the present
//! term lets leases run out, by a log entry, and a new leader begins with one full length of grace
//! for each: a live worker has that long to reach it.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant};

use crate::base::limits;
use crate::machine::command::{ExpiredLease, ExpiryCause};
use crate::machine::state::State;
use crate::model::fire::{FencingToken, Fire, FireState, Lease};
use crate::model::id::{FireId, WorkerId};

#[derive(Debug, Default)]
pub struct Leases {
    held: BTreeMap<FireId, Held>,
    by_end: BTreeMap<(Instant, FireId), FencingToken>,
    heard_of: BTreeMap<WorkerId, Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    token: FencingToken,
    ends_at: Instant,
}

impl Leases {
    /// The leases in the state, each with its full length from now on.
    #[must_use]
    pub fn with_full_grace(state: &State) -> Leases {
        let mut leases = Leases::default();
        leases.resume(state);
        leases
    }

    /// Takes in what the state has and this table has not, and drops what the state has no more.
    pub fn resume(&mut self, state: &State) {
        let gone: Vec<FireId> = self
            .held
            .iter()
            .filter(|(fire, held)| {
                let lease = state.fires().get(*fire).and_then(|fire| fire.lease);
                lease.is_none_or(|lease| lease.token != held.token)
            })
            .map(|(fire, _)| *fire)
            .collect();
        for fire in gone {
            self.drop_lease(fire);
        }
        for (_, id) in state.index().running().iter() {
            let lease = state.fires().get(id).and_then(|fire| fire.lease);
            if let Some(lease) = lease.filter(|_| !self.held.contains_key(id)) {
                self.begin(*id, &lease);
            }
        }
        let now = Instant::now();
        for worker in state.workers().keys() {
            self.heard_of.entry(*worker).or_insert(now);
        }
        self.heard_of.retain(|worker, _| state.workers().contains_key(worker));
    }

    /// Follows a change of a fire.
    pub fn follow(&mut self, fire: &Fire) {
        match (fire.state, fire.lease) {
            (FireState::Running, Some(lease)) => {
                let known = self.held.get(&fire.id).is_some_and(|held| held.token == lease.token);
                if !known {
                    self.drop_lease(fire.id);
                    self.begin(fire.id, &lease);
                }
            }
            (_, _) => self.drop_lease(fire.id),
        }
    }

    /// Notes that a worker has called.
    pub fn heard_of(&mut self, worker: WorkerId, now: Instant) {
        self.heard_of.insert(worker, now);
    }

    /// Prolongs a lease to its whole length from `now`; false when it has run out already, since
    /// its end may be on its way into the log. A lease that is not known here was granted a moment
    /// ago and begins its count when the grant is seen.
    #[must_use]
    pub fn extend(
        &mut self,
        fire: FireId,
        token: FencingToken,
        ttl: Duration,
        now: Instant,
    ) -> bool {
        let Some(held) = self.held.get(&fire).copied().filter(|held| held.token == token) else {
            return true;
        };
        if held.ends_at <= now {
            return false;
        }
        self.by_end.remove(&(held.ends_at, fire));
        self.insert(fire, Held { token, ends_at: now + ttl });
        true
    }

    /// Leases that have run out, earliest first, at most one entry's worth. They stay until the log
    /// says so.
    #[must_use]
    pub fn run_out(&self, now: Instant) -> Vec<ExpiredLease> {
        self.by_end
            .iter()
            .take_while(|((ends_at, _), _)| *ends_at <= now)
            .take(limits::GRANTS_PER_ENTRY_MAX)
            .map(|((_, fire), token)| ExpiredLease {
                fire: *fire,
                token: *token,
                cause: ExpiryCause::Silence,
            })
            .collect()
    }

    /// Workers of the state that were not heard of for `limits::WORKER_TTL` and hold nothing.
    pub fn silent_workers(&mut self, state: &State, now: Instant) -> Vec<WorkerId> {
        let mut silent = Vec::new();
        for worker in state.workers().keys() {
            let heard_at = *self.heard_of.entry(*worker).or_insert(now);
            let is_silent = now.duration_since(heard_at) >= limits::WORKER_TTL.to_std();
            if is_silent && state.index().held_slots(*worker) == 0 {
                silent.push(*worker);
            }
        }
        if self.heard_of.len() > state.workers().len() {
            self.heard_of.retain(|worker, _| state.workers().contains_key(worker));
        }
        silent
    }

    /// When the next lease runs out.
    #[must_use]
    pub fn next_end(&self) -> Option<Instant> {
        self.by_end.keys().next().map(|(ends_at, _)| *ends_at)
    }

    fn begin(&mut self, fire: FireId, lease: &Lease) {
        let ends_at = Instant::now() + lease.ttl.to_std();
        self.insert(fire, Held { token: lease.token, ends_at });
        self.heard_of.entry(lease.worker).or_insert_with(Instant::now);
    }

    fn insert(&mut self, fire: FireId, held: Held) {
        self.held.insert(fire, held);
        self.by_end.insert((held.ends_at, fire), held.token);
    }

    fn drop_lease(&mut self, fire: FireId) {
        if let Some(held) = self.held.remove(&fire) {
            self.by_end.remove(&(held.ends_at, fire));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{JobId, Seq};

    const TTL: Duration = Duration::from_secs(10);
    const TOKEN: FencingToken = FencingToken(7);

    fn fire() -> FireId {
        FireId { job: JobId(Seq::ZERO), seq: Seq::ZERO }
    }

    /// One lease of [`TOKEN`] that ends [`TTL`] after the returned instant.
    fn one_lease() -> (Leases, Instant) {
        let mut leases = Leases::default();
        let start = Instant::now();
        leases.insert(fire(), Held { token: TOKEN, ends_at: start + TTL });
        (leases, start)
    }

    #[test]
    fn a_lease_extended_in_time_lasts_its_whole_length_from_then() {
        let (mut leases, start) = one_lease();
        let last_moment = start + TTL - Duration::from_millis(1);
        assert!(leases.extend(fire(), TOKEN, TTL, last_moment));
        assert_eq!(leases.next_end(), Some(last_moment + TTL));
        assert_eq!(leases.run_out(start + TTL), []);
        assert_eq!(leases.run_out(last_moment + TTL).len(), 1);
    }

    #[test]
    fn a_lease_that_ran_out_is_not_promised_again() {
        let (mut leases, start) = one_lease();
        assert!(!leases.extend(fire(), TOKEN, TTL, start + TTL));
        assert_eq!(leases.run_out(start + TTL).len(), 1, "its end still goes to the log");
    }

    #[test]
    fn an_older_token_moves_nothing() {
        let (mut leases, start) = one_lease();
        let older = FencingToken(TOKEN.0 - 1);
        let _ = leases.extend(fire(), older, TTL, start + Duration::from_secs(5));
        assert_eq!(leases.next_end(), Some(start + TTL));
    }
}
