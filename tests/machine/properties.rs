//! The four properties of the machine, over random lives of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use horolog::base::time::Timestamp;
use horolog::machine::change::Change;
use horolog::machine::codec::decode_entry;
use horolog::machine::command::{Command, Entry};
use horolog::machine::{Applied, Machine, invariant};
use horolog::model::fire::{FencingToken, Fire, FireState};
use horolog::model::id::{FireId, JobId};

use crate::machine::harness::START;
use crate::machine::random::{self, Dice};

/// A life that was lived: the machine, its entries and what each gave.
pub struct Life {
    pub machine: Machine,
    pub entries: Vec<Entry>,
    pub given: Vec<Applied>,
}

pub fn live(all: &[Dice], mut watch: impl FnMut(u64, &Machine, &Machine, &Applied)) -> Life {
    let bootstrap = Command::Bootstrap { cluster_id: "c".to_owned() };
    let first = Entry { stamp: START, proposal: bootstrap.into() };
    let mut machine = Machine::default();
    let applied = machine.apply(1, &first);
    let mut life = Life { machine, entries: vec![first], given: vec![applied] };
    let mut clock = START;
    for dice in all {
        clock = Timestamp::from_ms(clock.as_ms().saturating_add(dice.passes_ms));
        let entry = random::entry(life.machine.state(), clock, dice);
        let before = life.machine.clone();
        let index = life.entries.len() as u64 + 1;
        let applied = life.machine.apply(index, &entry);
        watch(index, &before, &life.machine, &applied);
        life.entries.push(entry);
        life.given.push(applied);
    }
    life
}

pub fn lives(length: usize) -> impl Strategy<Value = Vec<Dice>> {
    prop::collection::vec(random::dice(), 1..length)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn invariants_hold_after_every_command(all in lives(120)) {
        live(&all, |index, _, after, applied| {
            if let Err(broken) = invariant::check(after.state()) {
                panic!("entry {index}, {:?}: {broken}", applied.reply);
            }
        });
    }

    #[test]
    fn the_same_entries_give_the_same_states_and_replies(all in lives(80)) {
        let life = live(&all, |_, _, _, _| {});
        let mut again = Machine::default();
        for (i, entry) in life.entries.iter().enumerate() {
            let applied = again.apply(i as u64 + 1, entry);
            prop_assert_eq!(&applied.reply, &life.given[i].reply);
            prop_assert_eq!(&applied.changes, &life.given[i].changes);
            prop_assert_eq!(&applied.effects, &life.given[i].effects);
        }
        prop_assert_eq!(again.state().digest(), life.machine.state().digest());
    }

    #[test]
    fn fires_change_only_in_legal_ways(all in lives(120)) {
        live(&all, |index, before, _, applied| {
            let mut known: BTreeMap<FireId, FireState> =
                before.state().fires().values().map(|fire| (fire.id, fire.state)).collect();
            for change in &applied.changes {
                let (Change::PutFire(fire) | Change::EndFire(fire)) = change else { continue };
                let old = known.insert(fire.id, fire.state);
                let legal = |old: FireState| old == fire.state || old.may_become(fire.state);
                let is_legal = old.is_none_or(legal);
                assert!(is_legal, "entry {index}: {old:?} became {:?}", fire.state);
            }
        });
    }

    #[test]
    fn tokens_of_a_job_strictly_grow(all in lives(120)) {
        let mut highest: BTreeMap<JobId, FencingToken> = BTreeMap::new();
        live(&all, |_, before, _, applied| {
            for change in &applied.changes {
                let Change::PutFire(fire) = change else { continue };
                let Some(lease) = fire.lease else { continue };
                let old = before.state().fires().get(&fire.id).and_then(|fire| fire.lease);
                if old == Some(lease) {
                    continue;
                }
                let last = highest.insert(fire.id.job, lease.token);
                assert!(last.is_none_or(|last| last < lease.token), "{last:?} {lease:?}");
            }
        });
    }

    #[test]
    fn time_never_goes_back(all in lives(60)) {
        live(&all, |_, before, after, _| {
            assert!(before.state().stamp() <= after.state().stamp());
        });
    }

    #[test]
    fn no_trigger_fires_twice_for_one_instant(all in lives(120)) {
        let mut seen = BTreeSet::new();
        live(&all, |_, before, _, applied| {
            for change in &applied.changes {
                let (Change::PutFire(fire) | Change::PutHistory(fire)) = change else { continue };
                let is_new = !before.state().fires().contains_key(&fire.id)
                    && fire.attempt_count == 0;
                if is_new && fire.trigger.is_some() {
                    let trigger = (fire.id.job, fire.trigger.clone(), fire.scheduled_at);
                    let records = (trigger, fire.id);
                    seen.insert(records);
                }
            }
        });
        let instants: BTreeSet<_> = seen.iter().map(|(trigger, _)| trigger).collect();
        prop_assert_eq!(instants.len(), seen.len());
    }

    #[test]
    fn the_changes_are_the_whole_difference(all in lives(80)) {
        live(&all, |index, before, after, applied| {
            let mut fires: BTreeMap<FireId, Fire> =
                before.state().fires().iter().map(|(id, f)| (*id, Fire::clone(f))).collect();
            let mut jobs: BTreeMap<JobId, _> = before.state().jobs().clone().into_iter().collect();
            for change in &applied.changes {
                match change {
                    Change::PutFire(fire) => { fires.insert(fire.id, Fire::clone(fire)); }
                    Change::EndFire(fire) => { fires.remove(&fire.id); }
                    Change::PutJob(job) => { jobs.insert(job.id, job.clone()); }
                    Change::DropJob(id) => { jobs.remove(id); }
                    _ => {}
                }
            }
            let now: BTreeMap<FireId, Fire> =
                after.state().fires().iter().map(|(id, f)| (*id, Fire::clone(f))).collect();
            assert_eq!(fires, now, "entry {index}");
            assert_eq!(jobs, after.state().jobs().clone().into_iter().collect(), "entry {index}");
        });
    }

    #[test]
    fn any_bytes_that_decode_can_be_applied(
        all in lives(30),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        verb in 0..30u8,
    ) {
        let mut machine = live(&all, |_, _, _, _| {}).machine;
        // A plausible beginning lets more of the bytes decode.
        let mut entry = vec![0u8; 8];
        entry.extend([1, 0, verb]);
        entry.extend(&bytes);
        for bytes in [bytes, entry] {
            for length in 0..=bytes.len() {
                let Ok(entry) = decode_entry(&bytes[..length]) else { continue };
                machine.apply(1_000, &entry);
                prop_assert_eq!(invariant::check(machine.state()), Ok(()));
            }
        }
    }
}

#[test]
fn random_lives_reach_the_interesting_states() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeSet::new();
    for _ in 0..60 {
        let all = lives(120).new_tree(&mut runner).unwrap().current();
        live(&all, |_, _, _, applied| {
            for change in &applied.changes {
                let (Change::PutFire(fire) | Change::EndFire(fire)) = change else { continue };
                reached.insert(format!("{:?}", fire.state));
                if fire.attempt_count > 1 {
                    reached.insert("retried".to_owned());
                }
                if fire.fenced_count > 0 {
                    reached.insert("fenced".to_owned());
                }
            }
            if applied.changes.iter().any(|c| matches!(c, Change::PutRetiredSpec(..))) {
                reached.insert("retired".to_owned());
            }
            if applied.changes.iter().any(|c| matches!(c, Change::PruneJobHistory(..))) {
                reached.insert("pruned".to_owned());
            }
        });
    }
    let wanted = [
        "Waiting(Due)",
        "Waiting(Retry)",
        "Waiting(Overlap)",
        "Ready",
        "Running",
        "Succeeded",
        "Failed",
        "Cancelled",
        "Skipped(Overlap)",
        "retried",
        "fenced",
        "retired",
    ];
    for wanted in wanted {
        assert!(reached.contains(wanted), "{wanted} was never reached: {reached:?}");
    }
}
