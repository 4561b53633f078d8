//! The planner against the real machine: what it proposes, and that proposing it twice changes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::bounded::Name;
use crate::base::limits;
use crate::base::time::{Span, Timestamp};
use crate::machine::Machine;
use crate::machine::command::{
    Command, Entry, Offer, Precondition, Proposal, PutJob, RegisterWorker, RequestFire,
};
use crate::machine::reply::Reply;
use crate::model::fire::{FireReason, FireState, SkipReason};
use crate::model::id::{JobKey, WorkerId};
use crate::model::job::{Executor, ExecutorKind, JobSpec, Payload};
use crate::model::policy::{Misfire, MisfirePolicy, Overlap, RetryPolicy, TimeoutPolicy};
use crate::model::schedule::{Bounds, Schedule};
use crate::model::trigger::TriggerSpec;
use crate::model::worker::WorkerSpec;
use crate::planner::{Plan, ScheduleCache, plan};

/// Noon of a day, and seconds after it.
fn at(seconds: i64) -> Timestamp {
    let noon: Timestamp = "2026-12-01T12:00:00Z".parse().unwrap();
    noon.plus(Span::from_secs(seconds))
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn key(text: &str) -> JobKey {
    JobKey { tenant: name("default"), group: name("default"), name: name(text) }
}

fn spec() -> JobSpec {
    JobSpec {
        description: String::new(),
        executor: Executor::Worker,
        payload: Payload::null(),
        pool: name("default"),
        priority: JobSpec::PRIORITY_DEFAULT,
        overlap: Overlap::Allow { max: None },
        retry: RetryPolicy::default(),
        timeout: TimeoutPolicy::default(),
        lease_ttl: Span::from_secs(30),
        history_count: 100,
        labels: BTreeMap::new(),
    }
}

fn every_second(policy: MisfirePolicy) -> TriggerSpec {
    TriggerSpec {
        description: String::new(),
        schedule: Schedule::Every { interval: Span::from_secs(1), anchor: Timestamp::EPOCH },
        bounds: Bounds::default(),
        misfire: Misfire { policy, ..Misfire::default() },
        payload: None,
    }
}

/// A machine with its own index and stamps, and the planner's cache beside it.
struct Bench {
    machine: Machine,
    cache: ScheduleCache,
    index: u64,
}

impl Bench {
    fn new() -> Bench {
        let mut bench =
            Bench { machine: Machine::default(), cache: ScheduleCache::default(), index: 0 };
        bench.apply(at(0), Command::Bootstrap { cluster_id: "test".to_owned() });
        bench
    }

    fn apply(&mut self, stamp: Timestamp, command: Command) -> Reply {
        self.index += 1;
        let entry = Entry { stamp, proposal: Proposal::from(command) };
        self.machine.apply(self.index, &entry).reply
    }

    fn put_job(&mut self, stamp: Timestamp, job: &str, trigger: Option<TriggerSpec>) {
        let put = PutJob {
            job: key(job),
            spec: spec(),
            triggers: trigger.map(|spec| vec![(name("tick"), spec)]),
            precondition: Precondition::Always,
        };
        let reply = self.apply(stamp, Command::PutJob(Box::new(put)));
        assert!(matches!(reply, Reply::Job(..)), "{reply:?}");
    }

    fn put_worker(&mut self, stamp: Timestamp, slots: u32) -> WorkerId {
        let register = RegisterWorker {
            tenant: name("default"),
            spec: WorkerSpec {
                name: name("w"),
                pools: BTreeSet::from([name("default")]),
                executors: BTreeSet::from([ExecutorKind::Worker]),
                slots,
                labels: BTreeMap::new(),
            },
        };
        match self.apply(stamp, Command::RegisterWorker(Box::new(register))) {
            Reply::Worker(worker) => worker.id,
            other => panic!("{other:?}"),
        }
    }

    fn request(&mut self, stamp: Timestamp, job: &str, at: Option<Timestamp>) {
        let request =
            RequestFire { job: key(job), at, delay_ms: 0, payload: None, allow_overlap: false };
        let reply = self.apply(stamp, Command::RequestFire(Box::new(request)));
        assert!(matches!(reply, Reply::Fire(_)), "{reply:?}");
    }

    fn plan(&mut self, now: Timestamp, offers: &[Offer]) -> Plan {
        plan(self.machine.state(), &mut self.cache, now, offers)
    }

    /// Plans and applies until nothing is left to propose.
    fn settle(&mut self, now: Timestamp, offers: &[Offer]) {
        for _ in 0..100 {
            let plan = self.plan(now, offers);
            if plan.commands.is_empty() {
                return;
            }
            for command in plan.commands {
                self.apply(now, command);
            }
        }
        panic!("the planner never comes to rest");
    }

    fn open(&self) -> Vec<(Timestamp, FireState, FireReason)> {
        let fires = self.machine.state().fires().values();
        fires.map(|fire| (fire.scheduled_at, fire.state, fire.reason)).collect()
    }
}

#[test]
fn a_new_trigger_gets_its_next_time_and_no_fire() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", Some(every_second(MisfirePolicy::FireAll)));
    bench.settle(at(0), &[]);
    assert_eq!(bench.open(), []);
    assert_eq!(bench.plan(at(0), &[]).wake_at, Some(at(1)));
}

#[test]
fn nothing_is_planned_before_its_time() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", Some(every_second(MisfirePolicy::FireAll)));
    bench.settle(at(0), &[]);
    let a_moment_early = at(1).minus(Span::from_ms(1));
    assert_eq!(bench.plan(a_moment_early, &[]).commands, []);
    bench.settle(at(1), &[]);
    assert_eq!(bench.open(), [(at(1), FireState::Ready, FireReason::Schedule)]);
}

/// P2: the same proposal again, as a new leader or a retry would make it.
#[test]
fn applying_a_plan_twice_changes_nothing_more() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", Some(every_second(MisfirePolicy::FireAll)));
    bench.settle(at(0), &[]);
    let commands = bench.plan(at(1), &[]).commands;
    for command in commands.iter().chain(&commands) {
        bench.apply(at(1), command.clone());
    }
    assert_eq!(bench.open().len(), 1);
}

/// A new leader has an empty cache and the same plan.
#[test]
fn the_plan_follows_from_the_state_alone() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", Some(every_second(MisfirePolicy::FireAll)));
    bench.settle(at(3), &[]);
    let used = bench.plan(at(7), &[]);
    bench.cache = ScheduleCache::default();
    assert_eq!(bench.plan(at(7), &[]), used);
}

/// D03, P1: what fell due without a leader is made up for, each occurrence once.
#[test]
fn what_fell_due_without_a_leader_fires_in_order() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", Some(every_second(MisfirePolicy::FireAll)));
    bench.settle(at(0), &[]);
    bench.settle(at(30), &[]);
    let fires = bench.open();
    let times: Vec<Timestamp> = fires.iter().map(|fire| fire.0).collect();
    let expected: Vec<Timestamp> = (1..=30).map(at).collect();
    assert_eq!(times, expected);
    assert_eq!(fires[0].2, FireReason::Catchup);
    assert_eq!(fires[29].2, FireReason::Schedule);
}

#[test]
fn a_misfire_policy_of_skip_fires_nothing_that_was_missed() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", Some(every_second(MisfirePolicy::Skip)));
    bench.settle(at(0), &[]);
    let plan = bench.plan(at(3_600), &[]);
    let Some(Command::RecordFires(record)) = plan.commands.first() else {
        panic!("{plan:?}");
    };
    let advance = &record.advances[0];
    let late: Vec<_> = advance
        .fires
        .iter()
        .filter(|fire| fire.scheduled_at < at(3_600).minus(Span::from_secs(10)))
        .collect();
    assert!(late.is_empty(), "{late:?}");
    let skipped: u64 = advance.skipped.iter().map(|run| run.count).sum();
    assert_eq!(skipped + advance.fires.len() as u64, 3_600);
    assert!(advance.skipped.iter().all(|run| run.reason == SkipReason::Misfire));
}

#[test]
fn what_a_pause_left_out_says_so() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", Some(every_second(MisfirePolicy::Skip)));
    bench.settle(at(0), &[]);
    bench.apply(at(0), Command::PauseJob { job: key("a") });
    assert_eq!(bench.plan(at(600), &[]).commands, []);
    bench.apply(at(600), Command::ResumeJob { job: key("a") });
    let plan = bench.plan(at(600), &[]);
    let Some(Command::RecordFires(record)) = plan.commands.first() else {
        panic!("{plan:?}");
    };
    assert!(record.advances[0].skipped.iter().all(|run| run.reason == SkipReason::Paused));
    assert!(!record.advances[0].skipped.is_empty());
}

#[test]
fn due_work_is_granted_in_the_entry_that_records_it() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", Some(every_second(MisfirePolicy::FireAll)));
    let worker = bench.put_worker(at(0), 4);
    bench.settle(at(0), &[]);
    let commands = bench.plan(at(1), &[Offer { worker, slots: 4 }]).commands;
    assert_eq!(commands.len(), 1);
    for command in commands {
        bench.apply(at(1), command);
    }
    assert_eq!(bench.open(), [(at(1), FireState::Running, FireReason::Schedule)]);
}

/// P4: tokens of a job strictly grow, so one entry grants it once.
#[test]
fn ready_fires_of_one_job_are_granted_in_separate_entries() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", None);
    let worker = bench.put_worker(at(0), 10);
    for _ in 0..5 {
        bench.request(at(0), "a", None);
    }
    bench.settle(at(1), &[Offer { worker, slots: 10 }]);
    let state = bench.machine.state();
    let tokens: BTreeSet<u64> =
        state.fires().values().filter_map(|fire| fire.lease).map(|lease| lease.token.0).collect();
    assert_eq!(tokens.len(), 5);
}

#[test]
fn workers_take_turns_and_none_gets_more_than_it_offered() {
    let mut bench = Bench::new();
    let (first, second) = (bench.put_worker(at(0), 10), bench.put_worker(at(0), 10));
    for number in 0..9 {
        let job = format!("job-{number}");
        bench.put_job(at(0), &job, None);
        bench.request(at(0), &job, None);
    }
    let offers = [Offer { worker: first, slots: 3 }, Offer { worker: second, slots: 5 }];
    let plan = bench.plan(at(1), &offers);
    for command in plan.commands {
        bench.apply(at(1), command);
    }
    let index = bench.machine.state().index();
    assert_eq!((index.held_slots(first), index.held_slots(second)), (3, 5));
}

#[test]
fn a_delayed_fire_waits_for_its_time() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", None);
    bench.request(at(0), "a", Some(at(60)));
    assert_eq!(bench.plan(at(59), &[]).commands, []);
    assert_eq!(bench.plan(at(59), &[]).wake_at, Some(at(60)));
    bench.settle(at(60), &[]);
    assert_eq!(bench.open(), [(at(60), FireState::Ready, FireReason::Manual)]);
}

#[test]
fn a_round_is_bounded_and_the_next_ones_do_the_rest() {
    let mut bench = Bench::new();
    bench.put_job(at(0), "a", None);
    for _ in 0..600 {
        bench.request(at(0), "a", Some(at(1)));
    }
    let plan = bench.plan(at(1), &[]);
    let [Command::RecordFires(record)] = plan.commands.as_slice() else {
        panic!("{:?}", plan.commands);
    };
    assert_eq!(record.due.len(), limits::FIRES_PER_ENTRY_MAX);
    bench.settle(at(1), &[]);
    assert!(bench.open().iter().all(|fire| fire.1 == FireState::Ready));
}
