//! What a call says, taken apart: names in the path, parameters, headers, and the body.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Query;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderName, request::Parts};
use prometheus_client::registry::Registry;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use crate::api::Edge;
use crate::api::answer::INDEX;
use crate::api::from_wire::fields::{escape, name_error};
use crate::api::problem::{Problem, Refusal};
use crate::base::bounded::Name;
use crate::base::hash::stable_hash;
use crate::base::limits;
use crate::model::id::{GroupKey, JobKey, Revision};
use crate::service::Service;
use crate::service::call::{Caller, Condition, Freshness, RequestKey};
use crate::service::error::FieldError;
use crate::service::page::{Cursor, PageRequest};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// One call of one route.
pub(in crate::api) struct Call {
    edge: Arc<Edge>,
    parts: Parts,
    body: Option<Body>,
    /// The named parts of the path.
    path: Vec<(String, String)>,
    query: BTreeMap<String, String>,
    /// Of the body that was read.
    body_hash: u64,
}

impl Call {
    /// # Errors
    /// When the query has a parameter that the route does not take.
    pub(in crate::api) fn new(
        edge: Arc<Edge>,
        parts: Parts,
        body: Body,
        path: Vec<(String, String)>,
        parameters: &[&str],
    ) -> Result<Call, Problem> {
        let query = query(&parts, parameters)?;
        Ok(Call { edge, parts, body: Some(body), path, query, body_hash: 0 })
    }

    pub(in crate::api) fn service(&self) -> &Service {
        &self.edge.service
    }

    pub(in crate::api) fn registry(&self) -> &Registry {
        &self.edge.registry
    }

    pub(in crate::api) fn openapi(&self) -> Bytes {
        self.edge.openapi.clone()
    }

    pub(in crate::api) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// A part of the path that is a name.
    pub(in crate::api) fn name(&self, part: &str) -> Result<Name, Problem> {
        let error = |error| Refusal::Path(name_error(format!("{{{part}}}"), &error));
        Ok(Name::new(self.part(part)).map_err(error)?)
    }

    /// A part of the path that is an id.
    pub(in crate::api) fn id<T: FromStr<Err: Display>>(&self, part: &str) -> Result<T, Problem> {
        let error = |error| Refusal::Path(FieldError::new(format!("{{{part}}}"), error));
        Ok(self.part(part).parse().map_err(error)?)
    }

    fn part(&self, part: &str) -> &str {
        let found = self.path.iter().find(|(name, _)| name == part);
        found.map_or("", |(_, value)| value)
    }

    pub(in crate::api) fn tenant(&self) -> Result<Name, Problem> {
        self.name("tenant")
    }

    pub(in crate::api) fn group_key(&self) -> Result<GroupKey, Problem> {
        Ok(GroupKey { tenant: self.tenant()?, group: self.name("group")? })
    }

    pub(in crate::api) fn job_key(&self) -> Result<JobKey, Problem> {
        let (tenant, group) = (self.tenant()?, self.name("group")?);
        Ok(JobKey { tenant, group, name: self.name("job")? })
    }

    /// A parameter of the query.
    pub(in crate::api) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// A parameter of the query that is a name.
    pub(in crate::api) fn name_parameter(&self, name: &str) -> Result<Option<Name>, Problem> {
        let Some(text) = self.parameter(name) else {
            return Ok(None);
        };
        let error = |error| Refusal::Query(name_error(format!("?{name}"), &error));
        Ok(Some(Name::new(text).map_err(error)?))
    }

    /// A parameter of the query, read.
    pub(in crate::api) fn parsed<T: FromStr<Err: Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.parameter(name) else {
            return Ok(None);
        };
        Ok(Some(text.parse().map_err(|error| bad_parameter(name, error))?))
    }

    pub(in crate::api) fn page(&self) -> Result<PageRequest, Problem> {
        let limit = self.parsed::<usize>("limit")?.unwrap_or(limits::PAGE_SIZE_DEFAULT);
        if !(1..=limits::PAGE_SIZE_MAX).contains(&limit) {
            let detail = format!("{limit} lies outside 1 to {}", limits::PAGE_SIZE_MAX);
            let error = FieldError::new("?limit", detail).limited(limits::PAGE_SIZE_MAX as u64);
            return Err(Refusal::Query(error).into());
        }
        Ok(PageRequest { limit, cursor: self.parameter("cursor").map(Cursor::opaque) })
    }

    /// How fresh the answer must be: `?read=`, and the index that the caller has seen.
    pub(in crate::api) fn freshness(&self) -> Result<Freshness, Problem> {
        let local = match self.parameter("read") {
            None | Some("linearizable") => false,
            Some("local") => true,
            Some(other) => {
                let detail = format!("{other:?} is neither linearizable nor local");
                return Err(bad_parameter("read", detail));
            }
        };
        let at_least = match self.parts.headers.get(INDEX) {
            None => None,
            Some(value) => {
                let index = value.to_str().ok().and_then(|text| text.parse().ok());
                Some(index.ok_or_else(|| bad_header("Horolog-Index", "it is not a whole number"))?)
            }
        };
        Ok(Freshness { local, at_least })
    }

    /// `If-Match` and `If-None-Match`.
    pub(in crate::api) fn condition(&self) -> Result<Condition, Problem> {
        let if_match = self.parts.headers.get(IF_MATCH).map(|value| value.to_str().ok());
        let if_none_match = self.parts.headers.get(IF_NONE_MATCH).map(|value| value.to_str().ok());
        match (if_match, if_none_match) {
            (None, None) => Ok(Condition::Always),
            (None, Some(Some("*"))) => Ok(Condition::Absent),
            (None, Some(_)) => Err(bad_header("If-None-Match", "only * is understood")),
            (Some(_), Some(_)) => {
                Err(bad_header("If-Match", "give either If-Match or If-None-Match, not both"))
            }
            (Some(Some("*")), None) => Ok(Condition::Present),
            (Some(tag), None) => {
                let number = tag.and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"'));
                let revision = number.and_then(|number| number.parse().ok());
                let detail = "it is neither * nor one strong tag such as \"7\"";
                let revision = revision.ok_or_else(|| bad_header("If-Match", detail))?;
                Ok(Condition::Revision(Revision(revision)))
            }
        }
    }

    /// Who asks. To be called after the body was read, for the key is bound to it.
    pub(in crate::api) fn caller(&self) -> Result<Caller, Problem> {
        let Some(value) = self.parts.headers.get(IDEMPOTENCY_KEY) else {
            return Ok(Caller::default());
        };
        let text = value.to_str().unwrap_or_default();
        // The draft of the IETF writes a string of structured fields, in quotes; most callers do
        // not.
        let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let key = quoted.unwrap_or(text);
        let limit = limits::REQUEST_KEY_BYTES_MAX;
        if key.is_empty() || key.len() > limit {
            let detail = format!("it has 1 to {limit} visible ASCII characters");
            let error = FieldError::new("Idempotency-Key", detail).limited(limit as u64);
            return Err(Refusal::Header(error).into());
        }
        let (method, path) = (self.parts.method.as_str(), self.parts.uri.path());
        let body = self.body_hash.to_le_bytes();
        let body_hash = stable_hash(&[method.as_bytes(), path.as_bytes(), &body]);
        Ok(Caller { key: Some(RequestKey { key: key.to_owned(), body_hash }) })
    }

    /// The body, which must be JSON.
    pub(in crate::api) async fn json<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        let bytes = self.bytes().await?;
        self.check_media_type()?;
        read_json(&bytes)
    }

    /// The body, which may be left out.
    pub(in crate::api) async fn json_or_default<T>(&mut self) -> Result<T, Problem>
    where
        T: DeserializeOwned + Default,
    {
        let bytes = self.bytes().await?;
        if bytes.is_empty() {
            return Ok(T::default());
        }
        self.check_media_type()?;
        read_json(&bytes)
    }

    async fn bytes(&mut self) -> Result<Bytes, Problem> {
        let announced = self.header(&CONTENT_LENGTH).and_then(|text| text.parse::<usize>().ok());
        if announced.is_some_and(|bytes| bytes > limits::BODY_BYTES_MAX) {
            return Err(Refusal::BodyTooLarge.into());
        }
        let Some(body) = self.body.take() else {
            return Ok(Bytes::new());
        };
        let bytes = to_bytes(body, limits::BODY_BYTES_MAX).await.map_err(|error| {
            let is_limit = std::error::Error::source(&error)
                .is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>());
            if is_limit { Refusal::BodyTooLarge } else { Refusal::BodyLost }
        })?;
        if self.parts.headers.contains_key(IDEMPOTENCY_KEY) {
            self.body_hash = stable_hash(&[&bytes]);
        }
        Ok(bytes)
    }

    fn check_media_type(&self) -> Result<(), Problem> {
        let found = self.header(&CONTENT_TYPE).unwrap_or("none");
        let essence = found.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            return Ok(());
        }
        Err(Refusal::MediaType { found: found.chars().take(64).collect() }.into())
    }
}

fn bad_parameter(name: &str, detail: impl Display) -> Problem {
    Refusal::Query(FieldError::new(format!("?{name}"), detail)).into()
}

fn bad_header(name: &str, detail: &str) -> Problem {
    Refusal::Header(FieldError::new(name, detail)).into()
}

fn query(parts: &Parts, parameters: &[&str]) -> Result<BTreeMap<String, String>, Problem> {
    if parts.uri.query().is_none_or(str::is_empty) {
        return Ok(BTreeMap::new());
    }
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
        .map_err(|error| bad_parameter("", error.body_text()))?;
    let mut query = BTreeMap::new();
    for (name, value) in pairs.0 {
        if !parameters.contains(&name.as_str()) {
            let known = parameters.join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            let shown: String = name.chars().take(64).collect();
            return Err(bad_parameter(&shown, format!("it is not known here; known: {known}")));
        }
        if query.insert(name.clone(), value).is_some() {
            return Err(bad_parameter(&name, "it is given twice"));
        }
    }
    Ok(query)
}

/// Reads JSON, and says where it is wrong.
fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let pointer = pointer_of(error.path());
        let inner = error.into_inner();
        let detail = inner.to_string();
        if inner.is_syntax() || inner.is_eof() {
            Refusal::MalformedJson { detail }
        } else if detail.starts_with("unknown field") {
            Refusal::UnknownField { pointer, detail }
        } else {
            Refusal::WrongField { pointer, detail }
        }
    })?;
    json.end().map_err(|error| Refusal::MalformedJson { detail: error.to_string() })?;
    Ok(value)
}

fn pointer_of(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        let step = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => escape(key),
            Segment::Enum { variant } => escape(variant),
            Segment::Unknown => continue,
        };
        pointer.push('/');
        pointer.push_str(&step);
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::job::JobSpec;

    #[test]
    fn a_wrong_body_is_refused_with_the_place_where_it_is_wrong() {
        let table = [
            ("", "malformed-json", ""),
            ("{", "malformed-json", ""),
            ("[]", "wrong-field", ""),
            (r#"{"executor": {"worker": {}}} x"#, "malformed-json", ""),
            (r#"{"executor": {"worker": {}}, "concurency": 1}"#, "unknown-field", "/concurency"),
            (
                r#"{"executor": {"command": {"argv": ["a", 1]}}}"#,
                "wrong-field",
                "/executor/command/argv/1",
            ),
            (r#"{"executor": {"shell": {}}}"#, "wrong-field", "/executor"),
            (r#"{"executor": {"worker": {}}, "priority": -1}"#, "wrong-field", "/priority"),
            (r#"{"executor": {"worker": {}}, "overlap": "forbid"}"#, "wrong-field", "/overlap"),
            (r#"{}"#, "wrong-field", ""),
            (
                r#"{"executor": {"worker": {}},
                    "triggers": {"a/b": {"schedule": {"cron": {"expr": 1}}}}}"#,
                "unknown-field",
                "/triggers/a~1b/schedule/cron/expr",
            ),
        ];
        for (body, code, pointer) in table {
            let problem = read_json::<JobSpec>(body.as_bytes()).unwrap_err();
            assert_eq!(problem.code(), code, "{body}");
            let found = problem.pointers().first().cloned().unwrap_or_default();
            assert_eq!(found, pointer, "{body}");
        }
    }
}
