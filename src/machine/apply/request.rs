//! Calls with an idempotency key: the first one is carried out and its reply remembered, each
//! repetition gets that reply and changes nothing.

use crate::base::limits;
use crate::base::time::Timestamp;
use crate::machine::apply::context::Context;
use crate::machine::command::RequestIdentity;
use crate::machine::reply::{Rejection, Reply};
use crate::machine::state::{RequestRecord, State};

/// Remembered replies that one entry forgets at most: more than one entry can add.
const FORGOTTEN_PER_ENTRY: usize = 4;

/// Forgets the oldest remembered replies that are past their time, or above the largest number.
pub(in crate::machine) fn forget_old(context: &mut Context<'_>) {
    for _ in 0..FORGOTTEN_PER_ENTRY {
        let state = context.state();
        let Some((answered_at, tenant, key)) = state.index().requests_by_age.get_min() else {
            return;
        };
        let is_over = state.requests().len() > limits::REQUESTS_MAX;
        if !is_over && !is_past(*answered_at, context.now()) {
            return;
        }
        let (tenant, key) = (tenant.clone(), key.clone());
        context.drop_request(&tenant, &key);
    }
}

// Refusals: RequestKeyReused, before those of the command.
pub(in crate::machine) fn answer_once(
    context: &mut Context<'_>,
    identity: &RequestIdentity,
    carry_out: impl FnOnce(&mut Context<'_>) -> Reply,
) -> Reply {
    if let Some(known) = known_answer(context.state(), identity, context.now()) {
        return known;
    }
    let reply = carry_out(context);
    context.drop_request(&identity.tenant, &identity.key);
    context.put_request(RequestRecord {
        tenant: identity.tenant.clone(),
        key: identity.key.clone(),
        body_hash: identity.body_hash,
        answered_at: context.now(),
        reply: reply.clone(),
    });
    reply
}

fn known_answer(state: &State, identity: &RequestIdentity, now: Timestamp) -> Option<Reply> {
    let key = (identity.tenant.clone(), identity.key.clone());
    let record = state.requests().get(&key)?;
    if is_past(record.answered_at, now) {
        return None;
    }
    if record.body_hash != identity.body_hash {
        let key = identity.key.clone();
        return Some(Reply::Rejected(Rejection::RequestKeyReused { key }));
    }
    Some(record.reply.clone())
}

fn is_past(answered_at: Timestamp, now: Timestamp) -> bool {
    answered_at.plus(limits::REQUEST_KEEP) <= now
}
