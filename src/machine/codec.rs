//! Bytes for commands, replies and records. The only file that knows the encoding.
//!
//! Every form begins with one byte, its version. An unknown version or variant is an error that
//! names it: a member that meets one stops rather than drift apart from the others.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::time::Timestamp;
use crate::machine::command::{Entry, Proposal};

/// The version of every form written today.
const VERSION: u8 = 1;
const STAMP_BYTES: usize = 8;

/// Why bytes are not what they should be.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("no bytes where a {form} should be")]
    Empty { form: &'static str },
    #[error(
        "this {form} has format {found}, this version of Horolog reads up to {VERSION}: upgrade it"
    )]
    NewerFormat { form: &'static str, found: u8 },
    #[error("bytes of a {form} are malformed")]
    Malformed { form: &'static str, source: postcard::Error },
    #[error("a {form} is followed by {extra} bytes that do not belong to it")]
    Trailing { form: &'static str, extra: usize },
    #[error("a {form} could not be encoded")]
    Encode { form: &'static str, source: postcard::Error },
}

/// Encodes any stored form under its version byte.
///
/// # Errors
/// [`CodecError::Encode`], which no form of ours yields: all of them have known lengths.
pub fn encode<T: Serialize>(form: &'static str, value: &T) -> Result<Vec<u8>, CodecError> {
    postcard::to_extend(value, vec![VERSION]).map_err(|source| CodecError::Encode { form, source })
}

/// # Errors
/// When the bytes are of a newer format, malformed, or too many.
pub fn decode<T: DeserializeOwned>(form: &'static str, bytes: &[u8]) -> Result<T, CodecError> {
    let Some((&version, body)) = bytes.split_first() else {
        return Err(CodecError::Empty { form });
    };
    if version != VERSION {
        return Err(CodecError::NewerFormat { form, found: version });
    }
    let (value, rest) =
        postcard::take_from_bytes(body).map_err(|source| CodecError::Malformed { form, source })?;
    if !rest.is_empty() {
        return Err(CodecError::Trailing { form, extra: rest.len() });
    }
    Ok(value)
}

/// A proposal on its way to the leader, which puts its stamp before it.
///
/// # Errors
/// As [`encode`].
pub fn encode_proposal(proposal: &Proposal) -> Result<Vec<u8>, CodecError> {
    encode("proposal", proposal)
}

/// The entry as the log holds it: the stamp in eight bytes, then the proposal as it came.
#[must_use]
pub fn stamp_proposal(stamp: Timestamp, proposal: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(STAMP_BYTES + proposal.len());
    bytes.extend_from_slice(&stamp.as_ms().to_le_bytes());
    bytes.extend_from_slice(proposal);
    bytes
}

/// # Errors
/// As [`decode`].
pub fn decode_entry(bytes: &[u8]) -> Result<Entry, CodecError> {
    let Some((stamp, proposal)) = bytes.split_first_chunk::<STAMP_BYTES>() else {
        return Err(CodecError::Empty { form: "entry" });
    };
    let stamp = Timestamp::from_ms(i64::from_le_bytes(*stamp));
    Ok(Entry { stamp, proposal: decode("proposal", proposal)? })
}
