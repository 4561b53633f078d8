//! From the nouns to the shapes of the API. Dull on purpose.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::base::limits;
use crate::base::time::Span;
use crate::model::fire::{
    Attempt, AttemptReport, FencingToken, Fire, FireReason, FireState, Outcome, SkipReason,
    WaitCause,
};
use crate::model::id::JobKey;
use crate::model::job::{Executor, ExecutorKind, HttpMethod, Job, JobSpec, Payload};
use crate::model::policy::{Misfire, MisfirePolicy, Overlap, RetryPolicy};
use crate::model::schedule::{Dialect, DstGap, DstOverlap, Schedule};
use crate::model::tenant::{Group, Tenant};
use crate::model::trigger::{NextDue, Trigger, TriggerSpec, TriggerState};
use crate::model::worker::{Worker, WorkerState};
use crate::service::acquire::GrantView;
use crate::service::answer::{Extension, Verdict};
use crate::service::cluster::{ClusterView, MemberView};
use crate::service::fires::FireView;
use crate::service::jobs::JobView;
use crate::service::page::Page;
use crate::service::schedules::Preview;
use crate::service::workers::WorkerView;
use crate::wire;

pub(in crate::api) fn page<T, U>(page: Page<T>, item: impl Fn(&T) -> U) -> wire::page::Page<U> {
    wire::page::Page {
        items: page.items.iter().map(item).collect(),
        next_cursor: page.next.map(|cursor| cursor.as_str().to_owned()),
    }
}

pub(in crate::api) fn tenant(tenant: &Tenant) -> wire::tenant::Tenant {
    wire::tenant::Tenant {
        name: tenant.name.to_string(),
        description: tenant.description.clone(),
        created_at: tenant.created_at.to_string(),
    }
}

pub(in crate::api) fn group(group: &Group) -> wire::tenant::Group {
    wire::tenant::Group {
        tenant: group.key.tenant.to_string(),
        name: group.key.group.to_string(),
        state: job_state(group.paused_at.is_some()),
        paused_at: group.paused_at.map(|at| at.to_string()),
    }
}

fn job_state(paused: bool) -> wire::job::JobState {
    if paused { wire::job::JobState::Paused } else { wire::job::JobState::Active }
}

fn job_ref(key: &JobKey) -> wire::job::JobRef {
    wire::job::JobRef {
        tenant: key.tenant.to_string(),
        group: key.group.to_string(),
        name: key.name.to_string(),
    }
}

/// JSON that was checked when it came in.
fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn payload(payload: &Payload) -> Box<RawValue> {
    raw(payload.as_str())
}

pub(in crate::api) fn job(view: &JobView) -> wire::job::Job {
    let Job { key, spec, tally, .. } = &*view.job;
    let of_all = |trigger: &Trigger| (trigger.name.to_string(), trigger_spec(&trigger.spec));
    let triggers = view.triggers.iter().map(|trigger| of_all(trigger)).collect();
    let status = |trigger: &Trigger| (trigger.name.to_string(), trigger_status(trigger));
    wire::job::Job {
        tenant: key.tenant.to_string(),
        group: key.group.to_string(),
        name: key.name.to_string(),
        revision: view.job.revision.0,
        state: job_state(view.job.paused_at.is_some()),
        paused_at: view.job.paused_at.map(|at| at.to_string()),
        created_at: view.job.created_at.to_string(),
        updated_at: view.job.updated_at.to_string(),
        spec: job_spec(spec, triggers),
        triggers: view.triggers.iter().map(|trigger| status(trigger)).collect(),
        open_fires: view.open_fires,
        ended_fires: view.job.history_len,
        tally: wire::job::Tally {
            succeeded: tally.succeeded,
            failed: tally.failed,
            skipped: tally.skipped,
            cancelled: tally.cancelled,
        },
    }
}

fn job_spec(
    spec: &JobSpec,
    triggers: BTreeMap<String, wire::trigger::TriggerSpec>,
) -> wire::job::JobSpec {
    wire::job::JobSpec {
        description: Some(spec.description.clone()),
        executor: executor(&spec.executor),
        payload: Some(payload(&spec.payload)),
        pool: Some(spec.pool.to_string()),
        priority: Some(u32::from(spec.priority)),
        overlap: Some(overlap(spec.overlap)),
        retry: Some(retry(&spec.retry)),
        timeout: spec.timeout.start_to_finish.map(|span| span.to_string()),
        lease: Some(spec.lease_ttl.to_string()),
        history: Some(spec.history_count),
        labels: labels(&spec.labels),
        triggers: Some(triggers),
    }
}

fn labels(labels: &BTreeMap<crate::base::bounded::Name, String>) -> BTreeMap<String, String> {
    labels.iter().map(|(key, value)| (key.to_string(), value.clone())).collect()
}

fn executor(executor: &Executor) -> wire::job::Executor {
    match executor {
        Executor::Worker => wire::job::Executor::Worker(wire::job::WorkerExecutor {}),
        Executor::Command(command) => wire::job::Executor::Command(wire::job::CommandExecutor {
            argv: command.argv.clone(),
            env: command.env.clone(),
            folder: command.folder.clone(),
            stdin: command.stdin.clone(),
            user: command.user.clone(),
        }),
        Executor::Http(http) => wire::job::Executor::Http(wire::job::HttpExecutor {
            method: match http.method {
                HttpMethod::Get => wire::job::HttpMethod::Get,
                HttpMethod::Post => wire::job::HttpMethod::Post,
                HttpMethod::Put => wire::job::HttpMethod::Put,
                HttpMethod::Patch => wire::job::HttpMethod::Patch,
                HttpMethod::Delete => wire::job::HttpMethod::Delete,
            },
            url: http.url.clone(),
            headers: http.headers.clone(),
        }),
    }
}

fn overlap(overlap: Overlap) -> wire::job::Overlap {
    match overlap {
        Overlap::Skip => wire::job::Overlap::Skip,
        Overlap::BufferOne => wire::job::Overlap::BufferOne,
        Overlap::Allow { max } => wire::job::Overlap::Allow(wire::job::AllowOverlap { max }),
    }
}

fn retry(retry: &RetryPolicy) -> wire::job::Retry {
    wire::job::Retry {
        attempts: Some(retry.attempts_max),
        first_delay: Some(retry.first_delay.to_string()),
        factor: Some(f64::from(retry.factor_percent) / 100.0),
        max_delay: Some(retry.delay_max.to_string()),
    }
}

pub(in crate::api) fn trigger(key: &JobKey, trigger: &Trigger) -> wire::trigger::Trigger {
    wire::trigger::Trigger {
        job: job_ref(key),
        name: trigger.name.to_string(),
        spec: trigger_spec(&trigger.spec),
        status: trigger_status(trigger),
    }
}

fn trigger_status(trigger: &Trigger) -> wire::trigger::TriggerStatus {
    let (state, paused_at) = match trigger.state {
        TriggerState::Active => (wire::trigger::TriggerState::Active, None),
        TriggerState::Paused { since } => (wire::trigger::TriggerState::Paused, Some(since)),
        TriggerState::Ended => (wire::trigger::TriggerState::Ended, None),
    };
    let next = match trigger.cursor.next {
        NextDue::At { scheduled_at, due_at } => Some(wire::trigger::NextOccurrence {
            scheduled_at: scheduled_at.to_string(),
            due_at: due_at.to_string(),
        }),
        NextDue::Unknown | NextDue::Never => None,
    };
    wire::trigger::TriggerStatus {
        revision: trigger.revision.0,
        state,
        paused_at: paused_at.map(|at| at.to_string()),
        accounted_to: trigger.cursor.accounted_to.to_string(),
        next,
        created_at: trigger.created_at.to_string(),
        updated_at: trigger.updated_at.to_string(),
    }
}

fn trigger_spec(spec: &TriggerSpec) -> wire::trigger::TriggerSpec {
    wire::trigger::TriggerSpec {
        description: Some(spec.description.clone()),
        schedule: schedule(&spec.schedule),
        start_at: spec.bounds.start_at.map(|at| at.to_string()),
        end_at: spec.bounds.end_at.map(|at| at.to_string()),
        misfire: Some(misfire(&spec.misfire)),
        payload: spec.payload.as_ref().map(payload),
    }
}

fn schedule(schedule: &Schedule) -> wire::trigger::Schedule {
    match schedule {
        Schedule::Cron(cron) => wire::trigger::Schedule::Cron(wire::trigger::Cron {
            expression: cron.text.clone(),
            dialect: Some(match cron.dialect {
                Dialect::Unix => wire::trigger::Dialect::Unix,
                Dialect::Quartz => wire::trigger::Dialect::Quartz,
            }),
            timezone: Some(cron.zone.clone()),
            dst_gap: Some(match cron.dst_gap {
                DstGap::Auto => wire::trigger::DstGap::Auto,
                DstGap::FirstValid => wire::trigger::DstGap::FirstValid,
                DstGap::Skip => wire::trigger::DstGap::Skip,
            }),
            dst_overlap: Some(match cron.dst_overlap {
                DstOverlap::Auto => wire::trigger::DstOverlap::Auto,
                DstOverlap::First => wire::trigger::DstOverlap::First,
                DstOverlap::Last => wire::trigger::DstOverlap::Last,
                DstOverlap::Both => wire::trigger::DstOverlap::Both,
            }),
        }),
        Schedule::Every { interval, anchor } => {
            wire::trigger::Schedule::Every(wire::trigger::Every {
                interval: interval.to_string(),
                anchor: Some(anchor.to_string()),
            })
        }
        Schedule::At { at } => wire::trigger::Schedule::At(at.to_string()),
    }
}

fn misfire(misfire: &Misfire) -> wire::trigger::Misfire {
    wire::trigger::Misfire {
        policy: Some(match misfire.policy {
            MisfirePolicy::FireOnce => wire::trigger::MisfirePolicy::FireOnce,
            MisfirePolicy::Skip => wire::trigger::MisfirePolicy::Skip,
            MisfirePolicy::FireAll => wire::trigger::MisfirePolicy::FireAll,
        }),
        grace: Some(misfire.grace.to_string()),
        window: Some(misfire.window.to_string()),
        count: Some(misfire.count_max),
    }
}

pub(in crate::api) fn preview(preview: &Preview) -> wire::trigger::Preview {
    wire::trigger::Preview {
        times: preview.times.iter().map(ToString::to_string).collect(),
        tzdata: preview.tzdata.to_owned(),
    }
}

/// A fire with what its attempts left behind.
pub(in crate::api) fn fire_view(view: &FireView) -> wire::fire::Fire {
    let mut shown = fire(&view.fire);
    for attempt in &mut shown.attempts {
        let report = view.reports.iter().find(|(number, _)| *number == attempt.number);
        if let Some((_, report)) = report {
            add_report(attempt, report);
        }
    }
    shown
}

pub(in crate::api) fn fire(fire: &Fire) -> wire::fire::Fire {
    let (waiting_for, skip_reason) = match fire.state {
        FireState::Waiting(cause) => (Some(wait_cause(cause)), None),
        FireState::Skipped(reason) => (None, Some(self::skip_reason(reason))),
        FireState::Ready
        | FireState::Running
        | FireState::Succeeded
        | FireState::Failed
        | FireState::Cancelled => (None, None),
    };
    let waits_for_time = matches!(
        fire.state,
        FireState::Waiting(WaitCause::Due) | FireState::Waiting(WaitCause::Retry)
    );
    let deadline = fire.lease.and_then(|lease| lease.deadline).map(|at| at.to_string());
    let attempt = |tried: &Attempt| {
        let deadline = deadline.clone().filter(|_| tried.ended_at.is_none());
        self::attempt(fire, tried, deadline)
    };
    wire::fire::Fire {
        id: fire.id.to_string(),
        job: job_ref(&fire.job_key),
        job_revision: fire.job_revision.0,
        trigger: fire.trigger.as_ref().map(ToString::to_string),
        reason: reason(fire.reason),
        scheduled_at: fire.scheduled_at.to_string(),
        due_at: fire.due_at.to_string(),
        state: fire_state(fire.state),
        waiting_for,
        not_before: waits_for_time.then(|| fire.not_before.to_string()),
        skip_reason,
        folded: fire.folded.map(|folded| wire::fire::Folded {
            last_scheduled_at: folded.last_scheduled_at.to_string(),
            count: folded.count,
        }),
        idempotency_key: fire.idempotency_key(),
        payload: fire.payload.as_ref().map(payload),
        attempt_count: fire.attempt_count,
        released_count: fire.released_count,
        attempts: fire.attempts.iter().map(attempt).collect(),
        fenced_count: fire.fenced_count,
        cancel_requested_at: fire.cancel_requested_at.map(|at| at.to_string()),
        recorded_at: fire.recorded_at.to_string(),
        recorded_index: fire.recorded_index,
        ended_at: fire.ended_at.map(|at| at.to_string()),
        ended_index: fire.ended_index,
    }
}

fn attempt(fire: &Fire, attempt: &Attempt, deadline: Option<String>) -> wire::fire::Attempt {
    let error = attempt.error_kind.as_ref();
    wire::fire::Attempt {
        number: attempt.number,
        run: format!("{}.{}", fire.id, attempt.number),
        worker: attempt.worker.to_string(),
        worker_name: attempt.worker_name.to_string(),
        token: attempt.token.0,
        granted_at: attempt.granted_at.to_string(),
        deadline,
        ended_at: attempt.ended_at.map(|at| at.to_string()),
        outcome: attempt.outcome.map(outcome),
        error: error.map(|kind| wire::fire::AttemptError { kind: kind.clone(), message: None }),
        output: None,
        output_truncated: false,
        exit_code: None,
        result: None,
    }
}

fn add_report(attempt: &mut wire::fire::Attempt, report: &AttemptReport) {
    if let Some(error) = &mut attempt.error {
        error.message.clone_from(&report.error_message);
    }
    attempt.output.clone_from(&report.output);
    attempt.output_truncated = report.output_truncated;
    attempt.exit_code = report.exit_code;
    attempt.result = report.result.as_deref().map(raw);
}

fn outcome(outcome: Outcome) -> wire::fire::Outcome {
    match outcome {
        Outcome::Succeeded => wire::fire::Outcome::Succeeded,
        Outcome::Failed => wire::fire::Outcome::Failed,
        Outcome::TimedOut => wire::fire::Outcome::TimedOut,
        Outcome::Lost => wire::fire::Outcome::Lost,
        Outcome::Cancelled => wire::fire::Outcome::Cancelled,
        Outcome::Released => wire::fire::Outcome::Released,
    }
}

fn reason(reason: FireReason) -> wire::fire::FireReason {
    match reason {
        FireReason::Schedule => wire::fire::FireReason::Schedule,
        FireReason::Catchup => wire::fire::FireReason::Catchup,
        FireReason::Manual => wire::fire::FireReason::Manual,
    }
}

pub(in crate::api) fn fire_state(state: FireState) -> wire::fire::FireState {
    match state {
        FireState::Waiting(_) => wire::fire::FireState::Waiting,
        FireState::Ready => wire::fire::FireState::Ready,
        FireState::Running => wire::fire::FireState::Running,
        FireState::Succeeded => wire::fire::FireState::Succeeded,
        FireState::Failed => wire::fire::FireState::Failed,
        FireState::Skipped(_) => wire::fire::FireState::Skipped,
        FireState::Cancelled => wire::fire::FireState::Cancelled,
    }
}

fn wait_cause(cause: WaitCause) -> wire::fire::WaitCause {
    match cause {
        WaitCause::Due => wire::fire::WaitCause::Due,
        WaitCause::Retry => wire::fire::WaitCause::Retry,
        WaitCause::Overlap => wire::fire::WaitCause::Overlap,
    }
}

fn skip_reason(reason: SkipReason) -> wire::fire::SkipReason {
    match reason {
        SkipReason::Overlap => wire::fire::SkipReason::Overlap,
        SkipReason::BufferFull => wire::fire::SkipReason::BufferFull,
        SkipReason::Misfire => wire::fire::SkipReason::Misfire,
        SkipReason::OutsideWindow => wire::fire::SkipReason::OutsideWindow,
        SkipReason::OverCount => wire::fire::SkipReason::OverCount,
        SkipReason::Paused => wire::fire::SkipReason::Paused,
        SkipReason::Overload => wire::fire::SkipReason::Overload,
    }
}

pub(in crate::api) fn registered(worker: &Worker) -> wire::worker::Registered {
    wire::worker::Registered {
        worker: worker.id.to_string(),
        ttl: limits::WORKER_TTL.to_string(),
        wait_max: limits::POLL_WAIT_MAX.to_string(),
        batch_max: u32::try_from(limits::WORK_BATCH_MAX).unwrap_or(u32::MAX),
    }
}

pub(in crate::api) fn worker(view: &WorkerView) -> wire::worker::Worker {
    let worker = &view.worker;
    wire::worker::Worker {
        id: worker.id.to_string(),
        tenant: worker.tenant.to_string(),
        name: worker.spec.name.to_string(),
        pools: worker.spec.pools.iter().map(ToString::to_string).collect(),
        executors: worker.spec.executors.iter().copied().map(executor_kind).collect(),
        slots: worker.spec.slots,
        held: view.held,
        labels: labels(&worker.spec.labels),
        state: match worker.state {
            WorkerState::Live => wire::worker::WorkerState::Live,
            WorkerState::Draining => wire::worker::WorkerState::Draining,
        },
        registered_at: worker.registered_at.to_string(),
    }
}

fn executor_kind(kind: ExecutorKind) -> wire::worker::ExecutorKind {
    match kind {
        ExecutorKind::Worker => wire::worker::ExecutorKind::Worker,
        ExecutorKind::Command => wire::worker::ExecutorKind::Command,
        ExecutorKind::Http => wire::worker::ExecutorKind::Http,
    }
}

pub(in crate::api) fn grant(grant: &GrantView) -> wire::worker::Grant {
    let fire = &grant.fire;
    // Two extends may be lost before the lease runs out.
    let extend_every = Span::from_ms(grant.lease.ttl.as_ms() / 3);
    wire::worker::Grant {
        run: grant.run.to_string(),
        fire: fire.id.to_string(),
        attempt: grant.run.attempt,
        tenant: fire.job_key.tenant.to_string(),
        group: fire.job_key.group.to_string(),
        job: fire.job_key.name.to_string(),
        trigger: fire.trigger.as_ref().map(ToString::to_string),
        reason: reason(fire.reason),
        scheduled_at: fire.scheduled_at.to_string(),
        due_at: fire.due_at.to_string(),
        idempotency_key: fire.idempotency_key(),
        token: grant.lease.token.0,
        lease: wire::worker::GrantLease {
            ttl: grant.lease.ttl.to_string(),
            extend_every: extend_every.to_string(),
        },
        deadline: grant.lease.deadline.map(|at| at.to_string()),
        payload: payload(grant.payload()),
        executor: executor(&grant.spec.executor),
        labels: labels(&grant.spec.labels),
    }
}

pub(in crate::api) fn extension(run: &str, extension: Extension) -> wire::worker::ExtendVerdict {
    let mut shown = wire::worker::ExtendVerdict {
        run: run.to_owned(),
        verdict: wire::worker::ExtendOutcome::NotOpen,
        ttl: None,
        cancel_requested: false,
        current_token: None,
    };
    match extension {
        Extension::Extended { ttl, cancel_requested } => {
            shown.verdict = wire::worker::ExtendOutcome::Extended;
            shown.ttl = Some(ttl.to_string());
            shown.cancel_requested = cancel_requested;
        }
        Extension::Stale { current } => {
            shown.verdict = wire::worker::ExtendOutcome::Stale;
            shown.current_token = current.map(token);
        }
        Extension::NotOpen => {}
    }
    shown
}

pub(in crate::api) fn verdict(run: &str, verdict: Verdict) -> wire::worker::AnswerVerdict {
    let (status, state, current) = match verdict {
        Verdict::Taken(state) => (wire::worker::AnswerStatus::Taken, Some(state), None),
        Verdict::Already(state) => (wire::worker::AnswerStatus::Already, Some(state), None),
        Verdict::Stale { current } => (wire::worker::AnswerStatus::Stale, None, current),
        Verdict::NotFound => (wire::worker::AnswerStatus::NotFound, None, None),
    };
    wire::worker::AnswerVerdict {
        run: run.to_owned(),
        verdict: status,
        state: state.map(fire_state),
        current_token: current.map(token),
    }
}

fn token(token: FencingToken) -> u64 {
    token.0
}

pub(in crate::api) fn cluster(view: &ClusterView) -> wire::cluster::Cluster {
    let member = |member: &MemberView| wire::cluster::Member {
        node: member.node.0,
        peer_addr: member.peer_address.clone(),
        api_addr: member.api_address.clone(),
        role: if member.is_voter {
            wire::cluster::MemberRole::Voter
        } else {
            wire::cluster::MemberRole::Learner
        },
        leader: view.leader == Some(member.node),
        matched_index: member.matched_index,
    };
    wire::cluster::Cluster {
        cluster_id: view.cluster_id.clone(),
        node: view.node.0,
        leader: view.leader.map(|node| node.0),
        term: view.term,
        members: view.members.iter().map(member).collect(),
        last_log_index: view.last_log_index,
        committed_index: view.committed_index,
        applied_index: view.applied_index,
        snapshot_index: view.snapshot_index,
        purged_index: view.purged_index,
        stamp: view.stamp.to_string(),
    }
}
