//! What workers send: registrations, polls, extends and answers.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::api::from_wire::fields::Fields;
use crate::base::bounded::{Name, clip};
use crate::base::limits;
use crate::base::time::Span;
use crate::model::fire::{AttemptReport, FencingToken};
use crate::model::id::{RunId, WorkerId};
use crate::model::job::ExecutorKind;
use crate::model::worker::WorkerSpec;
use crate::service::acquire::Ask;
use crate::service::answer::{AnswerDraft, Ending};
use crate::service::error::ServiceError;
use crate::wire;

/// The kind of an error whose worker gave none.
const KIND_DEFAULT: &str = "error";

pub(in crate::api) fn worker_spec(
    body: &wire::worker::WorkerSpec,
) -> Result<WorkerSpec, ServiceError> {
    let mut fields = Fields::default();
    let pools = match &body.pools {
        Some(pools) => {
            fields.count("/pools", pools.len(), limits::WORKER_POOLS_MAX);
            pools.iter().map(|pool| fields.name("/pools", pool)).collect()
        }
        None => BTreeSet::from([Name::default_name()]),
    };
    let executors = match &body.executors {
        Some(kinds) => kinds.iter().copied().map(executor_kind).collect(),
        None => BTreeSet::from([ExecutorKind::Worker]),
    };
    if pools.is_empty() {
        fields.refuse("/pools", "a worker serves one pool at least");
    }
    if executors.is_empty() {
        fields.refuse("/executors", "a worker has one executor at least");
    }
    let spec = WorkerSpec {
        name: fields.name("/name", &body.name),
        pools,
        executors,
        slots: fields.number("/slots", body.slots, 1, limits::WORKER_SLOTS_MAX),
        labels: fields.labels(&body.labels),
    };
    fields.finish(spec)
}

fn executor_kind(kind: wire::worker::ExecutorKind) -> ExecutorKind {
    match kind {
        wire::worker::ExecutorKind::Worker => ExecutorKind::Worker,
        wire::worker::ExecutorKind::Command => ExecutorKind::Command,
        wire::worker::ExecutorKind::Http => ExecutorKind::Http,
    }
}

pub(in crate::api) fn ask(
    worker: WorkerId,
    body: &wire::worker::AcquireRequest,
) -> Result<Ask, ServiceError> {
    let mut fields = Fields::default();
    let held = body.holding.as_deref().unwrap_or_default();
    fields.count("/holding", held.len(), limits::WORKER_SLOTS_MAX as usize);
    let mut holding = BTreeSet::new();
    for (index, text) in held.iter().enumerate() {
        holding.extend(id::<RunId>(&mut fields, format!("/holding/{index}"), text));
    }
    let wait = match &body.wait {
        Some(text) => fields.span("/wait", text, Span::ZERO, limits::POLL_WAIT_MAX),
        None => Span::ZERO,
    };
    let max = fields.number("/max", body.max, 1, limits::WORKER_SLOTS_MAX);
    fields.finish(Ask { worker, max, wait, holding })
}

fn id<T: FromStr<Err: std::fmt::Display>>(
    fields: &mut Fields,
    pointer: String,
    text: &str,
) -> Option<T> {
    match text.parse() {
        Ok(id) => Some(id),
        Err(error) => {
            fields.refuse(pointer, error);
            None
        }
    }
}

pub(in crate::api) fn held_runs(
    body: &wire::worker::ExtendRequest,
) -> Result<Vec<(RunId, FencingToken)>, ServiceError> {
    let mut fields = Fields::default();
    fields.count("/runs", body.runs.len(), limits::WORK_BATCH_MAX);
    let mut runs = Vec::with_capacity(body.runs.len());
    for (index, held) in body.runs.iter().enumerate().take(limits::WORK_BATCH_MAX) {
        let run = id(&mut fields, format!("/runs/{index}/run"), &held.run);
        runs.extend(run.map(|run| (run, FencingToken(held.token))));
    }
    fields.finish(runs)
}

pub(in crate::api) fn answers(
    body: &wire::worker::AnswerRequest,
) -> Result<Vec<AnswerDraft>, ServiceError> {
    let mut fields = Fields::default();
    fields.count("/answers", body.answers.len(), limits::WORK_BATCH_MAX);
    let mut drafts = Vec::with_capacity(body.answers.len());
    for (index, answer) in body.answers.iter().enumerate().take(limits::WORK_BATCH_MAX) {
        let pointer = format!("/answers/{index}");
        let ending = ending(&mut fields, &pointer, answer);
        let report = report(&mut fields, &pointer, answer);
        let run = id(&mut fields, format!("{pointer}/run"), &answer.run);
        let token = FencingToken(answer.token);
        drafts.extend(run.map(|run| AnswerDraft { run, token, ending, report }));
    }
    fields.finish(drafts)
}

fn ending(fields: &mut Fields, pointer: &str, answer: &wire::worker::Answer) -> Ending {
    match answer.outcome {
        wire::worker::AnswerOutcome::Succeeded => Ending::Succeeded,
        wire::worker::AnswerOutcome::Cancelled => Ending::Cancelled,
        wire::worker::AnswerOutcome::Released => Ending::Released,
        wire::worker::AnswerOutcome::Failed => {
            let error = answer.error.as_ref();
            let kind = error.and_then(|error| error.kind.as_deref()).unwrap_or(KIND_DEFAULT);
            let retry_after = error.and_then(|error| error.retry_after.as_ref()).map(|text| {
                let at = format!("{pointer}/error/retry_after");
                fields.span(at, text, Span::ZERO, limits::DELAY_MAX)
            });
            Ending::Failed {
                kind: clip(kind, limits::NAME_BYTES_MAX).to_owned(),
                retryable: error.and_then(|error| error.retryable).unwrap_or(true),
                retry_after,
            }
        }
    }
}

/// Long texts are cut, for an outcome must not be lost to them; a result is JSON and cannot be cut.
fn report(fields: &mut Fields, pointer: &str, answer: &wire::worker::Answer) -> AttemptReport {
    let result = answer.result.as_ref().map(|json| {
        let at = format!("{pointer}/result");
        fields.text(at, json.get(), limits::RESULT_BYTES_MAX)
    });
    let message = answer.error.as_ref().and_then(|error| error.message.as_deref());
    let output = answer.output.as_deref();
    let tail = output.map(|output| tail(output, limits::OUTPUT_BYTES_MAX));
    AttemptReport {
        result,
        error_message: message.map(|text| clip(text, limits::ERROR_BYTES_MAX).to_owned()),
        output: tail.map(str::to_owned),
        output_truncated: answer.output_truncated || tail.map(str::len) < output.map(str::len),
        exit_code: answer.exit_code,
    }
}

/// The end of a text, at most `bytes_max` bytes of it.
fn tail(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_end_and_whole_characters() {
        assert_eq!(tail("abc", 2), "bc");
        assert_eq!(tail("aéb", 2), "b");
        assert_eq!(tail("ab", 9), "ab");
    }
}
