//! Fires: ask for one, read, list, cancel. Open ones are in the state, ended ones on the disk
//! beside it; a list shows both, newest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::base::bounded::Name;
use crate::base::time::{Span, Timestamp};
use crate::machine::command::{Command, RequestFire};
use crate::machine::reply::Reply;
use crate::machine::state::State;
use crate::model::fire::{AttemptReport, Fire, FireState};
use crate::model::id::{FireId, JobId, JobKey, RunId, Seq};
use crate::model::job::Payload;
use crate::replica::history::History;
use crate::service::call::{Caller, Freshness, Seen};
use crate::service::error::{ErrorKind, Noun, ServiceError};
use crate::service::jobs::job_in;
use crate::service::page::{Cursor, Page, PageRequest, SCAN_MAX};
use crate::service::{Service, not_found, unexpected};

/// Ended fires read from the disk at a time.
const CHUNK: usize = 256;

/// A fire that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FireDraft {
    pub when: FireTime,
    /// Handed to the work instead of the job's own payload.
    pub payload: Option<Payload>,
    /// Run beside an open fire of the job, whatever its overlap policy says.
    pub allow_overlap: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FireTime {
    /// As soon as a worker is free.
    Now,
    At(Timestamp),
    /// Counted from the moment the leader takes it in.
    After(Span),
}

/// The states a caller can ask for, without their causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FireStateKind {
    Waiting,
    Ready,
    Running,
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
}

/// Which fires of a tenant are wanted.
#[derive(Clone, Debug, Default)]
pub struct FireFilter {
    pub job: Option<JobKey>,
    pub state: Option<FireStateKind>,
}

/// A fire, and what its ended attempts left behind, by their numbers.
#[derive(Clone, Debug)]
pub struct FireView {
    pub fire: Arc<Fire>,
    pub reports: Vec<(u32, AttemptReport)>,
}

impl Service {
    /// # Errors
    /// As every change.
    pub async fn request_fire(
        &self,
        caller: &Caller,
        key: JobKey,
        draft: FireDraft,
    ) -> Result<Seen<Arc<Fire>>, ServiceError> {
        let tenant = key.tenant.clone();
        let (at, delay) = match draft.when {
            FireTime::Now => (None, Span::ZERO),
            FireTime::At(at) => (Some(at), Span::ZERO),
            FireTime::After(delay) => (None, delay),
        };
        let command = Command::RequestFire(Box::new(RequestFire {
            job: key,
            at,
            delay_ms: delay.as_ms(),
            payload: draft.payload,
            allow_overlap: draft.allow_overlap,
        }));
        self.change_fire(caller, &tenant, command).await
    }

    /// Cancels a fire that waits, at once; asks the worker of one that runs.
    ///
    /// # Errors
    /// As every change; and when the fire has ended.
    pub async fn cancel_fire(
        &self,
        caller: &Caller,
        tenant: &Name,
        id: FireId,
    ) -> Result<Seen<Arc<Fire>>, ServiceError> {
        // The command does not name the tenant, so that it is looked at here; a fire never
        // changes it.
        let seen = self.get_fire(tenant, id, Freshness::default()).await?;
        let cancelled = self.change_fire(caller, tenant, Command::CancelFire { fire: id }).await;
        let Err(error) = &cancelled else {
            return cancelled;
        };
        if error.kind != ErrorKind::NotFound(Noun::Fire) {
            return cancelled;
        }
        // The machine knows open fires only, and this one was found a moment ago.
        let state = seen.value.fire.state;
        let message = format!("fire {id} has ended already");
        Err(ServiceError::new(ErrorKind::FireEnded { fire: id, state }, message))
    }

    async fn change_fire(
        &self,
        caller: &Caller,
        tenant: &Name,
        command: Command,
    ) -> Result<Seen<Arc<Fire>>, ServiceError> {
        let reply = self.propose(caller, tenant, command).await?;
        let Reply::Fire(fire) = &reply.value else {
            return Err(unexpected(&reply.value));
        };
        let fire = fire.clone();
        Ok(reply.map(|_| fire))
    }

    /// A fire with its attempts and what they left behind.
    ///
    /// # Errors
    /// As every read; and when there is no such fire, or none any more.
    pub async fn get_fire(
        &self,
        tenant: &Name,
        id: FireId,
        freshness: Freshness,
    ) -> Result<Seen<FireView>, ServiceError> {
        let sight = self.sight_of(freshness, tenant).await?;
        let open = sight.state.fires().get(&id).cloned();
        let history = self.inner.replica.history();
        let found = on_disk(move || read_fire(&history, id, open)).await?;
        let missing = || not_found(Noun::Fire, format!("there is no fire {id}, or none any more"));
        let view = found.filter(|view| view.fire.job_key.tenant == *tenant).ok_or_else(missing)?;
        Ok(sight.show(view))
    }

    /// Open and ended fires, newest first.
    ///
    /// # Errors
    /// As every read; and when there is no such tenant or job.
    pub async fn list_fires(
        &self,
        tenant: &Name,
        filter: &FireFilter,
        page: &PageRequest,
        freshness: Freshness,
    ) -> Result<Seen<Page<Arc<Fire>>>, ServiceError> {
        let before = page.after_key::<u64>()?.map(Seq::from_u64);
        let sight = self.sight_of(freshness, tenant).await?;
        let job = match &filter.job {
            Some(key) => Some(job_in(&sight.state, key)?.id),
            None => None,
        };
        let search = Search { tenant: tenant.clone(), job, state: filter.state, before };
        let (state, limit) = (sight.state.clone(), page.limit);
        let history = self.inner.replica.history();
        let found = on_disk(move || search.page(&state, &history, limit)).await?;
        Ok(sight.show(found))
    }
}

/// Runs what may wait for the disk where it holds up nobody.
pub(in crate::service) async fn on_disk<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    tokio::task::spawn_blocking(read).await.map_err(ServiceError::internal)?
}

fn read_fire(
    history: &History,
    id: FireId,
    open: Option<Arc<Fire>>,
) -> Result<Option<FireView>, ServiceError> {
    let fire = match open {
        Some(fire) => Some(fire),
        None => history.fire(id)?.map(Arc::new),
    };
    let Some(fire) = fire else {
        return Ok(None);
    };
    let mut reports = Vec::new();
    for attempt in fire.attempts.iter().filter(|attempt| attempt.ended_at.is_some()) {
        let run = RunId { fire: id, attempt: attempt.number };
        if let Some(report) = history.attempt(run)? {
            reports.push((attempt.number, report));
        }
    }
    Ok(Some(FireView { fire, reports }))
}

/// What a page of fires is made of.
struct Search {
    tenant: Name,
    job: Option<JobId>,
    state: Option<FireStateKind>,
    /// Only fires with a smaller number.
    before: Option<Seq>,
}

/// Ended fires, newest first, and where the search for them stopped short of the end.
struct Ended {
    fires: Vec<Arc<Fire>>,
    stopped_at: Option<Seq>,
}

impl Search {
    /// The newest `limit` fires. One that ended after the state was taken is in both places, and is
    /// shown as it is in the state.
    fn page(
        &self,
        state: &State,
        history: &History,
        limit: usize,
    ) -> Result<Page<Arc<Fire>>, ServiceError> {
        let open = self.open(state, limit + 1);
        let ended = self.ended(history, limit + 1)?;
        let mut fires: Vec<Arc<Fire>> = open;
        let is_open = |fire: &Arc<Fire>| state.fires().contains_key(&fire.id);
        fires.extend(ended.fires.into_iter().filter(|fire| !is_open(fire)));
        fires.sort_by_key(|fire| Reverse(fire.id.seq));
        if let Some(stopped_at) = ended.stopped_at {
            fires.retain(|fire| fire.id.seq >= stopped_at);
        }
        let has_more = fires.len() > limit;
        fires.truncate(limit);
        let last = if has_more { fires.last().map(|fire| fire.id.seq) } else { ended.stopped_at };
        let next = last.map(|seq| Cursor::after(&seq.as_u64().to_string()));
        Ok(Page { items: fires, next })
    }

    /// The newest open fires that fit, in any order.
    fn open(&self, state: &State, count: usize) -> Vec<Arc<Fire>> {
        if self.state.is_some_and(FireStateKind::is_ended) {
            return Vec::new();
        }
        let mut newest: BinaryHeap<Reverse<(Seq, FireId)>> = BinaryHeap::new();
        let mut take = |fire: &Arc<Fire>| {
            if self.fits(fire) {
                newest.push(Reverse((fire.id.seq, fire.id)));
                if newest.len() > count {
                    newest.pop();
                }
            }
        };
        match self.job {
            Some(job) => state.fires_of(job).for_each(&mut take),
            None => state.fires().values().for_each(&mut take),
        }
        newest.iter().filter_map(|Reverse((_, id))| state.fires().get(id).cloned()).collect()
    }

    /// The newest ended fires that fit. Looks at a bounded number of records.
    fn ended(&self, history: &History, count: usize) -> Result<Ended, ServiceError> {
        let mut ended = Ended { fires: Vec::new(), stopped_at: None };
        if self.state.is_some_and(|state| !state.is_ended()) {
            return Ok(ended);
        }
        let mut before = self.before;
        for _ in 0..SCAN_MAX.div_ceil(CHUNK) {
            let chunk = match self.job {
                Some(job) => history.of_job(job, before, CHUNK)?,
                None => history.recent(before, CHUNK)?,
            };
            let Some(oldest) = chunk.last().map(|fire| fire.id.seq) else {
                return Ok(ended);
            };
            let is_end = chunk.len() < CHUNK;
            ended.fires.extend(chunk.into_iter().filter(|fire| self.fits(fire)).map(Arc::new));
            if is_end || ended.fires.len() >= count {
                return Ok(ended);
            }
            before = Some(oldest);
        }
        ended.stopped_at = before;
        Ok(ended)
    }

    fn fits(&self, fire: &Fire) -> bool {
        let is_before = self.before.is_none_or(|before| fire.id.seq < before);
        let has_state = self.state.is_none_or(|state| FireStateKind::of(fire.state) == state);
        is_before && has_state && fire.job_key.tenant == self.tenant
    }
}

impl FireStateKind {
    fn is_ended(self) -> bool {
        match self {
            FireStateKind::Waiting | FireStateKind::Ready | FireStateKind::Running => false,
            FireStateKind::Succeeded
            | FireStateKind::Failed
            | FireStateKind::Skipped
            | FireStateKind::Cancelled => true,
        }
    }

    fn of(state: FireState) -> FireStateKind {
        match state {
            FireState::Waiting(_) => FireStateKind::Waiting,
            FireState::Ready => FireStateKind::Ready,
            FireState::Running => FireStateKind::Running,
            FireState::Succeeded => FireStateKind::Succeeded,
            FireState::Failed => FireStateKind::Failed,
            FireState::Skipped(_) => FireStateKind::Skipped,
            FireState::Cancelled => FireStateKind::Cancelled,
        }
    }
}
