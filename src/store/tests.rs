//! The folder as a whole, and snapshots.

use std::fs;

use bytes::Bytes;

use super::*;
use crate::store::snapshot_file::{SnapshotFile, SnapshotReader};

fn open(dir: &Path) -> Result<Store, StoreError> {
    let options = StoreOptions { log_segment_bytes: 64 * 1_024, ..StoreOptions::default() };
    Store::open(dir, options)
}

#[test]
fn a_second_process_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path()).unwrap();
    let refused = open(folder.path()).err().unwrap();
    assert!(matches!(refused, StoreError::Locked { .. }));
    let holder = format!("process {}", std::process::id());
    assert!(refused.to_string().contains(&holder), "{refused}");
    drop(first);
    open(folder.path()).unwrap();
}

#[test]
fn a_newer_folder_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    let format = folder.path().join(format::FORMAT_FILE);
    fs::write(&format, "horolog data folder, format 9\n").unwrap();
    let refused = open(folder.path()).err().unwrap();
    assert!(matches!(refused, StoreError::NewerFormat { found: 9, known: 1, .. }), "{refused}");
}

fn write(snapshots: &Snapshots, name: &str, frames: &[(u8, &[u8])]) -> SnapshotFile {
    let mut writer = snapshots.begin(name, Bytes::from(format!("meta of {name}"))).unwrap();
    for (tag, bytes) in frames {
        writer.write(*tag, bytes).unwrap();
    }
    writer.finish().unwrap()
}

fn snapshots(folder: &Path) -> Snapshots {
    Snapshots::open(folder, Faults::default(), Poison::default()).unwrap()
}

#[test]
fn a_snapshot_gives_back_its_frames_and_the_last_two_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(snapshots(folder.path()).latest(), None);
    let frames: [(u8, &[u8]); 3] = [(1, b"jobs"), (2, b""), (1, &[8; 300_000])];
    for name in ["1.5", "1.9", "2.20"] {
        let file = write(&snapshots(folder.path()), name, &frames);
        assert_eq!(snapshots(folder.path()).latest(), Some(file.clone()));
        assert_eq!(file.meta, format!("meta of {name}"));
        let mut reader = SnapshotReader::open(&file.path).unwrap();
        for (tag, bytes) in frames {
            assert_eq!(reader.next_frame().unwrap(), Some((tag, bytes.to_vec())));
        }
        assert_eq!(reader.next_frame().unwrap(), None);
    }
    assert_eq!(files::names(folder.path()).unwrap().len(), 2);
}

#[test]
fn an_unfinished_snapshot_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = snapshots(folder.path()).begin("1.1", Bytes::new()).unwrap();
    writer.write(1, b"half").unwrap();
    drop(writer);
    assert!(files::names(folder.path()).unwrap().is_empty());
    fs::write(folder.path().join("1.2.tmp"), b"left by a crash").unwrap();
    assert_eq!(snapshots(folder.path()).latest(), None);
    assert!(files::names(folder.path()).unwrap().is_empty());
}

#[test]
fn every_damaged_byte_of_a_snapshot_is_found_before_anything_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let frames: [(u8, &[u8]); 2] = [(1, b"jobs"), (7, b"fires")];
    let file = write(&snapshots(folder.path()), "1.1", &frames);
    let good = fs::read(&file.path).unwrap();
    let verify = || SnapshotReader::open(&file.path).and_then(SnapshotReader::verify);
    verify().unwrap();
    for byte in 0..good.len() {
        let mut bad = good.clone();
        bad[byte] ^= 1 << (byte % 8);
        fs::write(&file.path, &bad).unwrap();
        assert!(verify().is_err(), "byte {byte}");
        fs::write(&file.path, &good[..byte]).unwrap();
        assert!(verify().is_err(), "cut at {byte}");
    }
}

#[test]
fn a_received_snapshot_counts_only_when_whole_and_the_announced_one() {
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = write(&snapshots(theirs.path()), "3.30", &[(1, &[5; 10_000])]);
    let bytes = fs::read(&file.path).unwrap();
    let ours = snapshots(ours.path());
    let total = bytes.len() as u64;

    let mut damaged = bytes.clone();
    damaged[5_000] ^= 1;
    let short = &bytes[..9_000];
    for (what, sent, checksum) in [
        ("damaged", damaged.as_slice(), file.checksum),
        ("cut off", short, file.checksum),
        ("another one", bytes.as_slice(), file.checksum ^ 1),
    ] {
        let mut receiver = ours.receive("3.30", total, checksum).unwrap();
        receiver.write(0, sent).unwrap();
        assert!(receiver.finish().is_err(), "{what}");
        assert_eq!(ours.latest(), None, "{what}");
    }

    let mut receiver = ours.receive("3.30", total, file.checksum).unwrap();
    for (nth, chunk) in bytes.chunks(3_000).enumerate() {
        assert!(receiver.write(1, chunk).is_err(), "a chunk out of order");
        receiver.write(nth as u64 * 3_000, chunk).unwrap();
    }
    assert!(receiver.write(total, b"more").is_err(), "a chunk beyond the end");
    let received = receiver.finish().unwrap();
    assert_eq!((received.meta.clone(), received.checksum), (file.meta, file.checksum));
    assert_eq!(ours.latest(), Some(received));
}
