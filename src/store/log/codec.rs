//! Records and groups as bytes.
//!
//! ```text
//! group   magic 4 | body bytes 4 | sequence 8 | records 4 | checksum 4 | zero 4 | mark 4
//!         records ... | mark 4 | zeros up to a multiple of 8
//! record  checksum 4 | bytes 4 | tag 1 | fields ...
//! ```
//!
//! Numbers are little-endian. Both checksums begin with the segment's nonce, a random number no
//! client knows, so that a payload cannot pose as a group. The marks are not zero: a group
//! without its last one has a hole.

use bytes::Bytes;

use crate::store::log::{EntryKind, LogEntry, LogPosition, Vote};

pub(crate) const GROUP_HEADER_BYTES: usize = 32;
/// The mark behind the records, and up to seven zeros.
pub(crate) const GROUP_TRAILER_BYTES: usize = 12;
pub(crate) const GROUP_ALIGN: usize = 8;
pub(crate) const RECORD_HEADER_BYTES: usize = 8;

const GROUP_MAGIC: u32 = 0x5047_4c48;
const MARK: u32 = 0xa5c3_96e7;
const CHECKSUM_AT: usize = 20;

/// What a log needs to know of everything before a segment; first record of each segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    pub vote: Option<Vote>,
    pub committed: Option<LogPosition>,
    pub purged: Option<LogPosition>,
    pub last: Option<LogPosition>,
}

/// One change of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Entry(LogEntry),
    Vote(Vote),
    Committed(Option<LogPosition>),
    /// The last position that was kept.
    Truncate(Option<LogPosition>),
    Purge(LogPosition),
    Checkpoint(Checkpoint),
}

/// The first 32 bytes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) body_bytes: usize,
    pub(crate) sequence: u64,
    pub(crate) records: u32,
}

impl GroupHeader {
    /// The header at the start of `bytes`, or none when it is not whole.
    pub(crate) fn parse(bytes: &[u8], nonce: u64) -> Option<GroupHeader> {
        let mut reader = Reader(bytes.get(..GROUP_HEADER_BYTES)?);
        let magic = reader.u32()?;
        let body_bytes = reader.u32()? as usize;
        let sequence = reader.u64()?;
        let records = reader.u32()?;
        let checksum = reader.u32()?;
        let (zero, mark) = (reader.u32()?, reader.u32()?);
        let whole = magic == GROUP_MAGIC
            && zero == 0
            && mark == MARK
            && checksum == crc(nonce, bytes.get(..CHECKSUM_AT)?);
        whole.then_some(GroupHeader { body_bytes, sequence, records })
    }

    /// Bytes from the start of this group to the start of the next one.
    pub(crate) fn group_bytes(&self) -> usize {
        let bare = GROUP_HEADER_BYTES + self.body_bytes + size_of::<u32>();
        bare.next_multiple_of(GROUP_ALIGN)
    }
}

/// Collects records into the bytes of one group.
pub(crate) struct GroupBuilder {
    bytes: Vec<u8>,
    records: u32,
    nonce: u64,
}

impl GroupBuilder {
    pub(crate) fn new(nonce: u64) -> GroupBuilder {
        GroupBuilder { bytes: vec![0; GROUP_HEADER_BYTES], records: 0, nonce }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Bytes the group would take with one more record of `record_bytes`.
    pub(crate) fn bytes_with(&self, record_bytes: usize) -> usize {
        self.bytes.len() + record_bytes + GROUP_TRAILER_BYTES
    }

    /// Adds a record; returns where it begins inside the group, and its length.
    pub(crate) fn push(&mut self, record: &Record) -> (usize, usize) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
        put_record(&mut self.bytes, record);
        let body_bytes = (self.bytes.len() - at - RECORD_HEADER_BYTES) as u32;
        self.bytes[at + 4..at + 8].copy_from_slice(&body_bytes.to_le_bytes());
        let checksum = crc(self.nonce, &self.bytes[at + 4..]);
        self.bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
        self.records += 1;
        (at, self.bytes.len() - at)
    }

    /// The whole group, padded.
    pub(crate) fn finish(mut self, sequence: u64) -> Vec<u8> {
        let body_bytes = (self.bytes.len() - GROUP_HEADER_BYTES) as u32;
        let mut header = Vec::with_capacity(GROUP_HEADER_BYTES);
        header.extend_from_slice(&GROUP_MAGIC.to_le_bytes());
        header.extend_from_slice(&body_bytes.to_le_bytes());
        header.extend_from_slice(&sequence.to_le_bytes());
        header.extend_from_slice(&self.records.to_le_bytes());
        let checksum = crc(self.nonce, &header);
        header.extend_from_slice(&checksum.to_le_bytes());
        header.extend_from_slice(&0u32.to_le_bytes());
        header.extend_from_slice(&MARK.to_le_bytes());
        self.bytes[..GROUP_HEADER_BYTES].copy_from_slice(&header);
        self.bytes.extend_from_slice(&MARK.to_le_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(GROUP_ALIGN), 0);
        self.bytes
    }
}

/// Bytes a record takes inside a group.
pub(crate) fn record_bytes(record: &Record) -> usize {
    let fields = match record {
        Record::Entry(entry) => 17 + entry.payload.len(),
        Record::Vote(_) => 17,
        Record::Committed(_) | Record::Truncate(_) => 17,
        Record::Purge(_) => 16,
        Record::Checkpoint(_) => 18 + 3 * 17,
    };
    RECORD_HEADER_BYTES + 1 + fields
}

/// The record at the start of `bytes` and its length, or what is wrong with it.
pub(crate) fn parse_record(bytes: &[u8], nonce: u64) -> Result<(Record, usize), &'static str> {
    let mut reader = Reader(bytes);
    let (Some(checksum), Some(body_bytes)) = (reader.u32(), reader.u32()) else {
        return Err("a record is cut off");
    };
    let end = RECORD_HEADER_BYTES.saturating_add(body_bytes as usize);
    let Some(body) = bytes.get(RECORD_HEADER_BYTES..end) else {
        return Err("a record is longer than its group");
    };
    if checksum != crc(nonce, &bytes[4..end]) {
        return Err("the checksum of a record does not match");
    }
    let mut fields = Reader(body);
    match take_record(&mut fields) {
        Some(record) if fields.0.is_empty() => Ok((record, end)),
        Some(_) | None => Err("a record has an unknown form"),
    }
}

/// Whether the group of `group_bytes` at the start of `bytes` ends with its mark.
pub(crate) fn has_end_mark(bytes: &[u8], header: &GroupHeader) -> bool {
    let at = GROUP_HEADER_BYTES + header.body_bytes;
    bytes.get(at..at + 4) == Some(MARK.to_le_bytes().as_slice())
}

fn crc(nonce: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&nonce.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

fn put_record(out: &mut Vec<u8>, record: &Record) {
    match record {
        Record::Entry(entry) => {
            out.push(1);
            put_position(out, entry.position);
            out.push(match entry.kind {
                EntryKind::Blank => 0,
                EntryKind::Normal => 1,
                EntryKind::Membership => 2,
            });
            out.extend_from_slice(&entry.payload);
        }
        Record::Vote(vote) => {
            out.push(2);
            put_vote(out, *vote);
        }
        Record::Committed(position) => {
            out.push(3);
            put_optional(out, *position);
        }
        Record::Truncate(position) => {
            out.push(4);
            put_optional(out, *position);
        }
        Record::Purge(position) => {
            out.push(5);
            put_position(out, *position);
        }
        Record::Checkpoint(checkpoint) => {
            out.push(6);
            out.push(u8::from(checkpoint.vote.is_some()));
            let none = Vote { term: 0, node_id: 0, committed: false };
            put_vote(out, checkpoint.vote.unwrap_or(none));
            for position in [checkpoint.committed, checkpoint.purged, checkpoint.last] {
                put_optional(out, position);
            }
        }
    }
}

fn take_record(reader: &mut Reader<'_>) -> Option<Record> {
    Some(match reader.u8()? {
        1 => {
            let position = reader.position()?;
            let kind = match reader.u8()? {
                0 => EntryKind::Blank,
                1 => EntryKind::Normal,
                2 => EntryKind::Membership,
                _ => return None,
            };
            let payload = Bytes::copy_from_slice(std::mem::take(&mut reader.0));
            Record::Entry(LogEntry { position, kind, payload })
        }
        2 => Record::Vote(reader.vote()?),
        3 => Record::Committed(reader.optional()?),
        4 => Record::Truncate(reader.optional()?),
        5 => Record::Purge(reader.position()?),
        6 => {
            let has_vote = reader.flag()?;
            let vote = reader.vote()?;
            Record::Checkpoint(Checkpoint {
                vote: has_vote.then_some(vote),
                committed: reader.optional()?,
                purged: reader.optional()?,
                last: reader.optional()?,
            })
        }
        _ => return None,
    })
}

fn put_position(out: &mut Vec<u8>, position: LogPosition) {
    out.extend_from_slice(&position.term.to_le_bytes());
    out.extend_from_slice(&position.index.to_le_bytes());
}

fn put_optional(out: &mut Vec<u8>, position: Option<LogPosition>) {
    out.push(u8::from(position.is_some()));
    put_position(out, position.unwrap_or(LogPosition { term: 0, index: 0 }));
}

fn put_vote(out: &mut Vec<u8>, vote: Vote) {
    out.extend_from_slice(&vote.term.to_le_bytes());
    out.extend_from_slice(&vote.node_id.to_le_bytes());
    out.push(u8::from(vote.committed));
}

/// Takes little-endian fields from the front.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn position(&mut self) -> Option<LogPosition> {
        Some(LogPosition { term: self.u64()?, index: self.u64()? })
    }

    pub(crate) fn optional(&mut self) -> Option<Option<LogPosition>> {
        let is_some = self.flag()?;
        let position = self.position()?;
        Some(is_some.then_some(position))
    }

    fn vote(&mut self) -> Option<Vote> {
        Some(Vote { term: self.u64()?, node_id: self.u64()?, committed: self.flag()? })
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }
}
