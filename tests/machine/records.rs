//! The records of the machine: loaded again they are the same state, however they were batched.

use std::collections::BTreeMap;

use proptest::prelude::*;

use horolog::base::time::{Span, Timestamp};
use horolog::machine::change::Change;
use horolog::machine::command::{AnswerKind, Command, PruneHistory};
use horolog::machine::{Applied, Machine};
use horolog::model::id::JobId;
use horolog::model::policy::Overlap;
use horolog::store::entities::{self, Operations};
use horolog::store::keys::{self, Table};
use horolog::store::records::{AppliedMark, RecordBatch, Records};

use crate::machine::harness::{Bench, job_spec, worker_spec};
use crate::machine::properties::{live, lives};
use crate::machine::random::{self, Dice};

type All = BTreeMap<Vec<u8>, Vec<u8>>;

/// Writes the changes of some entries as one batch.
fn write(records: &Records, given: &[Applied]) {
    let changes: Vec<&Change> = given.iter().flat_map(|applied| &applied.changes).collect();
    let Operations { puts, deletes } = entities::to_operations(records, changes).unwrap();
    records.apply(RecordBatch { puts, deletes, applied: AppliedMark::default() }).unwrap();
}

fn all_of(records: &Records) -> All {
    let mut all = All::new();
    for table in Table::HOT.into_iter().chain(Table::COLD) {
        records
            .for_each(&[table.prefix()], &mut |key, value| {
                all.insert(key.to_vec(), value.to_vec());
                Ok(())
            })
            .unwrap();
    }
    all
}

/// The hot records of a snapshot, in a folder of its own.
fn copied(machine: &Machine) -> Records {
    let records = Records::in_memory();
    let mut hot = entities::snapshot_records(machine.state());
    records.replace_all(&mut hot, AppliedMark::default()).unwrap();
    records
}

fn history_of(records: &Records, job: JobId) -> usize {
    entities::history_of_job(records, job, None, usize::MAX).unwrap().len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_state_loaded_from_its_records_goes_on_alike(all in lives(100), later in lives(30)) {
        let life = live(&all, |_, _, _, _| {});
        let records = Records::in_memory();
        write(&records, &life.given);
        let from_disk = entities::load_state(&records).unwrap();
        let from_snapshot = entities::load_state(&copied(&life.machine)).unwrap();
        let digest = life.machine.state().digest();
        prop_assert_eq!(from_disk.digest(), digest);
        prop_assert_eq!(from_snapshot.digest(), digest);
        let mut members =
            [life.machine.clone(), Machine::new(from_disk), Machine::new(from_snapshot)];
        let mut clock = life.machine.state().stamp();
        for (i, dice) in later.iter().enumerate() {
            clock = clock.plus(Span::from_ms(dice.passes_ms));
            let entry = random::entry(members[0].state(), clock, dice);
            let index = (all.len() + i) as u64 + 2;
            let given: Vec<Applied> =
                members.iter_mut().map(|member| member.apply(index, &entry)).collect();
            for other in &given[1..] {
                prop_assert_eq!(&other.reply, &given[0].reply);
                prop_assert_eq!(&other.changes, &given[0].changes);
            }
        }
    }

    #[test]
    fn records_do_not_depend_on_the_batches(all in history_lives(), batch in 2..40usize) {
        let life = live(&all, |_, _, _, _| {});
        let one_by_one = Records::in_memory();
        life.given.iter().for_each(|applied| write(&one_by_one, std::slice::from_ref(applied)));
        let batched = Records::in_memory();
        life.given.chunks(batch).for_each(|applied| write(&batched, applied));
        prop_assert_eq!(all_of(&one_by_one), all_of(&batched));
    }

    #[test]
    fn a_job_counts_its_history_as_it_is(all in history_lives()) {
        let life = live(&all, |_, _, _, _| {});
        let records = Records::in_memory();
        life.given.chunks(7).for_each(|applied| write(&records, applied));
        for (id, job) in life.machine.state().jobs() {
            let gone = records.get(&keys::aged_out(*id)).unwrap();
            let gone: u64 = gone.map_or(0, |b| horolog::machine::codec::decode("n", &b).unwrap());
            prop_assert_eq!(history_of(&records, *id) as u64 + gone, job.history_len);
        }
        let by_time = entities::history_recent(&records, None, usize::MAX).unwrap().len();
        let all = all_of(&records);
        let count = |table: Table| all.keys().filter(|key| key[0] == table.prefix()).count();
        prop_assert_eq!(count(Table::History), by_time);
        prop_assert_eq!(count(Table::HistoryByTime), by_time);
    }
}

/// Lives with many short fires, so that histories grow beyond what is kept.
fn history_lives() -> impl Strategy<Value = Vec<Dice>> {
    let busy = random::dice().prop_map(|mut dice| {
        dice.passes_ms = dice.passes_ms.clamp(0, 3_000);
        dice.verb = match dice.verb {
            0..=3 | 7..=9 | 31 => 22,
            verb => verb,
        };
        dice
    });
    prop::collection::vec(busy, 50..300)
}

/// A bench whose records are written after every entry.
struct Disk {
    bench: Bench,
    records: Records,
}

impl Disk {
    fn new() -> Disk {
        Disk { bench: Bench::new(), records: Records::in_memory() }
    }

    fn write(&self) {
        write(&self.records, self.bench.last.as_slice());
    }

    fn run_once(&mut self, worker: horolog::model::id::WorkerId) {
        let fire = self.bench.request("a").unwrap();
        self.write();
        self.bench.grant(fire, worker).unwrap();
        self.write();
        self.bench.answer(fire, AnswerKind::Succeeded);
        self.write();
    }

    fn forget_before(&mut self, recorded_before: Timestamp) {
        let count_max = 1_000;
        self.bench.apply(Command::PruneHistory(PruneHistory { recorded_before, count_max }));
        self.write();
    }
}

#[test]
fn history_removed_for_its_age_does_not_shorten_what_comes_after() {
    let mut disk = Disk::new();
    let mut spec = job_spec(Overlap::Skip);
    spec.history_count = 50;
    let (job, _) = disk.bench.put_job("a", spec);
    disk.write();
    let worker = disk.bench.register(worker_spec("w", 1));
    disk.write();
    for _ in 0..60 {
        disk.run_once(worker);
    }
    assert_eq!(history_of(&disk.records, job.id), 60);
    disk.bench.pass(Span::from_days(40));
    disk.forget_before(disk.bench.now);
    assert_eq!(history_of(&disk.records, job.id), 0);
    for n in 1..=50 {
        disk.run_once(worker);
        assert_eq!(history_of(&disk.records, job.id), n);
    }
    for _ in 0..100 {
        disk.run_once(worker);
    }
    let kept = history_of(&disk.records, job.id);
    assert!((50..=82).contains(&kept), "{kept}");
}

#[test]
fn history_is_paged_newest_first() {
    let mut disk = Disk::new();
    let (job, _) = disk.bench.put_job("a", job_spec(Overlap::Skip));
    disk.write();
    let worker = disk.bench.register(worker_spec("w", 1));
    disk.write();
    for _ in 0..5 {
        disk.run_once(worker);
    }
    let page = entities::history_of_job(&disk.records, job.id, None, 3).unwrap();
    let rest = entities::history_of_job(&disk.records, job.id, Some(page[2].id.seq), 3).unwrap();
    let recent = entities::history_recent(&disk.records, Some(page[2].id.seq), 9).unwrap();
    assert_eq!((page.len(), rest.len()), (3, 2));
    assert_eq!(rest, recent);
    let seqs: Vec<_> = page.iter().chain(&rest).map(|fire| fire.id.seq).collect();
    assert!(seqs.is_sorted_by(|newer, older| newer > older));
    let first = entities::history_fire(&disk.records, page[0].id).unwrap();
    assert_eq!(first.as_ref(), Some(&page[0]));
}
