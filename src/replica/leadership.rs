//! Who leads, as this node knows it.

use crate::model::id::NodeId;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    pub term: u64,
    pub leader: Option<NodeId>,
    /// This node leads and has applied the first entry of its term.
    pub leading: bool,
}
