//! Answers of calls that went well.

use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::api::problem::Problem;
use crate::model::id::Revision;
use crate::service::call::Seen;
use crate::service::error::ServiceError;

/// The index of the log that an answer belongs to; sent back by a caller, answers are never older.
pub(in crate::api) const INDEX: HeaderName = HeaderName::from_static("horolog-index");
/// Of a local read: how many committed entries the member had not applied.
pub(in crate::api) const LAG: HeaderName = HeaderName::from_static("horolog-lag");

pub(in crate::api) type Answer = Result<Response, Problem>;

/// `200` with a body.
pub(in crate::api) fn ok<T: Serialize>(seen: Seen<T>) -> Answer {
    with_status(StatusCode::OK, seen)
}

/// `201` with a body and the place of what was made.
pub(in crate::api) fn created<T: Serialize>(seen: Seen<T>, location: &str) -> Answer {
    let mut response = with_status(StatusCode::CREATED, seen)?;
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// `201` or `200` with a body and its strong tag.
pub(in crate::api) fn put<T: Serialize>(
    seen: Seen<T>,
    is_new: bool,
    revision: Option<Revision>,
) -> Answer {
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = with_status(status, seen)?;
    if let Some(revision) = revision {
        tag(response.headers_mut(), revision);
    }
    Ok(response)
}

/// `200` with a body and its strong tag.
pub(in crate::api) fn tagged<T: Serialize>(seen: Seen<T>, revision: Revision) -> Answer {
    put(seen, false, Some(revision))
}

/// `204`.
pub(in crate::api) fn nothing(seen: Seen<()>) -> Answer {
    let mut response = StatusCode::NO_CONTENT.into_response();
    mark(response.headers_mut(), &seen);
    Ok(response)
}

/// `204`, for what leaves no trace in the log.
pub(in crate::api) fn done() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn with_status<T: Serialize>(status: StatusCode, seen: Seen<T>) -> Answer {
    let body = serde_json::to_vec(&seen.value).map_err(ServiceError::internal)?;
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    mark(headers, &seen);
    Ok(response)
}

pub(in crate::api) fn mark<T>(headers: &mut HeaderMap, seen: &Seen<T>) {
    headers.insert(INDEX, HeaderValue::from(seen.index));
    if let Some(lag) = seen.lag {
        headers.insert(LAG, HeaderValue::from(lag));
    }
}

fn tag(headers: &mut HeaderMap, revision: Revision) {
    if let Ok(value) = HeaderValue::try_from(format!("\"{}\"", revision.0)) {
        headers.insert(ETAG, value);
    }
}
