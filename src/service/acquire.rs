//! Taking work: the long poll of a worker.
//!
//! The leader grants; this member only offers the worker's free slots to it, and then looks at what
//! it has applied itself. **What a worker holds is what the applied state says it runs; what is new
//! to it is that, minus what it says it knows.** So an answer that was lost on its way costs
//! nothing, effects are only a reason to look again, and it does not matter which member granted,
//! woke or was asked.
//!
//! A poll ends in one of four ways: with grants; empty, because its time is over or this member
//! closes; empty, because a newer poll of the same worker took its place; or its caller went away,
//! and then what was granted to it meanwhile is handed back at once instead of after a lease.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::base::bounded::Name;
use crate::base::time::Span;
use crate::machine::command::{Answer, AnswerKind, AnswerWork, Command};
use crate::machine::state::State;
use crate::model::fire::{AttemptReport, FencingToken, Fire, Lease};
use crate::model::id::{FireId, JobId, RunId, Seq, WorkerId};
use crate::model::job::{JobSpec, Payload};
use crate::model::worker::WorkerState;
use crate::replica::View;
use crate::replica::leader_call::{LeaderAnswer, LeaderCall};
use crate::service::call::{Caller, Seen};
use crate::service::error::{ErrorKind, ServiceError};
use crate::service::polls::{POLLS_MAX, Poll};
use crate::service::workers::{unknown_worker, worker_in};
use crate::service::{READ_WITHIN, Service};

/// How long a call to the leader may take.
const CALL_WITHIN: Duration = Duration::from_secs(3);
/// An offer is repeated this often, for it may have been lost with its leader, and the state is
/// looked at again.
const OFFER_EVERY: Duration = Duration::from_secs(3);
/// After this long an offer is repeated when there was no leader to take it, and the state is
/// looked at again when the worker had no free slot.
const RETRY_EVERY: Duration = Duration::from_millis(250);
/// A poll that does not want to wait still leaves the time that one grant takes.
const WAIT_MIN: Duration = Duration::from_millis(250);

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct Ask {
    pub worker: WorkerId,
    /// Most grants wanted.
    pub max: u32,
    /// At most `limits::POLL_WAIT_MAX`.
    pub wait: Span,
    /// The runs it knows of.
    pub holding: BTreeSet<RunId>,
}

/// An attempt to run, with all that the worker needs for it.
#[derive(Clone, Debug)]
pub struct GrantView {
    pub fire: Arc<Fire>,
    pub run: RunId,
    pub lease: Lease,
    pub spec: Arc<JobSpec>,
}

impl GrantView {
    /// The fire's own payload, or else the job's.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        self.fire.payload.as_ref().unwrap_or(&self.spec.payload)
    }
}

/// A poll whose caller went away.
pub(in crate::service) struct Abandoned {
    tenant: Name,
    worker: WorkerId,
    holding: BTreeSet<RunId>,
}

impl Service {
    /// Waits for work, and returns what the worker was granted and does not know of. Empty when
    /// nothing came, and when a newer poll of the worker took this one's place.
    ///
    /// # Errors When the tenant has no such worker, and when too many polls wait on this member.
    pub async fn acquire(
        &self,
        tenant: &Name,
        ask: Ask,
    ) -> Result<Seen<Vec<GrantView>>, ServiceError> {
        let deadline = Instant::now() + ask.wait.to_std().max(WAIT_MIN);
        self.known_worker(tenant, ask.worker).await?;
        let poll = self.inner.polls.enter(ask.worker).ok_or_else(too_many_polls)?;
        let mut waiting =
            Waiting { service: self, tenant, ask: &ask, poll, offered: false, over: false };
        let outcome = waiting.until(deadline).await;
        waiting.over = true;
        outcome
    }

    /// Takes the offer of a poll back that nobody listens to, and hands back what it was granted.
    pub(in crate::service) async fn hand_back(&self, left: Abandoned) {
        if self.inner.polls.is_waiting(left.worker) {
            return; // The worker is back already, and its new poll sees the same grants.
        }
        let replica = &self.inner.replica;
        let call = LeaderCall::Withdraw { worker: left.worker };
        let withdrawn = replica.call_leader(call, CALL_WITHIN).await;
        let Ok(LeaderAnswer::Withdrawn { applied_index }) = withdrawn else {
            return; // Whatever was granted comes back when its lease has run out.
        };
        let Ok(view) = replica.wait_applied(applied_index, READ_WITHIN).await else {
            return;
        };
        let released: Vec<Answer> = grants_in(&view.state, left.worker, &left.holding)
            .into_iter()
            .map(|grant| released(grant.run, grant.lease.token))
            .collect();
        if released.is_empty() || self.inner.polls.is_waiting(left.worker) {
            return;
        }
        let count = released.len();
        tracing::info!(worker = %left.worker, count, "handing abandoned work back");
        let answers = AnswerWork { tenant: left.tenant.clone(), answers: released };
        let command = Command::AnswerWork(answers);
        if let Err(error) = self.propose(&Caller::default(), &left.tenant, command).await {
            tracing::info!(worker = %left.worker, %error, "abandoned work was not handed back");
        }
    }

    /// Polls that wait on this member.
    #[must_use]
    pub fn waiting_polls(&self) -> usize {
        self.inner.polls.len()
    }
}

/// A poll under way. Dropped before it is over, its caller has gone away.
struct Waiting<'a> {
    service: &'a Service,
    tenant: &'a Name,
    ask: &'a Ask,
    poll: Arc<Poll>,
    /// The leader may hold an offer of it.
    offered: bool,
    over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.service.inner.polls.leave(self.ask.worker, &self.poll);
        let nobody_listens = !self.over && self.offered && !self.poll.is_superseded();
        if nobody_listens {
            let left = Abandoned {
                tenant: self.tenant.clone(),
                worker: self.ask.worker,
                holding: self.ask.holding.clone(),
            };
            if self.service.inner.abandoned.try_send(left).is_err() {
                tracing::info!(worker = %self.ask.worker, "too many abandoned polls");
            }
        }
    }
}

impl Waiting<'_> {
    async fn until(&mut self, deadline: Instant) -> Result<Seen<Vec<GrantView>>, ServiceError> {
        let mut leadership = self.service.inner.replica.leadership();
        let mut offer_at = Instant::now();
        loop {
            let view = self.service.inner.replica.view();
            let grants = self.look(&view)?;
            if !grants.is_empty() || self.poll.is_superseded() {
                return Ok(Seen { value: grants, index: view.applied_index, lag: None });
            }
            let now = Instant::now();
            let closing = &self.service.inner.closing;
            if now >= deadline || closing.is_cancelled() {
                return self.last_look().await;
            }
            if now >= offer_at {
                offer_at = now + self.offer(&view, deadline).await?;
            }
            let look_again = offer_at.min(deadline);
            tokio::select! {
                () = self.poll.woken() => {}
                changed = leadership.changed() => match changed {
                    Ok(()) => offer_at = Instant::now(),
                    Err(_) => return Err(stopped()),
                },
                () = sleep_until(look_again) => {}
                () = closing.cancelled() => {}
            }
        }
    }

    /// What the worker runs in this state and does not know of.
    fn look(&self, view: &View) -> Result<Vec<GrantView>, ServiceError> {
        let worker = self.ask.worker;
        if worker_in(&view.state, self.tenant, worker).is_none() {
            // Found a moment ago in a state at least as old as this one, so it was removed.
            return Err(unknown_worker(worker));
        }
        Ok(grants_in(&view.state, worker, &self.ask.holding))
    }

    /// Offers the worker's free slots to the leader; returns how long to wait before doing it
    /// again.
    async fn offer(&mut self, view: &View, deadline: Instant) -> Result<Duration, ServiceError> {
        let slots = free_slots(&view.state, self.ask);
        if slots == 0 {
            return Ok(RETRY_EVERY);
        }
        self.offered = true;
        let call =
            LeaderCall::Offer { worker: self.ask.worker, slots, seen_index: view.applied_index };
        let call = self.service.inner.replica.call_leader(call, CALL_WITHIN);
        match timeout_at(deadline, call).await {
            Ok(Ok(LeaderAnswer::UnknownWorker)) => Err(unknown_worker(self.ask.worker)),
            Ok(Ok(_)) => Ok(OFFER_EVERY),
            Ok(Err(_)) | Err(_) => Ok(RETRY_EVERY),
        }
    }

    /// The time is over: takes the offer back, and sees what was granted on it until then.
    async fn last_look(&mut self) -> Result<Seen<Vec<GrantView>>, ServiceError> {
        let replica = &self.service.inner.replica;
        if self.offered {
            let call = LeaderCall::Withdraw { worker: self.ask.worker };
            let withdrawn = replica.call_leader(call, CALL_WITHIN).await;
            if let Ok(LeaderAnswer::Withdrawn { applied_index }) = withdrawn {
                // When this takes too long, the grants are seen by the worker's next poll.
                let _ = replica.wait_applied(applied_index, CALL_WITHIN).await;
            }
        }
        let view = replica.view();
        let grants = self.look(&view)?;
        Ok(Seen { value: grants, index: view.applied_index, lag: None })
    }
}

fn free_slots(state: &State, ask: &Ask) -> u32 {
    let Some(worker) = state.workers().get(&ask.worker) else {
        return 0;
    };
    match worker.state {
        WorkerState::Draining => 0,
        WorkerState::Live => {
            let held = state.index().held_slots(ask.worker);
            worker.spec.slots.saturating_sub(held).min(ask.max)
        }
    }
}

fn grants_in(state: &State, worker: WorkerId, known: &BTreeSet<RunId>) -> Vec<GrantView> {
    let first = (worker, FireId { job: JobId(Seq::ZERO), seq: Seq::ZERO });
    let held = state.index().running().range(first..).take_while(|(owner, _)| *owner == worker);
    let mut grants = Vec::new();
    for (_, id) in held {
        let Some(fire) = state.fires().get(id) else { continue };
        let run = fire.current_run();
        let spec = state.spec_of(id.job, fire.job_revision);
        if let (Some(lease), Some(spec)) = (fire.lease, spec)
            && !known.contains(&run)
        {
            grants.push(GrantView { fire: fire.clone(), run, lease, spec: spec.clone() });
        }
    }
    grants
}

fn released(run: RunId, token: FencingToken) -> Answer {
    Answer { run, token, verdict: AnswerKind::Released, report: AttemptReport::default() }
}

fn too_many_polls() -> ServiceError {
    let limit = POLLS_MAX as u64;
    let message = format!("{limit} polls wait on this member, the most it takes");
    ServiceError::new(ErrorKind::TooManyWaiting { limit }, message)
}

fn stopped() -> ServiceError {
    ServiceError::new(ErrorKind::Lagging, "this member has stopped")
}
