//! Which ready fire goes to which waiting worker.
//!
//! One entry grants a job at most once, for its index is the fencing token and tokens of a job
//! strictly grow. Many ready fires of one job therefore go out in *waves*, one entry each; the
//! entries travel together in one append.

use std::collections::BTreeMap;

use crate::base::bounded::Name;
use crate::base::limits;
use crate::base::time::Timestamp;
use crate::machine::command::{Offer, Pick};
use crate::machine::index::ReadyKey;
use crate::machine::state::State;
use crate::model::id::{FireId, JobId};
use crate::model::job::ExecutorKind;
use crate::model::worker::WorkerState;

#[derive(Debug, Default)]
pub struct ReadyWork {
    /// Each inner list is for one entry and names no job twice.
    pub waves: Vec<Vec<Pick>>,
    /// What remains of the offers.
    pub offers_left: Vec<Offer>,
}

/// One kind of work: what a worker must serve to be given it.
type Lane = (Name, Name, ExecutorKind);

/// Pairs ready fires with offers, in the order of the ready index inside each lane, and turns from
/// offer to offer so that no worker is filled while another idles.
#[must_use]
pub fn ready_work(state: &State, offers: &[Offer]) -> ReadyWork {
    let mut work = ReadyWork { offers_left: usable(state, offers), ..ReadyWork::default() };
    if state.index().ready().is_empty() || work.offers_left.is_empty() {
        return work;
    }
    let mut wave_of: BTreeMap<JobId, usize> = BTreeMap::new();
    let mut picked = 0;
    for (lane, takers) in lanes(state, &work.offers_left) {
        let mut turn = 0;
        for key in ready_in(state, &lane) {
            let Some(taker) = next_taker(&work.offers_left, &takers, &mut turn) else {
                break;
            };
            if picked == limits::GRANTS_PER_ENTRY_MAX {
                return work.without_empty_offers();
            }
            let wave = wave_of.entry(key.fire.job).or_insert(0);
            if *wave == work.waves.len() {
                work.waves.push(Vec::new());
            }
            let offer = &mut work.offers_left[taker];
            work.waves[*wave].push(Pick { fire: key.fire, worker: offer.worker });
            offer.slots -= 1;
            *wave += 1;
            picked += 1;
        }
    }
    work.without_empty_offers()
}

impl ReadyWork {
    fn without_empty_offers(mut self) -> ReadyWork {
        self.offers_left.retain(|offer| offer.slots > 0);
        self
    }
}

/// The offers of live workers, cut to the slots that the state says are free.
fn usable(state: &State, offers: &[Offer]) -> Vec<Offer> {
    let mut usable = Vec::with_capacity(offers.len());
    for offer in offers {
        let Some(worker) = state.workers().get(&offer.worker) else {
            continue;
        };
        let free = worker.spec.slots.saturating_sub(state.index().held_slots(worker.id));
        let slots = offer.slots.min(free);
        if worker.state == WorkerState::Live && slots > 0 {
            usable.push(Offer { worker: offer.worker, slots });
        }
    }
    usable
}

/// Every lane that an offer serves, with the positions of the offers that serve it.
fn lanes(state: &State, offers: &[Offer]) -> BTreeMap<Lane, Vec<usize>> {
    let mut lanes: BTreeMap<Lane, Vec<usize>> = BTreeMap::new();
    for (position, offer) in offers.iter().enumerate() {
        let Some(worker) = state.workers().get(&offer.worker) else {
            continue;
        };
        for pool in &worker.spec.pools {
            for executor in &worker.spec.executors {
                let lane = (worker.tenant.clone(), pool.clone(), *executor);
                lanes.entry(lane).or_default().push(position);
            }
        }
    }
    lanes
}

fn ready_in<'a>(state: &'a State, lane: &'a Lane) -> impl Iterator<Item = &'a ReadyKey> {
    let (tenant, pool, executor) = lane;
    let first = ReadyKey {
        tenant: tenant.clone(),
        pool: pool.clone(),
        executor: *executor,
        rank: 0,
        due_at: Timestamp::MIN,
        fire: FireId::FIRST,
    };
    state.index().ready().range(first..).take_while(move |key| {
        key.tenant == *tenant && key.pool == *pool && key.executor == *executor
    })
}

/// The next offer in turn that still has a slot.
fn next_taker(offers: &[Offer], takers: &[usize], turn: &mut usize) -> Option<usize> {
    for step in 0..takers.len() {
        let at = (*turn + step) % takers.len();
        let candidate = takers[at];
        if offers[candidate].slots > 0 {
            *turn = at + 1;
            return Some(candidate);
        }
    }
    None
}
