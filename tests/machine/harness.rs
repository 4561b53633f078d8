//! A machine with a clock and a log of its own, and short ways to build its nouns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use horolog::base::bounded::Name;
use horolog::base::time::{Span, Timestamp};
use horolog::machine::command::{
    Answer, AnswerKind, AnswerWork, Command, Entry, Offer, Pick, PlannedFire, Precondition,
    Proposal, PutJob, RecordFires, RegisterWorker, RequestFire, TriggerAdvance,
};
use horolog::machine::effect::Effect;
use horolog::machine::reply::{AnswerVerdict, PutOutcome, Rejection, Reply};
use horolog::machine::state::State;
use horolog::machine::{Applied, Machine, invariant};
use horolog::model::fire::{AttemptReport, FencingToken, Fire, FireReason, FireState};
use horolog::model::id::{FireId, JobKey, TriggerId, WorkerId};
use horolog::model::job::{Executor, ExecutorKind, Job, JobSpec, Payload};
use horolog::model::policy::{Misfire, Overlap, RetryPolicy, TimeoutPolicy};
use horolog::model::schedule::{Bounds, Schedule};
use horolog::model::trigger::{NextDue, Trigger, TriggerSpec};
use horolog::model::worker::WorkerSpec;

/// 2026-12-01T00:00:00Z, when every test begins.
pub const START: Timestamp = Timestamp::from_ms(1_796_083_200_000);

/// A machine that checks all invariants after every entry and remembers the entries.
#[derive(Default)]
pub struct Bench {
    pub machine: Machine,
    pub log: Vec<Entry>,
    pub now: Timestamp,
    pub last: Option<Applied>,
}

impl Bench {
    /// A bootstrapped cluster at [`START`].
    pub fn new() -> Bench {
        let mut bench = Bench { now: START, ..Bench::default() };
        let reply = bench.apply(Command::Bootstrap { cluster_id: "cluster".to_owned() });
        assert_eq!(reply, Reply::Done);
        bench
    }

    pub fn apply(&mut self, command: Command) -> Reply {
        self.propose(Proposal::from(command))
    }

    pub fn propose(&mut self, proposal: Proposal) -> Reply {
        let entry = Entry { stamp: self.now, proposal };
        let index = self.log.len() as u64 + 1;
        let applied = self.machine.apply(index, &entry);
        self.log.push(entry);
        if let Err(broken) = invariant::check(self.machine.state()) {
            panic!("after entry {index} {:?}: {broken}", self.log.last());
        }
        let reply = applied.reply.clone();
        self.last = Some(applied);
        reply
    }

    pub fn refused(&mut self, command: Command) -> Rejection {
        match self.apply(command) {
            Reply::Rejected(rejection) => rejection,
            other => panic!("not refused: {other:?}"),
        }
    }

    pub fn state(&self) -> &State {
        self.machine.state()
    }

    pub fn effects(&self) -> &[Effect] {
        &self.last.as_ref().unwrap().effects
    }

    pub fn pass(&mut self, span: Span) {
        self.now = self.now.plus(span);
    }

    pub fn put_job(&mut self, name: &str, spec: JobSpec) -> (Arc<Job>, PutOutcome) {
        self.put_job_with(name, spec, None)
    }

    pub fn put_job_with(
        &mut self,
        name: &str,
        spec: JobSpec,
        triggers: Option<Vec<(Name, TriggerSpec)>>,
    ) -> (Arc<Job>, PutOutcome) {
        let precondition = Precondition::Always;
        let command = PutJob { job: job_key(name), spec, triggers, precondition };
        match self.apply(Command::PutJob(Box::new(command))) {
            Reply::Job(job, outcome) => (job, outcome),
            other => panic!("{other:?}"),
        }
    }

    pub fn job(&self, name: &str) -> Arc<Job> {
        self.state().job_by_key(&job_key(name)).unwrap().clone()
    }

    pub fn trigger(&self, job: &str, trigger: &str) -> Arc<Trigger> {
        self.state().trigger_by_name(self.job(job).id, &name(trigger)).unwrap().clone()
    }

    pub fn register(&mut self, spec: WorkerSpec) -> WorkerId {
        let command = RegisterWorker { tenant: Name::default_name(), spec };
        match self.apply(Command::RegisterWorker(Box::new(command))) {
            Reply::Worker(worker) => worker.id,
            other => panic!("{other:?}"),
        }
    }

    pub fn request(&mut self, job: &str) -> Result<FireId, Rejection> {
        match self.apply(Command::RequestFire(Box::new(request_fire(job)))) {
            Reply::Fire(fire) => Ok(fire.id),
            Reply::Rejected(rejection) => Err(rejection),
            other => panic!("{other:?}"),
        }
    }

    pub fn grant(&mut self, fire: FireId, worker: WorkerId) -> Option<FencingToken> {
        let picks = vec![Pick { fire, worker }];
        self.apply(Command::Grant(horolog::machine::command::Grant { picks }));
        self.fire(fire).and_then(|fire| fire.lease).map(|lease| lease.token)
    }

    pub fn fire(&self, id: FireId) -> Option<Arc<Fire>> {
        self.state().fires().get(&id).cloned()
    }

    pub fn fire_state(&self, id: FireId) -> Option<FireState> {
        self.fire(id).map(|fire| fire.state)
    }

    /// The answer of the attempt under way, with its own token.
    pub fn answer(&mut self, id: FireId, kind: AnswerKind) -> AnswerVerdict {
        let fire = self.fire(id).unwrap();
        let answer = answer(&fire, fire.lease.unwrap().token, kind);
        self.answer_with(answer)
    }

    pub fn answer_with(&mut self, answer: Answer) -> AnswerVerdict {
        let answers = vec![answer];
        let command = AnswerWork { tenant: Name::default_name(), answers };
        match self.apply(Command::AnswerWork(command)) {
            Reply::Answers(verdicts) => verdicts[0].clone(),
            other => panic!("{other:?}"),
        }
    }

    /// One occurrence of a trigger, recorded now.
    pub fn fire_trigger(&mut self, id: TriggerId, offers: Vec<Offer>) -> Reply {
        let trigger = self.state().triggers()[&id].clone();
        let at = self.now;
        let reason = FireReason::Schedule;
        let advance = TriggerAdvance {
            trigger: id,
            revision: trigger.revision,
            cursor_before: trigger.cursor.accounted_to,
            fires: vec![PlannedFire { scheduled_at: at, due_at: at, reason }],
            skipped: Vec::new(),
            cursor_after: at,
            next: next_at(at.plus(Span::from_mins(1))),
        };
        let record = RecordFires { advances: vec![advance], due: Vec::new(), offers };
        self.apply(Command::RecordFires(record))
    }

    /// The fires that became history in the last entry.
    pub fn ended(&self) -> Vec<Arc<Fire>> {
        let changed = self.effects().iter().filter_map(|effect| match effect {
            Effect::FireChanged(fire) if fire.state.is_ended() => Some(Arc::clone(fire)),
            _ => None,
        });
        changed.collect()
    }
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn job_key(job: &str) -> JobKey {
    JobKey { tenant: Name::default_name(), group: Name::default_name(), name: name(job) }
}

pub fn next_at(at: Timestamp) -> NextDue {
    NextDue::At { scheduled_at: at, due_at: at }
}

pub fn job_spec(overlap: Overlap) -> JobSpec {
    JobSpec {
        description: String::new(),
        executor: Executor::Worker,
        payload: Payload::null(),
        pool: Name::default_name(),
        priority: JobSpec::PRIORITY_DEFAULT,
        overlap,
        retry: RetryPolicy { attempts_max: 3, ..RetryPolicy::default() },
        timeout: TimeoutPolicy::default(),
        lease_ttl: Span::from_secs(30),
        history_count: 100,
        labels: BTreeMap::new(),
    }
}

pub fn every(interval: Span) -> TriggerSpec {
    TriggerSpec {
        description: String::new(),
        schedule: Schedule::Every { interval, anchor: START },
        bounds: Bounds::default(),
        misfire: Misfire::default(),
        payload: None,
    }
}

pub fn minutely() -> Option<Vec<(Name, TriggerSpec)>> {
    Some(vec![(name("minutely"), every(Span::from_mins(1)))])
}

pub fn worker_spec(worker: &str, slots: u32) -> WorkerSpec {
    WorkerSpec {
        name: name(worker),
        pools: BTreeSet::from([Name::default_name()]),
        executors: BTreeSet::from([ExecutorKind::Worker]),
        slots,
        labels: BTreeMap::new(),
    }
}

pub fn request_fire(job: &str) -> RequestFire {
    let job = job_key(job);
    RequestFire { job, at: None, delay_ms: 0, payload: None, allow_overlap: false }
}

pub fn answer(fire: &Fire, token: FencingToken, verdict: AnswerKind) -> Answer {
    Answer { run: fire.current_run(), token, verdict, report: AttemptReport::default() }
}

pub fn failed() -> AnswerKind {
    AnswerKind::Failed { kind: "exit".to_owned(), retryable: true, retry_after_ms: None }
}
