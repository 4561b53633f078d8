//! The loops that exist only while this node leads.
//!
//! [`run`] watches the leadership. When this node leads and has applied the first entry of its
//! term, one [`term::Term`] is built from nothing but the replicated state, and its loops start;
//! when leadership is lost they are dropped, with everything they remembered. What must outlive a
//! term is in the log.
//!
//! What a term keeps in memory, and what losing it costs:
//!
//! - *offers* (`offers`): polls that wait for work. Nodes repeat theirs when the leader changes.
//! - *lease deadlines* (`leases`): a new leader gives every lease one full length of grace.
//! - *compiled schedules*: a cache.
//!
//! A deposed leader can do no harm: it proposes under the condition that it still leads in its
//! term, and confirms its leadership with a majority before it prolongs a lease.

pub mod handler;
pub mod leases;
pub mod offers;
pub mod term;
pub mod ticker;

use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::watch;
use tracing::info;

use crate::base::clock::SharedClock;
use crate::leader::handler::TermHandler;
use crate::leader::term::Term;
use crate::replica::Replica;
use crate::replica::leadership::Leadership;

/// Leads whenever this node is the leader; returns when the replica has stopped.
pub async fn run(replica: Replica, clock: SharedClock) {
    let mut leadership = replica.leadership();
    loop {
        let now = *leadership.borrow_and_update();
        if now.leading {
            if lead(&replica, &clock, now.term, &mut leadership).await.is_break() {
                return;
            }
            continue;
        }
        if leadership.changed().await.is_err() {
            return;
        }
    }
}

/// Serves one term, until the leadership is seen to have changed; breaks when the replica has
/// stopped.
async fn lead(
    replica: &Replica,
    clock: &SharedClock,
    number: u64,
    leadership: &mut watch::Receiver<Leadership>,
) -> ControlFlow<()> {
    info!(term = number, "leading");
    let term = Arc::new(Term::new(replica.clone(), clock.clone(), number));
    replica.set_leader_handler(Arc::new(TermHandler::new(term.clone())));
    let lost = async {
        let other_term = |seen: &Leadership| !seen.leading || seen.term != number;
        // An error means that the replica has stopped, which ends the term as well.
        let _ = leadership.wait_for(other_term).await;
    };
    let outcome = tokio::select! {
        () = lost => ControlFlow::Continue(()),
        () = ticker::run(&term) => ControlFlow::Break(()),
    };
    info!(term = number, "no longer leading");
    term.close();
    outcome
}
