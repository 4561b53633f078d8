//! Random commands that mean something: small numbers pick from what the state holds, so that most
//! of them get beyond their first refusal.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use horolog::base::bounded::Name;
use horolog::base::time::{Span, Timestamp};
use horolog::machine::command::{
    Answer, AnswerKind, AnswerWork, Command, Entry, ExpiredLease, ExpiryCause, Grant, Offer, Pick,
    PlannedFire, Precondition, Proposal, PruneHistory, PutJob, PutTenant, PutTrigger, RecordFires,
    RegisterWorker, RequestFire, RequestIdentity, SkippedRun, TriggerAdvance,
};
use horolog::machine::state::State;
use horolog::model::fire::{AttemptReport, FencingToken, FireReason, SkipReason};
use horolog::model::id::{FireId, GroupKey, JobId, JobKey, Revision, RunId, Seq, WorkerId};
use horolog::model::job::{ExecutorKind, JobSpec, Payload};
use horolog::model::policy::{Overlap, RetryPolicy, TimeoutPolicy};
use horolog::model::schedule::Schedule;
use horolog::model::trigger::{NextDue, TriggerSpec};
use horolog::model::worker::WorkerSpec;

use crate::machine::harness::{every, job_spec, name};

/// The numbers that a command is made of.
#[derive(Clone, Debug)]
pub struct Dice {
    pub verb: u8,
    pub a: u8,
    pub b: u8,
    pub c: u8,
    pub flag: bool,
    pub more: Vec<u8>,
    /// Milliseconds that pass before the entry; negative: the next leader's clock is behind.
    pub passes_ms: i64,
    pub request: Option<u8>,
}

pub fn dice() -> impl Strategy<Value = Dice> {
    let numbers = (0..40u8, any::<u8>(), any::<u8>(), any::<u8>(), any::<bool>());
    let rest = (
        prop::collection::vec(any::<u8>(), 0..6),
        prop_oneof![8 => 0..20_000i64, 1 => -5_000..0i64, 1 => 0..100_000_000i64],
        prop_oneof![4 => Just(None), 1 => (0..3u8).prop_map(Some)],
    );
    (numbers, rest).prop_map(|((verb, a, b, c, flag), (more, passes_ms, request))| Dice {
        verb,
        a,
        b,
        c,
        flag,
        more,
        passes_ms,
        request,
    })
}

/// The entry that the dice mean in this state.
pub fn entry(state: &State, stamp: Timestamp, dice: &Dice) -> Entry {
    let command = command(state, dice);
    let request = dice.request.map(|key| RequestIdentity {
        tenant: Name::default_name(),
        key: format!("key-{key}"),
        body_hash: u64::from(dice.a % 2),
    });
    Entry { stamp, proposal: Proposal { request, command } }
}

fn command(state: &State, dice: &Dice) -> Command {
    let Dice { a, b, c, flag, .. } = *dice;
    match dice.verb {
        0 => Command::PutTenant(PutTenant {
            tenant: tenant(a),
            description: format!("{}", b % 2),
            precondition: precondition(c),
        }),
        1 => Command::DeleteTenant { tenant: tenant(a) },
        2 => Command::PauseGroup { group: group(a) },
        3 => Command::ResumeGroup { group: group(a) },
        4..=6 => put_job(dice),
        7 if flag => Command::DeleteJob { job: job(a), precondition: precondition(b) },
        7 | 8 => Command::PauseJob { job: job(a) },
        9 => Command::ResumeJob { job: job(a) },
        10 => Command::PutTrigger(Box::new(PutTrigger {
            job: job(a),
            trigger: trigger_name(b),
            spec: trigger_spec(c),
            precondition: precondition(dice.more.first().copied().unwrap_or(9)),
        })),
        11 => Command::DeleteTrigger {
            job: job(a),
            trigger: trigger_name(b),
            precondition: precondition(c),
        },
        12 => Command::PauseTrigger { job: job(a), trigger: trigger_name(b) },
        13 => Command::ResumeTrigger { job: job(a), trigger: trigger_name(b) },
        14..=17 => Command::RequestFire(Box::new(RequestFire {
            job: job(a),
            at: b.is_multiple_of(5).then(|| state.stamp().plus(Span::from_secs(i64::from(c)))),
            delay_ms: if b % 5 == 1 { i64::from(c) * 500 } else { 0 },
            payload: flag.then(Payload::null),
            allow_overlap: b % 7 == 2,
        })),
        18 | 19 => Command::CancelFire { fire: fire(state, a) },
        20..=25 => record(state, dice),
        26..=28 => Command::Grant(Grant { picks: picks(state, dice) }),
        29 | 30 => Command::RegisterWorker(Box::new(RegisterWorker {
            tenant: tenant(a / 4),
            spec: worker_spec(b),
        })),
        31 if flag => Command::DrainWorker { worker: worker(state, a) },
        31 => Command::RemoveWorkers { workers: vec![worker(state, a)] },
        32..=36 => answers(state, dice),
        37 | 38 => expire(state, dice),
        _ if flag => Command::PruneHistory(PruneHistory {
            recorded_before: state.stamp(),
            count_max: u32::from(a),
        }),
        _ if a.is_multiple_of(2) => Command::Bootstrap { cluster_id: "other".to_owned() },
        _ => Command::AllocateNode,
    }
}

fn tenant(n: u8) -> Name {
    name(["default", "default", "blue", "default"][usize::from(n % 4)])
}

fn group(n: u8) -> GroupKey {
    GroupKey { tenant: tenant(n), group: name(["default", "night"][usize::from(n / 4 % 2)]) }
}

fn job(n: u8) -> JobKey {
    let group = group(n);
    let job = name(["a", "b", "c"][usize::from(n / 8 % 3)]);
    JobKey { tenant: group.tenant, group: group.group, name: job }
}

fn trigger_name(n: u8) -> Name {
    name(["t", "u", "v"][usize::from(n % 3)])
}

fn precondition(n: u8) -> Precondition {
    match n % 8 {
        0 => Precondition::Absent,
        1 => Precondition::Present,
        2 => Precondition::Revision(Revision(u64::from(n / 8 % 3) + 1)),
        _ => Precondition::Always,
    }
}

fn spec(n: u8) -> JobSpec {
    let overlap = match n % 4 {
        0 => Overlap::Skip,
        1 => Overlap::BufferOne,
        2 => Overlap::Allow { max: Some(2) },
        _ => Overlap::Allow { max: None },
    };
    let mut spec = job_spec(overlap);
    spec.priority = n % 10;
    spec.history_count = u32::from(n % 3);
    spec.pool = name(["default", "heavy"][usize::from(n / 16 % 2)]);
    spec.timeout =
        TimeoutPolicy { start_to_finish: n.is_multiple_of(5).then(|| Span::from_secs(5)) };
    spec.retry = RetryPolicy {
        attempts_max: u32::from(n % 3) + 1,
        first_delay: Span::from_secs(i64::from(n % 2) * 3),
        ..spec.retry
    };
    spec
}

fn trigger_spec(n: u8) -> TriggerSpec {
    let mut spec = every(Span::from_secs(i64::from(n % 3) + 1));
    spec.description = format!("{}", n / 3 % 2);
    if n.is_multiple_of(7) {
        spec.schedule = Schedule::At { at: Timestamp::from_ms(i64::from(n)) };
    }
    spec
}

fn put_job(dice: &Dice) -> Command {
    let triggers = dice.more.iter().map(|n| (trigger_name(*n), trigger_spec(*n / 3))).collect();
    Command::PutJob(Box::new(PutJob {
        job: job(dice.a),
        spec: spec(dice.b % 32),
        triggers: dice.flag.then_some(triggers),
        precondition: precondition(dice.c),
    }))
}

fn worker_spec(n: u8) -> WorkerSpec {
    let pools = if n.is_multiple_of(3) { vec!["default", "heavy"] } else { vec!["default"] };
    WorkerSpec {
        name: name("w"),
        pools: pools.into_iter().map(name).collect(),
        executors: BTreeSet::from([ExecutorKind::Worker]),
        slots: u32::from(n % 4),
        labels: BTreeMap::new(),
    }
}

/// One of the open fires, or one that never was.
fn fire(state: &State, n: u8) -> FireId {
    let bogus = FireId { job: JobId(Seq::new(1, 1)), seq: Seq::new(u64::from(n), 0) };
    let count = state.fires().len();
    let place = usize::from(n) % (count + 1);
    state.fires().keys().nth(place).copied().unwrap_or(bogus)
}

fn worker(state: &State, n: u8) -> WorkerId {
    let count = state.workers().len();
    let place = usize::from(n) % (count + 1);
    let bogus = WorkerId(Seq::new(u64::from(n), 0));
    state.workers().keys().nth(place).copied().unwrap_or(bogus)
}

fn picks(state: &State, dice: &Dice) -> Vec<Pick> {
    let some = dice.more.iter().map(|n| Pick { fire: fire(state, *n), worker: worker(state, *n) });
    let mut picks: Vec<Pick> = some.collect();
    if let Some(ready) = state.index().ready().iter().nth(usize::from(dice.a % 3)) {
        picks.push(Pick { fire: ready.fire, worker: worker(state, dice.b) });
    }
    picks
}

fn record(state: &State, dice: &Dice) -> Command {
    let triggers: Vec<_> = state.triggers().values().collect();
    let mut advances: Vec<TriggerAdvance> = Vec::new();
    for n in &dice.more {
        if triggers.is_empty() {
            break;
        }
        let trigger = triggers[usize::from(*n) % triggers.len()];
        // Recorded up to three seconds ahead of the stamp: such an advance must be passed over.
        let ahead = Span::from_secs(i64::from(n % 4) / 3 * 3);
        advances.push(advance(trigger, state.stamp().plus(ahead), *n));
    }
    let due = state.index().waiting().iter().take(usize::from(dice.a % 4)).map(|(_, id)| *id);
    let mut due: Vec<FireId> = due.collect();
    due.push(fire(state, dice.b));
    let offers = state.workers().keys().take(usize::from(dice.c % 3));
    let offers = offers.map(|worker| Offer { worker: *worker, slots: u32::from(dice.b % 3) });
    Command::RecordFires(RecordFires { advances, due, offers: offers.collect() })
}

fn advance(trigger: &horolog::model::trigger::Trigger, until: Timestamp, n: u8) -> TriggerAdvance {
    let before = trigger.cursor.accounted_to;
    let step = until.since(before).as_ms() / 4;
    let at = |k: i64| before.plus(Span::from_ms(step * k));
    let fires = (2..=4).take(usize::from(n % 4)).map(|k| PlannedFire {
        scheduled_at: at(k),
        due_at: at(k),
        reason: FireReason::Schedule,
    });
    let reason = SkipReason::Misfire;
    let run = SkippedRun { reason, first: at(1), last: at(1), count: u64::from(n % 3) };
    TriggerAdvance {
        trigger: trigger.id,
        revision: if n % 16 == 15 { Revision(99) } else { trigger.revision },
        cursor_before: if n % 16 == 14 { Timestamp::EPOCH } else { before },
        fires: fires.collect(),
        skipped: if n.is_multiple_of(5) { vec![run] } else { Vec::new() },
        cursor_after: until,
        next: match n % 11 {
            0 => NextDue::Never,
            1 => NextDue::Unknown,
            _ => NextDue::At {
                scheduled_at: until.plus(Span::from_secs(1)),
                due_at: until.plus(Span::from_secs(1)),
            },
        },
    }
}

fn answers(state: &State, dice: &Dice) -> Command {
    let mut answers = Vec::new();
    for n in dice.more.iter().chain([&dice.a]) {
        let running = state.index().running();
        let place = usize::from(*n) % (running.len() + 1);
        let id = running.iter().nth(place).map_or_else(|| fire(state, *n), |(_, fire)| *fire);
        let open = state.fires().get(&id);
        let attempt = open.map_or(1, |fire| fire.attempt_count);
        let token = open.and_then(|fire| fire.lease).map(|lease| lease.token);
        let token = token.filter(|_| n % 8 != 7).unwrap_or(FencingToken(u64::from(*n)));
        let report = AttemptReport { exit_code: Some(i32::from(*n)), ..AttemptReport::default() };
        let report = if n.is_multiple_of(2) { report } else { AttemptReport::default() };
        let run = RunId { fire: id, attempt };
        answers.push(Answer { run, token, verdict: verdict(n / 8), report });
    }
    Command::AnswerWork(AnswerWork { tenant: tenant(dice.b), answers })
}

fn verdict(n: u8) -> AnswerKind {
    match n % 6 {
        0 | 1 => AnswerKind::Succeeded,
        2 => AnswerKind::Cancelled,
        3 => AnswerKind::Released,
        _ => AnswerKind::Failed {
            kind: "exit".to_owned(),
            retryable: !n.is_multiple_of(5),
            retry_after_ms: n.is_multiple_of(3).then_some(i64::from(n) * 100),
        },
    }
}

fn expire(state: &State, dice: &Dice) -> Command {
    let lease = |(_, id): &(WorkerId, FireId)| {
        let token = state.fires().get(id)?.lease?.token;
        let cause = if dice.flag { ExpiryCause::Silence } else { ExpiryCause::Timeout };
        Some(ExpiredLease { fire: *id, token, cause })
    };
    let running = state.index().running().iter();
    let mut expired: Vec<ExpiredLease> =
        running.filter_map(lease).take(usize::from(dice.a % 3)).collect();
    expired.push(ExpiredLease {
        fire: fire(state, dice.b),
        token: FencingToken(u64::from(dice.c)),
        cause: ExpiryCause::Silence,
    });
    Command::ExpireLeases { expired }
}
