//! What workers say of the attempts they hold: that they still run, and how they ended. A batch of
//! many, each with its own verdict.

use crate::base::bounded::Name;
use crate::base::time::Span;
use crate::machine::command::{Answer, AnswerKind, AnswerWork, Command};
use crate::machine::reply::{AnswerVerdict, Reply};
use crate::model::fire::{AttemptReport, FencingToken, Fire, FireState, Outcome};
use crate::model::id::{RunId, WorkerId};
use crate::replica::history::History;
use crate::replica::leader_call::{ExtendVerdict, LeaderAnswer, LeaderCall};
use crate::service::call::{Caller, Seen};
use crate::service::error::ServiceError;
use crate::service::fires::on_disk;
use crate::service::workers::unknown_worker;
use crate::service::{READ_WITHIN, Service, unexpected};

/// How one attempt ended, as its worker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerDraft {
    pub run: RunId,
    pub token: FencingToken,
    pub ending: Ending,
    pub report: AttemptReport,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Succeeded,
    Failed { kind: String, retryable: bool, retry_after: Option<Span> },
    Cancelled,
    Released,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Taken(FireState),
    /// It had been given before; the fire ended, or went on, as it did then.
    Already(FireState),
    /// The attempt had lost its right, and nothing was changed.
    Stale {
        current: Option<FencingToken>,
    },
    NotFound,
}

/// What became of the wish to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    Extended {
        ttl: Span,
        cancel_requested: bool,
    },
    Stale {
        current: Option<FencingToken>,
    },
    /// The fire has ended, or never was.
    NotOpen,
}

impl Service {
    /// Prolongs the leases of a worker's attempts, each by its whole length. Nothing of it is
    /// written to the log.
    ///
    /// # Errors When there is no such worker, and when no leader could confirm that it leads.
    pub async fn extend(
        &self,
        tenant: &Name,
        worker: WorkerId,
        runs: Vec<(RunId, FencingToken)>,
    ) -> Result<Seen<Vec<Extension>>, ServiceError> {
        self.known_worker(tenant, worker).await?;
        let call = LeaderCall::Extend { worker, runs };
        let answer = self.inner.replica.call_leader(call, READ_WITHIN).await;
        let verdicts = match answer.map_err(|error| ServiceError::of_read(&error))? {
            LeaderAnswer::Extended(verdicts) => verdicts,
            LeaderAnswer::UnknownWorker => return Err(unknown_worker(worker)),
            LeaderAnswer::Offered | LeaderAnswer::Withdrawn { .. } => {
                return Err(ServiceError::internal("the leader answered another call"));
            }
        };
        let value = verdicts.into_iter().map(extension).collect();
        Ok(Seen { value, index: self.applied_index(), lag: None })
    }

    /// Takes in how attempts ended. A repeated answer changes nothing and is not an error.
    ///
    /// # Errors As every change. Then nobody knows which answers were taken: give them all again,
    /// to any member.
    pub async fn answer(
        &self,
        caller: &Caller,
        tenant: &Name,
        worker: WorkerId,
        answers: Vec<AnswerDraft>,
    ) -> Result<Seen<Vec<Verdict>>, ServiceError> {
        let given = answers.iter().map(Given::of).collect::<Vec<_>>();
        let answers = answers.into_iter().map(command_of).collect();
        let command = Command::AnswerWork(AnswerWork { tenant: tenant.clone(), answers });
        let reply = self.propose(caller, tenant, command).await?;
        let Reply::Answers(verdicts) = &reply.value else {
            return Err(unexpected(&reply.value));
        };
        self.inner.polls.wake(worker); // It has free slots again.
        let verdicts = self.judge(tenant, given, verdicts).await?;
        Ok(reply.map(|_| verdicts))
    }

    /// Tells the repetition of an answer that ended its fire from one that came too late. While the
    /// fire is open, the machine tells them apart.
    async fn judge(
        &self,
        tenant: &Name,
        given: Vec<Given>,
        verdicts: &[AnswerVerdict],
    ) -> Result<Vec<Verdict>, ServiceError> {
        let all_taken: Option<Vec<Verdict>> = verdicts.iter().map(taken).collect();
        if let Some(all_taken) = all_taken {
            return Ok(all_taken);
        }
        let history = self.inner.replica.history();
        let (tenant, verdicts) = (tenant.clone(), verdicts.to_vec());
        on_disk(move || {
            let mut judged = Vec::with_capacity(verdicts.len());
            for (given, verdict) in given.iter().zip(&verdicts) {
                judged.push(match verdict {
                    AnswerVerdict::Taken { state, .. } => Verdict::Taken(*state),
                    AnswerVerdict::Stale { current, .. } => Verdict::Stale { current: *current },
                    AnswerVerdict::NotOpen { .. } => given.on_ended(&history, &tenant)?,
                });
            }
            Ok(judged)
        })
        .await
    }
}

fn taken(verdict: &AnswerVerdict) -> Option<Verdict> {
    match verdict {
        AnswerVerdict::Taken { state, .. } => Some(Verdict::Taken(*state)),
        AnswerVerdict::Stale { .. } | AnswerVerdict::NotOpen { .. } => None,
    }
}

/// What is needed of an answer to recognise its repetition.
struct Given {
    run: RunId,
    token: FencingToken,
    is_release: bool,
}

impl Given {
    fn of(draft: &AnswerDraft) -> Given {
        let is_release = draft.ending == Ending::Released;
        Given { run: draft.run, token: draft.token, is_release }
    }

    fn on_ended(&self, history: &History, tenant: &Name) -> Result<Verdict, ServiceError> {
        let ended = history.fire(self.run.fire)?.filter(|fire| fire.job_key.tenant == *tenant);
        let Some(fire) = ended else {
            return Ok(Verdict::NotFound);
        };
        Ok(self.repeated_on(&fire).unwrap_or(Verdict::Stale { current: None }))
    }

    /// The verdict when this very attempt was ended by an answer, not taken away from its worker.
    fn repeated_on(&self, fire: &Fire) -> Option<Verdict> {
        let mut attempts = fire.attempts.iter();
        let same = |number, token| number == self.run.attempt && token == self.token;
        let attempt = attempts.find(|attempt| same(attempt.number, attempt.token))?;
        let was_answered = match attempt.outcome? {
            Outcome::Succeeded | Outcome::Failed | Outcome::Cancelled => !self.is_release,
            Outcome::Released => self.is_release,
            Outcome::TimedOut | Outcome::Lost => false,
        };
        was_answered.then_some(Verdict::Already(fire.state))
    }
}

fn command_of(draft: AnswerDraft) -> Answer {
    let verdict = match draft.ending {
        Ending::Succeeded => AnswerKind::Succeeded,
        Ending::Failed { kind, retryable, retry_after } => {
            AnswerKind::Failed { kind, retryable, retry_after_ms: retry_after.map(Span::as_ms) }
        }
        Ending::Cancelled => AnswerKind::Cancelled,
        Ending::Released => AnswerKind::Released,
    };
    Answer { run: draft.run, token: draft.token, verdict, report: draft.report }
}

fn extension(verdict: ExtendVerdict) -> Extension {
    match verdict {
        ExtendVerdict::Extended { ttl, cancel_requested } => {
            Extension::Extended { ttl, cancel_requested }
        }
        ExtendVerdict::Stale { current } => Extension::Stale { current },
        ExtendVerdict::NotOpen => Extension::NotOpen,
    }
}
