//! Answers of workers: each is judged on its own, and one with an old token changes nothing.

use crate::base::bounded::Name;
use crate::base::time::Span;
use crate::machine::apply::context::Context;
use crate::machine::apply::ending::{AttemptEnd, end_attempt};
use crate::machine::command::{Answer, AnswerKind, AnswerWork};
use crate::machine::reply::{AnswerVerdict, Reply};
use crate::model::fire::{Fire, FireState, Outcome};

// Refusals, per answer, in order: NotOpen (also for a fire of another tenant), Stale.
pub(in crate::machine) fn answer_work(context: &mut Context<'_>, command: &AnswerWork) -> Reply {
    let tenant = &command.tenant;
    let verdicts = command.answers.iter().map(|answer| take_answer(context, tenant, answer));
    Reply::Answers(verdicts.collect())
}

fn take_answer(context: &mut Context<'_>, tenant: &Name, answer: &Answer) -> AnswerVerdict {
    let run = answer.run;
    let Some(fire) = context.state().fires().get(&run.fire) else {
        return AnswerVerdict::NotOpen { run };
    };
    if fire.job_key.tenant != *tenant {
        return AnswerVerdict::NotOpen { run };
    }
    let fire = fire.clone();
    let current = match fire.state {
        FireState::Running => fire.lease.map(|lease| lease.token),
        FireState::Waiting(_)
        | FireState::Ready
        | FireState::Succeeded
        | FireState::Failed
        | FireState::Skipped(_)
        | FireState::Cancelled => None,
    };
    if current == Some(answer.token) && run.attempt == fire.attempt_count {
        // Before the end, which may take the fire and its attempts out of the history at once.
        context.put_attempt(run, &answer.report);
        let state = end_attempt(context, &fire, &attempt_end(&answer.verdict));
        return AnswerVerdict::Taken { run, state };
    }
    if was_taken_before(&fire, answer) {
        return AnswerVerdict::Taken { run, state: fire.state };
    }
    let mut fenced = Fire::clone(&fire);
    fenced.fenced_count = fenced.fenced_count.saturating_add(1);
    context.put_fire(fenced);
    context.note_fenced(run.fire);
    AnswerVerdict::Stale { run, current }
}

/// Whether this very answer ended an earlier attempt: a worker that never got our reply sends it
/// again, and that is no trespass.
fn was_taken_before(fire: &Fire, answer: &Answer) -> bool {
    let outcome = Some(outcome_of(&answer.verdict));
    fire.attempts.iter().any(|attempt| {
        attempt.number == answer.run.attempt
            && attempt.token == answer.token
            && attempt.outcome == outcome
    })
}

fn outcome_of(verdict: &AnswerKind) -> Outcome {
    match verdict {
        AnswerKind::Succeeded => Outcome::Succeeded,
        AnswerKind::Failed { .. } => Outcome::Failed,
        AnswerKind::Cancelled => Outcome::Cancelled,
        AnswerKind::Released => Outcome::Released,
    }
}

fn attempt_end(verdict: &AnswerKind) -> AttemptEnd<'_> {
    let plain = AttemptEnd::plain(outcome_of(verdict));
    match verdict {
        AnswerKind::Succeeded | AnswerKind::Cancelled | AnswerKind::Released => plain,
        AnswerKind::Failed { kind, retryable, retry_after_ms } => AttemptEnd {
            error_kind: Some(kind),
            retryable: *retryable,
            retry_after: retry_after_ms.map(Span::from_ms),
            ..plain
        },
    }
}
