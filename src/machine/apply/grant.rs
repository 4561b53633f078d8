//! Grants: ready fires go to workers, each under a lease whose token is the index of the entry.

use std::collections::BTreeMap;

use crate::base::bounded::Name;
use crate::base::limits;
use crate::base::time::Timestamp;
use crate::machine::apply::context::Context;
use crate::machine::command::{Grant, Offer};
use crate::machine::reply::Reply;
use crate::machine::state::State;
use crate::model::fire::{Attempt, FencingToken, Fire, FireState, Lease};
use crate::model::id::{FireId, WorkerId};
use crate::model::job::{ExecutorKind, JobSpec};
use crate::model::worker::{Worker, WorkerState};

// Refusals: none. A pick whose worker or fire does not fit (any more) is passed over.
pub(in crate::machine) fn grant(context: &mut Context<'_>, command: &Grant) -> Reply {
    for pick in &command.picks {
        try_grant(context, pick.fire, pick.worker);
    }
    Reply::Done
}

/// Hands the fires that became ready in this entry to the polls that wait, the most urgent first,
/// to one poll after the other.
pub(in crate::machine) fn grant_offers(context: &mut Context<'_>, offers: &[Offer]) {
    if offers.is_empty() {
        return;
    }
    let mut ready: Vec<Candidate> = context
        .take_became_ready()
        .into_iter()
        .filter_map(|fire| candidate(context.state(), fire))
        .collect();
    ready.sort();
    let mut slots: Vec<u32> = offers.iter().map(|offer| offer.slots).collect();
    let mut circles: BTreeMap<WorkClass, Circle> = BTreeMap::new();
    for candidate in ready {
        if context.has_granted(candidate.fire.job) {
            continue;
        }
        let class = candidate.class;
        let circle = circles
            .entry(class)
            .or_insert_with_key(|class| Circle::of(context.state(), class, offers));
        while let Some(place) = circle.next(&slots) {
            if try_grant(context, candidate.fire, offers[place].worker) {
                slots[place] -= 1;
                break;
            }
            // The worker has fewer free slots than its poll said, and gets nothing more.
            slots[place] = 0;
        }
    }
}

/// Grants one fire to one worker, if all of this holds: the worker is live, serves the pool, the
/// executor and the tenant, and has a free slot; the fire is ready; the job got no other grant in
/// this entry.
fn try_grant(context: &mut Context<'_>, fire: FireId, worker: WorkerId) -> bool {
    let state = context.state();
    let Some(fire) = state.fires().get(&fire) else { return false };
    let Some(worker) = state.workers().get(&worker) else { return false };
    let Some(spec) = state.spec_of(fire.id.job, fire.job_revision) else { return false };
    let held = state.index().held_slots(worker.id);
    let grantable = fire.state == FireState::Ready
        && !context.has_granted(fire.id.job)
        && held < worker.spec.slots
        && fits(worker, &fire.job_key.tenant, spec);
    if !grantable {
        return false;
    }
    let granted = granted(fire, worker, spec, context.index(), context.now());
    let (id, worker) = (fire.id, worker.id);
    context.put_fire(granted);
    context.note_grant(id, worker);
    true
}

fn fits(worker: &Worker, tenant: &Name, spec: &JobSpec) -> bool {
    worker.state == WorkerState::Live
        && worker.tenant == *tenant
        && worker.spec.executors.contains(&spec.executor.kind())
        && worker.spec.pools.contains(&spec.pool)
}

fn granted(fire: &Fire, worker: &Worker, spec: &JobSpec, index: u64, now: Timestamp) -> Fire {
    let token = FencingToken(index);
    let mut fire = fire.clone();
    fire.state = FireState::Running;
    fire.attempt_count = fire.attempt_count.saturating_add(1);
    fire.lease = Some(Lease {
        worker: worker.id,
        token,
        granted_at: now,
        ttl: spec.lease_ttl,
        deadline: spec.timeout.start_to_finish.map(|length| now.plus(length)),
    });
    if fire.attempts.len() >= limits::ATTEMPTS_KEPT_MAX {
        fire.attempts.remove(0);
    }
    fire.attempts.push(Attempt {
        number: fire.attempt_count,
        worker: worker.id,
        worker_name: worker.spec.name.clone(),
        token,
        granted_at: now,
        ended_at: None,
        outcome: None,
        error_kind: None,
    });
    fire
}

/// What a worker must serve to be given a fire.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WorkClass {
    tenant: Name,
    pool: Name,
    executor: ExecutorKind,
}

/// A fire that became ready, in the order of granting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u8,
    due_at: Timestamp,
    fire: FireId,
    class: WorkClass,
}

fn candidate(state: &State, fire: FireId) -> Option<Candidate> {
    let fire = state.fires().get(&fire)?;
    let spec = state.spec_of(fire.id.job, fire.job_revision)?;
    let class = WorkClass {
        tenant: fire.job_key.tenant.clone(),
        pool: spec.pool.clone(),
        executor: spec.executor.kind(),
    };
    let rank = JobSpec::PRIORITY_MAX.saturating_sub(spec.priority);
    Some(Candidate { rank, due_at: fire.due_at, fire: fire.id, class })
}

/// The offers that fit one class of work, taken in turn.
struct Circle {
    places: Vec<usize>,
    at: usize,
}

impl Circle {
    fn of(state: &State, class: &WorkClass, offers: &[Offer]) -> Circle {
        let serves = |offer: &Offer| {
            state.workers().get(&offer.worker).is_some_and(|worker| {
                worker.tenant == class.tenant
                    && worker.spec.pools.contains(&class.pool)
                    && worker.spec.executors.contains(&class.executor)
            })
        };
        let fitting = offers.iter().enumerate().filter(|(_, offer)| serves(offer));
        Circle { places: fitting.map(|(place, _)| place).collect(), at: 0 }
    }

    /// The next place with a slot left. Places without one leave the circle.
    fn next(&mut self, slots: &[u32]) -> Option<usize> {
        while !self.places.is_empty() {
            if self.at >= self.places.len() {
                self.at = 0;
            }
            let place = self.places[self.at];
            if slots[place] > 0 {
                self.at += 1;
                return Some(place);
            }
            self.places.remove(self.at);
        }
        None
    }
}
