//! Triggers without a next time, and due ones: what each of their occurrences becomes, and where
//! the cursor goes. And requested fires whose time has come.

use crate::base::limits;
use crate::base::time::Timestamp;
use crate::machine::command::{PlannedFire, SkippedRun, TriggerAdvance};
use crate::machine::state::State;
use crate::model::fire::{FireReason, SkipReason};
use crate::model::id::{FireId, TriggerId};
use crate::model::trigger::{NextDue, PauseSpan, Trigger};
use crate::planner::ScheduleCache;
use crate::recurrence::Compiled;
use crate::recurrence::misfire::{self, Selection, SkippedRun as MissedRun};

/// What is due now.
#[derive(Debug, Default)]
pub struct DueWork {
    pub advances: Vec<TriggerAdvance>,
    pub fires: Vec<FireId>,
    pub unreadable: Vec<(TriggerId, String)>,
}

/// Most triggers looked at in one round: bounds the round even when none of them yields a fire.
const TRIGGERS_PER_ROUND_MAX: usize = 4 * limits::FIRES_PER_ENTRY_MAX;

/// Requested fires come first, then triggers in the order of their due times, up to
/// `limits::FIRES_PER_ENTRY_MAX` fires in all.
#[must_use]
pub fn due_work(state: &State, cache: &mut ScheduleCache, now: Timestamp) -> DueWork {
    let mut work = DueWork::default();
    for (at, fire) in state.index().waiting().iter() {
        if *at > now {
            break;
        }
        if work.fires.len() == limits::FIRES_PER_ENTRY_MAX {
            return work;
        }
        work.fires.push(*fire);
    }

    let mut fires_left = limits::FIRES_PER_ENTRY_MAX - work.fires.len();
    for (looked_at, (at, id)) in state.index().due_triggers().iter().enumerate() {
        if *at > now {
            break;
        }
        if fires_left == 0 || looked_at == TRIGGERS_PER_ROUND_MAX {
            break;
        }
        let Some(trigger) = state.triggers().get(id) else {
            continue;
        };
        match cache.compiled(state, trigger) {
            Ok(compiled) => {
                let advance = advance_of(trigger, compiled, now, fires_left);
                fires_left -= advance.fires.len().min(fires_left);
                work.advances.push(advance);
            }
            Err(reason) => {
                work.advances.push(end_of(trigger));
                work.unreadable.push((*id, reason));
            }
        }
    }
    work
}

fn advance_of(
    trigger: &Trigger,
    compiled: &Compiled,
    now: Timestamp,
    fires_max: usize,
) -> TriggerAdvance {
    let selection: Selection = misfire::select(
        compiled,
        trigger.cursor.accounted_to,
        now,
        &trigger.spec.misfire,
        fires_max,
    );
    let on_time_from = now.minus(trigger.spec.misfire.grace);
    let planned = |&scheduled_at: &Timestamp| PlannedFire {
        scheduled_at,
        due_at: scheduled_at,
        reason: if scheduled_at < on_time_from {
            FireReason::Catchup
        } else {
            FireReason::Schedule
        },
    };
    TriggerAdvance {
        trigger: trigger.id,
        revision: trigger.revision,
        cursor_before: trigger.cursor.accounted_to,
        fires: selection.fires.iter().map(planned).collect(),
        skipped: selection
            .skipped
            .iter()
            .map(|run| SkippedRun {
                reason: reason_of(run, trigger.last_pause),
                first: run.first,
                last: run.last,
                count: run.count,
            })
            .collect(),
        cursor_after: selection.cursor,
        next: match selection.next {
            Some(at) => NextDue::At { scheduled_at: at, due_at: at },
            None => NextDue::Never,
        },
    }
}

/// A skipped run that lies inside the trigger's latest pause was skipped because of the pause.
fn reason_of(run: &MissedRun, pause: Option<PauseSpan>) -> SkipReason {
    let inside = |pause: PauseSpan| {
        run.first >= pause.from && pause.until.is_none_or(|until| run.last <= until)
    };
    if pause.is_some_and(inside) { SkipReason::Paused } else { run.reason }
}

/// A rule that cannot be read yields nothing more. The cursor stays, so that nothing is claimed
/// about its time.
fn end_of(trigger: &Trigger) -> TriggerAdvance {
    TriggerAdvance {
        trigger: trigger.id,
        revision: trigger.revision,
        cursor_before: trigger.cursor.accounted_to,
        fires: Vec::new(),
        skipped: Vec::new(),
        cursor_after: trigger.cursor.accounted_to,
        next: NextDue::Never,
    }
}
