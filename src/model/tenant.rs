//! A tenant, the unit of isolation, and a group of its jobs.

use serde::{Deserialize, Serialize};

use crate::base::bounded::Name;
use crate::base::time::Timestamp;
use crate::model::id::GroupKey;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    pub name: Name,
    pub description: String,
    pub created_at: Timestamp,
}

/// A group that was paused at least once; any other group exists by being named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub key: GroupKey,
    pub paused_at: Option<Timestamp>,
}
