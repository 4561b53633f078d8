//! What went wrong, as a status and a body (RFC 9457). The only place where a refusal gets its
//! status code and its stable `code`; `docs/http-api.md` lists them.

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::base::limits;
use crate::service::error::{ErrorKind, FieldError, Noun, ServiceError};
use crate::wire;

/// A refusal of the edge itself, before any use case was reached.
#[derive(Clone, Debug)]
pub(in crate::api) enum Refusal {
    NoRoute {
        path: String,
    },
    Method {
        allow: String,
    },
    /// A part of the path, or the path as a whole.
    Path(FieldError),
    Query(FieldError),
    Header(FieldError),
    MediaType {
        found: String,
    },
    BodyTooLarge,
    /// The body did not arrive.
    BodyLost,
    MalformedJson {
        detail: String,
    },
    UnknownField {
        pointer: String,
        detail: String,
    },
    /// A field has another type than it should, or is missing, or is no word of a list.
    WrongField {
        pointer: String,
        detail: String,
    },
}

/// A problem on its way to the caller.
#[derive(Clone, Debug)]
pub(in crate::api) struct Problem {
    status: StatusCode,
    /// Boxed, for a result should be small when all is well.
    body: Box<wire::problem::Problem>,
    retry_after_s: Option<u32>,
    allow: Option<String>,
    /// For the log only.
    pub(in crate::api) context: Option<String>,
}

/// Seconds after which a call is worth repeating: about the length of an election.
const RETRY_AFTER_S: u32 = 1;
/// The same for limits that only ended work makes room under.
const RETRY_AFTER_FULL_S: u32 = 5;

impl Problem {
    fn new(status: StatusCode, code: &str, title: &str, detail: impl Into<String>) -> Problem {
        let body = wire::problem::Problem {
            kind: format!("urn:horolog:problem:{code}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            code: code.to_owned(),
            ..wire::problem::Problem::default()
        };
        let body = Box::new(body);
        Problem { status, body, retry_after_s: None, allow: None, context: None }
    }

    fn fields(mut self, errors: &[FieldError]) -> Problem {
        self.body.errors = errors
            .iter()
            .map(|error| wire::problem::FieldProblem {
                pointer: error.pointer.clone(),
                detail: error.detail.clone(),
                limit: error.limit,
            })
            .collect();
        self
    }

    fn retry_after(self, seconds: u32) -> Problem {
        Problem { retry_after_s: Some(seconds), ..self }
    }

    /// The member is not ready for callers.
    pub(in crate::api) fn not_ready(reason: String) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", "not ready", reason)
            .retry_after(RETRY_AFTER_S)
    }

    pub(in crate::api) fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let bad = |code, title, error: &FieldError| {
            let detail = format!("{}: {}", error.pointer, error.detail);
            Problem::new(StatusCode::BAD_REQUEST, code, title, detail)
                .fields(std::slice::from_ref(error))
        };
        match refusal {
            Refusal::NoRoute { path } => {
                let detail = format!("nothing is served at {path}");
                Problem::new(StatusCode::NOT_FOUND, "no-such-route", "no such route", detail)
            }
            Refusal::Method { allow } => {
                let detail = format!("this path takes {allow}");
                let status = StatusCode::METHOD_NOT_ALLOWED;
                let problem =
                    Problem::new(status, "method-not-allowed", "method not allowed", detail);
                Problem { allow: Some(allow), ..problem }
            }
            Refusal::Path(error) => bad("invalid-path", "the path is not valid", &error),
            Refusal::Query(error) => bad("invalid-query", "the query is not valid", &error),
            Refusal::Header(error) => bad("invalid-header", "a header is not valid", &error),
            Refusal::MediaType { found } => {
                let detail = format!("the body must be application/json, not {found}");
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                Problem::new(status, "unsupported-media-type", "unsupported media type", detail)
            }
            Refusal::BodyTooLarge => {
                let limit = limits::BODY_BYTES_MAX as u64;
                let detail = format!("a body has at most {limit} bytes");
                let error = FieldError::new("", &detail).limited(limit);
                let status = StatusCode::PAYLOAD_TOO_LARGE;
                Problem::new(status, "body-too-large", "the body is too large", detail)
                    .fields(&[error])
            }
            Refusal::BodyLost => {
                let detail = "the body ended before its announced end";
                Problem::new(StatusCode::BAD_REQUEST, "body-lost", "the body is cut off", detail)
            }
            Refusal::MalformedJson { detail } => {
                let title = "the body is not JSON";
                Problem::new(StatusCode::BAD_REQUEST, "malformed-json", title, detail)
            }
            Refusal::UnknownField { pointer, detail } => {
                let error = FieldError::new(pointer, detail);
                bad("unknown-field", "the body has a field that is not known", &error)
            }
            Refusal::WrongField { pointer, detail } => {
                let error = FieldError::new(pointer, detail);
                bad("wrong-field", "a field of the body has the wrong form", &error)
            }
        }
    }
}

fn noun_code(noun: Noun) -> (&'static str, &'static str) {
    match noun {
        Noun::Tenant => ("unknown-tenant", "no such tenant"),
        Noun::Job => ("unknown-job", "no such job"),
        Noun::Trigger => ("unknown-trigger", "no such trigger"),
        Noun::Fire => ("unknown-fire", "no such fire"),
        Noun::Worker => ("unknown-worker", "no such worker"),
        Noun::Member => ("unknown-member", "no such member"),
    }
}

/// Status, code and title of each kind.
fn face(kind: &ErrorKind) -> (StatusCode, &'static str, &'static str) {
    use StatusCode as S;
    match kind {
        ErrorKind::Invalid(_) => (S::UNPROCESSABLE_ENTITY, "invalid", "fields are not valid"),
        ErrorKind::NotFound(noun) => {
            let (code, title) = noun_code(*noun);
            (S::NOT_FOUND, code, title)
        }
        ErrorKind::Exists { .. } => (S::PRECONDITION_FAILED, "exists", "it exists already"),
        ErrorKind::RevisionMismatch { .. } => {
            (S::PRECONDITION_FAILED, "revision-mismatch", "it has another revision")
        }
        ErrorKind::KeyReused => (
            S::UNPROCESSABLE_ENTITY,
            "idempotency-key-reused",
            "the idempotency key was used for another request",
        ),
        ErrorKind::Overlap { .. } => (S::CONFLICT, "overlap", "an earlier fire is open"),
        ErrorKind::FireEnded { .. } => (S::CONFLICT, "fire-ended", "the fire has ended"),
        ErrorKind::TenantNotEmpty => (S::CONFLICT, "tenant-not-empty", "the tenant has jobs"),
        ErrorKind::TenantProtected => {
            (S::CONFLICT, "tenant-protected", "the tenant cannot be deleted")
        }
        ErrorKind::LastVoter => (S::CONFLICT, "last-voter", "a cluster needs a voter"),
        ErrorKind::TooManyJobs { .. } => (S::CONFLICT, "too-many-jobs", "too many jobs"),
        ErrorKind::TooManyOpenFires { .. } => {
            (S::TOO_MANY_REQUESTS, "too-many-open-fires", "the job has too many open fires")
        }
        ErrorKind::TooManyWaiting { .. } => {
            (S::TOO_MANY_REQUESTS, "too-many-waiting", "too many calls wait on this member")
        }
        ErrorKind::TooMuchOpenWork { .. } => {
            (S::SERVICE_UNAVAILABLE, "too-much-open-work", "the cluster has too many open fires")
        }
        ErrorKind::NoLeader => (S::SERVICE_UNAVAILABLE, "no-leader", "no leader"),
        ErrorKind::Overloaded => (S::SERVICE_UNAVAILABLE, "overloaded", "overloaded"),
        ErrorKind::Lagging => (S::SERVICE_UNAVAILABLE, "lagging", "not up to date in time"),
        ErrorKind::OutcomeUnknown => {
            (S::GATEWAY_TIMEOUT, "outcome-unknown", "the outcome is not known")
        }
        ErrorKind::Internal => (S::INTERNAL_SERVER_ERROR, "internal", "internal error"),
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Problem {
        let (status, code, title) = face(&error.kind);
        let mut problem = Problem::new(status, code, title, error.message);
        problem.context = error.context;
        match error.kind {
            ErrorKind::Invalid(errors) => return problem.fields(&errors),
            ErrorKind::Exists { current } | ErrorKind::RevisionMismatch { current } => {
                problem.body.current_revision = Some(current.0);
            }
            ErrorKind::Overlap { open: fire } | ErrorKind::FireEnded { fire, .. } => {
                problem.body.fire = Some(fire.to_string());
            }
            ErrorKind::TooManyJobs { limit } => {
                let error = FieldError::new("", &problem.body.detail).limited(limit);
                return problem.fields(&[error]);
            }
            ErrorKind::TooManyOpenFires { limit }
            | ErrorKind::TooManyWaiting { limit }
            | ErrorKind::TooMuchOpenWork { limit } => {
                let error = FieldError::new("", &problem.body.detail).limited(limit);
                return problem.fields(&[error]).retry_after(RETRY_AFTER_FULL_S);
            }
            ErrorKind::OutcomeUnknown => {
                problem.body.outcome_unknown = true;
                return problem.retry_after(RETRY_AFTER_S);
            }
            ErrorKind::NoLeader | ErrorKind::Overloaded | ErrorKind::Lagging => {
                return problem.retry_after(RETRY_AFTER_S);
            }
            ErrorKind::NotFound(_)
            | ErrorKind::KeyReused
            | ErrorKind::TenantNotEmpty
            | ErrorKind::TenantProtected
            | ErrorKind::LastVoter
            | ErrorKind::Internal => {}
        }
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = self.allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
            headers.insert(ALLOW, allow);
        }
        response
    }
}

#[cfg(test)]
impl Problem {
    pub(in crate::api) fn code(&self) -> &str {
        &self.body.code
    }

    pub(in crate::api) fn pointers(&self) -> Vec<String> {
        self.body.errors.iter().map(|error| error.pointer.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fire::FireState;
    use crate::model::id::{FireId, JobId, Revision, Seq};

    #[test]
    fn every_kind_of_refusal_has_its_status_and_code() {
        let fire = FireId { job: JobId(Seq::new(1, 0)), seq: Seq::new(2, 0) };
        let current = Revision(7);
        let table = [
            (ErrorKind::Invalid(Vec::new()), 422, "invalid"),
            (ErrorKind::NotFound(Noun::Job), 404, "unknown-job"),
            (ErrorKind::Exists { current }, 412, "exists"),
            (ErrorKind::RevisionMismatch { current }, 412, "revision-mismatch"),
            (ErrorKind::KeyReused, 422, "idempotency-key-reused"),
            (ErrorKind::Overlap { open: fire }, 409, "overlap"),
            (ErrorKind::FireEnded { fire, state: FireState::Failed }, 409, "fire-ended"),
            (ErrorKind::TenantNotEmpty, 409, "tenant-not-empty"),
            (ErrorKind::TenantProtected, 409, "tenant-protected"),
            (ErrorKind::LastVoter, 409, "last-voter"),
            (ErrorKind::TooManyJobs { limit: 1 }, 409, "too-many-jobs"),
            (ErrorKind::TooManyOpenFires { limit: 1 }, 429, "too-many-open-fires"),
            (ErrorKind::TooManyWaiting { limit: 1 }, 429, "too-many-waiting"),
            (ErrorKind::TooMuchOpenWork { limit: 1 }, 503, "too-much-open-work"),
            (ErrorKind::NoLeader, 503, "no-leader"),
            (ErrorKind::Overloaded, 503, "overloaded"),
            (ErrorKind::Lagging, 503, "lagging"),
            (ErrorKind::OutcomeUnknown, 504, "outcome-unknown"),
            (ErrorKind::Internal, 500, "internal"),
        ];
        for (kind, status, code) in table {
            let problem = Problem::from(ServiceError::new(kind.clone(), "m"));
            assert_eq!((problem.status.as_u16(), problem.code()), (status, code));
            let may_be_repeated = matches!(status, 429 | 503 | 504);
            assert_eq!(problem.retry_after_s.is_some(), may_be_repeated, "{kind:?}");
            assert_eq!(problem.body.outcome_unknown, kind == ErrorKind::OutcomeUnknown);
        }
    }

    #[test]
    fn private_context_never_reaches_the_caller() {
        let problem = Problem::from(ServiceError::internal("/var/lib/secret"));
        assert_eq!(problem.context.as_deref(), Some("/var/lib/secret"));
        let body = serde_json::to_string(&problem.body).unwrap();
        assert!(!body.contains("secret"), "{body}");
    }
}
