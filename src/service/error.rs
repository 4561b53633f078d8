//! Why a use case was refused, without a word of HTTP: what kind it is, what the caller may read,
//! and what only the log may.

use std::fmt;

use crate::base::limits;
use crate::machine::reply::Rejection;
use crate::model::fire::FireState;
use crate::model::id::{FireId, Revision};
use crate::replica::error::{MemberError, ProposeError};
use crate::replica::history::HistoryError;

/// What is wrong with one part of what the caller sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// An RFC 6901 pointer into the input, or the name of a parameter.
    pub pointer: String,
    pub detail: String,
    /// The limit that was exceeded, in the unit that `detail` names.
    pub limit: Option<u64>,
}

impl FieldError {
    #[must_use]
    pub fn new(pointer: impl Into<String>, detail: impl fmt::Display) -> FieldError {
        FieldError { pointer: pointer.into(), detail: detail.to_string(), limit: None }
    }

    #[must_use]
    pub fn limited(self, limit: u64) -> FieldError {
        FieldError { limit: Some(limit), ..self }
    }
}

/// What was looked for and not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noun {
    Tenant,
    Job,
    Trigger,
    Fire,
    Worker,
    Member,
}

/// The kind of a refusal, with what a program needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Fields of the input are wrong; all of them are named.
    Invalid(Vec<FieldError>),
    NotFound(Noun),
    /// It was to be created only, and is there.
    Exists {
        current: Revision,
    },
    RevisionMismatch {
        current: Revision,
    },
    /// The idempotency key was used for another request.
    KeyReused,
    Overlap {
        open: FireId,
    },
    FireEnded {
        fire: FireId,
        state: FireState,
    },
    TenantNotEmpty,
    TenantProtected,
    TooManyJobs {
        limit: u64,
    },
    /// Of one job.
    TooManyOpenFires {
        limit: u64,
    },
    /// Of the cluster.
    TooMuchOpenWork {
        limit: u64,
    },
    /// Long polls, or watches, on this member.
    TooManyWaiting {
        limit: u64,
    },
    LastVoter,
    /// Nothing was changed; the same call may succeed a little later.
    NoLeader,
    Overloaded,
    /// Nothing was changed; this member did not get as far as it had to in time.
    Lagging,
    /// The change may or may not have been made.
    OutcomeUnknown,
    Internal,
}

/// A refused use case.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ServiceError {
    pub kind: ErrorKind,
    /// For the caller.
    pub message: String,
    /// For the log only.
    pub context: Option<String>,
}

impl ServiceError {
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl fmt::Display) -> ServiceError {
        ServiceError { kind, message: message.to_string(), context: None }
    }

    /// One or more wrong fields.
    #[must_use]
    pub fn invalid(errors: Vec<FieldError>) -> ServiceError {
        let message = match errors.as_slice() {
            [only] => format!("{}: {}", only.pointer, only.detail),
            many => format!("{} fields are wrong", many.len()),
        };
        ServiceError::new(ErrorKind::Invalid(errors), message)
    }

    #[must_use]
    pub fn internal(context: impl fmt::Display) -> ServiceError {
        ServiceError {
            kind: ErrorKind::Internal,
            message: "this member could not carry it out; its log says why".to_owned(),
            context: Some(context.to_string()),
        }
    }

    /// A read changes nothing, so it may be repeated whatever went wrong.
    #[must_use]
    pub fn of_read(error: &ProposeError) -> ServiceError {
        let kind = match error {
            ProposeError::NoLeader | ProposeError::NotLeader { .. } => ErrorKind::NoLeader,
            ProposeError::Overloaded => ErrorKind::Overloaded,
            ProposeError::Timeout | ProposeError::Unknown { .. } | ProposeError::Stopped(_) => {
                ErrorKind::Lagging
            }
            ProposeError::Invalid { reason } => return ServiceError::internal(reason),
        };
        let message = match kind {
            ErrorKind::Lagging => "this member could not confirm that it is up to date in time",
            ErrorKind::Overloaded => "this member has more to do than it can take",
            _ => "the cluster has no leader at the moment",
        };
        ServiceError { context: Some(error.to_string()), ..ServiceError::new(kind, message) }
    }

    #[must_use]
    pub fn of_write(error: &ProposeError) -> ServiceError {
        let kind = match error {
            ProposeError::NoLeader | ProposeError::NotLeader { .. } => ErrorKind::NoLeader,
            ProposeError::Overloaded => ErrorKind::Overloaded,
            ProposeError::Timeout | ProposeError::Unknown { .. } | ProposeError::Stopped(_) => {
                ErrorKind::OutcomeUnknown
            }
            ProposeError::Invalid { reason } => return ServiceError::internal(reason),
        };
        ServiceError::new(kind, error)
    }
}

impl From<Rejection> for ServiceError {
    fn from(rejection: Rejection) -> ServiceError {
        let kind = match &rejection {
            Rejection::AlreadyBootstrapped => return ServiceError::internal(rejection),
            Rejection::RequestKeyReused { .. } => ErrorKind::KeyReused,
            Rejection::UnknownTenant { .. } => ErrorKind::NotFound(Noun::Tenant),
            Rejection::UnknownJob { .. } => ErrorKind::NotFound(Noun::Job),
            Rejection::UnknownTrigger { .. } => ErrorKind::NotFound(Noun::Trigger),
            Rejection::UnknownFire { .. } => ErrorKind::NotFound(Noun::Fire),
            Rejection::UnknownWorker { .. } => ErrorKind::NotFound(Noun::Worker),
            Rejection::Exists { current } => ErrorKind::Exists { current: *current },
            Rejection::RevisionMismatch { current } => {
                ErrorKind::RevisionMismatch { current: *current }
            }
            Rejection::Overlap { open } => ErrorKind::Overlap { open: *open },
            Rejection::FireEnded { fire, state } => {
                ErrorKind::FireEnded { fire: *fire, state: *state }
            }
            Rejection::TenantNotEmpty { .. } => ErrorKind::TenantNotEmpty,
            Rejection::TenantProtected { .. } => ErrorKind::TenantProtected,
            Rejection::DefinitionTooLarge { limit, .. } => {
                let error = FieldError::new("", &rejection).limited(*limit);
                return ServiceError::invalid(vec![error]);
            }
            Rejection::TooManyJobs { limit } => ErrorKind::TooManyJobs { limit: *limit },
            Rejection::TooManyTriggers { limit } => {
                let error = FieldError::new("/triggers", &rejection).limited(*limit);
                return ServiceError::invalid(vec![error]);
            }
            Rejection::TooManyOpenFires { limit } => {
                let of_the_cluster = *limit >= limits::OPEN_FIRES_MAX as u64;
                if of_the_cluster {
                    ErrorKind::TooMuchOpenWork { limit: *limit }
                } else {
                    ErrorKind::TooManyOpenFires { limit: *limit }
                }
            }
        };
        ServiceError::new(kind, rejection)
    }
}

impl From<MemberError> for ServiceError {
    fn from(error: MemberError) -> ServiceError {
        match &error {
            MemberError::Unknown(_) => ServiceError::new(ErrorKind::NotFound(Noun::Member), error),
            MemberError::LastVoter(_) => ServiceError::new(ErrorKind::LastVoter, error),
            MemberError::Busy | MemberError::Lagging { .. } => {
                ServiceError::new(ErrorKind::Overloaded, error)
            }
            MemberError::Propose(cause) => ServiceError::of_write(cause),
        }
    }
}

impl From<HistoryError> for ServiceError {
    fn from(error: HistoryError) -> ServiceError {
        ServiceError::internal(error)
    }
}
