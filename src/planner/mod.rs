//! What a leader should propose now: a pure function of the state, the time and the slots on offer.
//!
//! Nothing is remembered between two calls but [`ScheduleCache`], which only saves work: a leader
//! that was elected a moment ago plans exactly what its predecessor would have. All of it is
//! derived again from the cursors in the state, so nothing that fell due in between can be
//! forgotten, and every proposal names the position it was worked out from, so that applying it
//! twice changes nothing.
//!
//! The order of the commands matters. Work that is ready goes first to the slots on offer; what is
//! left of the offers rides on the entry that records new fires, which then grants in the same
//! round; time-outs come last.
//!
//! The planner knows nothing of Raft, disks or threads, and it never changes a state.

pub mod due;
pub mod expiry;
pub mod grant;

use std::collections::BTreeMap;

use crate::base::time::{Span, Timestamp};
use crate::machine::command::{Command, Grant, Offer, RecordFires};
use crate::machine::state::State;
use crate::model::id::{FireId, Revision, TriggerId};
use crate::model::trigger::Trigger;
use crate::recurrence::Compiled;

/// What to propose, in order, and when to look again if nothing happens before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub commands: Vec<Command>,
    /// The next time by which something falls due; `None`: nothing is scheduled.
    pub wake_at: Option<Timestamp>,
    /// Triggers whose stored rule this version cannot read, each with the reason. They are ended.
    pub unreadable: Vec<(TriggerId, String)>,
}

/// Compiled schedules by trigger and revision, so that a frequent trigger is not parsed at every
/// fire.
#[derive(Debug, Default)]
pub struct ScheduleCache {
    compiled: BTreeMap<TriggerId, (Revision, Compiled)>,
}

impl ScheduleCache {
    /// The most schedules kept; above it all are forgotten, which costs nothing but time.
    const SCHEDULES_MAX: usize = 200_000;

    fn compiled(&mut self, state: &State, trigger: &Trigger) -> Result<&Compiled, String> {
        let known = self.compiled.get(&trigger.id).is_some_and(|(at, _)| *at == trigger.revision);
        if !known {
            if self.compiled.len() >= ScheduleCache::SCHEDULES_MAX {
                self.compiled.clear();
            }
            let hash_key =
                state.jobs().get(&trigger.job).map_or_else(String::new, |job| job.key.to_string());
            let compiled = Compiled::new(&trigger.spec.schedule, &trigger.spec.bounds, &hash_key)
                .map_err(|error| error.to_string())?;
            self.compiled.insert(trigger.id, (trigger.revision, compiled));
        }
        match self.compiled.get(&trigger.id) {
            Some((_, compiled)) => Ok(compiled),
            None => Err("the schedule could not be kept".to_owned()),
        }
    }
}

/// Plans one round. The work of a call is bounded by the limits in `base::limits`, whatever the
/// state.
#[must_use]
pub fn plan(state: &State, cache: &mut ScheduleCache, now: Timestamp, offers: &[Offer]) -> Plan {
    let mut plan = Plan::default();

    let granted = grant::ready_work(state, offers);
    plan.commands.extend(granted.waves.into_iter().map(|picks| Command::Grant(Grant { picks })));

    let due = due::due_work(state, cache, now);
    plan.unreadable = due.unreadable;
    if !due.advances.is_empty() || !due.fires.is_empty() {
        let offers = granted.offers_left;
        plan.commands.push(Command::RecordFires(RecordFires {
            advances: due.advances,
            due: due.fires,
            offers,
        }));
    }

    let expired = expiry::timed_out(state, now);
    if !expired.is_empty() {
        plan.commands.push(Command::ExpireLeases { expired });
    }

    plan.wake_at = next_wake(state, now);
    plan
}

/// The earliest of what is still to come. What is due already needs no timer: it is planned, or
/// other commands of this round filled the limits, and a round with commands is followed by the
/// next one at once.
fn next_wake(state: &State, now: Timestamp) -> Option<Timestamp> {
    let index = state.index();
    let after_now = now.plus(Span::from_ms(1));
    let trigger = index.due_triggers().range((after_now, TriggerId::FIRST)..).next();
    let waiting = index.waiting().range((after_now, FireId::FIRST)..).next();
    let deadline = index.deadlines().range((after_now, FireId::FIRST)..).next();
    let instants =
        [trigger.map(|(at, _)| *at), waiting.map(|(at, _)| *at), deadline.map(|(at, _)| *at)];
    instants.into_iter().flatten().min()
}

#[cfg(test)]
mod tests;
