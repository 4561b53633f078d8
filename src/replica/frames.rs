//! What members say to each other, as bytes.
//!
//! ```text
//! frame   bytes 4 (of what follows) | version 1 | kind 1 | cluster 16 | body
//! ```
//!
//! Every frame names the version of the protocol and the cluster: one that comes from another is
//! refused with a text that says so. A cluster of zeros is "none yet", allowed where a node asks
//! to be let in.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use openraft::raft::{
    AppendEntriesRequest, StreamAppendError, StreamAppendResult, TransferLeaderError,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};

use crate::model::id::NodeId;
use crate::replica::codec::{
    DecodeError, Reader, put_bool, put_bytes, put_entry, put_log_id, put_vote, read_entry,
    read_log_id, read_vote,
};
use crate::replica::error::ProposeError;
use crate::replica::types::TypeConfig;

/// Raised with every change that an older member would misread.
pub(crate) const PROTOCOL: u8 = 1;
/// Largest frame, in bytes: a full append or a chunk of a snapshot, with room to spare.
pub(crate) const FRAME_BYTES_MAX: usize = 32 * 1_024 * 1_024;

const LENGTH_BYTES: usize = 4;
const HEADER_BYTES: usize = 18;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Append,
    Appended,
    Vote,
    PreVote,
    Voted,
    TransferLeader,
    TransferAnswer,
    SnapshotBegin,
    SnapshotChunk,
    SnapshotInstalled,
    Propose,
    Proposed,
    ReadIndex,
    ReadAt,
    LeaderCall,
    LeaderAnswer,
    Allocate,
    Allocated,
    Join,
    JoinProgress,
    Hello,
    Welcome,
    RemoveMember,
    MoveLeader,
    Done,
    Refused,
}

const KINDS: [Kind; 26] = [
    Kind::Append,
    Kind::Appended,
    Kind::Vote,
    Kind::PreVote,
    Kind::Voted,
    Kind::TransferLeader,
    Kind::TransferAnswer,
    Kind::SnapshotBegin,
    Kind::SnapshotChunk,
    Kind::SnapshotInstalled,
    Kind::Propose,
    Kind::Proposed,
    Kind::ReadIndex,
    Kind::ReadAt,
    Kind::LeaderCall,
    Kind::LeaderAnswer,
    Kind::Allocate,
    Kind::Allocated,
    Kind::Join,
    Kind::JoinProgress,
    Kind::Hello,
    Kind::Welcome,
    Kind::RemoveMember,
    Kind::MoveLeader,
    Kind::Done,
    Kind::Refused,
];

impl Kind {
    fn number(self) -> u8 {
        // The place in KINDS, counted from 1; a kind is only ever added at the end.
        KINDS.iter().position(|kind| *kind == self).map_or(0, |place| place as u8 + 1)
    }

    fn from_number(number: u8) -> Option<Kind> {
        KINDS.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// A cluster's id as frames carry it. Zero is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClusterTag(u128);

impl ClusterTag {
    pub(crate) const NONE: ClusterTag = ClusterTag(0);

    /// # Errors
    /// A cluster id that is not 1 to 32 hexadecimal digits, or is zero.
    pub(crate) fn parse(cluster_id: &str) -> Result<ClusterTag, DecodeError> {
        match u128::from_str_radix(cluster_id, 16) {
            Ok(tag) if tag != 0 => Ok(ClusterTag(tag)),
            _ => Err(DecodeError::Malformed("cluster id")),
        }
    }
}

/// One frame, its length taken off.
#[derive(Clone, Debug)]
pub(crate) struct FrameIn {
    pub(crate) version: u8,
    pub(crate) kind: Option<Kind>,
    pub(crate) cluster: ClusterTag,
    pub(crate) body: Bytes,
}

/// Begins a frame; the caller puts the body behind it and calls [`finish`].
pub(crate) fn begin(kind: Kind, cluster: ClusterTag) -> BytesMut {
    let mut out = BytesMut::with_capacity(256);
    out.put_u32_le(0);
    out.put_u8(PROTOCOL);
    out.put_u8(kind.number());
    out.put_u128_le(cluster.0);
    out
}

/// Writes the length to the front.
pub(crate) fn finish(mut out: BytesMut) -> Bytes {
    let length = u32::try_from(out.len().saturating_sub(LENGTH_BYTES)).unwrap_or(u32::MAX);
    if let Some(front) = out.first_chunk_mut::<LENGTH_BYTES>() {
        *front = length.to_le_bytes();
    }
    out.freeze()
}

/// Takes a whole frame off the front, when there is one.
pub(crate) fn take_frame(buffer: &mut BytesMut) -> Result<Option<FrameIn>, DecodeError> {
    let Some(length) = buffer.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if !(HEADER_BYTES..=FRAME_BYTES_MAX).contains(&length) {
        return Err(DecodeError::Malformed("frame length"));
    }
    if buffer.len() < LENGTH_BYTES + length {
        buffer.reserve(LENGTH_BYTES + length - buffer.len());
        return Ok(None);
    }
    buffer.advance(LENGTH_BYTES);
    let mut frame = buffer.split_to(length).freeze();
    let version = frame.get_u8();
    let kind = Kind::from_number(frame.get_u8());
    let cluster = ClusterTag(frame.get_u128_le());
    Ok(Some(FrameIn { version, kind, cluster, body: frame }))
}

pub(crate) fn put_append(out: &mut BytesMut, request: AppendEntriesRequest<TypeConfig>) {
    put_vote(out, &request.vote);
    put_log_id(out, request.prev_log_id);
    put_log_id(out, request.leader_commit);
    out.put_u32_le(request.entries.len() as u32);
    for entry in request.entries {
        put_entry(out, entry);
    }
}

pub(crate) fn read_append(body: Bytes) -> Result<AppendEntriesRequest<TypeConfig>, DecodeError> {
    let mut input = Reader(body);
    let vote = read_vote(&mut input)?;
    let prev_log_id = read_log_id(&mut input)?;
    let leader_commit = read_log_id(&mut input)?;
    let count = input.count("append")?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(read_entry(&mut input)?);
    }
    input.end()?;
    Ok(AppendEntriesRequest { vote, prev_log_id, entries, leader_commit })
}

pub(crate) fn put_appended(out: &mut BytesMut, result: &StreamAppendResult<TypeConfig>) {
    match result {
        Ok(matching) => {
            out.put_u8(0);
            put_log_id(out, *matching);
        }
        Err(StreamAppendError::Conflict(at)) => {
            out.put_u8(1);
            put_log_id(out, Some(*at));
        }
        Err(StreamAppendError::HigherVote(vote)) => {
            out.put_u8(2);
            put_vote(out, vote);
        }
    }
}

pub(crate) fn read_appended(body: Bytes) -> Result<StreamAppendResult<TypeConfig>, DecodeError> {
    let mut input = Reader(body);
    let result = match input.u8("append answer")? {
        0 => Ok(read_log_id(&mut input)?),
        1 => {
            let at = read_log_id(&mut input)?.ok_or(DecodeError::Malformed("append answer"))?;
            Err(StreamAppendError::Conflict(at))
        }
        2 => Err(StreamAppendError::HigherVote(read_vote(&mut input)?)),
        _ => return Err(DecodeError::Malformed("append answer")),
    };
    input.end()?;
    Ok(result)
}

pub(crate) fn put_vote_request(out: &mut BytesMut, request: &VoteRequest<TypeConfig>) {
    put_vote(out, &request.vote);
    put_log_id(out, request.last_log_id);
    put_bool(out, request.leadership_transfer);
}

pub(crate) fn read_vote_request(body: Bytes) -> Result<VoteRequest<TypeConfig>, DecodeError> {
    let mut input = Reader(body);
    let mut request = VoteRequest::new(read_vote(&mut input)?, read_log_id(&mut input)?);
    request.leadership_transfer = input.bool("vote request")?;
    input.end()?;
    Ok(request)
}

pub(crate) fn put_vote_answer(out: &mut BytesMut, answer: &VoteResponse<TypeConfig>) {
    put_vote(out, &answer.vote);
    put_bool(out, answer.vote_granted);
    put_log_id(out, answer.last_log_id);
}

pub(crate) fn read_vote_answer(body: Bytes) -> Result<VoteResponse<TypeConfig>, DecodeError> {
    let mut input = Reader(body);
    let vote = read_vote(&mut input)?;
    let granted = input.bool("vote answer")?;
    let last = read_log_id(&mut input)?;
    input.end()?;
    Ok(VoteResponse::new(vote, last, granted))
}

pub(crate) fn put_transfer(out: &mut BytesMut, request: &TransferLeaderRequest<TypeConfig>) {
    put_vote(out, request.from_leader());
    out.put_u64_le(*request.to_node_id());
    put_log_id(out, request.last_log_id().copied());
}

pub(crate) fn read_transfer(body: Bytes) -> Result<TransferLeaderRequest<TypeConfig>, DecodeError> {
    let mut input = Reader(body);
    let from = read_vote(&mut input)?;
    let to = input.u64("transfer")?;
    let last = read_log_id(&mut input)?;
    input.end()?;
    Ok(TransferLeaderRequest::new(from, to, last))
}

pub(crate) fn put_transfer_answer(out: &mut BytesMut, answer: &TransferLeaderResponse<TypeConfig>) {
    match answer {
        Ok(()) => out.put_u8(0),
        Err(TransferLeaderError::VoteChanged { expected, actual }) => {
            out.put_u8(1);
            put_vote(out, expected);
            put_vote(out, actual);
        }
        Err(TransferLeaderError::LogNotFlushed { expected, actual }) => {
            out.put_u8(2);
            put_log_id(out, *expected);
            put_log_id(out, *actual);
        }
    }
}

pub(crate) fn read_transfer_answer(
    body: Bytes,
) -> Result<TransferLeaderResponse<TypeConfig>, DecodeError> {
    let mut input = Reader(body);
    let answer = match input.u8("transfer answer")? {
        0 => Ok(()),
        1 => Err(TransferLeaderError::VoteChanged {
            expected: read_vote(&mut input)?,
            actual: read_vote(&mut input)?,
        }),
        2 => Err(TransferLeaderError::LogNotFlushed {
            expected: read_log_id(&mut input)?,
            actual: read_log_id(&mut input)?,
        }),
        _ => return Err(DecodeError::Malformed("transfer answer")),
    };
    input.end()?;
    Ok(answer)
}

/// Why a call has no answer, as it travels.
pub(crate) fn put_error(out: &mut BytesMut, error: &ProposeError) {
    match error {
        ProposeError::NoLeader => out.put_u8(0),
        ProposeError::NotLeader { term, leader } => {
            out.put_u8(1);
            out.put_u64_le(*term);
            out.put_u64_le(leader.map_or(0, |node| node.0));
        }
        ProposeError::Timeout => out.put_u8(2),
        ProposeError::Unknown { reason } => {
            out.put_u8(3);
            put_bytes(out, reason.as_bytes());
        }
        ProposeError::Overloaded => out.put_u8(4),
        ProposeError::Invalid { reason } => {
            out.put_u8(5);
            put_bytes(out, reason.as_bytes());
        }
        ProposeError::Stopped(reason) => {
            out.put_u8(6);
            put_bytes(out, reason.as_bytes());
        }
    }
}

pub(crate) fn read_error(input: &mut Reader) -> Result<ProposeError, DecodeError> {
    let error = match input.u8("refusal")? {
        0 => ProposeError::NoLeader,
        1 => {
            let term = input.u64("refusal")?;
            let leader = Some(input.u64("refusal")?).filter(|node| *node != 0).map(NodeId);
            ProposeError::NotLeader { term, leader }
        }
        2 => ProposeError::Timeout,
        3 => ProposeError::Unknown { reason: input.text("refusal")? },
        4 => ProposeError::Overloaded,
        5 => ProposeError::Invalid { reason: input.text("refusal")? },
        // The peer has stopped, not this node: for the caller the outcome is unknown.
        6 => ProposeError::Unknown { reason: input.text("refusal")? },
        _ => return Err(DecodeError::Malformed("refusal")),
    };
    Ok(error)
}
