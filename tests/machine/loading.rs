//! Records that contradict each other are refused when they are loaded, with the name of what they
//! break.

use std::sync::Arc;

use horolog::base::time::Span;
use horolog::machine::builder::StateBuilder;
use horolog::machine::command::Command;
use horolog::machine::state::{Meta, State};
use horolog::model::fire::{Fire, FireState};
use horolog::model::id::{Revision, Seq};
use horolog::model::job::{Job, JobSpec};
use horolog::model::policy::Overlap;
use horolog::model::tenant::Tenant;
use horolog::model::trigger::Trigger;

use crate::machine::harness::{Bench, job_spec, minutely, worker_spec};

/// The records of a small cluster, to be spoilt.
struct Parts {
    meta: Meta,
    tenants: Vec<Tenant>,
    jobs: Vec<Job>,
    specs: Vec<(Revision, JobSpec)>,
    triggers: Vec<Trigger>,
    fires: Vec<Fire>,
}

/// One job at revision 2 with a trigger, a running fire of revision 1 and a buffered one.
fn parts() -> (Parts, State) {
    let mut bench = Bench::new();
    bench.put_job_with("a", job_spec(Overlap::BufferOne), minutely());
    let worker = bench.register(worker_spec("w", 1));
    let fire = bench.request("a").unwrap();
    bench.grant(fire, worker).unwrap();
    bench.put_job("a", JobSpec { priority: 1, ..job_spec(Overlap::BufferOne) });
    bench.request("a").unwrap();
    bench.apply(Command::RemoveWorkers { workers: vec![worker] });
    let state = bench.state().clone();
    let parts = Parts {
        meta: state.meta().clone(),
        tenants: state.tenants().values().map(|it| Tenant::clone(it)).collect(),
        jobs: state.jobs().values().map(|it| Job::clone(it)).collect(),
        specs: state.retired_specs().iter().map(|(k, it)| (k.1, JobSpec::clone(it))).collect(),
        triggers: state.triggers().values().map(|it| Trigger::clone(it)).collect(),
        fires: state.fires().values().map(|it| Fire::clone(it)).collect(),
    };
    (parts, state)
}

fn load(parts: Parts) -> Result<State, String> {
    let mut builder = StateBuilder::new();
    builder.put_meta(parts.meta);
    let job = parts.fires.first().map(|fire| fire.id.job);
    parts.tenants.into_iter().for_each(|it| builder.put_tenant(it));
    for (revision, spec) in parts.specs {
        builder.put_retired_spec(job.unwrap(), revision, spec);
    }
    parts.fires.into_iter().for_each(|it| builder.put_fire(it));
    parts.triggers.into_iter().for_each(|it| builder.put_trigger(it));
    parts.jobs.into_iter().for_each(|it| builder.put_job(it));
    builder.finish().map_err(|broken| broken.name.to_owned())
}

#[test]
fn records_are_loaded_in_any_order() {
    let (parts, state) = parts();
    let loaded = load(parts).unwrap();
    assert_eq!(loaded.digest(), state.digest());
    assert_eq!(loaded.index(), state.index());
}

#[test]
fn records_that_contradict_each_other_are_refused_by_name() {
    type Spoil = fn(&mut Parts);
    const OWNER: &str = "every record's owner exists";
    const LEGAL: &str = "open fires have a legal form";
    const STAMP: &str = "nothing was recorded after the stamp";
    let table: [(&str, Spoil); 15] = [
        (OWNER, |p| p.tenants.clear()),
        (OWNER, |p| p.jobs.clear()),
        (OWNER, |p| p.specs.clear()),
        (OWNER, |p| p.fires[0].job_revision = Revision(9)),
        (LEGAL, |p| p.fires[0].lease = None),
        (LEGAL, |p| p.fires[0].state = FireState::Succeeded),
        (LEGAL, |p| p.fires[0].attempts.clear()),
        (LEGAL, |p| p.fires[0].released_count = 2),
        (LEGAL, |p| p.fires[0].attempts[0].number = 2),
        ("retired definitions are those in use", |p| {
            let spec = p.specs[0].1.clone();
            p.specs.push((Revision(9), spec));
        }),
        ("a buffered fire is alone and waits for an active one", |p| {
            p.fires.remove(0);
            p.specs.clear();
        }),
        ("tokens of a job differ", |p| {
            let mut twin = p.fires[0].clone();
            twin.id.seq = Seq::from_u64(1);
            p.fires.push(twin);
        }),
        ("names are unique", |p| {
            let mut twin = p.triggers[0].clone();
            twin.id.0 = Seq::from_u64(1);
            p.triggers.push(twin);
        }),
        (STAMP, |p| p.meta.stamp = p.meta.stamp.minus(Span::from_ms(1))),
        (STAMP, |p| {
            let cursor = &mut p.triggers[0].cursor;
            cursor.accounted_to = cursor.accounted_to.plus(Span::from_ms(1));
        }),
    ];
    for (i, (name, spoil)) in table.into_iter().enumerate() {
        let (mut parts, _) = parts();
        spoil(&mut parts);
        match load(parts) {
            Ok(_) => panic!("{i}: loaded, {name:?} expected"),
            Err(broken) => assert_eq!(broken, name, "{i}"),
        }
    }
}

#[test]
fn digests_tell_states_apart() {
    let (parts, state) = parts();
    let mut other = parts;
    other.fires[0].fenced_count += 1;
    other.fires[0].job_key = Arc::new((*other.fires[0].job_key).clone());
    assert_ne!(load(other).unwrap().digest(), state.digest());
}
