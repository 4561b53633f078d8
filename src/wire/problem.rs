//! What went wrong, as RFC 9457 (`application/problem+json`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A refusal. `code` is stable and meant for programs; the texts are meant for people and may
/// change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A URI that names the kind of problem: `urn:horolog:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    /// One of the codes listed in `docs/http-api.md`.
    pub code: String,
    /// Every field that was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// With `stale-token`: the token of the attempt that holds the fire, when one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_token: Option<u64>,
    /// With `revision-mismatch` and `exists`: the revision the resource has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<u64>,
    /// With `overlap` and `fire-ended`: the fire in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fire: Option<String>,
    /// True when nobody knows whether the change took place: ask again with the same
    /// `Idempotency-Key`, or look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outcome_unknown: bool,
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldProblem {
    /// An RFC 6901 pointer into the body, such as `/triggers/nightly/schedule/cron`; `?name` for a
    /// parameter of the query, `{name}` for a part of the path, and the name of a header.
    pub pointer: String,
    pub detail: String,
    /// The limit that was exceeded, in the unit that `detail` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}
