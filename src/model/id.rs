//! Identities. Each is either chosen by a person (a key made of names) or made from the log (a
//! number that no other entry can yield), so that no member ever has to invent one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::base::bounded::Name;

/// Bits of a [`Seq`] that count the things one log entry makes.
const ORDINAL_BITS: u32 = 16;

/// A number made from a log index and an ordinal inside the entry: unique and ascending for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seq(u64);

impl Seq {
    /// The smallest, before anything the log can make.
    pub const ZERO: Seq = Seq(0);

    /// `index` takes the upper 48 bits.
    #[must_use]
    pub const fn new(index: u64, ordinal: u16) -> Seq {
        Seq((index << ORDINAL_BITS) | ordinal as u64)
    }

    #[must_use]
    pub const fn from_u64(raw: u64) -> Seq {
        Seq(raw)
    }

    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The index of the log entry that made this number.
    #[must_use]
    pub const fn index(self) -> u64 {
        self.0 >> ORDINAL_BITS
    }
}

/// Why a text is not an identity of the named kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not the id of a {noun}, which looks like {example}")]
pub struct IdError {
    noun: &'static str,
    example: &'static str,
    text: String,
}

fn id_error(noun: &'static str, example: &'static str, text: &str) -> IdError {
    IdError { noun, example, text: text.chars().take(64).collect() }
}

/// Reads lower-case hexadecimal without sign, prefix or leading zeros: one spelling for one number.
fn parse_hex(text: &str) -> Option<u64> {
    let canonical = !text.is_empty()
        && text.len() <= 16
        && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        && (text == "0" || !text.starts_with('0'));
    if canonical { u64::from_str_radix(text, 16).ok() } else { None }
}

/// A job, for as long as it exists; a job deleted and made again has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub Seq);

/// A trigger, for as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TriggerId(pub Seq);

impl TriggerId {
    /// A bound at or below every trigger, for the start of a range.
    pub const FIRST: TriggerId = TriggerId(Seq::ZERO);
}

/// A worker's session: a process that registers again gets another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId(pub Seq);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0.as_u64())
    }
}

impl FromStr for WorkerId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<WorkerId, IdError> {
        let raw = parse_hex(text).ok_or_else(|| id_error("worker", "1f0000", text))?;
        Ok(WorkerId(Seq::from_u64(raw)))
    }
}

/// A member of the cluster. Never used twice, not even after its folder was wiped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A fire: its job, and a number of its own. It carries the job so that its history is found
/// without an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FireId {
    pub job: JobId,
    pub seq: Seq,
}

impl FireId {
    /// A bound at or below every fire, for the start of a range.
    pub const FIRST: FireId = FireId { job: JobId(Seq::ZERO), seq: Seq::ZERO };
}

impl fmt::Display for FireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.job.0.as_u64(), self.seq.as_u64())
    }
}

impl FromStr for FireId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<FireId, IdError> {
        let error = || id_error("fire", "1f0000-2a0001", text);
        let (job, seq) = text.split_once('-').ok_or_else(error)?;
        let job = JobId(Seq::from_u64(parse_hex(job).ok_or_else(error)?));
        let seq = Seq::from_u64(parse_hex(seq).ok_or_else(error)?);
        Ok(FireId { job, seq })
    }
}

/// One attempt of a fire, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId {
    pub fire: FireId,
    pub attempt: u32,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.fire, self.attempt)
    }
}

impl FromStr for RunId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<RunId, IdError> {
        let error = || id_error("run", "1f0000-2a0001.1", text);
        let (fire, attempt) = text.split_once('.').ok_or_else(error)?;
        let fire = fire.parse().map_err(|_| error())?;
        let canonical = attempt.bytes().all(|b| b.is_ascii_digit()) && !attempt.starts_with('0');
        let attempt = attempt.parse().ok().filter(|_| canonical).ok_or_else(error)?;
        Ok(RunId { fire, attempt })
    }
}

/// A job's address: `tenant/group/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey {
    pub tenant: Name,
    pub group: Name,
    pub name: Name,
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tenant, self.group, self.name)
    }
}

impl JobKey {
    /// The address of the group it is in.
    #[must_use]
    pub fn group_key(&self) -> GroupKey {
        GroupKey { tenant: self.tenant.clone(), group: self.group.clone() }
    }
}

/// A group's address inside its tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKey {
    pub tenant: Name,
    pub group: Name,
}

/// How often a definition was changed, beginning with 1. Its strong `ETag` is this number in
/// quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Revision(pub u64);

impl Revision {
    pub const FIRST: Revision = Revision(1);

    #[must_use]
    pub const fn next(self) -> Revision {
        Revision(self.0.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_spelling_and_survive_it() {
        let fire = FireId { job: JobId(Seq::new(31, 0)), seq: Seq::new(42, 1) };
        assert_eq!(fire.to_string(), "1f0000-2a0001");
        assert_eq!("1f0000-2a0001".parse(), Ok(fire));
        assert_eq!("1f0000-2a0001.3".parse(), Ok(RunId { fire, attempt: 3 }));
        for text in ["", "1f0000", "1F0000-2a0001", "01-1", "-", "1-", "+1-1", "1-1.1", "夜-1"] {
            assert!(text.parse::<FireId>().is_err(), "{text}");
        }
        for text in ["1-1", "1-1.", "1-1.0", "1-1.01", "1-1.+1", "1-1.99999999999"] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_made_from_later_entries_are_larger() {
        assert!(Seq::new(7, u16::MAX) < Seq::new(8, 0));
        assert_eq!(Seq::new(8, 3).index(), 8);
    }
}
