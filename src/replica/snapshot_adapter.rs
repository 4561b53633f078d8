//! Snapshots: all records at one applied index, copied while the machine goes on, installed as a
//! whole.
//!
//! The records stand still while they are copied (`overlay`), so that a snapshot holds exactly what
//! every member's records hold at its index, what was pruned of the history as well. Nothing is
//! replaced on the receiving side before every byte was counted and checked, and then everything
//! at once.

use std::fs::File;
use std::io::{self, Read};

use bytes::{BufMut, Bytes, BytesMut};
use openraft::storage::{RaftSnapshotBuilder, Snapshot, SnapshotMeta};
use openraft::vote::leader_id_std::CommittedLeaderId;

use crate::replica::apply_adapter::blocking;
use crate::replica::codec::{
    DecodeError, Reader, decode_stored_members, encode_stored_members, put_bytes, put_log_id,
    read_log_id,
};
use crate::replica::log_adapter::{DurableMark, failed};
use crate::replica::overlay::Still;
use crate::replica::types::{LogId, PeerNode, StoredMembers, TypeConfig, position_of};
use crate::store::error::StoreError;
use crate::store::records::{AppliedMark, KeyValue, Records};
use crate::store::snapshot_file::{SnapshotFile, SnapshotReader, SnapshotWriter, Snapshots};

pub(crate) type MetaOfUs = SnapshotMeta<CommittedLeaderId<u64>, u64, PeerNode>;
pub(crate) type SnapshotOfUs = Snapshot<CommittedLeaderId<u64>, u64, PeerNode, SnapshotFile>;

/// The version of a snapshot's description and frames.
const VERSION: u8 = 1;
/// A frame of records: key and value, each with its length, again and again.
const RECORDS_TAG: u8 = 1;
/// Size at which a frame is written out.
const FRAME_BYTES: usize = 256 * 1_024;

/// Everything a snapshot is made of, as of one index.
pub(crate) struct SnapshotBuilder {
    pub(crate) last: Option<LogId>,
    pub(crate) members: StoredMembers,
    pub(crate) mark: AppliedMark,
    /// None when an earlier snapshot is still being made.
    pub(crate) still: Option<Still>,
    pub(crate) snapshots: Snapshots,
    pub(crate) durable: DurableMark,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> io::Result<SnapshotOfUs> {
        let Some(still) = self.still.take() else {
            return Err(io::Error::other("two snapshots are made at the same time"));
        };
        let index = self.last.map_or(0, |id| id.index);
        let meta = encode_meta(self.last, &self.members, &self.mark);
        let (snapshots, durable) = (self.snapshots.clone(), self.durable.clone());
        let build = move || -> Result<SnapshotFile, StoreError> {
            let records = still.records();
            // The log may be purged up to here afterwards, so the records come to the disk first.
            records.make_durable()?;
            durable.reached(index);
            let written = write_snapshot(records, &snapshots, &format!("{index}"), meta)?;
            // One that arrived meanwhile, from a leader that is further, stays the newest.
            match snapshots.latest() {
                Some(latest) if is_further(&latest, index) => Ok(latest),
                Some(_) | None => written.finish(),
            }
        };
        let file = blocking(build).await?.map_err(failed)?;
        let (meta, _) = read_meta(&file.meta)?;
        Ok(Snapshot { meta, snapshot: file })
    }
}

fn write_snapshot(
    records: &Records,
    snapshots: &Snapshots,
    name: &str,
    meta: Bytes,
) -> Result<SnapshotWriter, StoreError> {
    let mut writer = snapshots.begin(name, meta)?;
    let mut frame = BytesMut::new();
    records.for_each(&[], &mut |key: &[u8], value: &[u8]| {
        put_bytes(&mut frame, key);
        put_bytes(&mut frame, value);
        if frame.len() < FRAME_BYTES {
            return Ok(());
        }
        writer.write(RECORDS_TAG, &frame.split())
    })?;
    if !frame.is_empty() {
        writer.write(RECORDS_TAG, &frame)?;
    }
    Ok(writer)
}

fn is_further(snapshot: &SnapshotFile, index: u64) -> bool {
    let last = read_meta(&snapshot.meta).ok().and_then(|(meta, _)| meta.last_log_id);
    last.is_some_and(|last| last.index > index)
}

fn encode_meta(last: Option<LogId>, members: &StoredMembers, mark: &AppliedMark) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(VERSION);
    put_log_id(&mut out, last);
    out.put_i64_le(mark.stamp_ms);
    out.put_slice(&encode_stored_members(members));
    out.freeze()
}

/// What a snapshot says of itself.
///
/// # Errors
/// A newer format, or damage.
pub(crate) fn read_meta(meta: &Bytes) -> io::Result<(MetaOfUs, AppliedMark)> {
    let malformed =
        |error: DecodeError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let mut input = Reader(meta.clone());
    let version = input.u8("snapshot description").map_err(malformed)?;
    if version != VERSION {
        let problem = format!("a snapshot has format {version}, which this version does not know");
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    let last_log_id = read_log_id(&mut input).map_err(malformed)?;
    let stamp_ms = input.u64("snapshot description").map_err(malformed)?.cast_signed();
    let membership = input.rest();
    let last_membership = decode_stored_members(membership.clone()).map_err(malformed)?;
    let position = last_log_id.map(position_of);
    let mark = AppliedMark { position, membership, stamp_ms };
    Ok((MetaOfUs { last_log_id, last_membership }, mark))
}

/// Makes sure that a snapshot about to be installed is the newest in this member's own folder.
///
/// # Errors
/// Damage, or the disk.
pub(crate) fn keep(
    snapshots: &Snapshots,
    snapshot: SnapshotFile,
) -> Result<SnapshotFile, StoreError> {
    if snapshots.latest().is_some_and(|latest| latest.path == snapshot.path) {
        return Ok(snapshot);
    }
    let failed = |source| StoreError::io("read", &snapshot.path, source);
    let mut source = File::open(&snapshot.path).map_err(failed)?;
    let mut receiver = snapshots.receive("kept", snapshot.bytes, snapshot.checksum)?;
    let mut chunk = vec![0; FRAME_BYTES];
    loop {
        let length = source.read(&mut chunk).map_err(failed)?;
        match chunk.get(..length) {
            Some(read) if !read.is_empty() => receiver.write(receiver.bytes_received(), read)?,
            Some(_) | None => return receiver.finish(),
        }
    }
}

/// Replaces all records by those of a snapshot, durably.
///
/// # Errors
/// Damage (nothing is replaced then), or the disk.
pub(crate) fn install_records(
    records: &Records,
    snapshot: &SnapshotFile,
    mark: AppliedMark,
) -> Result<(), StoreError> {
    SnapshotReader::open(&snapshot.path)?.verify()?;
    let mut source = FrameRecords {
        reader: SnapshotReader::open(&snapshot.path)?,
        frame: Reader(Bytes::new()),
        failed: false,
    };
    records.replace_all(&mut source, mark)
}

/// The records in the frames of a snapshot, one after the other.
struct FrameRecords {
    reader: SnapshotReader,
    frame: Reader,
    failed: bool,
}

impl FrameRecords {
    fn step(&mut self) -> Result<Option<KeyValue>, StoreError> {
        while self.frame.0.is_empty() {
            let Some((tag, bytes)) = self.reader.next_frame()? else {
                return Ok(None);
            };
            if tag != RECORDS_TAG {
                let problem = format!("a snapshot has a frame of kind {tag}, which is not known");
                return Err(StoreError::Misuse { problem });
            }
            self.frame = Reader(Bytes::from(bytes));
        }
        let malformed = |error: DecodeError| StoreError::Misuse { problem: error.to_string() };
        let key = self.frame.bytes("record").map_err(malformed)?;
        let value = self.frame.bytes("record").map_err(malformed)?;
        Ok(Some((key.to_vec(), value.to_vec())))
    }
}

impl Iterator for FrameRecords {
    type Item = Result<KeyValue, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}
