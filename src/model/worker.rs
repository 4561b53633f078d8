//! A worker: a process that runs work, for the time of one session.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::bounded::Name;
use crate::base::time::Timestamp;
use crate::model::id::WorkerId;
use crate::model::job::ExecutorKind;

/// What a worker says of itself when it registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpec {
    pub name: Name,
    pub pools: BTreeSet<Name>,
    pub executors: BTreeSet<ExecutorKind>,
    /// Attempts it runs side by side.
    pub slots: u32,
    pub labels: BTreeMap<Name, String>,
}

/// A worker's session as the cluster keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    pub id: WorkerId,
    pub tenant: Name,
    pub spec: WorkerSpec,
    pub state: WorkerState,
    pub registered_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerState {
    Live,
    /// Gets no more work; ends what it has.
    Draining,
}
