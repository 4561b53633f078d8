//! Attempts that run longer than their job allows.

use crate::base::limits;
use crate::base::time::Timestamp;
use crate::machine::command::{ExpiredLease, ExpiryCause};
use crate::machine::state::State;

#[derive(Debug, Default)]
pub struct TimedOut {
    pub leases: Vec<ExpiredLease>,
    pub more: bool,
}

/// Running fires whose deadline has passed, oldest deadline first, at most
/// `limits::GRANTS_PER_ENTRY_MAX`.
#[must_use]
pub fn timed_out(state: &State, now: Timestamp) -> TimedOut {
    let mut found = TimedOut::default();
    for (deadline, id) in state.index().deadlines().iter() {
        if *deadline > now {
            break;
        }
        if found.leases.len() == limits::GRANTS_PER_ENTRY_MAX {
            found.more = true;
            break;
        }
        let lease = state.fires().get(id).and_then(|fire| fire.lease);
        if let Some(lease) = lease {
            let cause = ExpiryCause::Timeout;
            found.leases.push(ExpiredLease { fire: *id, token: lease.token, cause });
        }
    }
    found
}
