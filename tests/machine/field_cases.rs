//! What other schedulers got wrong in the field, by the numbers of the case list, and what this
//! machine promises beside it.

use horolog::base::bounded::Name;
use horolog::base::limits;
use horolog::base::time::{Span, Timestamp};
use horolog::machine::change::Change;
use horolog::machine::command::{
    AnswerKind, Command, ExpiredLease, ExpiryCause, Grant, Offer, Pick, PlannedFire, Precondition,
    Proposal, PutJob, RecordFires, RequestFire, RequestIdentity, SkippedRun, TriggerAdvance,
};
use horolog::machine::effect::Effect;
use horolog::machine::reply::{AnswerVerdict, PutOutcome, Rejection, Reply};
use horolog::model::fire::{FireReason, FireState, Outcome, SkipReason, WaitCause};
use horolog::model::id::{FireId, WorkerId};
use horolog::model::job::{JobSpec, Payload};
use horolog::model::policy::{Misfire, MisfirePolicy, Overlap, RetryPolicy};
use horolog::model::trigger::{NextDue, TriggerState};

use crate::machine::harness::{
    Bench, START, answer, every, failed, job_key, job_spec, minutely, name, next_at, request_fire,
    worker_spec,
};

/// A bench with the job `a`, its trigger `minutely` and a worker with four slots.
fn bench(overlap: Overlap) -> (Bench, WorkerId) {
    let mut bench = Bench::new();
    bench.put_job_with("a", job_spec(overlap), minutely());
    let worker = bench.register(worker_spec("w", 4));
    bench.pass(Span::from_mins(1));
    // Takes the stamp along.
    bench.apply(Command::AllocateNode);
    (bench, worker)
}

fn running(bench: &mut Bench, worker: WorkerId) -> FireId {
    let fire = bench.request("a").unwrap();
    bench.grant(fire, worker).unwrap();
    fire
}

fn expire(bench: &mut Bench, fire: FireId) {
    let token = bench.fire(fire).unwrap().lease.unwrap().token;
    let cause = ExpiryCause::Silence;
    bench.apply(Command::ExpireLeases { expired: vec![ExpiredLease { fire, token, cause }] });
}

#[test]
fn d07_the_same_registration_changes_nothing_while_a_fire_runs() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let fire = running(&mut bench, worker);
    let (job, trigger) = (bench.job("a"), bench.trigger("a", "minutely"));
    bench.pass(Span::from_secs(1));
    let (again, outcome) = bench.put_job_with("a", job_spec(Overlap::Skip), minutely());
    assert_eq!((again, outcome), (job, PutOutcome::Unchanged));
    assert_eq!(bench.trigger("a", "minutely"), trigger);
    assert_eq!(bench.fire_state(fire), Some(FireState::Running));
    let (_, outcome) = bench.put_job("a", job_spec(Overlap::Skip));
    assert_eq!(outcome, PutOutcome::Unchanged, "triggers that are not named stay");
}

#[test]
fn m07_an_edit_beside_the_schedule_keeps_the_next_time() {
    let (mut bench, _) = bench(Overlap::Skip);
    let id = bench.trigger("a", "minutely").id;
    bench.fire_trigger(id, Vec::new());
    bench.apply(Command::PauseJob { job: job_key("a") });
    let before = bench.trigger("a", "minutely");
    bench.pass(Span::from_secs(5));
    let mut spec = every(Span::from_mins(1));
    spec.description = "new".to_owned();
    spec.payload = Payload::new("[1]");
    spec.misfire = Misfire { policy: MisfirePolicy::Skip, ..spec.misfire };
    let job = JobSpec { priority: 9, ..job_spec(Overlap::Skip) };
    bench.put_job_with("a", job, Some(vec![(name("minutely"), spec)]));
    let after = bench.trigger("a", "minutely");
    assert_eq!((after.id, after.cursor), (before.id, before.cursor));
    assert!(after.revision > before.revision);
    assert!(bench.job("a").paused_at.is_some(), "a paused job stays paused");
}

#[test]
fn a_changed_schedule_begins_at_the_stamp_and_stays_paused() {
    let (mut bench, _) = bench(Overlap::Skip);
    let (job, trigger) = (job_key("a"), name("minutely"));
    bench.apply(Command::PauseTrigger { job, trigger });
    bench.pass(Span::from_hours(1));
    let spec = every(Span::from_secs(1));
    bench.put_job_with("a", job_spec(Overlap::Skip), Some(vec![(name("minutely"), spec)]));
    let after = bench.trigger("a", "minutely");
    assert_eq!(after.cursor.accounted_to, bench.now);
    assert_eq!(after.cursor.next, NextDue::Unknown);
    assert!(matches!(after.state, TriggerState::Paused { .. }));
    assert!(bench.state().index().due_triggers().is_empty());
}

#[test]
fn m09_a_start_in_the_past_never_fires_for_the_past() {
    let mut bench = Bench::new();
    let mut spec = every(Span::from_days(1));
    spec.bounds.start_at = Some(START.minus(Span::from_days(365)));
    bench.put_job_with("a", job_spec(Overlap::Skip), Some(vec![(name("daily"), spec)]));
    assert_eq!(bench.trigger("a", "daily").cursor.accounted_to, START);
}

#[test]
fn o01_the_overlap_ends_with_the_lease_of_a_dead_run() {
    let (mut bench, worker) = bench(Overlap::Skip);
    bench.put_job("a", JobSpec { retry: no_retry(), ..job_spec(Overlap::Skip) });
    let dead = running(&mut bench, worker);
    let trigger = bench.trigger("a", "minutely").id;
    bench.fire_trigger(trigger, Vec::new());
    assert_eq!(bench.ended()[0].state, FireState::Skipped(SkipReason::Overlap));
    bench.pass(Span::from_mins(1));
    expire(&mut bench, dead);
    assert_eq!(bench.ended()[0].attempts[0].outcome, Some(Outcome::Lost));
    bench.fire_trigger(trigger, Vec::new());
    assert_eq!(bench.state().index().ready().len(), 1);
}

fn no_retry() -> RetryPolicy {
    RetryPolicy { attempts_max: 1, ..job_spec(Overlap::Skip).retry }
}

#[test]
fn o03_a_manual_fire_passes_the_same_gate() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let open = running(&mut bench, worker);
    assert_eq!(bench.request("a"), Err(Rejection::Overlap { open }));
    let forced = RequestFire { allow_overlap: true, ..request_fire("a") };
    let reply = bench.apply(Command::RequestFire(Box::new(forced)));
    assert!(matches!(reply, Reply::Fire(fire) if fire.state == FireState::Ready));
    bench.answer(open, AnswerKind::Succeeded);
    let trigger = bench.trigger("a", "minutely").id;
    bench.fire_trigger(trigger, Vec::new());
    let skipped = FireState::Skipped(SkipReason::Overlap);
    assert_eq!(bench.ended()[0].state, skipped, "a scheduled fire counts the manual one");
}

#[test]
fn a09_a_run_and_its_retries_keep_the_definition_they_began_with() {
    let (mut bench, worker) = bench(Overlap::Allow { max: None });
    let old = bench.job("a").revision;
    let fire = running(&mut bench, worker);
    let lost_update = PutJob {
        job: job_key("a"),
        spec: job_spec(Overlap::Skip),
        triggers: None,
        precondition: Precondition::Revision(old.next()),
    };
    let refused = bench.refused(Command::PutJob(Box::new(lost_update)));
    assert_eq!(refused, Rejection::RevisionMismatch { current: old });
    let payload = Payload::new("[2]").unwrap();
    bench.put_job("a", JobSpec { payload, ..job_spec(Overlap::Allow { max: None }) });
    bench.answer(fire, failed());
    let retry = bench.fire(fire).unwrap();
    assert_eq!(retry.job_revision, old);
    let spec = bench.state().spec_of(retry.id.job, old).unwrap();
    assert_eq!(spec.payload, Payload::null());
    let next = running(&mut bench, worker);
    assert_eq!(bench.fire(next).unwrap().job_revision, old.next());
    assert_eq!(bench.state().retired_specs().len(), 1);
    bench.apply(Command::CancelFire { fire });
    assert!(bench.state().retired_specs().is_empty(), "the old one goes with its last fire");
}

#[test]
fn d11_a_repeated_report_of_an_attempt_is_no_trespass() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let fire = running(&mut bench, worker);
    let open = bench.fire(fire).unwrap();
    let report = answer(&open, open.lease.unwrap().token, failed());
    let waiting = FireState::Waiting(WaitCause::Retry);
    let taken = AnswerVerdict::Taken { run: report.run, state: waiting };
    assert_eq!(bench.answer_with(report.clone()), taken);
    let digest = bench.state().digest();
    assert_eq!(bench.answer_with(report.clone()), taken);
    assert_eq!(bench.state().digest(), digest);
    let mut other = report;
    other.verdict = AnswerKind::Succeeded;
    assert!(matches!(bench.answer_with(other), AnswerVerdict::Stale { current: None, .. }));
}

#[test]
fn d13_one_key_gives_one_fire() {
    let (mut bench, _) = bench(Overlap::Allow { max: None });
    let propose = |bench: &mut Bench, key: &str, body_hash| {
        let (tenant, key) = (Name::default_name(), key.to_owned());
        let request = Some(RequestIdentity { tenant, key, body_hash });
        let command = Command::RequestFire(Box::new(request_fire("a")));
        bench.propose(Proposal { request, command })
    };
    let first = propose(&mut bench, "k", 1);
    for _ in 0..50 {
        bench.pass(Span::from_secs(1));
        assert_eq!(propose(&mut bench, "k", 1), first);
    }
    assert_eq!(bench.state().fires().len(), 1);
    let reused = Reply::Rejected(Rejection::RequestKeyReused { key: "k".to_owned() });
    assert_eq!(propose(&mut bench, "k", 2), reused);
    bench.pass(limits::REQUEST_KEEP);
    assert_ne!(propose(&mut bench, "k", 2), reused, "a key is free again after a day");
    assert_eq!((bench.state().fires().len(), bench.state().requests().len()), (2, 1));
}

#[test]
fn stale_token_changes_nothing() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let fire = running(&mut bench, worker);
    let first = bench.fire(fire).unwrap();
    let old = answer(&first, first.lease.unwrap().token, AnswerKind::Succeeded);
    expire(&mut bench, fire);
    bench.pass(Span::from_secs(10));
    let due = vec![fire];
    bench.apply(Command::RecordFires(RecordFires { due, ..RecordFires::default() }));
    let token = bench.grant(fire, worker).unwrap();
    assert!(token > old.token);
    let before = bench.fire(fire).unwrap();
    let verdict = bench.answer_with(old.clone());
    assert_eq!(verdict, AnswerVerdict::Stale { run: old.run, current: Some(token) });
    assert!(bench.effects().contains(&Effect::Fenced { fire }));
    let after = bench.fire(fire).unwrap();
    assert_eq!(after.fenced_count, 1);
    let mut expected = (*before).clone();
    expected.fenced_count = 1;
    assert_eq!(*after, expected);
    let verdict = bench.answer(fire, AnswerKind::Succeeded);
    assert!(matches!(verdict, AnswerVerdict::Taken { state: FireState::Succeeded, .. }));
}

#[test]
fn a_repeated_proposal_records_nothing_twice() {
    let (mut bench, _) = bench(Overlap::Allow { max: None });
    let trigger = bench.trigger("a", "minutely").id;
    bench.fire_trigger(trigger, Vec::new());
    let entry = bench.log.last().unwrap().clone();
    let digest = bench.state().digest();
    bench.propose(entry.proposal);
    assert_eq!(bench.state().digest(), digest);
    assert_eq!(bench.state().fires().len(), 1);
}

#[test]
fn what_is_early_or_out_of_order_is_passed_over() {
    let (mut bench, _) = bench(Overlap::Allow { max: None });
    let trigger = bench.trigger("a", "minutely");
    let (before, now) = (trigger.cursor.accounted_to, bench.now);
    let fire = |at: Timestamp, due_at: Timestamp| PlannedFire {
        scheduled_at: at,
        due_at,
        reason: FireReason::Schedule,
    };
    let ms = Span::from_ms(1);
    let mid = before.plus(Span::from_secs(30));
    let run = |first, last, count| SkippedRun { reason: SkipReason::Misfire, first, last, count };
    let sound = TriggerAdvance {
        trigger: trigger.id,
        revision: trigger.revision,
        cursor_before: before,
        fires: vec![fire(mid, mid), fire(now, now)],
        skipped: vec![run(before.plus(ms), mid.minus(ms), 3)],
        cursor_after: now,
        next: next_at(now.plus(ms)),
    };
    let changed = |change: &dyn Fn(&mut TriggerAdvance)| {
        let mut advance = sound.clone();
        change(&mut advance);
        advance
    };
    let table = [
        ("early fire", changed(&|a| a.fires[1].due_at = now.plus(ms))),
        ("fire beyond the cursor", changed(&|a| a.cursor_after = mid)),
        ("fire at the old cursor", changed(&|a| a.fires[0].scheduled_at = before)),
        ("fires out of order", changed(&|a| a.fires.reverse())),
        ("one instant twice", changed(&|a| a.fires[0].scheduled_at = now)),
        ("fire inside a skipped run", changed(&|a| a.skipped[0].last = mid)),
        ("run at the old cursor", changed(&|a| a.skipped[0].first = before)),
        ("run of nothing", changed(&|a| a.skipped[0].count = 0)),
        ("cursor in the future", changed(&|a| a.cursor_after = now.plus(ms))),
        (
            "cursor going back",
            changed(&|a| {
                a.fires.clear();
                a.skipped.clear();
                a.cursor_after = before.minus(ms);
            }),
        ),
        ("next before the cursor", changed(&|a| a.next = next_at(now))),
        ("other revision", changed(&|a| a.revision = a.revision.next())),
        ("other cursor", changed(&|a| a.cursor_before = before.minus(ms))),
    ];
    for (what, advance) in table {
        let digest = bench.state().digest();
        let advances = vec![advance];
        bench.apply(Command::RecordFires(RecordFires { advances, ..RecordFires::default() }));
        assert_eq!(bench.state().digest(), digest, "{what}");
    }
    let advances = vec![sound];
    bench.apply(Command::RecordFires(RecordFires { advances, ..RecordFires::default() }));
    assert_eq!(bench.state().fires().len(), 2);
    let job = bench.job("a");
    assert_eq!((job.history_len, job.tally.skipped), (1, 3));
}

#[test]
fn what_becomes_ready_is_granted_in_the_same_entry() {
    let (mut bench, worker) = bench(Overlap::Allow { max: None });
    let idle = bench.register(worker_spec("idle", 1));
    let other_pool = {
        let mut spec = worker_spec("other", 9);
        spec.pools = [name("other")].into();
        bench.register(spec)
    };
    let trigger = bench.trigger("a", "minutely").id;
    let offer = |worker, slots| Offer { worker, slots };
    bench.fire_trigger(trigger, vec![offer(other_pool, 9), offer(idle, 0), offer(worker, 1)]);
    let granted: Vec<_> = bench.state().index().running().iter().map(|(w, _)| *w).collect();
    assert_eq!(granted, [worker]);
    assert!(matches!(bench.effects(), [.., Effect::Granted { worker: w, fires }]
        if *w == worker && fires.len() == 1));
}

#[test]
fn a_grant_needs_a_fitting_worker_and_one_entry_grants_a_job_once() {
    let (mut bench, worker) = bench(Overlap::Allow { max: None });
    let mut fires: Vec<FireId> = (0..6).map(|_| bench.request("a").unwrap()).collect();
    let spec = |change: &dyn Fn(&mut horolog::model::worker::WorkerSpec)| {
        let mut spec = worker_spec("x", 1);
        change(&mut spec);
        spec
    };
    let unfit =
        [spec(&|s| s.pools.clear()), spec(&|s| s.executors.clear()), spec(&|s| s.slots = 0)];
    for spec in unfit {
        let worker = bench.register(spec);
        assert_eq!(bench.grant(fires[0], worker), None);
    }
    let draining = bench.register(worker_spec("d", 1));
    bench.apply(Command::DrainWorker { worker: draining });
    assert_eq!(bench.grant(fires[0], draining), None);
    let picks = fires.iter().map(|fire| Pick { fire: *fire, worker }).collect();
    bench.apply(Command::Grant(Grant { picks }));
    assert_eq!(bench.state().index().held_slots(worker), 1, "one grant of a job in one entry");
    for fire in fires.drain(..) {
        bench.grant(fire, worker);
    }
    assert_eq!(bench.state().index().held_slots(worker), 4, "no more than its slots");
}

#[test]
fn a_buffered_fire_runs_when_the_way_is_free() {
    let (mut bench, worker) = bench(Overlap::BufferOne);
    let first = running(&mut bench, worker);
    let second = bench.request("a").unwrap();
    assert_eq!(bench.fire_state(second), Some(FireState::Waiting(WaitCause::Overlap)));
    assert_eq!(bench.request("a"), Err(Rejection::Overlap { open: first }));
    let trigger = bench.trigger("a", "minutely").id;
    bench.fire_trigger(trigger, Vec::new());
    assert_eq!(bench.ended()[0].state, FireState::Skipped(SkipReason::BufferFull));
    bench.answer(first, failed());
    let buffered = Some(FireState::Waiting(WaitCause::Overlap));
    assert_eq!(bench.fire_state(second), buffered, "a retry holds the place");
    bench.apply(Command::CancelFire { fire: first });
    assert_eq!(bench.fire_state(second), Some(FireState::Ready));
}

#[test]
fn a_delayed_fire_meets_the_gate_when_its_time_has_come() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let delayed = |delay_ms, allow_overlap| {
        let request = RequestFire { delay_ms, allow_overlap, ..request_fire("a") };
        Command::RequestFire(Box::new(request))
    };
    let mut ids = Vec::new();
    for command in [delayed(5_000, false), delayed(5_000, true)] {
        let Reply::Fire(fire) = bench.apply(command) else { panic!("refused") };
        assert_eq!(fire.state, FireState::Waiting(WaitCause::Due));
        ids.push(fire.id);
    }
    let record = |due| Command::RecordFires(RecordFires { due, ..RecordFires::default() });
    bench.pass(Span::from_ms(4_999));
    bench.apply(record(ids.clone()));
    assert_eq!(bench.state().index().waiting().len(), 2, "not before its time");
    running(&mut bench, worker);
    bench.pass(Span::from_ms(1));
    bench.apply(record(ids.clone()));
    assert_eq!(bench.ended()[0].state, FireState::Skipped(SkipReason::Overlap));
    assert_eq!(bench.fire_state(ids[1]), Some(FireState::Ready));
}

#[test]
fn a_pause_is_remembered_over_its_layers() {
    let (mut bench, _) = bench(Overlap::Skip);
    let minute = Span::from_mins(1);
    let from = bench.now;
    let trigger = || (job_key("a"), name("minutely"));
    let (job, name) = trigger();
    bench.apply(Command::PauseTrigger { job, trigger: name });
    bench.pass(minute);
    let group = job_key("a").group_key();
    bench.apply(Command::PauseGroup { group: group.clone() });
    bench.apply(Command::PauseJob { job: job_key("a") });
    bench.pass(minute);
    let (job, name) = trigger();
    bench.apply(Command::ResumeTrigger { job, trigger: name });
    assert!(bench.state().index().due_triggers().is_empty());
    bench.pass(minute);
    bench.apply(Command::ResumeGroup { group });
    assert!(bench.state().index().due_triggers().is_empty());
    bench.pass(minute);
    bench.apply(Command::ResumeJob { job: job_key("a") });
    assert_eq!(bench.state().index().due_triggers().len(), 1);
    let pause = bench.trigger("a", "minutely").last_pause.unwrap();
    assert_eq!((pause.from, pause.until), (from, Some(bench.now)));
}

#[test]
fn a_paused_job_runs_what_somebody_asks_for() {
    let (mut bench, worker) = bench(Overlap::Skip);
    bench.apply(Command::PauseJob { job: job_key("a") });
    let trigger = bench.trigger("a", "minutely").id;
    bench.fire_trigger(trigger, Vec::new());
    assert!(bench.state().fires().is_empty());
    let fire = running(&mut bench, worker);
    assert_eq!(bench.fire_state(fire), Some(FireState::Running));
}

#[test]
fn a_deleted_job_frees_its_name_and_keeps_its_history() {
    let (mut bench, worker) = bench(Overlap::BufferOne);
    let run = running(&mut bench, worker);
    let buffered = bench.request("a").unwrap();
    let open = bench.fire(run).unwrap();
    let (job, precondition) = (job_key("a"), Precondition::Always);
    bench.apply(Command::DeleteJob { job, precondition });
    let ended: Vec<_> = bench.ended().iter().map(|fire| (fire.id, fire.state)).collect();
    assert_eq!(ended, [(run, FireState::Cancelled), (buffered, FireState::Cancelled)]);
    let late = answer(&open, open.lease.unwrap().token, AnswerKind::Succeeded);
    assert_eq!(bench.answer_with(late.clone()), AnswerVerdict::NotOpen { run: late.run });
    let (again, outcome) = bench.put_job("a", job_spec(Overlap::Skip));
    assert_eq!(outcome, PutOutcome::Created);
    assert_ne!(again.id, run.job);
    assert_eq!(bench.state().index().held_slots(worker), 0);
}

#[test]
fn retries_follow_the_policy() {
    let failure = |retryable, retry_after_ms| AnswerKind::Failed {
        kind: "exit".to_owned(),
        retryable,
        retry_after_ms,
    };
    let waiting = FireState::Waiting(WaitCause::Retry);
    let far = limits::DELAY_MAX.as_ms();
    let table = [
        ("by the policy", failure(true, None), waiting, 10_000),
        ("as the worker says", failure(true, Some(123)), waiting, 123),
        ("at once", failure(true, Some(0)), FireState::Ready, 0),
        ("within bounds", failure(true, Some(i64::MAX)), waiting, far),
        ("not again", failure(false, Some(5)), FireState::Failed, 0),
        ("released", AnswerKind::Released, FireState::Ready, 0),
        ("cancelled", AnswerKind::Cancelled, FireState::Cancelled, 0),
    ];
    for (what, kind, state, delay_ms) in table {
        let (mut bench, worker) = bench(Overlap::Skip);
        let fire = running(&mut bench, worker);
        let verdict = bench.answer(fire, kind);
        assert!(matches!(verdict, AnswerVerdict::Taken { state: s, .. } if s == state), "{what}");
        if let Some(fire) = bench.fire(fire) {
            assert_eq!(fire.not_before.since(bench.now).as_ms(), delay_ms, "{what}");
        }
    }
}

#[test]
fn a_release_is_no_try() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let twice = RetryPolicy { attempts_max: 2, ..no_retry() };
    bench.put_job("a", JobSpec { retry: twice, ..job_spec(Overlap::Skip) });
    let fire = running(&mut bench, worker);
    for _ in 0..5 {
        bench.answer(fire, AnswerKind::Released);
        bench.grant(fire, worker).unwrap();
    }
    bench.answer(fire, failed());
    let open = bench.fire(fire).unwrap();
    assert_eq!(open.state, FireState::Waiting(WaitCause::Retry));
    assert_eq!((open.attempt_count, open.released_count), (6, 5));
}

#[test]
fn a_cancelled_run_ends_as_cancelled_unless_it_succeeds() {
    let table = [
        (failed(), FireState::Cancelled),
        (AnswerKind::Released, FireState::Cancelled),
        (AnswerKind::Cancelled, FireState::Cancelled),
        (AnswerKind::Succeeded, FireState::Succeeded),
    ];
    for (kind, state) in table {
        let (mut bench, worker) = bench(Overlap::Skip);
        let fire = running(&mut bench, worker);
        bench.apply(Command::CancelFire { fire });
        let asked = bench.fire(fire).unwrap().cancel_requested_at;
        assert_eq!(asked, Some(bench.now));
        bench.pass(Span::from_secs(1));
        bench.apply(Command::CancelFire { fire });
        assert_eq!(bench.fire(fire).unwrap().cancel_requested_at, asked, "the first time counts");
        bench.answer(fire, kind);
        assert_eq!(bench.ended()[0].state, state);
    }
}

#[test]
fn a_time_out_needs_its_deadline() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let mut spec = job_spec(Overlap::Skip);
    spec.timeout.start_to_finish = Some(Span::from_secs(5));
    bench.put_job("a", spec);
    let fire = running(&mut bench, worker);
    let token = bench.fire(fire).unwrap().lease.unwrap().token;
    let cause = ExpiryCause::Timeout;
    let expired = vec![ExpiredLease { fire, token, cause }];
    bench.pass(Span::from_ms(4_999));
    bench.apply(Command::ExpireLeases { expired: expired.clone() });
    assert_eq!(bench.fire_state(fire), Some(FireState::Running));
    bench.pass(Span::from_ms(1));
    bench.apply(Command::ExpireLeases { expired });
    let fire = bench.fire(fire).unwrap();
    assert_eq!(fire.attempts[0].outcome, Some(Outcome::TimedOut));
    assert!(bench.state().index().deadlines().is_empty());
}

#[test]
fn a_removed_worker_may_still_answer() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let fire = running(&mut bench, worker);
    bench.apply(Command::RemoveWorkers { workers: vec![worker] });
    let verdict = bench.answer(fire, AnswerKind::Succeeded);
    assert!(matches!(verdict, AnswerVerdict::Taken { state: FireState::Succeeded, .. }));
    assert!(bench.state().index().running().is_empty());
}

#[test]
fn another_tenants_answer_finds_nothing() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let fire = running(&mut bench, worker);
    let open = bench.fire(fire).unwrap();
    let answers = vec![answer(&open, open.lease.unwrap().token, AnswerKind::Succeeded)];
    let command = horolog::machine::command::AnswerWork { tenant: name("blue"), answers };
    let reply = bench.apply(Command::AnswerWork(command));
    assert_eq!(reply, Reply::Answers(vec![AnswerVerdict::NotOpen { run: open.current_run() }]));
    assert_eq!(bench.fire_state(fire), Some(FireState::Running));
}

#[test]
fn a_stamp_from_a_clock_behind_does_not_turn_time_back() {
    let (mut bench, _) = bench(Overlap::Skip);
    bench.apply(Command::AllocateNode);
    let stamp = bench.state().stamp();
    bench.now = bench.now.minus(Span::from_hours(1));
    let fire = bench.request("a").unwrap();
    assert_eq!(bench.state().stamp(), stamp);
    assert_eq!(bench.fire(fire).unwrap().recorded_at, stamp);
}

#[test]
fn a_trigger_without_a_next_time_has_ended() {
    let (mut bench, _) = bench(Overlap::Skip);
    let trigger = bench.trigger("a", "minutely");
    let advance = TriggerAdvance {
        trigger: trigger.id,
        revision: trigger.revision,
        cursor_before: trigger.cursor.accounted_to,
        fires: Vec::new(),
        skipped: Vec::new(),
        cursor_after: trigger.cursor.accounted_to,
        next: NextDue::Never,
    };
    let advances = vec![advance];
    bench.apply(Command::RecordFires(RecordFires { advances, ..RecordFires::default() }));
    assert_eq!(bench.trigger("a", "minutely").state, TriggerState::Ended);
    let spec = every(Span::from_mins(5));
    bench.put_job_with("a", job_spec(Overlap::Skip), Some(vec![(name("minutely"), spec)]));
    assert_eq!(bench.trigger("a", "minutely").state, TriggerState::Active);
}

#[test]
fn a_report_is_kept_in_its_bounds() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let fire = running(&mut bench, worker);
    let open = bench.fire(fire).unwrap();
    let mut large = answer(&open, open.lease.unwrap().token, AnswerKind::Succeeded);
    let text = "é".repeat(limits::VALUE_BYTES_MAX);
    large.report.result = Some(text.clone());
    large.report.error_message = Some(text.clone());
    large.report.output = Some(text);
    bench.answer_with(large);
    let changes = &bench.last.as_ref().unwrap().changes;
    let kept = changes.iter().find_map(|change| match change {
        Change::PutAttempt(_, report) => Some(report),
        _ => None,
    });
    let kept = kept.unwrap();
    assert_eq!(kept.result, None, "half a JSON text is none");
    assert_eq!(kept.error_message.as_ref().unwrap().len(), limits::ERROR_BYTES_MAX);
    assert_eq!(kept.output.as_ref().unwrap().len(), limits::OUTPUT_BYTES_MAX);
    assert!(kept.output_truncated);
}

#[test]
fn the_most_urgent_fires_get_the_slots() {
    let mut bench = Bench::new();
    for (job, priority) in [("low", 1), ("high", 9), ("middle", 5)] {
        let spec = JobSpec { priority, ..job_spec(Overlap::Skip) };
        bench.put_job_with(job, spec, minutely());
    }
    let worker = bench.register(worker_spec("w", 2));
    bench.pass(Span::from_mins(1));
    let now = bench.now;
    let due = PlannedFire { scheduled_at: now, due_at: now, reason: FireReason::Schedule };
    let triggers: Vec<_> = bench.state().triggers().values().cloned().collect();
    let advances = triggers.iter().map(|trigger| TriggerAdvance {
        trigger: trigger.id,
        revision: trigger.revision,
        cursor_before: trigger.cursor.accounted_to,
        fires: vec![due],
        skipped: Vec::new(),
        cursor_after: now,
        next: NextDue::Never,
    });
    let (advances, offers) = (advances.collect(), vec![Offer { worker, slots: 9 }]);
    bench.apply(Command::RecordFires(RecordFires { advances, due: Vec::new(), offers }));
    let running = bench.state().fires().values().filter(|fire| fire.lease.is_some());
    let mut names: Vec<&str> = running.map(|fire| fire.job_key.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["high", "middle"], "no more than the worker's own slots");
}

#[test]
fn old_attempts_are_counted_but_not_kept() {
    let (mut bench, worker) = bench(Overlap::Skip);
    let fire = running(&mut bench, worker);
    for _ in 0..40 {
        bench.answer(fire, AnswerKind::Released);
        bench.grant(fire, worker).unwrap();
    }
    let fire = bench.fire(fire).unwrap();
    assert_eq!(fire.attempts.len(), limits::ATTEMPTS_KEPT_MAX);
    assert_eq!((fire.attempts.last().unwrap().number, fire.attempt_count), (41, 41));
}
