//! What a run is, how it is told to stop, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::base::bounded::clip;
use crate::base::clock::Clock;
use crate::base::limits;
use crate::base::time::{Span, Timestamp};
use crate::wire::worker::{Answer, AnswerError, AnswerOutcome, Grant};
use crate::worker::output_tail::Output;

/// A clock that runs ahead must not end every run before it has begun; the cluster ends it in time
/// in any case.
pub const TIME_LEFT_MIN: Span = Span::from_secs(1);

/// Runs the work of one kind of executor.
///
/// The future must end soon after `stop` says so, with [`Ending::Stopped`] when the work was cut
/// short. It may be dropped at any await when the process ends: what it started must not outlive
/// it.
pub trait Handler: Send + Sync + 'static {
    fn run(&self, run: Arc<Run>, stop: Stop) -> BoxFuture<'static, Report>;
}

/// One attempt to run, as it was granted.
#[derive(Clone, Debug)]
pub struct Run {
    pub grant: Grant,
    /// Silent for longer than this, the attempt counts as lost.
    pub lease_ttl: Duration,
    /// How often the lease is extended.
    pub extend_every: Duration,
    /// When the lease would run out if it was never extended, by this machine's clock.
    pub lease_deadline: Timestamp,
    /// What is left until the job's time-out, by this machine's clock, but at least
    /// [`TIME_LEFT_MIN`]; `None` when it has none.
    pub time_left: Option<Duration>,
}

impl Run {
    /// Reads what is given as text. A length that cannot be read becomes the default lease: the
    /// cluster's verdict on the next extension corrects it.
    #[must_use]
    pub fn of(grant: Grant, clock: &dyn Clock) -> Run {
        let ttl = grant.lease.ttl.parse::<Span>().unwrap_or(limits::LEASE_TTL_DEFAULT);
        let third = Span::from_ms(ttl.as_ms() / 3);
        let every = grant.lease.extend_every.parse::<Span>().unwrap_or(third);
        let now = clock.now();
        let deadline = grant.deadline.as_ref().and_then(|text| text.parse::<Timestamp>().ok());
        Run {
            lease_ttl: ttl.to_std(),
            extend_every: every.min(third).to_std(),
            lease_deadline: now.plus(ttl),
            time_left: deadline.map(|deadline| deadline.since(now).max(TIME_LEFT_MIN).to_std()),
            grant,
        }
    }

    /// Names the attempt towards the cluster.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.grant.run
    }
}

/// Why a run is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Somebody asked to cancel its fire.
    Cancelled,
    /// The job's time-out has come.
    TimedOut,
    /// The attempt has lost its right: whatever it does is refused.
    LeaseLost,
    /// The worker ends, and its grace is over.
    Draining,
}

/// Tells a run when to stop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stop {
    reason: watch::Receiver<Option<StopReason>>,
}

/// The other end of a [`Stop`].
#[derive(Debug)]
pub struct StopSender {
    reason: watch::Sender<Option<StopReason>>,
}

/// A pair that belongs together.
#[must_use]
pub fn stop_pair() -> (StopSender, Stop) {
    let (sender, receiver) = watch::channel(None);
    (StopSender { reason: sender }, Stop { reason: receiver })
}

impl StopSender {
    /// The first reason given stays.
    pub fn stop(&self, reason: StopReason) {
        self.reason.send_if_modified(|current| {
            let is_first = current.is_none();
            if is_first {
                *current = Some(reason);
            }
            is_first
        });
    }

    /// The reason given, if any.
    #[must_use]
    pub fn reason(&self) -> Option<StopReason> {
        *self.reason.borrow()
    }
}

impl Stop {
    /// Ends when the run is to stop. A sender that is gone means that the worker is gone.
    pub async fn stopped(&mut self) -> StopReason {
        match self.reason.wait_for(Option::is_some).await {
            Ok(reason) => reason.unwrap_or(StopReason::Draining),
            Err(_) => StopReason::Draining,
        }
    }

    /// The reason, when the run is to stop already.
    #[must_use]
    pub fn reason(&self) -> Option<StopReason> {
        *self.reason.borrow()
    }
}

/// How a run ended, and what it left behind.
#[derive(Clone, Debug)]
pub struct Report {
    pub ending: Ending,
    pub output: Option<Output>,
    pub exit_code: Option<i32>,
}

#[derive(Clone, Debug)]
pub enum Ending {
    /// With a result: any JSON, at most `limits::RESULT_BYTES_MAX` bytes.
    Succeeded(Option<Box<RawValue>>),
    Failed(Failure),
    /// It was told to stop, and did not finish.
    Stopped,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A short word, such as `exit`.
    pub kind: String,
    pub message: String,
    /// False: another try would fail as well.
    pub retryable: bool,
    /// Not before this long from now, instead of the retry policy's delay.
    pub retry_after: Option<Span>,
}

impl Failure {
    /// One that may go better next time.
    #[must_use]
    pub fn retryable(kind: &str, message: impl Into<String>) -> Failure {
        let message = message.into();
        Failure { kind: kind.to_owned(), message, retryable: true, retry_after: None }
    }

    /// One that would repeat itself.
    #[must_use]
    pub fn permanent(kind: &str, message: impl Into<String>) -> Failure {
        Failure { retryable: false, ..Failure::retryable(kind, message) }
    }
}

impl Report {
    #[must_use]
    pub fn succeeded() -> Report {
        Report { ending: Ending::Succeeded(None), output: None, exit_code: None }
    }

    #[must_use]
    pub fn failed(failure: Failure) -> Report {
        Report { ending: Ending::Failed(failure), output: None, exit_code: None }
    }

    /// The answer for a run that was, or was not, told to stop. `None`: nobody waits for one.
    #[must_use]
    pub fn into_answer(self, run: &Run, reason: Option<StopReason>) -> Option<Answer> {
        if reason == Some(StopReason::LeaseLost) {
            return None;
        }
        let (outcome, result, error) = match self.ending {
            Ending::Succeeded(result) => (AnswerOutcome::Succeeded, within_limit(result), None),
            Ending::Failed(failure) => (AnswerOutcome::Failed, None, Some(failure)),
            Ending::Stopped => stopped(reason),
        };
        let (output, output_truncated) = match self.output {
            Some(output) => (Some(output.text), output.truncated),
            None => (None, false),
        };
        Some(Answer {
            run: run.grant.run.clone(),
            token: run.grant.token,
            outcome,
            result,
            error: error.map(answer_error),
            output: output.filter(|text| !text.is_empty()),
            output_truncated,
            exit_code: self.exit_code,
        })
    }
}

fn stopped(reason: Option<StopReason>) -> (AnswerOutcome, Option<Box<RawValue>>, Option<Failure>) {
    match reason {
        Some(StopReason::Cancelled) => (AnswerOutcome::Cancelled, None, None),
        Some(StopReason::TimedOut) => {
            let failure = Failure::retryable("timeout", "it ran longer than the job's time-out");
            (AnswerOutcome::Failed, None, Some(failure))
        }
        // A handler that stops on its own hands the work back.
        Some(StopReason::Draining | StopReason::LeaseLost) | None => {
            (AnswerOutcome::Released, None, None)
        }
    }
}

/// A result that is too large is replaced by a note: the work itself was done.
fn within_limit(result: Option<Box<RawValue>>) -> Option<Box<RawValue>> {
    let result = result?;
    let bytes = result.get().len();
    if bytes <= limits::RESULT_BYTES_MAX {
        return Some(result);
    }
    let limit = limits::RESULT_BYTES_MAX;
    let note = format!("{{\"result_dropped\":{{\"bytes\":{bytes},\"limit\":{limit}}}}}");
    RawValue::from_string(note).ok()
}

fn answer_error(failure: Failure) -> AnswerError {
    AnswerError {
        kind: Some(clip(&failure.kind, limits::NAME_BYTES_MAX).to_owned()),
        message: Some(clip(&failure.message, limits::ERROR_BYTES_MAX).to_owned()),
        retryable: Some(failure.retryable),
        retry_after: failure.retry_after.map(|span| span.to_string()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::base::clock::ManualClock;

    /// A grant of a command, a URL or nothing in particular, as a node would send it.
    pub(crate) fn grant(executor: &str, payload: &str) -> Grant {
        let json = format!(
            r#"{{"run":"1f0000-2a0001.2","fire":"1f0000-2a0001","attempt":2,"tenant":"default",
            "group":"reports","job":"nightly","trigger":"daily","reason":"schedule",
            "scheduled_at":"2026-12-01T03:00:00Z","due_at":"2026-12-01T03:00:00Z",
            "idempotency_key":"default/reports/nightly/daily/2026-12-01T03:00:00Z","token":77,
            "lease":{{"ttl":"30s","extend_every":"10s"}},"payload":{payload},
            "executor":{executor}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    pub(crate) fn run_of(executor: &str, payload: &str) -> Arc<Run> {
        let now = "2026-12-01T03:00:05Z".parse().unwrap();
        Arc::new(Run::of(grant(executor, payload), &ManualClock::starting_at(now)))
    }

    #[test]
    fn a_stopped_run_is_answered_by_why_it_stopped() {
        let run = run_of("{\"worker\":{}}", "null");
        let table = [
            (Some(StopReason::Cancelled), Some(AnswerOutcome::Cancelled)),
            (Some(StopReason::TimedOut), Some(AnswerOutcome::Failed)),
            (Some(StopReason::Draining), Some(AnswerOutcome::Released)),
            (Some(StopReason::LeaseLost), None),
        ];
        for (reason, outcome) in table {
            let report = Report { ending: Ending::Stopped, output: None, exit_code: None };
            let answer = report.into_answer(&run, reason);
            assert_eq!(answer.map(|answer| answer.outcome), outcome, "{reason:?}");
        }
        let finished = Report::succeeded().into_answer(&run, Some(StopReason::Cancelled));
        assert_eq!(finished.unwrap().outcome, AnswerOutcome::Succeeded);
    }

    #[test]
    fn what_is_too_large_is_cut_before_it_is_sent() {
        let run = run_of("{\"worker\":{}}", "null");
        let large = RawValue::from_string(format!("\"{}\"", "x".repeat(20_000))).unwrap();
        let report = Report { ending: Ending::Succeeded(Some(large)), ..Report::succeeded() };
        let result = report.into_answer(&run, None).unwrap().result.unwrap();
        assert!(result.get().contains("20002"), "{}", result.get());
        let failure = Failure::retryable("exit", "x".repeat(100_000));
        let answer = Report::failed(failure).into_answer(&run, None).unwrap();
        let message = answer.error.unwrap().message.unwrap();
        assert_eq!(message.len(), limits::ERROR_BYTES_MAX);
    }

    #[tokio::test]
    async fn the_first_reason_to_stop_stays() {
        let (sender, mut stop) = stop_pair();
        sender.stop(StopReason::Cancelled);
        sender.stop(StopReason::Draining);
        assert_eq!(stop.stopped().await, StopReason::Cancelled);
    }
}
