//! The next few times of a schedule, to be shown before it is saved.

use crate::base::limits::PAGE_SIZE_MAX;
use crate::base::time::Timestamp;
use crate::recurrence::Compiled;

/// The next `count` occurrences after an instant, at most [`PAGE_SIZE_MAX`] of them; fewer when the
/// schedule ends.
#[must_use]
pub fn next_times(compiled: &Compiled, after: Timestamp, count: usize) -> Vec<Timestamp> {
    let mut times = Vec::new();
    let mut last = after;
    while times.len() < count.min(PAGE_SIZE_MAX) {
        let Some(next) = compiled.next_after(last) else {
            break;
        };
        times.push(next);
        last = next;
    }
    times
}
