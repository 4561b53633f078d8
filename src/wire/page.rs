//! One page of a list.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Items in the list's order, and where the next page begins.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Send it back as `?cursor=` for the next page. It is opaque. A page may be short, or even
    /// empty, and still have one: the list ends where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
