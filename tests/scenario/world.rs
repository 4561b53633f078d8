//! The verbs of the scenarios.
//!
//! ```text
//! at 00:05:00 | pass 10s                          the clock; ticks do not happen by themselves
//! create-job J [overlap=skip|buffer-one|allow|allow-2] [retry=N] [every=60s] [misfire=POLICY]
//!              [timeout=10s] [priority=N] [payload=N] [if-revision=N|if-absent]
//! delete-job J | pause J | resume J | pause-trigger J | resume-trigger J
//! pause-group | resume-group                       the group `default`
//! request J [in=10s] [payload=N] [beside] [key=K]  ask for a fire
//! cancel F                                         F is the short name of a fire, such as #1
//! register W [slots=N] | drain W | remove W        workers
//! offer W [N]                                      its poll waits with N slots until it is used up
//! tick                                             one round of a leader: plan, apply, until done
//! acquire W [N]                                    offer, and tick
//! complete F | fail F [final] [after=5s] | release F | cancelled F   [token=N]: answers
//! crash-worker W                                   its leases run out and it is gone
//! restart                                          the state is loaded from its records
//! show [fires|job J|trigger J|workers|history J]
//! ```

use std::collections::BTreeMap;

use horolog::base::time::{Span, Timestamp};
use horolog::machine::Machine;
use horolog::machine::command::{
    AnswerKind, Command, ExpiredLease, ExpiryCause, Offer, Precondition, Proposal, PutJob,
    RequestFire, RequestIdentity,
};
use horolog::machine::effect::Effect;
use horolog::machine::reply::{AnswerVerdict, Reply};
use horolog::model::fire::{AttemptReport, FencingToken, Fire, FireState, Outcome, WaitCause};
use horolog::model::id::{FireId, Revision, RunId, WorkerId};
use horolog::model::job::Payload;
use horolog::model::policy::{MisfirePolicy, Overlap};
use horolog::model::trigger::{NextDue, TriggerState};
use horolog::planner::{self, ScheduleCache};
use horolog::store::entities::{self, Operations};
use horolog::store::records::{AppliedMark, RecordBatch, Records};

use crate::machine::harness::{Bench, START, every, job_key, job_spec, name, worker_spec};

/// Rounds of one tick; more would be a leader that runs in a circle.
const ROUNDS_MAX: usize = 20;

pub struct World {
    bench: Bench,
    cache: ScheduleCache,
    offers: BTreeMap<WorkerId, u32>,
    workers: BTreeMap<String, WorkerId>,
    fires: Vec<FireId>,
    records: Records,
    /// The latest attempt of each fire, for answers to fires that are not open.
    runs: BTreeMap<FireId, (RunId, FencingToken)>,
}

/// The words after a verb: plain ones, and those with a value.
struct Words<'a> {
    plain: Vec<&'a str>,
    valued: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn of(words: &[&'a str]) -> Words<'a> {
        let (valued, plain): (Vec<&str>, Vec<&str>) =
            words.iter().copied().partition(|word| word.contains('='));
        let valued = valued.into_iter().filter_map(|word| word.split_once('=')).collect();
        Words { plain, valued }
    }

    fn first(&self) -> &'a str {
        self.plain.first().expect("a name")
    }

    fn has(&self, word: &str) -> bool {
        self.plain.contains(&word)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.valued.get(key).map(|value| value.parse().unwrap())
    }

    fn span(&self, key: &str) -> Option<Span> {
        self.valued.get(key).map(|value| value.parse().unwrap())
    }
}

impl World {
    pub fn new() -> World {
        let mut world = World {
            bench: Bench::new(),
            cache: ScheduleCache::default(),
            offers: BTreeMap::new(),
            workers: BTreeMap::new(),
            fires: Vec::new(),
            records: Records::in_memory(),
            runs: BTreeMap::new(),
        };
        world.keep();
        world
    }

    pub fn carry_out(&mut self, line: &str) -> Vec<String> {
        let all: Vec<&str> = line.split_whitespace().collect();
        let (verb, rest) = all.split_first().expect("a verb");
        let words = Words::of(rest);
        match *verb {
            "at" => self.set_clock(words.first()),
            "pass" => {
                self.bench.pass(words.first().parse().unwrap());
                Vec::new()
            }
            "create-job" => self.create_job(&words),
            "request" => self.request(&words),
            "register" => self.register(&words),
            "offer" => self.offer(&words),
            "tick" => self.tick(),
            "acquire" => {
                self.offer(&words);
                self.tick()
            }
            "complete" | "fail" | "release" | "cancelled" => self.answer(verb, &words),
            "crash-worker" => self.crash_worker(words.first()),
            "restart" => self.restart(),
            "show" => self.show(&words),
            verb => {
                let command = self.plain_command(verb, words.first_or_none());
                self.apply(command)
            }
        }
    }

    fn plain_command(&self, verb: &str, object: &str) -> Command {
        let job = || job_key(object);
        let trigger = || name("clock");
        let group = || job_key("any").group_key();
        match verb {
            "delete-job" => Command::DeleteJob { job: job(), precondition: Precondition::Always },
            "pause" => Command::PauseJob { job: job() },
            "resume" => Command::ResumeJob { job: job() },
            "pause-trigger" => Command::PauseTrigger { job: job(), trigger: trigger() },
            "resume-trigger" => Command::ResumeTrigger { job: job(), trigger: trigger() },
            "pause-group" => Command::PauseGroup { group: group() },
            "resume-group" => Command::ResumeGroup { group: group() },
            "cancel" => Command::CancelFire { fire: self.fire(object) },
            "drain" => Command::DrainWorker { worker: self.workers[object] },
            "remove" => Command::RemoveWorkers { workers: vec![self.workers[object]] },
            verb => panic!("no such verb: {verb}"),
        }
    }

    fn set_clock(&mut self, time: &str) -> Vec<String> {
        self.bench.now = format!("2026-12-01T{time}Z").parse().unwrap();
        Vec::new()
    }

    fn create_job(&mut self, words: &Words<'_>) -> Vec<String> {
        let mut spec = job_spec(match words.valued.get("overlap").copied() {
            None | Some("skip") => Overlap::Skip,
            Some("buffer-one") => Overlap::BufferOne,
            Some("allow") => Overlap::Allow { max: None },
            Some("allow-2") => Overlap::Allow { max: Some(2) },
            Some(other) => panic!("no such overlap policy: {other}"),
        });
        spec.retry.attempts_max = words.number("retry").map_or(1, |n| n as u32);
        spec.priority = words.number("priority").map_or(spec.priority, |n| n as u8);
        spec.timeout.start_to_finish = words.span("timeout");
        spec.payload = words.number("payload").map_or(spec.payload, payload);
        let triggers = words.span("every").map(|interval| {
            let mut trigger = every(interval);
            trigger.misfire.policy = match words.valued.get("misfire").copied() {
                None | Some("fire-once") => MisfirePolicy::FireOnce,
                Some("skip") => MisfirePolicy::Skip,
                Some("fire-all") => MisfirePolicy::FireAll,
                Some(other) => panic!("no such misfire policy: {other}"),
            };
            vec![(name("clock"), trigger)]
        });
        let precondition = match words.number("if-revision") {
            Some(revision) => Precondition::Revision(Revision(revision)),
            None if words.has("if-absent") => Precondition::Absent,
            None => Precondition::Always,
        };
        let job = job_key(words.first());
        self.apply(Command::PutJob(Box::new(PutJob { job, spec, triggers, precondition })))
    }

    fn request(&mut self, words: &Words<'_>) -> Vec<String> {
        let command = Command::RequestFire(Box::new(RequestFire {
            job: job_key(words.first()),
            at: None,
            delay_ms: words.span("in").map_or(0, Span::as_ms),
            payload: words.number("payload").map(payload),
            allow_overlap: words.has("beside"),
        }));
        let request = words.valued.get("key").map(|key| RequestIdentity {
            tenant: name("default"),
            key: (*key).to_owned(),
            body_hash: words.number("payload").unwrap_or(0),
        });
        self.propose(Proposal { request, command })
    }

    fn register(&mut self, words: &Words<'_>) -> Vec<String> {
        let worker = words.first();
        let slots = words.number("slots").map_or(1, |slots| slots as u32);
        let id = self.bench.register(worker_spec(worker, slots));
        self.keep();
        self.workers.insert(worker.to_owned(), id);
        Vec::new()
    }

    fn offer(&mut self, words: &Words<'_>) -> Vec<String> {
        let slots = words.plain.get(1).map_or(1, |slots| slots.parse().unwrap());
        self.offers.insert(self.workers[words.first()], slots);
        Vec::new()
    }

    fn tick(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let offers =
                self.offers.iter().map(|(worker, slots)| Offer { worker: *worker, slots: *slots });
            let offers: Vec<Offer> = offers.filter(|offer| offer.slots > 0).collect();
            let (state, now) = (self.bench.state().clone(), self.bench.now);
            let plan = planner::plan(&state, &mut self.cache, now, &offers);
            if plan.commands.is_empty() {
                return out;
            }
            for command in plan.commands {
                out.extend(self.apply(command));
            }
        }
        panic!("the leader never comes to rest");
    }

    fn answer(&mut self, verb: &str, words: &Words<'_>) -> Vec<String> {
        let fire = self.fire(words.first());
        let (run, token) = self.runs[&fire];
        let token = words.number("token").map_or(token, FencingToken);
        let verdict = match verb {
            "complete" => AnswerKind::Succeeded,
            "release" => AnswerKind::Released,
            "cancelled" => AnswerKind::Cancelled,
            _ => AnswerKind::Failed {
                kind: "exit".to_owned(),
                retryable: !words.has("final"),
                retry_after_ms: words.span("after").map(Span::as_ms),
            },
        };
        let report = AttemptReport::default();
        let answers = vec![horolog::machine::command::Answer { run, token, verdict, report }];
        let tenant = name("default");
        self.apply(Command::AnswerWork(horolog::machine::command::AnswerWork { tenant, answers }))
    }

    fn crash_worker(&mut self, worker: &str) -> Vec<String> {
        let worker = self.workers[worker];
        self.offers.remove(&worker);
        let mut expired = Vec::new();
        for (_, fire) in self.bench.state().index().running().iter().filter(|(w, _)| *w == worker) {
            let token = self.bench.fire(*fire).unwrap().lease.unwrap().token;
            expired.push(ExpiredLease { fire: *fire, token, cause: ExpiryCause::Silence });
        }
        let mut out = self.apply(Command::ExpireLeases { expired });
        out.extend(self.apply(Command::RemoveWorkers { workers: vec![worker] }));
        out
    }

    fn restart(&mut self) -> Vec<String> {
        let loaded = entities::load_state(&self.records).unwrap();
        assert_eq!(loaded.digest(), self.bench.state().digest());
        self.bench.machine = Machine::new(loaded);
        self.cache = ScheduleCache::default();
        Vec::new()
    }

    fn apply(&mut self, command: Command) -> Vec<String> {
        self.propose(Proposal::from(command))
    }

    /// Applies, and tells the reply (unless it says nothing) and what became of the fires.
    fn propose(&mut self, proposal: Proposal) -> Vec<String> {
        let reply = self.bench.propose(proposal);
        self.keep();
        let mut out = Vec::new();
        let effects = self.bench.effects().to_vec();
        for effect in effects {
            match effect {
                Effect::FireChanged(fire) => {
                    self.note(&fire);
                    out.push(self.shown_fire(&fire));
                }
                Effect::Fenced { fire } => out.push(format!("{} fenced", self.short(fire))),
                Effect::Granted { worker, fires } => {
                    self.use_offer(worker, fires.len());
                }
            }
        }
        out.extend(self.shown_reply(&reply));
        out
    }

    /// Writes the changes of the last entry.
    fn keep(&mut self) {
        let changes = &self.bench.last.as_ref().unwrap().changes;
        let Operations { puts, deletes } = entities::to_operations(&self.records, changes).unwrap();
        let applied = AppliedMark::default();
        self.records.apply(RecordBatch { puts, deletes, applied }).unwrap();
    }

    fn use_offer(&mut self, worker: WorkerId, slots: usize) {
        if let Some(left) = self.offers.get_mut(&worker) {
            *left = left.saturating_sub(slots as u32);
        }
    }

    fn note(&mut self, fire: &Fire) {
        if !self.fires.contains(&fire.id) {
            self.fires.push(fire.id);
        }
        if let Some(lease) = fire.lease {
            self.runs.insert(fire.id, (fire.current_run(), lease.token));
        }
    }

    fn fire(&self, short: &str) -> FireId {
        let number: usize = short.strip_prefix('#').expect("a fire such as #1").parse().unwrap();
        self.fires[number - 1]
    }

    fn short(&self, id: FireId) -> String {
        let place = self.fires.iter().position(|known| *known == id);
        place.map_or_else(|| format!("fire {id}"), |place| format!("#{}", place + 1))
    }

    fn worker_name(&self, id: WorkerId) -> &str {
        let found = self.workers.iter().find(|(_, known)| **known == id);
        found.map_or("?", |(name, _)| name)
    }

    fn shown_fire(&self, fire: &Fire) -> String {
        let id = self.short(fire.id);
        let origin = fire.trigger.as_ref().map_or("manual", |_| "clock");
        let job = &fire.job_key.name;
        let mut shown = format!("{id} {job} {origin} {}", clock(fire.scheduled_at));
        if let Some(folded) = fire.folded {
            shown += &format!(" to {}, {} times", clock(folded.last_scheduled_at), folded.count);
        }
        shown += &format!(": {}", self.shown_state(fire));
        if fire.cancel_requested_at.is_some() && !fire.state.is_ended() {
            shown += ", to be cancelled";
        }
        shown
    }

    fn shown_state(&self, fire: &Fire) -> String {
        let last = fire.attempts.last();
        let outcome =
            last.and_then(|attempt| attempt.outcome).map_or("", |outcome| match outcome {
                Outcome::Succeeded => "",
                Outcome::Failed => ", attempt failed",
                Outcome::TimedOut => ", attempt timed out",
                Outcome::Lost => ", attempt lost",
                Outcome::Cancelled => ", attempt cancelled",
                Outcome::Released => ", attempt released",
            });
        let state = match fire.state {
            FireState::Waiting(WaitCause::Due) => "waiting for its time".to_owned(),
            FireState::Waiting(WaitCause::Retry) => {
                format!("waiting for a retry at {}", clock(fire.not_before))
            }
            FireState::Waiting(WaitCause::Overlap) => "waiting for its turn".to_owned(),
            FireState::Ready => "ready".to_owned(),
            FireState::Running => {
                let lease = fire.lease.unwrap();
                let (worker, token) = (self.worker_name(lease.worker), lease.token.0);
                format!("running on {worker}, attempt {}, token {token}", fire.attempt_count)
            }
            FireState::Succeeded => "succeeded".to_owned(),
            FireState::Failed => "failed".to_owned(),
            FireState::Skipped(reason) => format!("skipped, {reason:?}"),
            FireState::Cancelled => "cancelled".to_owned(),
        };
        state + outcome
    }

    fn shown_reply(&self, reply: &Reply) -> Option<String> {
        match reply {
            Reply::Done
            | Reply::Node(_)
            | Reply::Tenant(..)
            | Reply::Group(_)
            | Reply::Worker(_) => None,
            Reply::Fire(fire) => Some(format!("answered with {}", self.short(fire.id))),
            Reply::Job(job, outcome) => {
                let outcome = format!("{outcome:?}").to_lowercase();
                Some(format!("{} {outcome} at revision {}", job.key.name, job.revision.0))
            }
            Reply::Trigger(trigger, outcome) => {
                Some(format!("{} {}", trigger.name, format!("{outcome:?}").to_lowercase()))
            }
            Reply::Answers(verdicts) => verdicts.first().map(|verdict| match verdict {
                AnswerVerdict::Taken { .. } => "taken".to_owned(),
                AnswerVerdict::Stale { current: Some(token), .. } => {
                    format!("stale, the token is {}", token.0)
                }
                AnswerVerdict::Stale { current: None, .. } => "stale".to_owned(),
                AnswerVerdict::NotOpen { .. } => "not open".to_owned(),
            }),
            Reply::Rejected(rejection) => {
                let mut text = rejection.to_string();
                for id in &self.fires {
                    text = text.replace(&id.to_string(), &self.short(*id));
                }
                Some(format!("refused: {text}"))
            }
        }
    }

    fn show(&self, words: &Words<'_>) -> Vec<String> {
        let state = self.bench.state();
        match words.plain.as_slice() {
            ["fires"] => state.fires().values().map(|fire| self.shown_fire(fire)).collect(),
            ["job", job] => {
                let job = self.bench.job(job);
                let load = state.index().job_load(job.id);
                let paused = if job.paused_at.is_some() { ", paused" } else { "" };
                let tally = job.tally;
                vec![
                    format!("revision {}{paused}", job.revision.0),
                    format!(
                        "open {}, active {}, buffered {}",
                        load.open, load.active, load.buffered
                    ),
                    format!(
                        "succeeded {}, failed {}, skipped {}, cancelled {}",
                        tally.succeeded, tally.failed, tally.skipped, tally.cancelled
                    ),
                ]
            }
            ["trigger", job] => {
                let trigger = self.bench.trigger(job, "clock");
                let stands = match trigger.state {
                    TriggerState::Active => "active",
                    TriggerState::Paused { .. } => "paused",
                    TriggerState::Ended => "ended",
                };
                let next = match trigger.cursor.next {
                    NextDue::Unknown => "unknown".to_owned(),
                    NextDue::At { due_at, .. } => clock(due_at),
                    NextDue::Never => "never".to_owned(),
                };
                let to = clock(trigger.cursor.accounted_to);
                vec![format!("{stands}, accounted to {to}, next {next}")]
            }
            ["workers"] => {
                let held = |id: &WorkerId| state.index().held_slots(*id);
                let shown = state.workers().iter().map(|(id, worker)| {
                    let (name, of) = (&worker.spec.name, worker.spec.slots);
                    format!("{name} {:?}, {} of {of} slots held", worker.state, held(id))
                });
                shown.collect()
            }
            ["history", job] => {
                let job = self.bench.job(job).id;
                let fires = entities::history_of_job(&self.records, job, None, 100).unwrap();
                fires.iter().map(|fire| self.shown_fire(fire)).collect()
            }
            other => panic!("cannot show {other:?}"),
        }
    }
}

impl<'a> Words<'a> {
    fn first_or_none(&self) -> &'a str {
        self.plain.first().copied().unwrap_or_default()
    }
}

fn payload(number: u64) -> Payload {
    Payload::new(&number.to_string()).unwrap()
}

/// The time of day of the first day; with the days before it when it is another.
fn clock(at: Timestamp) -> String {
    let text = at.to_string();
    let day = START.to_string();
    let (date, time) = text.split_once('T').unwrap();
    let time = time.trim_end_matches('Z');
    if day.starts_with(date) { time.to_owned() } else { format!("{date}T{time}") }
}
