//! Who leads, as this node knows it.
//!
//! A node that was elected leads only once it has applied the first entry of its own term: before
//! that its state may lack what the leader before it had committed.

use std::sync::Arc;

use openraft::ServerState;
use openraft::async_runtime::watch::WatchReceiver;
use tokio::time::sleep;

use crate::model::id::NodeId;
use crate::replica::inner::Inner;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    pub term: u64,
    pub leader: Option<NodeId>,
    /// This node leads and has applied the first entry of its term.
    pub leading: bool,
}

/// Keeps the watch of `Replica::leadership` current, until the node stops.
pub(crate) async fn run_watch(inner: Arc<Inner>) {
    let mut server = inner.raft.server_metrics();
    let mut applied = inner.live.last();
    loop {
        let (current, is_elected) = {
            let metrics = server.borrow_watched();
            let term = metrics.vote.leader_id.term;
            let is_elected = metrics.state == ServerState::Leader;
            // A vote outlives its leader: one that is not heard any more is not named.
            let is_heard = is_elected || !inner.is_leader_silent();
            let leader = metrics.current_leader.filter(|_| is_heard).map(NodeId);
            let applied_term = applied.borrow_and_update().map(|id| id.leader_id.term);
            let leading = is_elected && applied_term == Some(term);
            (Leadership { term, leader, leading }, is_elected)
        };
        inner.leadership.send_if_modified(|before| {
            let is_changed = *before != current;
            *before = current;
            is_changed
        });
        let waits_for_first = is_elected && !current.leading;
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            changed = server.changed() => if changed.is_err() {
                inner.core_stopped();
                return;
            },
            changed = applied.changed(), if waits_for_first => if changed.is_err() {
                return;
            },
            () = sleep(inner.config.election_max), if !is_elected => {}
        }
    }
}
