//! Bytes of what the consensus core keeps and sends: positions, votes, members, entries.
//!
//! openraft's own types are never serialized: each is mapped to terms, indexes, kinds and payloads
//! here, and read back with every length checked. Integers are little-endian.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::replica::types::{
    Entry, EntryPayload, LogId, Members, PeerNode, StampedProposal, StoredMembers, Vote, log_id,
    members,
};
use crate::store::log::{EntryKind, LogEntry, LogPosition};

/// The version of the bytes a membership is stored as.
const MEMBERSHIP_VERSION: u8 = 1;

/// Why bytes are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("the bytes end inside a {0}")]
    Short(&'static str),
    #[error("a {0} is malformed")]
    Malformed(&'static str),
    #[error("{0} bytes too many")]
    Trailing(usize),
    #[error("a membership has format {0}, which this version does not know")]
    NewerMembership(u8),
}

/// Reads from the front of shared bytes; slices of it share them.
pub(crate) struct Reader(pub(crate) Bytes);

impl Reader {
    fn need(&self, bytes: usize, what: &'static str) -> Result<(), DecodeError> {
        if self.0.len() < bytes { Err(DecodeError::Short(what)) } else { Ok(()) }
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.need(1, what)?;
        Ok(self.0.get_u8())
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.need(4, what)?;
        Ok(self.0.get_u32_le())
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.need(8, what)?;
        Ok(self.0.get_u64_le())
    }

    pub(crate) fn bool(&mut self, what: &'static str) -> Result<bool, DecodeError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Malformed(what)),
        }
    }

    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<Bytes, DecodeError> {
        let length = self.u32(what)? as usize;
        self.need(length, what)?;
        Ok(self.0.split_to(length))
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<String, DecodeError> {
        let bytes = self.bytes(what)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError::Malformed(what))
    }

    /// A count of items that take at least one byte each.
    pub(crate) fn count(&mut self, what: &'static str) -> Result<usize, DecodeError> {
        let count = self.u32(what)? as usize;
        self.need(count, what)?;
        Ok(count)
    }

    pub(crate) fn rest(self) -> Bytes {
        self.0
    }

    pub(crate) fn end(self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(self.0.len())) }
    }
}

pub(crate) fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    // A length above 4 GiB cannot come up: proposals and snapshots have smaller bounds.
    out.put_u32_le(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
}

pub(crate) fn put_bool(out: &mut BytesMut, value: bool) {
    out.put_u8(u8::from(value));
}

pub(crate) fn put_log_id(out: &mut BytesMut, id: Option<LogId>) {
    match id {
        None => out.put_u8(0),
        Some(id) => {
            out.put_u8(1);
            out.put_u64_le(id.leader_id.term);
            out.put_u64_le(id.index);
        }
    }
}

pub(crate) fn read_log_id(input: &mut Reader) -> Result<Option<LogId>, DecodeError> {
    if !input.bool("log position")? {
        return Ok(None);
    }
    let (term, index) = (input.u64("log position")?, input.u64("log position")?);
    Ok(Some(log_id(term, index)))
}

pub(crate) fn put_vote(out: &mut BytesMut, vote: &Vote) {
    out.put_u64_le(vote.leader_id.term);
    out.put_u64_le(vote.leader_id.voted_for);
    put_bool(out, vote.committed);
}

pub(crate) fn read_vote(input: &mut Reader) -> Result<Vote, DecodeError> {
    let (term, node) = (input.u64("vote")?, input.u64("vote")?);
    let committed = input.bool("vote")?;
    Ok(if committed { Vote::new_committed(term, node) } else { Vote::new(term, node) })
}

/// The members as a log entry carries them.
pub(crate) fn put_members(out: &mut BytesMut, membership: &Members) {
    out.put_u8(MEMBERSHIP_VERSION);
    let configs = membership.get_joint_config();
    out.put_u32_le(configs.len() as u32);
    for config in configs {
        out.put_u32_le(config.len() as u32);
        for node in config {
            out.put_u64_le(*node);
        }
    }
    let nodes: Vec<_> = membership.nodes().collect();
    out.put_u32_le(nodes.len() as u32);
    for (id, node) in nodes {
        out.put_u64_le(*id);
        put_bytes(out, node.peer.as_bytes());
        put_bytes(out, node.api.as_bytes());
    }
}

pub(crate) fn read_members(input: &mut Reader) -> Result<Members, DecodeError> {
    let version = input.u8("membership")?;
    if version != MEMBERSHIP_VERSION {
        return Err(DecodeError::NewerMembership(version));
    }
    let mut configs = Vec::new();
    for _ in 0..input.count("membership")? {
        let mut config = BTreeSet::new();
        for _ in 0..input.count("membership")? {
            config.insert(input.u64("membership")?);
        }
        configs.push(config);
    }
    let mut nodes = BTreeMap::new();
    for _ in 0..input.count("membership")? {
        let id = input.u64("membership")?;
        let (peer, api) = (input.text("peer address")?, input.text("api address")?);
        nodes.insert(id, PeerNode { peer, api });
    }
    members(configs, nodes).ok_or(DecodeError::Malformed("membership"))
}

/// The members in force with the position of their entry, as records and snapshots keep them.
pub(crate) fn encode_stored_members(stored: &StoredMembers) -> Bytes {
    let mut out = BytesMut::new();
    put_log_id(&mut out, *stored.log_id());
    put_members(&mut out, stored.membership());
    out.freeze()
}

/// No bytes are no members yet.
pub(crate) fn decode_stored_members(bytes: Bytes) -> Result<StoredMembers, DecodeError> {
    if bytes.is_empty() {
        return Ok(StoredMembers::default());
    }
    let mut input = Reader(bytes);
    let id = read_log_id(&mut input)?;
    let membership = read_members(&mut input)?;
    input.end()?;
    Ok(StoredMembers::new(id, membership))
}

/// An entry as the log keeps it, at openraft's index.
pub(crate) fn log_entry_of(entry: Entry) -> LogEntry {
    let position = LogPosition { term: entry.log_id.leader_id.term, index: entry.log_id.index };
    let (kind, payload) = match entry.payload {
        EntryPayload::Blank => (EntryKind::Blank, Bytes::new()),
        EntryPayload::Normal(StampedProposal(bytes)) => (EntryKind::Normal, bytes),
        EntryPayload::Membership(membership) => {
            let mut out = BytesMut::new();
            put_members(&mut out, &membership);
            (EntryKind::Membership, out.freeze())
        }
    };
    LogEntry { position, kind, payload }
}

pub(crate) fn entry_of(entry: LogEntry) -> Result<Entry, DecodeError> {
    let LogPosition { term, index } = entry.position;
    let payload = match entry.kind {
        EntryKind::Blank => EntryPayload::Blank,
        EntryKind::Normal => EntryPayload::Normal(StampedProposal(entry.payload)),
        EntryKind::Membership => {
            let mut input = Reader(entry.payload);
            let membership = read_members(&mut input)?;
            input.end()?;
            EntryPayload::Membership(membership)
        }
    };
    Ok(Entry { log_id: log_id(term, index), payload })
}

pub(crate) fn put_entry(out: &mut BytesMut, entry: Entry) {
    let LogEntry { position, kind, payload } = log_entry_of(entry);
    out.put_u64_le(position.term);
    out.put_u64_le(position.index);
    out.put_u8(match kind {
        EntryKind::Blank => 0,
        EntryKind::Normal => 1,
        EntryKind::Membership => 2,
    });
    put_bytes(out, &payload);
}

pub(crate) fn read_entry(input: &mut Reader) -> Result<Entry, DecodeError> {
    let position = LogPosition { term: input.u64("entry")?, index: input.u64("entry")? };
    let kind = match input.u8("entry")? {
        0 => EntryKind::Blank,
        1 => EntryKind::Normal,
        2 => EntryKind::Membership,
        _ => return Err(DecodeError::Malformed("entry")),
    };
    let payload = input.bytes("entry")?;
    entry_of(LogEntry { position, kind, payload })
}
