//! Attempts that run longer than their job allows.

use crate::base::limits;
use crate::base::time::Timestamp;
use crate::machine::command::{ExpiredLease, ExpiryCause};
use crate::machine::state::State;

/// Running fires whose deadline has passed, oldest deadline first, at most
/// `limits::GRANTS_PER_ENTRY_MAX`.
#[must_use]
pub fn timed_out(state: &State, now: Timestamp) -> Vec<ExpiredLease> {
    let passed = state.index().deadlines().iter().take_while(|(deadline, _)| *deadline <= now);
    passed
        .filter_map(|(_, id)| {
            let token = state.fires().get(id)?.lease?.token;
            Some(ExpiredLease { fire: *id, token, cause: ExpiryCause::Timeout })
        })
        .take(limits::GRANTS_PER_ENTRY_MAX)
        .collect()
}
