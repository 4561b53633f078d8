//! Forgetting: old history goes in bounded steps, by count and by age.

use crate::base::limits;
use crate::machine::apply::context::Context;
use crate::machine::command::PruneHistory;
use crate::machine::reply::Reply;

// Refusals: none.
pub(in crate::machine) fn prune_history(
    context: &mut Context<'_>,
    command: &PruneHistory,
) -> Reply {
    let count = command.count_max.min(limits::HISTORY_PRUNE_MAX);
    context.prune_history(command.recorded_before, count);
    Reply::Done
}
