//! What always holds of a state. Checked when tables are loaded, and by the tests after every
//! command.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::time::Timestamp;
use crate::machine::index::Index;
use crate::machine::state::State;
use crate::model::fire::{FencingToken, Fire, FireState};
use crate::model::id::{JobId, Revision};

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invariant broken: {name}: {detail}")]
pub struct InvariantError {
    pub name: &'static str,
    /// The record that breaks it.
    pub detail: String,
}

/// Checks tables and index. Linear in the size of the state.
///
/// # Errors
/// The first invariant that does not hold.
pub fn check(state: &State) -> Result<(), InvariantError> {
    check_tables(state)?;
    let rebuilt = Index::of(state);
    ensure(rebuilt == *state.index(), "the index follows from the tables", || {
        format!("{:?} instead of {rebuilt:?}", state.index())
    })
}

/// Checks all but the index, which was built from the tables just now.
pub(in crate::machine) fn check_tables(state: &State) -> Result<(), InvariantError> {
    records_are_under_their_keys(state)?;
    owners_exist(state)?;
    names_are_unique(state)?;
    for fire in state.fires().values() {
        open_fires_are_legal(fire)?;
    }
    retired_specs_are_those_in_use(state)?;
    nobody_waits_for_nothing(state)?;
    tokens_differ_inside_a_job(state)?;
    nothing_is_later_than_the_stamp(state)
}

fn ensure(
    holds: bool,
    name: &'static str,
    detail: impl FnOnce() -> String,
) -> Result<(), InvariantError> {
    if holds {
        return Ok(());
    }
    Err(InvariantError { name, detail: detail() })
}

fn records_are_under_their_keys(state: &State) -> Result<(), InvariantError> {
    const NAME: &str = "every record is under its own key";
    for (id, job) in state.jobs() {
        ensure(job.id == *id, NAME, || job.key.to_string())?;
    }
    for (id, trigger) in state.triggers() {
        ensure(trigger.id == *id, NAME, || trigger.name.to_string())?;
    }
    for (id, fire) in state.fires() {
        ensure(fire.id == *id, NAME, || id.to_string())?;
    }
    for (id, worker) in state.workers() {
        ensure(worker.id == *id, NAME, || id.to_string())?;
    }
    Ok(())
}

fn owners_exist(state: &State) -> Result<(), InvariantError> {
    const NAME: &str = "every record's owner exists";
    for job in state.jobs().values() {
        ensure(state.tenants().contains_key(&job.key.tenant), NAME, || job.key.to_string())?;
    }
    for key in state.groups().keys() {
        ensure(state.tenants().contains_key(&key.tenant), NAME, || format!("{key:?}"))?;
    }
    for worker in state.workers().values() {
        ensure(state.tenants().contains_key(&worker.tenant), NAME, || worker.id.to_string())?;
    }
    for trigger in state.triggers().values() {
        ensure(state.jobs().contains_key(&trigger.job), NAME, || format!("{trigger:?}"))?;
    }
    for fire in state.fires().values() {
        let spec = state.spec_of(fire.id.job, fire.job_revision);
        ensure(spec.is_some(), NAME, || format!("fire {}", fire.id))?;
        let job = state.jobs().get(&fire.id.job);
        let same_key = job.is_some_and(|job| job.key == fire.job_key);
        ensure(same_key, NAME, || format!("fire {}", fire.id))?;
    }
    Ok(())
}

fn names_are_unique(state: &State) -> Result<(), InvariantError> {
    const NAME: &str = "names are unique";
    let jobs: BTreeSet<_> = state.jobs().values().map(|job| &*job.key).collect();
    ensure(jobs.len() == state.jobs().len(), NAME, || "jobs".to_owned())?;
    let triggers: BTreeSet<_> =
        state.triggers().values().map(|trigger| (trigger.job, &trigger.name)).collect();
    ensure(triggers.len() == state.triggers().len(), NAME, || "triggers".to_owned())
}

fn open_fires_are_legal(fire: &Fire) -> Result<(), InvariantError> {
    const NAME: &str = "open fires have a legal form";
    let shown = || format!("{fire:?}");
    let is_running = fire.state == FireState::Running;
    let last = fire.attempts.last();
    ensure(!fire.state.is_ended() && fire.ended_at.is_none(), NAME, shown)?;
    ensure(is_running == fire.lease.is_some(), NAME, shown)?;
    ensure(fire.released_count <= fire.attempt_count, NAME, shown)?;
    ensure(fire.attempts.len() as u64 <= u64::from(fire.attempt_count), NAME, shown)?;
    ensure(last.is_none_or(|last| last.number == fire.attempt_count), NAME, shown)?;
    let running = fire.attempts.iter().filter(|attempt| attempt.outcome.is_none()).count();
    ensure(running == usize::from(is_running), NAME, shown)?;
    let token = last.filter(|last| last.outcome.is_none()).map(|last| last.token);
    ensure(token == fire.lease.map(|lease| lease.token), NAME, shown)
}

fn retired_specs_are_those_in_use(state: &State) -> Result<(), InvariantError> {
    const NAME: &str = "retired definitions are those in use";
    let used: BTreeSet<(JobId, Revision)> = state
        .fires()
        .values()
        .map(|fire| (fire.id.job, fire.job_revision))
        .filter(|(job, revision)| {
            state.jobs().get(job).is_some_and(|owner| owner.revision != *revision)
        })
        .collect();
    let kept: BTreeSet<(JobId, Revision)> = state.retired_specs().keys().copied().collect();
    ensure(used == kept, NAME, || format!("{used:?} are used, {kept:?} are kept"))
}

fn nobody_waits_for_nothing(state: &State) -> Result<(), InvariantError> {
    for id in state.index().buffered() {
        let load = state.index().job_load(id.job);
        let waits_for_one = load.active > 0 && load.buffered == 1;
        ensure(waits_for_one, "a buffered fire is alone and waits for an active one", || {
            format!("{id}: {load:?}")
        })?;
    }
    Ok(())
}

fn tokens_differ_inside_a_job(state: &State) -> Result<(), InvariantError> {
    let mut holders: BTreeMap<(JobId, FencingToken), &Fire> = BTreeMap::new();
    for fire in state.fires().values() {
        let Some(lease) = &fire.lease else { continue };
        let other = holders.insert((fire.id.job, lease.token), fire);
        ensure(other.is_none(), "tokens of a job differ", || format!("fire {}", fire.id))?;
    }
    Ok(())
}

fn nothing_is_later_than_the_stamp(state: &State) -> Result<(), InvariantError> {
    let stamp = state.stamp();
    let known = |at: Timestamp, what: &dyn Fn() -> String| {
        ensure(at <= stamp, "nothing was recorded after the stamp", what)
    };
    for job in state.jobs().values() {
        known(job.created_at.max(job.updated_at), &|| job.key.to_string())?;
    }
    for trigger in state.triggers().values() {
        let latest = trigger.cursor.accounted_to.max(trigger.updated_at);
        known(latest, &|| format!("{trigger:?}"))?;
    }
    for fire in state.fires().values() {
        known(fire.recorded_at, &|| format!("fire {}", fire.id))?;
    }
    for worker in state.workers().values() {
        known(worker.registered_at, &|| format!("worker {}", worker.id))?;
    }
    for request in state.requests().values() {
        known(request.answered_at, &|| format!("request {}", request.key))?;
    }
    Ok(())
}
