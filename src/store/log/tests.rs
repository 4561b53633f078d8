//! The log against a model; reopening after every prefix; torn tails and damage at every byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::store::files;
use crate::store::log::segment::HEADER_BYTES;

const OPTIONS: LogOptions = LogOptions { segment_bytes: 4_096, cache_bytes: 600 };
const PATIENCE: Duration = Duration::from_secs(30);

fn open(folder: &Path) -> Result<Log, StoreError> {
    Log::open(folder, OPTIONS, Faults::default(), Poison::default())
}

fn at(term: u64, index: u64) -> LogPosition {
    LogPosition { term, index }
}

fn entry(term: u64, index: u64, payload: &[u8]) -> LogEntry {
    let payload = Bytes::copy_from_slice(payload);
    LogEntry { position: at(term, index), kind: EntryKind::Normal, payload }
}

fn entries(term: u64, range: Range<u64>) -> Vec<LogEntry> {
    range.map(|index| entry(term, index, format!("entry {term}.{index}").as_bytes())).collect()
}

/// Appends and waits until it is durable.
fn append(log: &Log, entries: Vec<LogEntry>) -> Result<(), StoreError> {
    let (tell, told) = channel();
    log.append(entries, move |result| tell.send(result).unwrap())?;
    told.recv_timeout(PATIENCE).unwrap()
}

fn vote(log: &Log, term: u64) -> Result<(), StoreError> {
    let (tell, told) = channel();
    let vote = Vote { term, node_id: 7, committed: term.is_multiple_of(2) };
    log.save_vote(vote, move |result| tell.send(result).unwrap())?;
    told.recv_timeout(PATIENCE).unwrap()
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let names = files::names(folder).unwrap();
    names.iter().map(|name| folder.join(name)).collect()
}

fn copy(from: &Path, to: &Path) {
    for path in segments(from) {
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Bytes of the file up to the last one that is not zero.
fn written_bytes(path: &Path) -> usize {
    let bytes = fs::read(path).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

#[test]
fn everything_acknowledged_is_there_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let all = entries(3, 1..200);
    let log = open(folder.path()).unwrap();
    append(&log, all[..150].to_vec()).unwrap();
    vote(&log, 4).unwrap();
    log.save_committed(Some(at(3, 120))).unwrap();
    append(&log, all[150..].to_vec()).unwrap();
    drop(log);

    let log = open(folder.path()).unwrap();
    assert_eq!(log.last_position(), Some(at(3, 199)));
    assert_eq!(log.vote(), Some(Vote { term: 4, node_id: 7, committed: true }));
    assert_eq!(log.committed(), Some(at(3, 120)));
    assert_eq!(log.read(0..u64::MAX, usize::MAX).unwrap(), all);
    assert_eq!(log.position_at(77), Some(at(3, 77)));
    assert!(segments(folder.path()).len() > 2, "the log has several files");
}

#[test]
fn entries_can_be_read_before_they_are_durable_and_callbacks_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let log = Log::open(folder.path(), OPTIONS, faults.clone(), Poison::default()).unwrap();
    faults.hold_syncs();
    let (tell, told) = channel();
    for index in 1..=20 {
        let tell = tell.clone();
        log.append(entries(1, index..index + 1), move |result| {
            result.unwrap();
            tell.send(index).unwrap();
        })
        .unwrap();
        assert_eq!(log.last_position(), Some(at(1, index)));
        assert_eq!(log.read(index..index + 1, 1).unwrap().len(), 1);
    }
    assert!(told.try_recv().is_err(), "nothing is durable while the flush is held back");
    let syncs_before = log.sync_count();
    faults.release_syncs();
    let order: Vec<u64> = (1..=20).map(|_| told.recv_timeout(PATIENCE).unwrap()).collect();
    assert_eq!(order, (1..=20).collect::<Vec<u64>>());
    let syncs = log.sync_count() - syncs_before;
    assert!(syncs <= 2, "what waited went out together, in {syncs} flushes");
}

#[test]
fn one_acknowledged_batch_takes_one_flush() {
    let folder = tempfile::tempdir().unwrap();
    let options = LogOptions { segment_bytes: 1 << 20, ..OPTIONS };
    let log = Log::open(folder.path(), options, Faults::default(), Poison::default()).unwrap();
    for batch in 0..50 {
        append(&log, entries(1, batch * 10 + 1..batch * 10 + 11)).unwrap();
        log.save_committed(Some(at(1, batch * 10 + 10))).unwrap();
    }
    assert_eq!(log.sync_count(), 50);
}

#[test]
fn a_hole_and_an_oversized_entry_are_refused_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    append(&log, entries(2, 1..4)).unwrap();
    let cases = [
        ("a hole", vec![entry(2, 5, b"")]),
        ("a repetition", vec![entry(2, 3, b"")]),
        ("a term that goes back", vec![entry(1, 4, b"")]),
        ("a hole inside", vec![entry(2, 4, b""), entry(2, 6, b"")]),
        ("too large", vec![entry(2, 4, &vec![1; ENTRY_BYTES_MAX + 1])]),
    ];
    for (what, wrong) in cases {
        let refused = append(&log, wrong).unwrap_err();
        assert!(!refused.is_fatal(), "{what}: {refused}");
        assert_eq!(log.last_position(), Some(at(2, 3)), "{what}");
    }
    append(&log, vec![entry(2, 4, b"fits")]).unwrap();
}

#[test]
fn an_entry_larger_than_a_segment_gets_a_larger_one() {
    let folder = tempfile::tempdir().unwrap();
    let large = vec![entry(1, 1, b"small"), entry(1, 2, &vec![9; 100_000]), entry(1, 3, b"x")];
    append(&open(folder.path()).unwrap(), large.clone()).unwrap();
    assert_eq!(open(folder.path()).unwrap().read(1..4, usize::MAX).unwrap(), large);
}

#[test]
fn a_read_is_bounded_by_bytes_but_gives_one_entry() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    append(&log, (1..=9).map(|index| entry(1, index, &[0; 100])).collect()).unwrap();
    for (bytes_max, expected) in [(0, 1), (100, 1), (199, 1), (200, 2), (900, 9), (5_000, 9)] {
        assert_eq!(log.read(1..10, bytes_max).unwrap().len(), expected, "{bytes_max} bytes");
    }
    assert!(log.read(10..20, 100).unwrap().is_empty());
}

#[test]
fn purged_files_are_removed_and_the_rest_survives() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    vote(&log, 8).unwrap();
    append(&log, entries(5, 1..1_200)).unwrap();
    let before = log.disk_bytes();
    log.purge(at(5, 1_150)).unwrap();
    append(&log, entries(5, 1_200..1_202)).unwrap();
    assert!(log.disk_bytes() < before / 2, "{} of {before} bytes are left", log.disk_bytes());
    drop(log);
    let log = open(folder.path()).unwrap();
    assert_eq!((log.purged(), log.last_position()), (Some(at(5, 1_150)), Some(at(5, 1_201))));
    assert_eq!(log.vote().unwrap().term, 8, "the vote outlives the file it was written to");
    assert_eq!(log.read(0..2_000, usize::MAX).unwrap(), entries(5, 1_151..1_202));
    let bytes: u64 = segments(folder.path()).iter().map(|p| p.metadata().unwrap().len()).sum();
    assert!(bytes < before / 2, "the files are gone");
}

#[test]
fn a_purge_beyond_the_end_empties_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    append(&log, entries(1, 1..10)).unwrap();
    log.purge(at(4, 1_000)).unwrap();
    append(&log, entries(4, 1_001..1_003)).unwrap();
    drop(log);
    let log = open(folder.path()).unwrap();
    assert_eq!(log.purged(), Some(at(4, 1_000)));
    assert_eq!(log.read(0..2_000, usize::MAX).unwrap(), entries(4, 1_001..1_003));
}

#[test]
fn a_removal_that_a_crash_undid_in_part_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let saved = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    append(&log, entries(5, 1..400)).unwrap();
    copy(folder.path(), saved.path());
    log.purge(at(5, 390)).unwrap();
    vote(&log, 6).unwrap();
    drop(log);
    let oldest = segments(saved.path()).remove(0);
    fs::copy(&oldest, folder.path().join(oldest.file_name().unwrap())).unwrap();
    let log = open(folder.path()).unwrap();
    assert_eq!(log.read(0..500, usize::MAX).unwrap(), entries(5, 391..400));
}

#[test]
fn a_missing_file_in_the_middle_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    append(&open(folder.path()).unwrap(), entries(5, 1..400)).unwrap();
    let files = segments(folder.path());
    fs::remove_file(&files[files.len() / 2]).unwrap();
    let refused = open(folder.path()).err().unwrap().to_string();
    assert!(refused.contains("entries are missing"), "{refused}");
}

#[test]
fn a_failed_write_or_flush_stops_the_log_for_good() {
    for fail in [Faults::fail_next_write as fn(&Faults), Faults::fail_next_sync] {
        let folder = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let log = Log::open(folder.path(), OPTIONS, faults.clone(), Poison::default()).unwrap();
        append(&log, entries(1, 1..3)).unwrap();
        fail(&faults);
        let first = append(&log, entries(1, 3..4)).unwrap_err();
        assert!(first.is_fatal() && first.to_string().contains(".log"), "{first}");
        let syncs = faults.sync_count();
        let refused = [
            append(&log, entries(1, 4..5)),
            vote(&log, 9),
            log.truncate_after(1),
            log.purge(at(1, 1)),
            log.save_committed(None),
            log.read(1..2, 1).map(|_| ()),
        ];
        for result in refused {
            assert!(matches!(result, Err(StoreError::Poisoned { .. })), "{result:?}");
        }
        drop(log);
        assert_eq!(faults.sync_count(), syncs, "nothing is flushed again");
        let log = open(folder.path()).unwrap();
        assert!(log.last_position() >= Some(at(1, 2)), "what was acknowledged is there");
    }
}

/// One group after another, the bytes of the file after each, and what the log then held.
fn stages(folder: &Path) -> (PathBuf, Vec<usize>) {
    let log = open(folder).unwrap();
    let path = segments(folder).remove(0);
    let mut ends = vec![written_bytes(&path)];
    for index in 1..=8 {
        append(&log, vec![entry(1, index, format!("payload {index}").as_bytes())]).unwrap();
        ends.push(written_bytes(&path));
    }
    (path, ends)
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_to_the_last_whole_group() {
    let source = tempfile::tempdir().unwrap();
    let (path, ends) = stages(source.path());
    let whole = fs::read(&path).unwrap();
    for torn_at in HEADER_BYTES..ends[8] {
        let folder = tempfile::tempdir().unwrap();
        let mut torn = whole.clone();
        torn[torn_at..].fill(0);
        fs::write(folder.path().join(path.file_name().unwrap()), torn).unwrap();
        let log = open(folder.path()).unwrap_or_else(|error| panic!("byte {torn_at}: {error}"));
        let survivors = ends[1..].iter().filter(|end| **end <= torn_at).count() as u64;
        let last = (survivors > 0).then(|| at(1, survivors));
        assert_eq!(log.last_position(), last, "torn at byte {torn_at}");
        append(&log, vec![entry(2, survivors + 1, b"after the tear")]).unwrap();
        drop(log);
        let log = open(folder.path()).unwrap();
        assert_eq!(log.last_position(), Some(at(2, survivors + 1)), "torn at byte {torn_at}");
    }
}

#[test]
fn a_group_with_a_lost_sector_at_the_end_is_a_tear() {
    let source = tempfile::tempdir().unwrap();
    let options = LogOptions { segment_bytes: 1 << 20, ..OPTIONS };
    let log = Log::open(source.path(), options, Faults::default(), Poison::default()).unwrap();
    append(&log, vec![entry(1, 1, b"before")]).unwrap();
    let path = segments(source.path()).remove(0);
    let start = written_bytes(&path);
    append(&log, (2..=9).map(|index| entry(1, index, &[7; 600])).collect()).unwrap();
    drop(log);
    let whole = fs::read(&path).unwrap();
    for sector in start / 512..written_bytes(&path).div_ceil(512) {
        let folder = tempfile::tempdir().unwrap();
        let mut torn = whole.clone();
        torn[(sector * 512).max(start)..(sector + 1) * 512].fill(0);
        fs::write(folder.path().join(path.file_name().unwrap()), torn).unwrap();
        let log = open(folder.path()).unwrap_or_else(|error| panic!("sector {sector}: {error}"));
        assert_eq!(log.last_position(), Some(at(1, 1)), "sector {sector}");
    }
}

#[test]
fn every_flipped_bit_is_refused_with_file_and_offset() {
    let source = tempfile::tempdir().unwrap();
    let (path, ends) = stages(source.path());
    let whole = fs::read(&path).unwrap();
    let name = path.file_name().unwrap();
    for byte in (0..40).chain(HEADER_BYTES..ends[8]) {
        let folder = tempfile::tempdir().unwrap();
        let mut bad = whole.clone();
        bad[byte] ^= 1 << (byte % 8);
        fs::write(folder.path().join(name), bad).unwrap();
        match open(folder.path()) {
            Err(StoreError::Corrupt { path, offset, .. }) => {
                assert_eq!(path.file_name(), Some(name), "byte {byte}");
                assert!(offset as usize <= byte, "byte {byte}, found at {offset}");
            }
            Err(StoreError::NewerFormat { .. }) => assert!((8..12).contains(&byte)),
            Err(other) => panic!("byte {byte}: {other}"),
            Ok(log) => {
                // The padding between groups carries nothing.
                let padding =
                    ends.iter().any(|end| (*end..end.next_multiple_of(8)).contains(&byte));
                assert!(padding, "byte {byte} was changed and nobody noticed");
                assert_eq!(log.last_position(), Some(at(1, 8)));
            }
        }
    }
}

#[test]
fn damage_at_rest_is_found_when_an_old_entry_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    append(&log, entries(1, 1..100)).unwrap();
    let path = segments(folder.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    let found = bytes.windows(9).position(|window| window == b"entry 1.2").unwrap();
    bytes[found] ^= 1;
    fs::write(&path, bytes).unwrap();
    let refused = log.read(2..3, 1).unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
}

#[test]
fn a_payload_cannot_pose_as_a_group() {
    let source = tempfile::tempdir().unwrap();
    let (path, ends) = stages(source.path());
    let group = fs::read(&path).unwrap()[ends[7].next_multiple_of(8)..ends[8]].to_vec();
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    append(&log, vec![entry(1, 1, b"first")]).unwrap();
    let file = segments(folder.path()).remove(0);
    let start = written_bytes(&file);
    let mut payload = vec![1; 512 * 2];
    payload.extend_from_slice(&group);
    append(&log, vec![entry(1, 2, &payload)]).unwrap();
    drop(log);
    let mut bytes = fs::read(&file).unwrap();
    bytes[start.next_multiple_of(8)..1_024].fill(0);
    fs::write(&file, bytes).unwrap();
    assert_eq!(open(folder.path()).unwrap().last_position(), Some(at(1, 1)));
}

#[derive(Clone, Debug)]
enum Step {
    Append { count: u64, newer_term: bool, bytes: usize },
    Vote(u64),
    Committed(u64),
    Truncate(u64),
    Purge(u64),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1..12u64, any::<bool>(), 0..700usize)
            .prop_map(|(count, newer_term, bytes)| Step::Append { count, newer_term, bytes }),
        1 => (0..9u64).prop_map(Step::Vote),
        1 => (0..100u64).prop_map(Step::Committed),
        2 => (0..100u64).prop_map(Step::Truncate),
        2 => (0..130u64).prop_map(Step::Purge),
        2 => Just(Step::Reopen),
    ]
}

/// The log as a list.
#[derive(Debug, Default)]
struct Model {
    entries: Vec<LogEntry>,
    purged: Option<LogPosition>,
    vote: Option<Vote>,
    committed: Option<LogPosition>,
}

impl Model {
    fn last(&self) -> Option<LogPosition> {
        self.entries.last().map(|entry| entry.position).or(self.purged)
    }

    fn apply(&mut self, log: &Log, step: &Step, seed: u8) {
        match *step {
            Step::Append { count, newer_term, bytes } => {
                let last = self.last().unwrap_or(at(1, 0));
                let term = last.term + u64::from(newer_term);
                let new: Vec<LogEntry> = (last.index + 1..=last.index + count)
                    .map(|index| entry(term, index, &vec![seed; bytes]))
                    .collect();
                self.entries.extend(new.clone());
                log.append(new, |result| result.unwrap()).unwrap();
            }
            Step::Vote(term) => {
                self.vote = Some(Vote { term, node_id: 1, committed: false });
                log.save_vote(self.vote.unwrap(), |result| result.unwrap()).unwrap();
            }
            Step::Committed(index) => {
                self.committed = Some(at(1, index));
                log.save_committed(self.committed).unwrap();
            }
            Step::Truncate(index) => {
                self.entries.retain(|entry| entry.position.index <= index);
                log.truncate_after(index).unwrap();
            }
            Step::Purge(index) => {
                let term = self.last().map_or(1, |last| last.term);
                let here = self.entries.iter().find(|entry| entry.position.index == index);
                let upto = here.map_or(at(term, index), |entry| entry.position);
                if self.purged.is_none_or(|purged| purged.index < index) {
                    self.purged = Some(upto);
                    self.entries.retain(|entry| entry.position.index > index);
                }
                log.purge(upto).unwrap();
            }
            Step::Reopen => {}
        }
    }

    fn compare(&self, log: &Log) {
        assert_eq!(log.read(0..u64::MAX, usize::MAX).unwrap(), self.entries);
        assert_eq!(log.last_position(), self.last());
        assert_eq!(log.purged(), self.purged);
        assert_eq!(log.vote(), self.vote);
        assert_eq!(log.committed(), self.committed);
        for entry in &self.entries {
            assert_eq!(log.position_at(entry.position.index), Some(entry.position));
        }
        let next = self.last().map_or(0, |last| last.index + 1);
        assert_eq!(log.position_at(next), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_log_equals_a_list_also_after_reopening(steps in prop::collection::vec(step(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let mut model = Model::default();
        let mut log = open(folder.path()).unwrap();
        for (nth, step) in steps.iter().enumerate() {
            model.apply(&log, step, nth as u8);
            if matches!(step, Step::Reopen) {
                drop(log);
                log = open(folder.path()).unwrap();
            }
            model.compare(&log);
        }
        drop(log);
        model.compare(&open(folder.path()).unwrap());
    }

    #[test]
    fn the_log_in_memory_equals_a_list(steps in prop::collection::vec(step(), 1..60)) {
        let mut model = Model::default();
        let log = Log::in_memory();
        for (nth, step) in steps.iter().enumerate() {
            model.apply(&log, step, nth as u8);
            model.compare(&log);
        }
    }
}
