//! The leader's one loop: sleep until something is due or somebody rings, plan, propose, look
//! again.
//!
//! One round is in flight at a time: the next plan must see what the last one did. Rounds follow
//! each other without a pause while there is work, so the pace is that of the log.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, warn};

use crate::base::time::Timestamp;
use crate::leader::term::Term;
use crate::machine::command::{Command, Proposal};
use crate::planner::{self, ScheduleCache};
use crate::replica::error::ProposeError;

/// The longest sleep: the wall clock may have been set meanwhile, which no timer notices.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// The pause after a proposal that could not be made, while leadership may be on its way elsewhere.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// How often silent workers are looked for.
const WORKERS_EVERY: Duration = Duration::from_secs(5);

/// Runs until the replica has stopped. Whether this node still leads is not judged here: a proposal
/// that failed says nothing certain about it, and a leader that stopped firing would go on being
/// the leader. The caller drops the loop once another term is seen to have begun.
pub async fn run(term: &Term) {
    let mut cache = ScheduleCache::default();
    let mut applied = term.replica.applied();
    let mut workers_at = Instant::now() + WORKERS_EVERY;
    loop {
        applied.mark_unchanged();
        let under_way = term.round.lock().await;
        let round = plan_round(term, &mut cache, &mut workers_at);
        if round.commands.is_empty() {
            drop(under_way);
            let sleep_until = Instant::now() + round.sleep;
            tokio::select! {
                () = term.nudge.notified() => {}
                changed = applied.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep_until(sleep_until) => {}
            }
            continue;
        }
        let proposals = round.commands.into_iter().map(Proposal::from).collect();
        match term.replica.propose_leading(term.number, proposals).await {
            Ok(_) => {}
            Err(ProposeError::Stopped(_)) => return,
            Err(error) => {
                // The cursors are in the log: whatever became of this proposal, the next plan
                // begins where the applied ones ended.
                if error.is_retryable() {
                    debug!(term = term.number, %error, "a round was refused, planning again");
                } else {
                    warn!(term = term.number, %error, "a round has no answer, planning again");
                }
                drop(under_way);
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

/// What to propose now, or how long to sleep.
struct Round {
    commands: Vec<Command>,
    sleep: Duration,
}

fn plan_round(term: &Term, cache: &mut ScheduleCache, workers_at: &mut Instant) -> Round {
    // The state first, then the memory, which may then know of more than the state shows: a lease
    // that ends in between is expired twice, which changes nothing.
    let view = term.replica.view();
    let mono_now = Instant::now();
    let (offers, run_out, silent, next_end) = {
        let mut memory = term.memory();
        let mut silent = Vec::new();
        if mono_now >= *workers_at {
            silent = memory.leases.silent_workers(&view.state, mono_now);
            *workers_at = mono_now + WORKERS_EVERY;
        }
        let offers = memory.offers.current(mono_now);
        (offers, memory.leases.run_out(mono_now), silent, memory.leases.next_end())
    };

    let now = term.clock.now();
    let plan = planner::plan(&view.state, cache, now, &offers);
    for (trigger, reason) in &plan.unreadable {
        warn!(?trigger, reason, "a stored schedule cannot be read, its trigger is ended");
    }
    let mut commands = plan.commands;
    if !run_out.is_empty() {
        commands.push(Command::ExpireLeases { expired: run_out });
    }
    if !silent.is_empty() {
        commands.push(Command::RemoveWorkers { workers: silent });
    }
    let until_lease = next_end.map(|ends_at| ends_at.saturating_duration_since(mono_now));
    let sleep = sleep_for(now, plan.wake_at, until_lease);
    Round { commands, sleep }
}

fn sleep_for(
    now: Timestamp,
    wake_at: Option<Timestamp>,
    until_lease: Option<Duration>,
) -> Duration {
    let until_due = wake_at.map(|at| at.since(now).to_std());
    [until_due, until_lease].into_iter().flatten().min().unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
}
