//! The refusals of every command, in the order in which they are looked for.
//!
//! Each table starts from a command that breaks every rule it can at once, and mends one after the
//! other: each step must show the next refusal of the list.

use horolog::base::bounded::Name;
use horolog::base::limits;
use horolog::base::time::Span;
use horolog::machine::command::{
    Command, Precondition, Proposal, PutJob, PutTenant, PutTrigger, RegisterWorker, RequestFire,
    RequestIdentity,
};
use horolog::machine::reply::{Rejection, Reply};
use horolog::model::id::{FireId, GroupKey, JobId, JobKey, Revision, Seq, WorkerId};
use horolog::model::policy::Overlap;
use horolog::model::trigger::TriggerSpec;

use crate::machine::harness::{
    Bench, every, job_key, job_spec, minutely, name, request_fire, worker_spec,
};

/// The name of a refusal, as the precedence comments have it.
fn refusal(bench: &mut Bench, command: Command) -> String {
    let shown = match bench.apply(command) {
        Reply::Rejected(rejection) => format!("{rejection:?}"),
        _ => "taken".to_owned(),
    };
    let end = shown.find([' ', '{', '(']).unwrap_or(shown.len());
    shown[..end].to_owned()
}

fn check(bench: &mut Bench, table: Vec<(&str, Command)>) {
    for (i, (expected, command)) in table.into_iter().enumerate() {
        let digest = bench.state().digest();
        let shown = format!("{command:?}");
        let found = refusal(bench, command);
        assert_eq!(found, expected, "step {i}: {:.300}", shown);
        if expected != "taken" {
            assert_eq!(bench.state().digest(), digest, "a refusal changed something: {shown}");
        }
    }
}

fn key(tenant: &str, job: &str) -> JobKey {
    JobKey { tenant: name(tenant), ..job_key(job) }
}

fn large() -> String {
    "x".repeat(limits::DEFINITION_BYTES_MAX)
}

fn bench_with_job() -> Bench {
    let mut bench = Bench::new();
    bench.put_job_with("a", job_spec(Overlap::Skip), minutely());
    bench
}

const REVISION_9: Precondition = Precondition::Revision(Revision(9));
const REVISION_1: Precondition = Precondition::Revision(Revision(1));

#[test]
fn bootstrap_happens_once() {
    let bootstrap = || Command::Bootstrap { cluster_id: "again".to_owned() };
    check(&mut Bench::new(), vec![("AlreadyBootstrapped", bootstrap())]);
}

#[test]
fn put_tenant_refuses_in_order() {
    let put = |tenant: &str, description: &str, precondition| {
        let description = description.to_owned();
        Command::PutTenant(PutTenant { tenant: name(tenant), description, precondition })
    };
    let table = vec![
        ("UnknownTenant", put("blue", "", Precondition::Present)),
        ("UnknownTenant", put("blue", "", REVISION_1)),
        ("taken", put("blue", "", Precondition::Absent)),
        ("Exists", put("blue", "", Precondition::Absent)),
        ("RevisionMismatch", put("blue", "new", REVISION_9)),
        ("taken", put("blue", "new", REVISION_1)),
    ];
    check(&mut Bench::new(), table);
}

#[test]
fn delete_tenant_refuses_in_order() {
    let mut bench = bench_with_job();
    let delete = |tenant: &str| Command::DeleteTenant { tenant: name(tenant) };
    let put = Command::PutTenant(PutTenant {
        tenant: name("blue"),
        description: String::new(),
        precondition: Precondition::Always,
    });
    let job = put_job(key("blue", "a"), 1, Precondition::Always);
    let pause = Command::PauseGroup {
        group: GroupKey { tenant: name("blue"), group: Name::default_name() },
    };
    let delete_job =
        Command::DeleteJob { job: key("blue", "a"), precondition: Precondition::Always };
    let table = vec![
        ("UnknownTenant", delete("blue")),
        // Not empty either: protection comes first.
        ("TenantProtected", delete("default")),
        ("taken", put),
        ("taken", job),
        ("taken", pause),
        ("TenantNotEmpty", delete("blue")),
        ("taken", delete_job),
        ("taken", delete("blue")),
    ];
    check(&mut bench, table);
    assert!(bench.state().groups().is_empty(), "its groups go with it");
}

#[test]
fn groups_need_a_tenant() {
    let group = GroupKey { tenant: name("blue"), group: name("g") };
    let table = vec![
        ("UnknownTenant", Command::PauseGroup { group: group.clone() }),
        ("UnknownTenant", Command::ResumeGroup { group }),
    ];
    check(&mut Bench::new(), table);
}

fn put_job(job: JobKey, triggers: usize, precondition: Precondition) -> Command {
    put_job_with(job, triggers, precondition, String::new())
}

fn put_job_with(
    job: JobKey,
    triggers: usize,
    precondition: Precondition,
    description: String,
) -> Command {
    let triggers: Vec<(Name, TriggerSpec)> =
        (0..triggers).map(|n| (name(&format!("t{n}")), every(Span::from_mins(1)))).collect();
    let spec = horolog::model::job::JobSpec { description, ..job_spec(Overlap::Skip) };
    Command::PutJob(Box::new(PutJob { job, spec, triggers: Some(triggers), precondition }))
}

#[test]
fn put_job_refuses_in_order() {
    let max = limits::TRIGGERS_PER_JOB_MAX;
    let put = put_job_with;
    let table = vec![
        ("UnknownTenant", put(key("blue", "b"), max + 1, REVISION_9, large())),
        ("UnknownJob", put(job_key("b"), max + 1, REVISION_9, large())),
        ("UnknownJob", put(job_key("b"), max + 1, Precondition::Present, large())),
        ("Exists", put(job_key("a"), max + 1, Precondition::Absent, large())),
        ("RevisionMismatch", put(job_key("a"), max + 1, REVISION_9, large())),
        ("DefinitionTooLarge", put(job_key("a"), max + 1, REVISION_1, large())),
        ("TooManyTriggers", put(job_key("a"), max + 1, REVISION_1, String::new())),
        ("taken", put(job_key("a"), max, REVISION_1, String::new())),
        ("taken", put(job_key("b"), max, Precondition::Absent, String::new())),
    ];
    check(&mut bench_with_job(), table);
}

#[test]
fn delete_job_refuses_in_order() {
    let delete = |tenant: &str, job: &str, precondition| Command::DeleteJob {
        job: key(tenant, job),
        precondition,
    };
    let table = vec![
        ("UnknownTenant", delete("blue", "b", REVISION_9)),
        ("UnknownJob", delete("default", "b", REVISION_9)),
        ("Exists", delete("default", "a", Precondition::Absent)),
        ("RevisionMismatch", delete("default", "a", REVISION_9)),
        ("taken", delete("default", "a", REVISION_1)),
    ];
    check(&mut bench_with_job(), table);
}

#[test]
fn pausing_a_job_refuses_in_order() {
    let table = vec![
        ("UnknownTenant", Command::PauseJob { job: key("blue", "a") }),
        ("UnknownJob", Command::PauseJob { job: job_key("b") }),
        ("UnknownTenant", Command::ResumeJob { job: key("blue", "a") }),
        ("UnknownJob", Command::ResumeJob { job: job_key("b") }),
    ];
    check(&mut bench_with_job(), table);
}

#[test]
fn put_trigger_refuses_in_order() {
    let put = |tenant: &str, job: &str, trigger: &str, precondition, description: String| {
        let spec = TriggerSpec { description, ..every(Span::from_mins(2)) };
        let (job, trigger) = (key(tenant, job), name(trigger));
        Command::PutTrigger(Box::new(PutTrigger { job, trigger, spec, precondition }))
    };
    let mut bench = bench_with_job();
    bench.apply(put_job(job_key("full"), limits::TRIGGERS_PER_JOB_MAX, Precondition::Absent));
    let table = vec![
        ("UnknownTenant", put("blue", "b", "x", REVISION_9, large())),
        ("UnknownJob", put("default", "b", "x", REVISION_9, large())),
        ("UnknownTrigger", put("default", "a", "x", REVISION_9, large())),
        ("UnknownTrigger", put("default", "a", "x", Precondition::Present, large())),
        ("Exists", put("default", "a", "minutely", Precondition::Absent, large())),
        ("RevisionMismatch", put("default", "a", "minutely", REVISION_9, large())),
        ("DefinitionTooLarge", put("default", "a", "minutely", REVISION_1, large())),
        ("DefinitionTooLarge", put("default", "full", "x", Precondition::Always, large())),
        ("TooManyTriggers", put("default", "full", "x", Precondition::Always, String::new())),
        ("taken", put("default", "full", "t0", Precondition::Always, String::new())),
        ("taken", put("default", "a", "x", Precondition::Absent, String::new())),
    ];
    check(&mut bench, table);
}

#[test]
fn changing_a_trigger_refuses_in_order() {
    let targets = [("UnknownTenant", "blue", "b"), ("UnknownJob", "default", "b")];
    let mut table = Vec::new();
    for (refusal, tenant, job) in targets.into_iter().chain([("UnknownTrigger", "default", "a")]) {
        let (job, trigger) = (key(tenant, job), name("x"));
        let precondition = REVISION_9;
        let (j, t) = (job.clone(), trigger.clone());
        table.push((refusal, Command::DeleteTrigger { job: j, trigger: t, precondition }));
        let (j, t) = (job.clone(), trigger.clone());
        table.push((refusal, Command::PauseTrigger { job: j, trigger: t }));
        table.push((refusal, Command::ResumeTrigger { job, trigger }));
    }
    for (refusal, precondition) in
        [("Exists", Precondition::Absent), ("RevisionMismatch", REVISION_9), ("taken", REVISION_1)]
    {
        let (job, trigger) = (job_key("a"), name("minutely"));
        table.push((refusal, Command::DeleteTrigger { job, trigger, precondition }));
    }
    check(&mut bench_with_job(), table);
}

#[test]
fn request_fire_refuses_in_order() {
    let mut bench = bench_with_job();
    bench.put_job("none", job_spec(Overlap::Allow { max: Some(0) }));
    let request =
        |tenant: &str, job: &str| RequestFire { job: key(tenant, job), ..request_fire("a") };
    let fire = |request: RequestFire| Command::RequestFire(Box::new(request));
    let beside = RequestFire { allow_overlap: true, ..request_fire("a") };
    let later = RequestFire { delay_ms: 1, ..request_fire("a") };
    let table = vec![
        ("UnknownTenant", fire(request("blue", "b"))),
        ("UnknownJob", fire(request("default", "b"))),
        ("taken", fire(request("default", "a"))),
        ("Overlap", fire(request("default", "a"))),
        // The gate judges a delayed one when its time has come, and an allowed one never.
        ("taken", fire(later)),
        ("taken", fire(beside)),
        ("TooManyOpenFires", fire(request("default", "none"))),
    ];
    check(&mut bench, table);
}

#[test]
fn fires_and_workers_are_known_or_not() {
    let fire = FireId { job: JobId(Seq::ZERO), seq: Seq::ZERO };
    let worker = WorkerId(Seq::ZERO);
    let mut spec = worker_spec("w", 1);
    spec.labels.insert(name("large"), large());
    let register = |tenant: &str, spec| {
        Command::RegisterWorker(Box::new(RegisterWorker { tenant: name(tenant), spec }))
    };
    let table = vec![
        ("UnknownFire", Command::CancelFire { fire }),
        ("UnknownWorker", Command::DrainWorker { worker }),
        ("UnknownTenant", register("blue", spec.clone())),
        ("DefinitionTooLarge", register("default", spec)),
        ("taken", register("default", worker_spec("w", 1))),
        ("taken", Command::RemoveWorkers { workers: vec![worker] }),
    ];
    check(&mut Bench::new(), table);
}

#[test]
fn a_reused_key_is_refused_before_everything_else() {
    let mut bench = Bench::new();
    let identity = |body_hash| {
        let (tenant, key) = (Name::default_name(), "k".to_owned());
        Some(RequestIdentity { tenant, key, body_hash })
    };
    let command = || Command::PauseJob { job: job_key("a") };
    let first = bench.propose(Proposal { request: identity(1), command: command() });
    assert!(matches!(first, Reply::Rejected(Rejection::UnknownJob { .. })));
    bench.put_job("a", job_spec(Overlap::Skip));
    let again = bench.propose(Proposal { request: identity(1), command: command() });
    assert_eq!(again, first, "also a refusal is remembered");
    let other = bench.propose(Proposal { request: identity(2), command: command() });
    assert_eq!(other, Reply::Rejected(Rejection::RequestKeyReused { key: "k".to_owned() }));
    assert!(bench.job("a").paused_at.is_none());
}
