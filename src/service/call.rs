//! What every call carries beside its subject: who asks, how fresh an answer must be, and how fresh
//! it was.

use crate::base::bounded::Name;
use crate::machine::command::{Precondition, RequestIdentity};
use crate::model::id::Revision;

/// Who asks, and under which idempotency key.
///
/// Nobody is authenticated in this version: whoever reaches the listener may do everything, and so
/// there is nothing here to tell callers apart by. Every use case that changes something takes a
/// caller, so that the question "may they?" has its place when it can be answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub key: Option<RequestKey>,
}

/// Names one call, so that its repetition gets the first answer and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKey {
    /// At most `limits::REQUEST_KEY_BYTES_MAX` bytes.
    pub key: String,
    /// Of all that was asked: the same key for something else is refused.
    pub body_hash: u64,
}

impl Caller {
    pub(in crate::service) fn identity(&self, tenant: &Name) -> Option<RequestIdentity> {
        self.key.as_ref().map(|key| RequestIdentity {
            tenant: tenant.clone(),
            key: key.key.clone(),
            body_hash: key.body_hash,
        })
    }
}

/// What must hold for a definition to be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    Always,
    /// It must not exist yet.
    Absent,
    /// It must exist.
    Present,
    Revision(Revision),
}

impl From<Condition> for Precondition {
    fn from(condition: Condition) -> Precondition {
        match condition {
            Condition::Always => Precondition::Always,
            Condition::Absent => Precondition::Absent,
            Condition::Present => Precondition::Present,
            Condition::Revision(revision) => Precondition::Revision(revision),
        }
    }
}

/// How fresh an answer must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// This member's own state will do, however old it is.
    pub local: bool,
    /// But never older than this index.
    pub at_least: Option<u64>,
}

/// An answer, and the index of the log it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen<T> {
    pub value: T,
    /// Of a read: the state that was read. Of a change: its entry.
    pub index: u64,
    /// Of a local read: how many committed entries this member knows of and has not applied.
    pub lag: Option<u64>,
}

impl<T> Seen<T> {
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Seen<U> {
        Seen { value: change(self.value), index: self.index, lag: self.lag }
    }
}

/// A definition that was put, and whether it is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put<T> {
    pub value: T,
    pub created: bool,
}
