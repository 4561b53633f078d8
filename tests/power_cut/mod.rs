//! Loss of power: what was acknowledged is there afterwards, whole, whatever else was lost.
//!
//! `kill -9` proves nothing here, since the kernel keeps what was written. So the store runs on a
//! file system that forgets what was not flushed (`disk`, shown by `mount`): the power is cut after
//! a random number of writes and flushes, and the next start finds what a real disk could hold by
//! then. `workload` drives the store and checks what is left. The same check must fail when the
//! store's own flushes are left out.

mod disk;
mod mount;
mod workload;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use bytes::Bytes;
use horolog::base::entropy::SeededEntropy;
use horolog::store::error::StoreError;
use horolog::store::fault::Faults;
use horolog::store::identity::Identity;
use horolog::store::log::{EntryKind, LogEntry, LogPosition};
use horolog::store::records::{AppliedMark, RecordBatch};
use horolog::store::snapshot_file::SnapshotReader;
use horolog::store::{Store, StoreOptions};

use crate::power_cut::disk::{CutMode, Disk, Names, below};
use crate::power_cut::mount::{Cut, CutPlan, Mounted};
use crate::power_cut::workload::{Driver, History, check_records};

const PATIENCE: Duration = Duration::from_secs(60);

/// Whether this machine can mount; says loudly when it cannot.
fn can_mount(test: &str) -> bool {
    if Path::new("/dev/fuse").exists() {
        return true;
    }
    // Not `println`: the test runner would hide it.
    let _ = writeln!(io::stderr(), "skipped: no /dev/fuse: {test}");
    false
}

fn options(faults: &Faults) -> StoreOptions {
    StoreOptions {
        log_segment_bytes: 24 * 1_024,
        log_cache_bytes: 8 * 1_024,
        records_cache_bytes: 4 * 1_024 * 1_024,
        faults: faults.clone(),
    }
}

fn mode(nth: u64, chance: &SeededEntropy) -> CutMode {
    let seed = below(chance, usize::MAX) as u64;
    match nth % 4 {
        0 => CutMode::Drop,
        1 | 2 => CutMode::Subset { seed },
        _ => CutMode::Prefix { seed },
    }
}

/// Works on one folder through a chain of power cuts; says what was lost, if anything.
fn survive(cuts: u64, seed: u64, faults: &Faults) -> Result<History, String> {
    let chance = SeededEntropy::new(seed);
    let mut history = History::default();
    let mut image = Cut { disk: Disk::new(Names::WithFile), acked: 0 };
    for nth in 0..=cuts {
        let names = if nth % 2 == 0 { Names::WithFile } else { Names::WithFolder };
        let mounted = Mounted::new(image.disk.with_names(names)).unwrap();
        let (tell, told) = channel();
        // What was acknowledged after the picture was taken does not count.
        history.acked.store(image.acked, Ordering::SeqCst);
        mounted.cut_later(CutPlan {
            after_reuses: 0,
            after_requests: 1 + below(&chance, 900) as u64,
            mode: mode(nth, &chance),
            acked: Arc::clone(&history.acked),
            tell,
        });
        let told_of = |error: String| format!("cut {nth} of seed {seed}: {error}");
        let store = Store::open(&mounted.path().join("data"), options(faults))
            .map_err(|error| told_of(error.to_string()))?;
        let model = history.check_log(&store, image.acked).map_err(told_of)?;
        let applied = check_records(&store, &model).map_err(told_of)?;
        if nth == cuts {
            break;
        }
        image = Driver::new(&store, &mut history, model, applied, &chance).run(&told);
    }
    Ok(history)
}

#[test]
fn everything_acknowledged_survives_thirty_power_cuts() {
    if !can_mount("everything_acknowledged_survives_thirty_power_cuts") {
        return;
    }
    let history =
        survive(30, 20_261_130, &Faults::default()).unwrap_or_else(|loss| panic!("{loss}"));
    let purges = history.ops.iter().filter(|op| matches!(op, workload::Op::Purge(_))).count();
    assert!(history.ops.len() > 3_000, "only {} changes were made", history.ops.len());
    assert!(purges > 30, "only {purges} purges were made");
}

#[test]
fn the_check_notices_when_our_flushes_are_left_out() {
    if !can_mount("the_check_notices_when_our_flushes_are_left_out") {
        return;
    }
    let lying = Faults::default();
    lying.skip_syncs(true);
    let losses = (1..=3).filter(|seed| survive(4, *seed, &lying).is_err()).count();
    assert_eq!(losses, 3, "a store that does not flush loses acknowledged entries");
}

fn entry(index: u64, bytes: usize) -> LogEntry {
    let position = LogPosition { term: 1, index };
    LogEntry { position, kind: EntryKind::Normal, payload: Bytes::from(vec![7; bytes]) }
}

/// Appends and waits for the acknowledgement.
fn append(store: &Store, entries: Vec<LogEntry>) -> Result<(), StoreError> {
    let (tell, told) = channel();
    store.log.append(entries, move |result| tell.send(result).unwrap())?;
    told.recv_timeout(PATIENCE).unwrap()
}

fn open(mounted: &Mounted) -> Result<Store, StoreError> {
    let roomy = StoreOptions { log_segment_bytes: 512 * 1_024, ..options(&Faults::default()) };
    Store::open(&mounted.path().join("data"), roomy)
}

#[test]
fn one_committed_batch_costs_one_write_and_one_flush() {
    if !can_mount("one_committed_batch_costs_one_write_and_one_flush") {
        return;
    }
    let mounted = Mounted::new(Disk::new(Names::WithFile)).unwrap();
    let store = open(&mounted).unwrap();
    append(&store, vec![entry(1, 100)]).unwrap();
    let before = mounted.with_disk(|disk| disk.counts);
    for batch in 0..50 {
        append(&store, (0..8).map(|n| entry(2 + batch * 8 + n, 100)).collect()).unwrap();
        let committed = Some(LogPosition { term: 1, index: 2 + batch * 8 });
        store.log.save_committed(committed).unwrap();
    }
    let after = mounted.with_disk(|disk| disk.counts);
    assert_eq!(after.file_syncs - before.file_syncs, 50);
    assert_eq!(after.writes - before.writes, 50);
    assert_eq!(after.folder_syncs, before.folder_syncs);

    for index in 1..=50 {
        let position = Some(LogPosition { term: 1, index });
        let applied = AppliedMark { position, ..AppliedMark::default() };
        let puts = vec![(b"job".to_vec(), vec![1; 300])];
        store.records.apply(RecordBatch { puts, deletes: Vec::new(), applied }).unwrap();
    }
    let applied = mounted.with_disk(|disk| disk.counts);
    assert_eq!(applied.file_syncs, after.file_syncs, "records are not flushed on each apply");
}

#[test]
fn a_failed_flush_stops_the_store_and_the_next_start_finds_what_was_acknowledged() {
    if !can_mount("a_failed_flush_stops_the_store") {
        return;
    }
    let mounted = Mounted::new(Disk::new(Names::WithFile)).unwrap();
    let store = open(&mounted).unwrap();
    append(&store, vec![entry(1, 2_000)]).unwrap();
    mounted.with_disk(|disk| disk.fail_next_sync = true);
    let failed = append(&store, vec![entry(2, 2_000)]).unwrap_err();
    assert!(failed.is_fatal(), "{failed}");
    let before = mounted.with_disk(|disk| disk.counts);
    assert!(matches!(append(&store, vec![entry(3, 1)]), Err(StoreError::Poisoned { .. })));
    assert!(matches!(store.records.make_durable(), Err(StoreError::Poisoned { .. })));
    let after = mounted.with_disk(|disk| disk.counts);
    assert_eq!(after.file_syncs, before.file_syncs, "a second flush proves nothing");
    drop(store);
    let image = mounted.with_disk(|disk| disk.cut(CutMode::Drop));
    let mounted = Mounted::new(image).unwrap();
    let store = open(&mounted).unwrap();
    assert_eq!(store.log.last_position(), Some(LogPosition { term: 1, index: 1 }));
}

#[test]
fn a_full_disk_is_named_and_the_store_works_again_once_there_is_room() {
    if !can_mount("a_full_disk_is_named") {
        return;
    }
    let mounted = Mounted::new(Disk::new(Names::WithFile)).unwrap();
    let store = open(&mounted).unwrap();
    append(&store, vec![entry(1, 100)]).unwrap();
    mounted.with_disk(|disk| disk.free_bytes = Some(1_000_000));
    let mut acked = 1;
    let refused = loop {
        match append(&store, vec![entry(acked + 1, 20_000)]) {
            Ok(()) => acked += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::DiskFull { .. }), "{refused}");
    assert!(acked > 20, "{acked} entries fit");
    drop(store);
    mounted.with_disk(|disk| disk.free_bytes = None);
    let store = open(&mounted).unwrap();
    assert!(store.log.last_position() >= Some(LogPosition { term: 1, index: acked }));
    append(&store, vec![entry(store.log.last_position().unwrap().index + 1, 10)]).unwrap();
}

#[test]
fn a_flush_of_sled_is_not_durable_and_ours_is() {
    if !can_mount("a_flush_of_sled_is_not_durable_and_ours_is") {
        return;
    }
    for (with_ours, expected) in [(false, None), (true, Some(b"value".to_vec()))] {
        let mounted = Mounted::new(Disk::new(Names::WithFile)).unwrap();
        let config = |mounted: &Mounted| {
            let config = sled::Config::new().path(mounted.path().join("sled"));
            config.segment_size(16 << 20).flush_every_ms(None)
        };
        let db = config(&mounted).open().unwrap();
        let heap = std::fs::File::open(mounted.path().join("sled/db")).unwrap();
        heap.sync_all().unwrap();
        db.insert(b"key", b"value").unwrap();
        db.flush().unwrap();
        if with_ours {
            heap.sync_data().unwrap();
        }
        let image = mounted.with_disk(|disk| disk.cut(CutMode::Drop));
        drop((db, heap));
        let mounted = Mounted::new(image).unwrap();
        let db = config(&mounted).open().unwrap();
        let found = db.get(b"key").unwrap().map(|value| value.to_vec());
        assert_eq!(found, expected, "with our flush: {with_ours}");
    }
}

const HOT_KEYS: u64 = 40;
const COLD_KEYS: u64 = 300;

/// Large values under few keys and small ones under many, so that sled's segments run empty but for
/// some pages, and are used again.
fn hot_and_cold(index: u64) -> RecordBatch {
    let hot = |n: u64| (key("hot", (index * 7 + n) % HOT_KEYS), vec![index as u8; 15_000]);
    let mut puts: Vec<_> = (0..7).map(hot).collect();
    puts.push((key("cold", index % COLD_KEYS), vec![index as u8; 900]));
    let position = Some(LogPosition { term: 1, index });
    let applied = AppliedMark { position, ..AppliedMark::default() };
    RecordBatch { puts, deletes: Vec::new(), applied }
}

fn key(kind: &str, number: u64) -> Vec<u8> {
    format!("{kind}/{number:03}").into_bytes()
}

/// Compares every record with what the batches up to `index` made.
fn check_hot_and_cold(store: &Store, index: u64) {
    let last = |touches: &dyn Fn(u64) -> bool| (1..=index).rev().find(|at| touches(*at));
    for number in 0..HOT_KEYS {
        let writer = last(&|at| (0..7).any(|n| (at * 7 + n) % HOT_KEYS == number));
        let found = store.records.get(&key("hot", number)).unwrap();
        assert!(found == writer.map(|at| vec![at as u8; 15_000]), "hot {number} at {index}");
    }
    for number in 0..COLD_KEYS {
        let writer = last(&|at| at % COLD_KEYS == number);
        let found = store.records.get(&key("cold", number)).unwrap();
        assert!(found == writer.map(|at| vec![at as u8; 900]), "cold {number} at {index}");
    }
}

/// The cut comes while sled writes over a segment it has used before.
#[test]
fn records_survive_cuts_while_sled_uses_its_segments_again() {
    if !can_mount("records_survive_cuts_while_sled_uses_its_segments_again") {
        return;
    }
    let chance = SeededEntropy::new(7);
    let mut image = Cut { disk: Disk::new(Names::WithFile), acked: 0 };
    for nth in 0..6 {
        let mounted = Mounted::new(image.disk).unwrap();
        let store = open(&mounted).unwrap();
        let mark = store.records.applied().unwrap().and_then(|mark| mark.position);
        let mut index = mark.map_or(0, |position| position.index);
        assert!(index >= image.acked, "back at {index}, {} was durable", image.acked);
        check_hot_and_cold(&store, index);
        let durable = Arc::new(AtomicU64::new(index));
        let (tell, told) = channel();
        mounted.cut_later(CutPlan {
            after_reuses: 1,
            after_requests: 1 + below(&chance, 12) as u64,
            mode: CutMode::Subset { seed: nth },
            acked: Arc::clone(&durable),
            tell,
        });
        image = loop {
            if let Ok(cut) = told.try_recv() {
                break cut;
            }
            index += 1;
            store.records.apply(hot_and_cold(index)).unwrap();
            if index.is_multiple_of(40) {
                store.records.make_durable().unwrap();
                durable.store(index, Ordering::SeqCst);
            }
        };
    }
    assert!(image.acked > 300, "only {} batches became durable", image.acked);
}

/// Snapshots, identity and replaced records: each step whole or not at all, in order.
#[test]
fn files_that_are_replaced_are_whole_after_a_cut() {
    if !can_mount("files_that_are_replaced_are_whole_after_a_cut") {
        return;
    }
    let chance = SeededEntropy::new(11);
    let mut image = Cut { disk: Disk::new(Names::WithFolder), acked: 0 };
    for nth in 0..12 {
        let mounted = Mounted::new(image.disk).unwrap();
        let store = open(&mounted).unwrap();
        let found = steps_found(&store).unwrap_or_else(|error| panic!("round {nth}: {error}"));
        let reached = found.iter().copied().max().unwrap_or(0);
        assert!(reached >= image.acked, "back at {found:?}, {} was done", image.acked);
        for (kind, at) in found.iter().enumerate() {
            // Step n is of kind n % 3, so each kind lags behind by less than three.
            let due = (1..=image.acked).rev().find(|step| step % 3 == kind as u64).unwrap_or(0);
            assert!(*at >= due, "{found:?} after step {}", image.acked);
        }
        let done = Arc::new(AtomicU64::new(reached));
        let (tell, told) = channel();
        mounted.cut_later(CutPlan {
            after_reuses: 0,
            after_requests: 1 + below(&chance, 60) as u64,
            mode: mode(nth, &chance),
            acked: Arc::clone(&done),
            tell,
        });
        image = loop {
            if let Ok(cut) = told.try_recv() {
                break cut;
            }
            let step = done.load(Ordering::SeqCst) + 1;
            take_step(&store, step);
            done.store(step, Ordering::SeqCst);
        };
    }
    assert!(image.acked > 12, "only {} steps were made", image.acked);
}

fn take_step(store: &Store, step: u64) {
    match step % 3 {
        0 => {
            let identity = Identity { cluster_id: "c".to_owned(), node_id: step };
            store.identity.save(&identity).unwrap();
        }
        1 => {
            let meta = Bytes::copy_from_slice(&step.to_be_bytes());
            let mut writer = store.snapshots.begin("1.1", meta).unwrap();
            writer.write(1, &[step as u8; 9_000]).unwrap();
            writer.finish().unwrap();
        }
        _ => {
            let position = Some(LogPosition { term: 1, index: step });
            let applied = AppliedMark { position, ..AppliedMark::default() };
            let value = step.to_be_bytes().to_vec();
            let mut records = (1..20u8).map(|key| Ok((vec![key], value.clone())));
            store.records.replace_all(&mut records, applied).unwrap();
        }
    }
}

/// The last step of each kind, with every part of it checked.
fn steps_found(store: &Store) -> Result<[u64; 3], StoreError> {
    let identity = store.identity.load()?.map_or(0, |identity| identity.node_id);
    let mut snapshot = 0;
    if let Some(file) = store.snapshots.latest() {
        SnapshotReader::open(&file.path)?.verify()?;
        snapshot = u64::from_be_bytes(file.meta[..].try_into().unwrap());
    }
    let mark = store.records.applied()?.and_then(|mark| mark.position);
    let applied = mark.map_or(0, |position| position.index);
    for key in 1..20u8 {
        let expected = mark.map(|_| applied.to_be_bytes().to_vec());
        assert_eq!(store.records.get(&[key])?, expected);
    }
    Ok([identity, snapshot, applied])
}

#[test]
fn a_bit_flipped_at_rest_is_refused_at_the_next_start() {
    if !can_mount("a_bit_flipped_at_rest_is_refused_at_the_next_start") {
        return;
    }
    let mounted = Mounted::new(Disk::new(Names::WithFile)).unwrap();
    let store = open(&mounted).unwrap();
    append(&store, (1..20).map(|index| entry(index, 1_000)).collect()).unwrap();
    drop(store);
    mounted.with_disk(|disk| disk.flip_bit(&["data", "log", "0000000000000001.log"], 5_000));
    let refused = open(&mounted).err().unwrap();
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
}
