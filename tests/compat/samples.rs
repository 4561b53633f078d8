//! One value of every stored form, made only of what a release has promised.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use horolog::base::bounded::Name;
use horolog::base::time::{Span, Timestamp};
use horolog::machine::change::Change;
use horolog::machine::codec;
use horolog::machine::command::{
    Answer, AnswerKind, AnswerWork, Command, ExpiredLease, ExpiryCause, Grant, Offer, Pick,
    PlannedFire, Precondition, Proposal, PruneHistory, PutJob, PutTenant, PutTrigger, RecordFires,
    RegisterWorker, RequestFire, RequestIdentity, SkippedRun, TriggerAdvance,
};
use horolog::machine::reply::{AnswerVerdict, PutOutcome, Rejection, Reply};
use horolog::machine::state::{Meta, RequestRecord};
use horolog::model::fire::{
    Attempt, AttemptReport, FencingToken, Fire, FireReason, FireState, Folded, Lease, Outcome,
    SkipReason, WaitCause,
};
use horolog::model::id::{
    FireId, GroupKey, JobId, JobKey, NodeId, Revision, RunId, Seq, TriggerId, WorkerId,
};
use horolog::model::job::{
    CommandSpec, Executor, ExecutorKind, HttpMethod, HttpSpec, Job, JobSpec, Payload, Tally,
};
use horolog::model::policy::{Misfire, MisfirePolicy, Overlap, RetryPolicy, TimeoutPolicy};
use horolog::model::schedule::{Bounds, CronSource, Dialect, DstGap, DstOverlap, Schedule};
use horolog::model::tenant::{Group, Tenant};
use horolog::model::trigger::{Cursor, NextDue, PauseSpan, Trigger, TriggerSpec, TriggerState};
use horolog::model::worker::{Worker, WorkerSpec, WorkerState};
use horolog::store::entities;
use horolog::store::keys;
use horolog::store::records::Records;

/// A value as its bytes, with the way back to its text.
pub struct Sample {
    pub name: String,
    pub bytes: Vec<u8>,
    pub read: fn(&[u8]) -> Result<String, codec::CodecError>,
}

fn sample<T: Serialize + DeserializeOwned + Debug>(name: &str, value: &T) -> Sample {
    Sample {
        name: name.to_owned(),
        bytes: codec::encode("sample", value).unwrap(),
        read: |bytes| codec::decode::<T>("sample", bytes).map(|value| format!("{value:#?}")),
    }
}

pub fn all() -> Vec<Sample> {
    let mut all = Vec::new();
    for (name, command) in commands() {
        all.push(sample(&format!("command-{name}"), &Proposal { request: None, command }));
    }
    all.push(sample("proposal-with-request", &proposal_with_request()));
    for (name, reply) in replies() {
        all.push(sample(&format!("reply-{name}"), &request_record(reply)));
    }
    for (name, rejection) in rejections() {
        all.push(sample(&format!("rejection-{name}"), &request_record(Reply::Rejected(rejection))));
    }
    all.extend(records());
    all.push(sample("keys", &all_keys()));
    all.push(time_entry());
    all.push(Sample {
        name: "entry".to_owned(),
        bytes: codec::stamp_proposal(
            at(5),
            &codec::encode_proposal(&Command::AllocateNode.into()).unwrap(),
        ),
        read: |bytes| codec::decode_entry(bytes).map(|entry| format!("{entry:#?}")),
    });
    all
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_ms(1_796_083_200_000 + seconds * 1_000)
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn key() -> JobKey {
    JobKey { tenant: name("default"), group: name("night"), name: name("backup") }
}

fn group() -> GroupKey {
    key().group_key()
}

fn job_id() -> JobId {
    JobId(Seq::new(3, 0))
}

fn fire_id() -> FireId {
    FireId { job: job_id(), seq: Seq::new(9, 2) }
}

fn run() -> RunId {
    RunId { fire: fire_id(), attempt: 2 }
}

fn worker_id() -> WorkerId {
    WorkerId(Seq::new(4, 0))
}

fn spec(executor: Executor) -> JobSpec {
    JobSpec {
        description: "every night".to_owned(),
        executor,
        payload: Payload::new("{\"a\":1}").unwrap(),
        pool: name("default"),
        priority: 7,
        overlap: Overlap::BufferOne,
        retry: RetryPolicy {
            attempts_max: 4,
            first_delay: Span::from_secs(10),
            factor_percent: 150,
            delay_max: Span::from_mins(5),
        },
        timeout: TimeoutPolicy { start_to_finish: Some(Span::from_hours(1)) },
        lease_ttl: Span::from_secs(30),
        history_count: 500,
        labels: BTreeMap::from([(name("team"), "blue".to_owned())]),
    }
}

fn command_executor() -> Executor {
    Executor::Command(CommandSpec {
        argv: vec!["/bin/true".to_owned(), "-x".to_owned()],
        env: BTreeMap::from([("KEY".to_owned(), "value".to_owned())]),
        folder: Some("/tmp".to_owned()),
        stdin: None,
        user: Some("backup".to_owned()),
    })
}

fn http_executor(method: HttpMethod) -> Executor {
    Executor::Http(HttpSpec {
        method,
        url: "https://example.org/run".to_owned(),
        headers: BTreeMap::from([("accept".to_owned(), "*/*".to_owned())]),
    })
}

fn cron() -> Schedule {
    Schedule::Cron(CronSource {
        text: "0 3 * * *".to_owned(),
        dialect: Dialect::Unix,
        zone: "Europe/Berlin".to_owned(),
        dst_gap: DstGap::FirstValid,
        dst_overlap: DstOverlap::Last,
    })
}

fn trigger_spec(schedule: Schedule, policy: MisfirePolicy) -> TriggerSpec {
    TriggerSpec {
        description: "at three".to_owned(),
        schedule,
        bounds: Bounds { start_at: Some(at(0)), end_at: Some(at(900)) },
        misfire: Misfire {
            policy,
            grace: Span::from_secs(10),
            window: Span::from_days(1),
            count_max: 20,
        },
        payload: Payload::new("[]"),
    }
}

fn report() -> AttemptReport {
    AttemptReport {
        result: Some("true".to_owned()),
        error_message: Some("no route".to_owned()),
        output: Some("line".to_owned()),
        output_truncated: true,
        exit_code: Some(-1),
    }
}

fn worker_spec() -> WorkerSpec {
    WorkerSpec {
        name: name("host-1"),
        pools: BTreeSet::from([name("default"), name("heavy")]),
        executors: BTreeSet::from([
            ExecutorKind::Worker,
            ExecutorKind::Command,
            ExecutorKind::Http,
        ]),
        slots: 8,
        labels: BTreeMap::from([(name("zone"), "a".to_owned())]),
    }
}

fn proposal_with_request() -> Proposal {
    Proposal {
        request: Some(RequestIdentity {
            tenant: name("default"),
            key: "order-1".to_owned(),
            body_hash: u64::MAX,
        }),
        command: Command::CancelFire { fire: fire_id() },
    }
}

/// At least one of every command, by the variant's name; a suffix for further forms.
fn commands() -> Vec<(&'static str, Command)> {
    let job = key();
    let trigger = name("nightly");
    let precondition = Precondition::Revision(Revision(7));
    vec![
        ("bootstrap", Command::Bootstrap { cluster_id: "c-1".to_owned() }),
        ("allocate-node", Command::AllocateNode),
        (
            "put-tenant",
            Command::PutTenant(PutTenant {
                tenant: name("blue"),
                description: "d".to_owned(),
                precondition: Precondition::Absent,
            }),
        ),
        ("delete-tenant", Command::DeleteTenant { tenant: name("blue") }),
        ("pause-group", Command::PauseGroup { group: group() }),
        ("resume-group", Command::ResumeGroup { group: group() }),
        ("put-job", put_job(command_executor(), cron(), Precondition::Always)),
        ("put-job-http", put_job(http_executor(HttpMethod::Post), every(), Precondition::Present)),
        ("delete-job", Command::DeleteJob { job: job.clone(), precondition }),
        ("pause-job", Command::PauseJob { job: job.clone() }),
        ("resume-job", Command::ResumeJob { job: job.clone() }),
        (
            "put-trigger",
            Command::PutTrigger(Box::new(PutTrigger {
                job: job.clone(),
                trigger: trigger.clone(),
                spec: trigger_spec(Schedule::At { at: at(60) }, MisfirePolicy::FireAll),
                precondition,
            })),
        ),
        (
            "delete-trigger",
            Command::DeleteTrigger { job: job.clone(), trigger: trigger.clone(), precondition },
        ),
        ("pause-trigger", Command::PauseTrigger { job: job.clone(), trigger: trigger.clone() }),
        ("resume-trigger", Command::ResumeTrigger { job: job.clone(), trigger }),
        (
            "request-fire",
            Command::RequestFire(Box::new(RequestFire {
                job,
                at: Some(at(30)),
                delay_ms: 5,
                payload: Payload::new("1"),
                allow_overlap: true,
            })),
        ),
        ("cancel-fire", Command::CancelFire { fire: fire_id() }),
        ("record-fires", Command::RecordFires(record_fires())),
        (
            "grant",
            Command::Grant(Grant { picks: vec![Pick { fire: fire_id(), worker: worker_id() }] }),
        ),
        (
            "register-worker",
            Command::RegisterWorker(Box::new(RegisterWorker {
                tenant: name("default"),
                spec: worker_spec(),
            })),
        ),
        ("drain-worker", Command::DrainWorker { worker: worker_id() }),
        ("remove-workers", Command::RemoveWorkers { workers: vec![worker_id()] }),
        ("answer-work", Command::AnswerWork(answer_work())),
        (
            "expire-leases",
            Command::ExpireLeases {
                expired: [ExpiryCause::Silence, ExpiryCause::Timeout]
                    .map(|cause| ExpiredLease { fire: fire_id(), token: FencingToken(11), cause })
                    .into(),
            },
        ),
        (
            "prune-history",
            Command::PruneHistory(PruneHistory { recorded_before: at(1), count_max: 100 }),
        ),
    ]
}

fn every() -> Schedule {
    Schedule::Every { interval: Span::from_mins(1), anchor: at(0) }
}

fn put_job(executor: Executor, schedule: Schedule, precondition: Precondition) -> Command {
    let trigger = trigger_spec(schedule, MisfirePolicy::Skip);
    Command::PutJob(Box::new(PutJob {
        job: key(),
        spec: spec(executor),
        triggers: Some(vec![(name("nightly"), trigger)]),
        precondition,
    }))
}

fn record_fires() -> RecordFires {
    let reasons = [FireReason::Schedule, FireReason::Catchup, FireReason::Manual];
    let planned = reasons.map(|reason| PlannedFire { scheduled_at: at(5), due_at: at(6), reason });
    let skipped =
        skip_reasons().map(|reason| SkippedRun { reason, first: at(1), last: at(4), count: 3 });
    let advance = |next| TriggerAdvance {
        trigger: TriggerId(Seq::new(3, 1)),
        revision: Revision(2),
        cursor_before: at(0),
        fires: planned.to_vec(),
        skipped: skipped.to_vec(),
        cursor_after: at(6),
        next,
    };
    let next = NextDue::At { scheduled_at: at(60), due_at: at(61) };
    RecordFires {
        advances: vec![advance(NextDue::Unknown), advance(next), advance(NextDue::Never)],
        due: vec![fire_id()],
        offers: vec![Offer { worker: worker_id(), slots: 2 }],
    }
}

fn skip_reasons() -> [SkipReason; 7] {
    [
        SkipReason::Overlap,
        SkipReason::BufferFull,
        SkipReason::Misfire,
        SkipReason::OutsideWindow,
        SkipReason::OverCount,
        SkipReason::Paused,
        SkipReason::Overload,
    ]
}

fn answer_work() -> AnswerWork {
    let failed = AnswerKind::Failed {
        kind: "exit".to_owned(),
        retryable: false,
        retry_after_ms: Some(1_500),
    };
    let kinds = [AnswerKind::Succeeded, failed, AnswerKind::Cancelled, AnswerKind::Released];
    let answers = kinds.map(|verdict| Answer {
        run: run(),
        token: FencingToken(11),
        verdict,
        report: report(),
    });
    AnswerWork { tenant: name("default"), answers: answers.into() }
}

fn request_record(reply: Reply) -> RequestRecord {
    RequestRecord {
        tenant: name("default"),
        key: "order-1".to_owned(),
        body_hash: 42,
        answered_at: at(7),
        reply,
    }
}

fn replies() -> Vec<(&'static str, Reply)> {
    let current = Some(FencingToken(12));
    let verdicts = vec![
        AnswerVerdict::Taken { run: run(), state: FireState::Waiting(WaitCause::Retry) },
        AnswerVerdict::Stale { run: run(), current },
        AnswerVerdict::NotOpen { run: run() },
    ];
    let trigger = trigger(TriggerState::Active, every());
    vec![
        ("done", Reply::Done),
        ("node", Reply::Node(NodeId(5))),
        ("tenant", Reply::Tenant(Arc::new(tenant()), PutOutcome::Created)),
        ("group", Reply::Group(Arc::new(Group { key: group(), paused_at: Some(at(1)) }))),
        ("job", Reply::Job(Arc::new(job(Executor::Worker)), PutOutcome::Replaced)),
        ("trigger", Reply::Trigger(Arc::new(trigger), PutOutcome::Unchanged)),
        ("fire", Reply::Fire(Arc::new(running_fire()))),
        ("worker", Reply::Worker(Arc::new(worker()))),
        ("answers", Reply::Answers(verdicts)),
        ("rejected", Reply::Rejected(Rejection::UnknownTenant { tenant: name("blue") })),
        ("tenant-deleted", Reply::Tenant(Arc::new(tenant()), PutOutcome::Deleted)),
    ]
}

fn rejections() -> Vec<(&'static str, Rejection)> {
    let (job, tenant, fire) = (key(), name("blue"), fire_id());
    let trigger = name("nightly");
    vec![
        ("already-bootstrapped", Rejection::AlreadyBootstrapped),
        ("request-key-reused", Rejection::RequestKeyReused { key: "k".to_owned() }),
        ("unknown-tenant", Rejection::UnknownTenant { tenant: tenant.clone() }),
        ("unknown-job", Rejection::UnknownJob { job: job.clone() }),
        ("unknown-trigger", Rejection::UnknownTrigger { job, trigger }),
        ("unknown-fire", Rejection::UnknownFire { fire }),
        ("unknown-worker", Rejection::UnknownWorker { worker: worker_id() }),
        ("exists", Rejection::Exists { current: Revision(3) }),
        ("revision-mismatch", Rejection::RevisionMismatch { current: Revision(3) }),
        ("overlap", Rejection::Overlap { open: fire }),
        ("fire-ended", Rejection::FireEnded { fire, state: FireState::Failed }),
        ("tenant-not-empty", Rejection::TenantNotEmpty { tenant: tenant.clone(), jobs: 2 }),
        ("tenant-protected", Rejection::TenantProtected { tenant }),
        ("too-many-jobs", Rejection::TooManyJobs { limit: 1 }),
        ("too-many-triggers", Rejection::TooManyTriggers { limit: 64 }),
        ("too-many-open-fires", Rejection::TooManyOpenFires { limit: 10 }),
        ("definition-too-large", Rejection::DefinitionTooLarge { bytes: 9, limit: 8 }),
    ]
}

fn tenant() -> Tenant {
    Tenant { name: name("blue"), description: "d".to_owned(), created_at: at(0) }
}

fn job(executor: Executor) -> Job {
    Job {
        id: job_id(),
        key: Arc::new(key()),
        revision: Revision(7),
        spec: Arc::new(spec(executor)),
        paused_at: Some(at(3)),
        created_at: at(0),
        updated_at: at(2),
        history_len: 12,
        tally: Tally { succeeded: 8, failed: 2, skipped: 1_000, cancelled: 1 },
    }
}

fn trigger(state: TriggerState, schedule: Schedule) -> Trigger {
    Trigger {
        id: TriggerId(Seq::new(3, 1)),
        job: job_id(),
        name: name("nightly"),
        revision: Revision(2),
        spec: trigger_spec(schedule, MisfirePolicy::FireOnce),
        state,
        cursor: Cursor {
            accounted_to: at(4),
            next: NextDue::At { scheduled_at: at(60), due_at: at(60) },
        },
        created_at: at(0),
        updated_at: at(2),
        last_pause: Some(PauseSpan { from: at(1), until: Some(at(2)) }),
    }
}

fn worker() -> Worker {
    Worker {
        id: worker_id(),
        tenant: name("default"),
        spec: worker_spec(),
        state: WorkerState::Draining,
        registered_at: at(0),
    }
}

fn running_fire() -> Fire {
    let token = FencingToken(11);
    let outcomes = [
        Some(Outcome::Succeeded),
        Some(Outcome::Failed),
        Some(Outcome::TimedOut),
        Some(Outcome::Lost),
        Some(Outcome::Cancelled),
        Some(Outcome::Released),
        None,
    ];
    let attempts = (1..).zip(outcomes).map(|(number, outcome)| Attempt {
        number,
        worker: worker_id(),
        worker_name: name("host-1"),
        token,
        granted_at: at(6),
        ended_at: outcome.map(|_| at(7)),
        outcome,
        error_kind: outcome.map(|_| "exit".to_owned()),
    });
    Fire {
        id: fire_id(),
        job_key: Arc::new(key()),
        job_revision: Revision(6),
        trigger: Some(name("nightly")),
        reason: FireReason::Catchup,
        scheduled_at: at(4),
        due_at: at(5),
        overlap_allowed: true,
        folded: None,
        payload: Payload::new("[1]"),
        recorded_at: at(5),
        recorded_index: 9,
        state: FireState::Running,
        not_before: at(5),
        lease: Some(Lease {
            worker: worker_id(),
            token,
            granted_at: at(6),
            ttl: Span::from_secs(30),
            deadline: Some(at(3_606)),
        }),
        attempt_count: 7,
        released_count: 1,
        attempts: attempts.collect(),
        cancel_requested_at: Some(at(8)),
        fenced_count: 3,
        ended_at: None,
        ended_index: None,
    }
}

fn fire_in(state: FireState) -> Fire {
    let ended = state.is_ended();
    Fire {
        trigger: None,
        reason: FireReason::Manual,
        payload: None,
        state,
        lease: None,
        attempts: Vec::new(),
        cancel_requested_at: None,
        folded: ended.then(|| Folded { last_scheduled_at: at(4), count: 900 }),
        ended_at: ended.then(|| at(9)),
        ended_index: ended.then_some(14),
        ..running_fire()
    }
}

/// One key of every table.
fn all_keys() -> Vec<(String, Vec<u8>)> {
    let (job, trigger) = (job_id(), TriggerId(Seq::new(3, 1)));
    let keys = [
        ("meta", keys::meta()),
        ("tenant", keys::tenant(&name("blue"))),
        ("group", keys::group(&group())),
        ("job", keys::job(job)),
        ("retired spec", keys::retired_spec(job, Revision(7))),
        ("trigger", keys::trigger(trigger)),
        ("fire", keys::fire(fire_id())),
        ("worker", keys::worker(worker_id())),
        ("request", keys::request(&name("blue"), "order-1")),
        ("history", keys::history(fire_id())),
        ("history by time", keys::by_time(fire_id().seq)),
        ("attempt", keys::attempt(run())),
        ("aged out", keys::aged_out(job)),
    ];
    keys.map(|(table, key)| (table.to_owned(), key)).into()
}

/// What the index by time says of an ended fire: its job, and when it was recorded.
fn time_entry() -> Sample {
    let ended = Change::EndFire(Arc::new(fire_in(FireState::Succeeded)));
    let operations = entities::to_operations(&Records::in_memory(), [&ended]).unwrap();
    let key = keys::by_time(fire_id().seq);
    let (_, bytes) = operations.puts.into_iter().find(|(put, _)| *put == key).unwrap();
    let read = |bytes: &[u8]| {
        codec::decode::<(JobId, Timestamp)>("sample", bytes).map(|entry| format!("{entry:#?}"))
    };
    Sample { name: "record-time-entry".to_owned(), bytes, read }
}

fn records() -> Vec<Sample> {
    let mut records = vec![
        sample("record-meta", &Meta { cluster_id: "c-1".to_owned(), stamp: at(9) }),
        sample("record-tenant", &tenant()),
        sample("record-group", &Group { key: group(), paused_at: None }),
        sample("record-job", &job(command_executor())),
        sample("record-job-spec", &spec(Executor::Worker)),
        sample("record-trigger-cron", &trigger(TriggerState::Active, cron())),
        sample("record-trigger-every", &trigger(TriggerState::Paused { since: at(1) }, every())),
        sample("record-trigger-at", &trigger(TriggerState::Ended, Schedule::At { at: at(60) })),
        sample("record-fire-running", &running_fire()),
        sample("record-worker", &worker()),
        sample("record-attempt-report", &report()),
    ];
    let quartz = Schedule::Cron(CronSource {
        text: "0 0 12 ? * 2#1".to_owned(),
        dialect: Dialect::Quartz,
        zone: "+05:30".to_owned(),
        dst_gap: DstGap::Skip,
        dst_overlap: DstOverlap::Both,
    });
    records.push(sample("record-trigger-quartz", &trigger(TriggerState::Active, quartz)));
    let states = [
        ("due", FireState::Waiting(WaitCause::Due)),
        ("retry", FireState::Waiting(WaitCause::Retry)),
        ("buffered", FireState::Waiting(WaitCause::Overlap)),
        ("ready", FireState::Ready),
        ("succeeded", FireState::Succeeded),
        ("failed", FireState::Failed),
        ("skipped", FireState::Skipped(SkipReason::Overload)),
        ("cancelled", FireState::Cancelled),
    ];
    for (name, state) in states {
        records.push(sample(&format!("record-fire-{name}"), &fire_in(state)));
    }
    let overlaps = [
        ("skip", Overlap::Skip),
        ("allow", Overlap::Allow { max: None }),
        ("allow-2", Overlap::Allow { max: Some(2) }),
    ];
    for (name, overlap) in overlaps {
        let spec = JobSpec { overlap, ..spec(Executor::Worker) };
        records.push(sample(&format!("record-job-spec-{name}"), &spec));
    }
    let methods = [
        ("get", HttpMethod::Get),
        ("post", HttpMethod::Post),
        ("put", HttpMethod::Put),
        ("patch", HttpMethod::Patch),
        ("delete", HttpMethod::Delete),
    ];
    for (name, method) in methods {
        let spec = spec(http_executor(method));
        records.push(sample(&format!("record-job-spec-http-{name}"), &spec));
    }
    records
}
