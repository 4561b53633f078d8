//! Leases that ran out. The leader saw it; the token says whether it still holds.

use crate::machine::apply::context::Context;
use crate::machine::apply::ending::{AttemptEnd, end_attempt};
use crate::machine::command::{ExpiredLease, ExpiryCause};
use crate::machine::reply::Reply;
use crate::model::fire::Outcome;

// Refusals: none. A lease whose token is not the current one, and a time-out whose deadline has not
// come, are passed over.
pub(in crate::machine) fn expire_leases(
    context: &mut Context<'_>,
    expired: &[ExpiredLease],
) -> Reply {
    for lease in expired {
        expire(context, lease);
    }
    Reply::Done
}

fn expire(context: &mut Context<'_>, expired: &ExpiredLease) {
    let Some(fire) = context.state().fires().get(&expired.fire) else { return };
    let Some(lease) = fire.lease.filter(|lease| lease.token == expired.token) else { return };
    let outcome = match expired.cause {
        ExpiryCause::Silence => Outcome::Lost,
        ExpiryCause::Timeout => {
            let is_over = lease.deadline.is_some_and(|deadline| deadline <= context.now());
            if !is_over {
                return;
            }
            Outcome::TimedOut
        }
    };
    let fire = fire.clone();
    end_attempt(context, &fire, &AttemptEnd::plain(outcome));
}
