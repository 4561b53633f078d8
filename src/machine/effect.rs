//! What others may want to know of a change. Every node may be told, twice or never, without harm:
//! effects are hints for polls and watchers, and nothing that must happen depends on them.

use std::sync::Arc;

use crate::model::fire::Fire;
use crate::model::id::{FireId, WorkerId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The worker was given these fires in this entry; whoever holds its poll can answer it.
    Granted { worker: WorkerId, fires: Vec<FireId> },
    /// The fire as it stands after the entry; watchers show it.
    FireChanged(Arc<Fire>),
    /// A refused call with an old token, for the metric.
    Fenced { fire: FireId },
}
