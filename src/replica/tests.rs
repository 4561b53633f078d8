//! The adapters against openraft's own storage suite, over the real store in temporary folders.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use openraft::StorageError;
use openraft::raft::{AppendEntriesRequest, VoteRequest, VoteResponse};
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;

use crate::replica::apply_adapter::ApplyAdapter;
use crate::replica::codec::{DecodeError, Reader, encode_stored_members};
use crate::replica::error::ProposeError;
use crate::replica::frames::{
    ClusterTag, Kind, PROTOCOL, begin, finish, put_append, put_appended, put_error,
    put_vote_answer, put_vote_request, read_append, read_appended, read_error, read_vote_answer,
    read_vote_request, take_frame,
};
use crate::replica::link::LinkTimings;
use crate::replica::log_adapter::{DurableMark, LogAdapter};
use crate::replica::overlay::Overlay;
use crate::replica::peers::Peers;
use crate::replica::types::{
    Entry, EntryPayload, PeerNode, StampedProposal, StoredMembers, TypeConfig, Vote, log_id,
    members, position_of,
};
use crate::store::records::{AppliedMark, RecordBatch, Records};
use crate::store::{Store, StoreOptions};

struct Builder;

/// Keeps the folder and its lock as long as the adapters are in use.
struct Guard {
    _store: Store,
    _folder: TempDir,
}

pub(crate) fn timings() -> LinkTimings {
    let second = Duration::from_secs(1);
    LinkTimings { connect: second, probe_after: second, probe_wait: second }
}

impl StoreBuilder<TypeConfig, LogAdapter, ApplyAdapter, Guard> for Builder {
    async fn build(&self) -> Result<(Guard, LogAdapter, ApplyAdapter), StorageError<TypeConfig>> {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        let durable = DurableMark::default();
        let log = LogAdapter::new(store.log.clone(), store.records.clone(), durable.clone());
        let peers = Arc::new(Peers::new(ClusterTag::NONE, timings()));
        let overlay = Overlay::new(store.records.clone());
        let snapshots = store.snapshots.clone();
        let adapter = ApplyAdapter::open(overlay, snapshots, durable, peers).unwrap();
        Ok((Guard { _store: store, _folder: folder }, log, adapter))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openrafts_storage_suite_passes() {
    Suite::test_store(&Builder).await.unwrap();
}

fn frames_of_every_kind() -> Vec<(Kind, BytesMut)> {
    let vote = Vote::new_committed(7, 3);
    let nodes = BTreeMap::from([
        (1, PeerNode { peer: "a:1".to_owned(), api: "a:2".to_owned() }),
        (9, PeerNode { peer: "b:1".to_owned(), api: String::new() }),
    ]);
    let configs = vec![BTreeSet::from([1]), BTreeSet::from([1, 9])];
    let members = members(configs, nodes).unwrap();
    let payloads = [
        EntryPayload::Blank,
        EntryPayload::Normal(StampedProposal(Bytes::from_static(b"stamp and proposal"))),
        EntryPayload::Membership(members),
    ];
    let entries = payloads.into_iter().zip(4..);
    let entries = entries.map(|(payload, index)| Entry { log_id: log_id(7, index), payload });
    let append = AppendEntriesRequest {
        vote,
        prev_log_id: Some(log_id(6, 3)),
        entries: entries.collect(),
        leader_commit: None,
    };
    let tag = ClusterTag::parse("c0ffee").unwrap();
    let frame = |kind: Kind, put: &dyn Fn(&mut BytesMut)| {
        let mut out = begin(kind, tag);
        put(&mut out);
        (kind, BytesMut::from(&finish(out)[..]))
    };
    let error = ProposeError::Unknown { reason: "lost".to_owned() };
    vec![
        frame(Kind::Append, &|out| put_append(out, append.clone())),
        frame(Kind::Appended, &|out| put_appended(out, &Ok(Some(log_id(7, 6))))),
        frame(Kind::Vote, &|out| {
            put_vote_request(out, &VoteRequest::new(vote, Some(log_id(6, 3))));
        }),
        frame(Kind::Voted, &|out| put_vote_answer(out, &VoteResponse::new(vote, None, true))),
        frame(Kind::Refused, &|out| put_error(out, &error)),
    ]
}

fn read(kind: Kind, body: Bytes) -> Result<String, DecodeError> {
    Ok(match kind {
        Kind::Append => format!("{:?}", read_append(body)?),
        Kind::Appended => format!("{:?}", read_appended(body)?),
        Kind::Vote => format!("{:?}", read_vote_request(body)?),
        Kind::Voted => format!("{:?}", read_vote_answer(body)?),
        _ => format!("{:?}", read_error(&mut Reader(body))?),
    })
}

#[test]
fn a_frame_comes_out_as_it_went_in_however_it_was_cut() {
    for (kind, whole) in frames_of_every_kind() {
        let mut buffer = whole.clone();
        let frame = take_frame(&mut buffer).unwrap().unwrap();
        assert_eq!((frame.version, frame.kind), (PROTOCOL, Some(kind)));
        assert_eq!(frame.cluster, ClusterTag::parse("c0ffee").unwrap());
        let expected = read(kind, frame.body).unwrap();
        for cut in 0..whole.len() {
            let mut buffer = BytesMut::from(&whole[..cut]);
            assert!(take_frame(&mut buffer).unwrap().is_none(), "{kind:?} at {cut}");
            buffer.extend_from_slice(&whole[cut..]);
            let frame = take_frame(&mut buffer).unwrap().unwrap();
            assert_eq!(read(kind, frame.body).unwrap(), expected);
        }
    }
}

#[test]
fn a_damaged_body_is_an_error_and_never_a_panic() {
    for (kind, mut whole) in frames_of_every_kind() {
        let body = take_frame(&mut whole).unwrap().unwrap().body;
        for cut in 0..body.len() {
            assert!(read(kind, body.slice(..cut)).is_err(), "{kind:?} cut at {cut}");
        }
        for at in 0..body.len() {
            for bit in 0..8 {
                let mut bad = body.to_vec();
                bad[at] ^= 1 << bit;
                // What still reads as something is for the checks above the codec.
                let _ = read(kind, Bytes::from(bad));
            }
        }
    }
}

#[test]
fn a_cluster_is_a_number_of_at_most_128_bits_and_not_zero() {
    let whole = "0123456789abcdef0123456789abcdef";
    assert!(ClusterTag::parse(whole).is_ok());
    for wrong in ["", "0", "xyz", "1123456789abcdef0123456789abcdef0"] {
        assert!(ClusterTag::parse(wrong).is_err(), "{wrong}");
    }
}

fn batch(index: u64, puts: &[(&str, &str)], deletes: &[&str]) -> RecordBatch {
    let bytes = |text: &str| text.as_bytes().to_vec();
    RecordBatch {
        puts: puts.iter().map(|(key, value)| (bytes(key), bytes(value))).collect(),
        deletes: deletes.iter().map(|key| bytes(key)).collect(),
        applied: AppliedMark {
            position: Some(position_of(log_id(1, index))),
            ..AppliedMark::default()
        },
    }
}

fn all(records: &Records, reverse: bool, limit: usize) -> Vec<String> {
    let found = records.scan(Bound::Unbounded, Bound::Unbounded, reverse, limit).unwrap();
    let shown = |(key, value): (Vec<u8>, Vec<u8>)| {
        format!("{}={}", String::from_utf8(key).unwrap(), String::from_utf8(value).unwrap())
    };
    found.into_iter().map(shown).collect()
}

#[test]
fn records_stand_still_for_a_snapshot_and_go_on_for_everybody_else() {
    let base = Records::in_memory();
    let overlay = Overlay::new(base.clone());
    let records = overlay.records();
    records.apply(batch(1, &[("a", "1"), ("b", "1"), ("c", "1")], &[])).unwrap();
    let still = overlay.hold().unwrap();
    records.apply(batch(2, &[("b", "2"), ("d", "2")], &["a"])).unwrap();
    records.apply(batch(3, &[("a", "3")], &["c"])).unwrap();
    assert_eq!(all(still.records(), false, 9), ["a=1", "b=1", "c=1"]);
    assert_eq!(all(&records, false, 9), ["a=3", "b=2", "d=2"]);
    assert_eq!(all(&records, true, 2), ["d=2", "b=2"]);
    assert_eq!(all(&records, false, 1), ["a=3"]);
    assert_eq!(records.get(b"c").unwrap(), None);
    let index = |records: &Records| records.applied().unwrap().unwrap().position.unwrap().index;
    assert_eq!((index(&base), index(&records)), (1, 3), "a crash now replays from the first");
    assert!(overlay.hold().is_none(), "the base is behind, so no other snapshot begins");
    drop(still);
    assert_eq!(all(&base, false, 9), ["a=3", "b=2", "d=2"]);
    assert_eq!(index(&base), 3);
    assert!(overlay.hold().is_some());
}

#[test]
fn staged_changes_are_seen_before_they_are_written_and_only_once() {
    let base = Records::in_memory();
    let overlay = Overlay::new(base.clone());
    let records = overlay.records();
    overlay.stage(batch(1, &[("a", "1")], &[]));
    assert_eq!((all(&base, false, 9).len(), all(&records, false, 9)), (0, vec!["a=1".to_owned()]));
    assert!(overlay.hold().is_none(), "the base is behind");
    overlay.write_out().unwrap();
    assert_eq!(all(&base, false, 9), ["a=1"]);
    let still = overlay.hold().unwrap();
    overlay.stage(batch(2, &[("a", "2")], &[]));
    overlay.write_out().unwrap();
    assert_eq!(all(still.records(), false, 9), ["a=1"], "a snapshot reads it");
    drop(still);
    assert_eq!(all(&base, false, 9), ["a=2"]);
    overlay.write_out().unwrap();
    assert_eq!(all(&records, false, 9), ["a=2"]);
}

/// The bytes that are stored or sent never change: a new form gets a new version.
#[test]
fn stored_and_sent_bytes_are_those_of_every_release() {
    let nodes = BTreeMap::from([(1, PeerNode { peer: "p".to_owned(), api: "a".to_owned() })]);
    let members = members(vec![BTreeSet::from([1])], nodes).unwrap();
    let stored = StoredMembers::new(Some(log_id(2, 3)), members);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        hex(&encode_stored_members(&stored)),
        "010200000000000000030000000000000001010000000100000001000000000000000100000001000000\
         0000000001000000700100000061"
    );
    let sent: Vec<String> =
        frames_of_every_kind().iter().map(|(_, frame)| hex(&frame[..])).collect();
    assert_eq!(
        sent[1],
        "240000000102eeffc000000000000000000000000000000107000000000000000600000000000000"
    );
}
