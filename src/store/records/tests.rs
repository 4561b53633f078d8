//! Records on disk against their twin in memory; damage; replacement.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::store::records::disk::DiskRecords;

const CACHE_BYTES: u64 = 4 * 1_024 * 1_024;

fn open(folder: &Path) -> Records {
    open_with(folder, Faults::default()).unwrap()
}

fn open_with(folder: &Path, faults: Faults) -> Result<Records, StoreError> {
    let store = DiskRecords::open(folder, CACHE_BYTES, faults, Poison::default())?;
    Ok(Records { store: Arc::new(store) })
}

fn mark(index: u64) -> AppliedMark {
    let position = Some(LogPosition { term: 1, index });
    AppliedMark { position, membership: Bytes::from_static(b"three"), stamp_ms: -5 }
}

fn put(records: &Records, index: u64, puts: &[(&[u8], &[u8])]) -> Result<(), StoreError> {
    let puts = puts.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    records.apply(RecordBatch { puts, deletes: Vec::new(), applied: mark(index) })
}

fn all(records: &Records) -> Vec<KeyValue> {
    records.scan(Bound::Unbounded, Bound::Unbounded, false, usize::MAX).unwrap()
}

#[test]
fn a_batch_carries_its_mark_and_survives_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let records = open(folder.path());
    assert_eq!(records.applied().unwrap(), None);
    put(&records, 7, &[(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]).unwrap();
    records.make_durable().unwrap();
    drop(records);
    let records = open(folder.path());
    assert_eq!(records.applied().unwrap(), Some(mark(7)));
    assert_eq!(records.get(b"a").unwrap().unwrap(), b"3", "a later put of a key wins");
    assert_eq!(all(&records).len(), 2, "the store's own keys are hidden");
}

#[test]
fn refused_batches_change_nothing() {
    let limit = VALUE_BYTES_MAX;
    for records in [open(tempfile::tempdir().unwrap().path()), Records::in_memory()] {
        put(&records, 1, &[(b"a", b"1")]).unwrap();
        let wrong: [(&[u8], Vec<u8>); 3] =
            [(b"", vec![]), (b"\0own", vec![]), (b"b", vec![0; limit + 1])];
        for (key, value) in wrong {
            let refused = put(&records, 2, &[(b"a", b"2"), (key, &value)]).unwrap_err();
            assert!(!refused.is_fatal(), "{refused}");
        }
        assert_eq!(records.get(b"a").unwrap().unwrap(), b"1");
        assert_eq!(records.applied().unwrap(), Some(mark(1)));
        put(&records, 2, &[(b"b", &vec![9; limit])]).unwrap();
        assert_eq!(records.get(b"b").unwrap().unwrap().len(), limit);
    }
}

#[test]
fn for_each_shows_one_prefix_and_stops_at_an_error() {
    for records in [open(tempfile::tempdir().unwrap().path()), Records::in_memory()] {
        let pairs: [(&[u8], &[u8]); 5] =
            [(b"a", b""), (b"j/1", b""), (b"j/2", b""), (b"j\xff", b""), (b"k", b"")];
        put(&records, 1, &pairs).unwrap();
        let mut seen = Vec::new();
        let mut note = |key: &[u8], _: &[u8]| {
            seen.push(key.to_vec());
            Ok(())
        };
        records.for_each(b"j/", &mut note).unwrap();
        assert_eq!(seen, [b"j/1", b"j/2"]);
        let mut count = 0;
        let stopped = records.for_each(b"", &mut |_, _| {
            count += 1;
            Err(StoreError::misuse("enough"))
        });
        assert!(stopped.is_err() && count == 1);
    }
}

#[test]
fn a_value_under_another_key_is_damage_and_stops_the_store() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let generation = folder.path().join("0000000000000001");
    let db = sled::Config::new().path(&generation).segment_size(16 << 20).open().unwrap();
    db.insert(b"job/a", value::seal(b"job/b", b"value")).unwrap();
    db.flush().unwrap();
    drop(db);
    let records = open(folder.path());
    let refused = records.get(b"job/a").unwrap_err().to_string();
    assert!(refused.contains("job/a") && refused.contains("checksum"), "{refused}");
    assert!(matches!(put(&records, 1, &[]), Err(StoreError::Poisoned { .. })));
}

#[test]
fn a_failed_flush_stops_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let records = open_with(folder.path(), faults.clone()).unwrap();
    put(&records, 1, &[(b"a", b"1")]).unwrap();
    faults.fail_next_sync();
    assert!(records.make_durable().unwrap_err().is_fatal());
    assert!(matches!(records.make_durable(), Err(StoreError::Poisoned { .. })));
    assert!(matches!(put(&records, 2, &[]), Err(StoreError::Poisoned { .. })));
}

#[test]
fn a_batch_can_be_read_before_it_is_written_and_each_write_is_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let records = open_with(folder.path(), faults.clone()).unwrap();
    put(&records, 1, &[(b"a", b"1"), (b"b", b"1"), (b"c", b"1")]).unwrap();
    records.make_durable().unwrap();
    let before = faults.sync_count();
    faults.hold_syncs();
    let deletes = vec![b"b".to_vec()];
    let puts = vec![(b"a".to_vec(), b"2".to_vec()), (b"d".to_vec(), b"2".to_vec())];
    records.apply(RecordBatch { puts, deletes, applied: mark(2) }).unwrap();
    for index in 3..100 {
        put(&records, index, &[(b"e", b"3")]).unwrap();
    }
    assert_eq!(records.applied().unwrap(), Some(mark(99)));
    assert_eq!(records.get(b"a").unwrap().unwrap(), b"2");
    assert_eq!(records.get(b"b").unwrap(), None);
    let keys: Vec<Vec<u8>> = all(&records).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [b"a", b"c", b"d", b"e"]);
    faults.release_syncs();
    records.make_durable().unwrap();
    let syncs = faults.sync_count() - before;
    assert!((1..=3).contains(&syncs), "99 batches went out together, in {syncs} flushes");
    drop(records);
    assert_eq!(all(&open(folder.path())).len(), 4);
}

#[test]
fn replacing_everything_is_whole_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let records = open(folder.path());
    put(&records, 1, &[(b"old", b"1")]).unwrap();

    let broken = [Ok((b"new".to_vec(), b"2".to_vec())), Err(StoreError::misuse("torn"))];
    let refused = records.replace_all(&mut broken.into_iter(), mark(9)).unwrap_err();
    assert!(!refused.is_fatal());
    assert_eq!(all(&records), [(b"old".to_vec(), b"1".to_vec())]);

    let mut fresh =
        (0..3_000u32).map(|n| Ok((n.to_be_bytes().map(|b| b | 1).to_vec(), vec![7; 1_000])));
    records.replace_all(&mut fresh, mark(9)).unwrap();
    put(&records, 10, &[(b"later", b"3")]).unwrap();
    records.make_durable().unwrap();
    drop(records);
    let records = open(folder.path());
    assert_eq!(records.get(b"old").unwrap(), None);
    assert_eq!(records.get(b"later").unwrap().unwrap(), b"3");
    assert_eq!(records.applied().unwrap(), Some(mark(10)));
    let folders = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(folders, 2, "the pointer and one generation are left");
}

#[test]
fn a_replacement_that_never_ended_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let records = open(folder.path());
    put(&records, 3, &[(b"kept", b"1")]).unwrap();
    drop(records);
    let half = folder.path().join("0000000000000002");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("db"), b"half").unwrap();
    let generation = folder.path().join("0000000000000001");
    fs::write(generation.join("snap.0000.generating"), b"half").unwrap();
    let records = open(folder.path());
    assert_eq!(records.applied().unwrap(), Some(mark(3)));
    assert!(!half.exists());
}

#[test]
fn a_damaged_pointer_or_missing_records_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let pointer = folder.path().join("CURRENT");
    let good = fs::read(&pointer).unwrap();
    for byte in 0..good.len() {
        let mut bad = good.clone();
        bad[byte] ^= 1;
        fs::write(&pointer, bad).unwrap();
        assert!(open_with(folder.path(), Faults::default()).is_err(), "byte {byte}");
    }
    fs::write(&pointer, good).unwrap();
    fs::remove_dir_all(folder.path().join("0000000000000001")).unwrap();
    let refused = open_with(folder.path(), Faults::default()).err().unwrap().to_string();
    assert!(refused.contains("missing"), "{refused}");
}

#[test]
fn records_that_sled_opens_as_empty_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let generation = folder.path().join("0000000000000001");
    fs::remove_dir_all(&generation).unwrap();
    fs::create_dir(&generation).unwrap();
    let refused = open_with(folder.path(), Faults::default()).err().unwrap().to_string();
    assert!(refused.contains("opened it as empty"), "{refused}");
}

type Batch = (Vec<(u8, u8)>, Vec<u8>);

fn any_batch() -> impl Strategy<Value = Batch> {
    let puts = prop::collection::vec((1..40u8, any::<u8>()), 0..12);
    (puts, prop::collection::vec(1..40u8, 0..6))
}

fn any_bounds() -> impl Strategy<Value = (u8, u8, u8, u8, bool, usize)> {
    (0..42u8, 0..42u8, 0..3u8, 0..3u8, any::<bool>(), 0..50usize)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn records_on_disk_equal_their_twin_in_memory(
        batches in prop::collection::vec(any_batch(), 1..12),
        bounds in prop::collection::vec(any_bounds(), 8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (disk, twin) = (open(folder.path()), Records::in_memory());
        for (index, (puts, deletes)) in batches.iter().enumerate() {
            let batch = batch(index as u64, &(puts.clone(), deletes.clone()));
            disk.apply(batch.clone()).unwrap();
            twin.apply(batch).unwrap();
            if index % 3 == 1 {
                disk.make_durable().unwrap();
            }
        }
        prop_assert_eq!(all(&disk), all(&twin));
        prop_assert_eq!(disk.applied().unwrap(), twin.applied().unwrap());
        for (from, to, from_kind, to_kind, reverse, limit) in bounds {
            let (from, to) = ([from], [to]);
            let (from, to) = (bound(from_kind, &from), bound(to_kind, &to));
            prop_assert_eq!(
                disk.scan(from, to, reverse, limit).unwrap(),
                twin.scan(from, to, reverse, limit).unwrap()
            );
        }
    }
}

fn batch(index: u64, (puts, deletes): &Batch) -> RecordBatch {
    RecordBatch {
        puts: puts.iter().map(|(key, value)| (vec![*key], vec![*value; 9])).collect(),
        deletes: deletes.iter().map(|key| vec![*key]).collect(),
        applied: mark(index),
    }
}

fn bound(kind: u8, key: &[u8]) -> Bound<&[u8]> {
    match kind {
        0 => Bound::Included(key),
        1 => Bound::Excluded(key),
        _ => Bound::Unbounded,
    }
}
