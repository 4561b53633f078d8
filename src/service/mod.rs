//! The use cases, one file per noun: authorize, validate, then propose or read.
//!
//! Nothing here knows of HTTP, and no signature speaks of Raft or of the machine's commands: the
//! edge above sees nouns, drafts of them, and [`error::ServiceError`].
//!
//! - **Reads** see everything that was answered before they began, on any member
//!   ([`call::Freshness`] can ask for less). They read one consistent state; ended fires come from
//!   the disk beside it.
//! - **Changes** are decided by the machine alone. What can be found wrong without the state is
//!   refused here, so that it costs no log entry; everything else is the machine's answer.
//! - **A time-out is not a failure.** It is [`error::ErrorKind::OutcomeUnknown`], and says so.

pub mod acquire;
pub mod answer;
pub mod call;
pub mod cluster;
pub mod error;
pub mod fires;
pub mod groups;
pub mod jobs;
pub mod page;
mod polls;
pub mod schedules;
pub mod tenants;
pub mod triggers;
pub mod watch;
pub mod workers;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use crate::base::bounded::Name;
use crate::base::clock::SharedClock;
use crate::base::time::Timestamp;
use crate::machine::command::{Command, Proposal};
use crate::machine::reply::Reply;
use crate::machine::state::State;
use crate::replica::{AppliedEffects, Replica};
use crate::service::acquire::Abandoned;
use crate::service::call::{Caller, Freshness, Seen};
use crate::service::error::{ErrorKind, Noun, ServiceError};
use crate::service::polls::Polls;
use crate::service::watch::Ring;

/// How long a change may take before its outcome is reported as unknown.
const WRITE_WITHIN: Duration = Duration::from_secs(5);
/// How long a read may wait for the confirmation that it is fresh.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// Polls whose caller went away and whose grants are still to be handed back; above it, leases run
/// out instead.
const ABANDONED_MAX: usize = 4_096;

/// The use cases of one member. Clones share everything.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    replica: Replica,
    clock: SharedClock,
    polls: Polls,
    ring: Ring,
    abandoned: mpsc::Sender<Abandoned>,
    /// Nobody is to wait here any more.
    closing: CancellationToken,
    /// Taken by [`Service::run`].
    inbox: Mutex<Inbox>,
}

struct Inbox {
    effects: broadcast::Receiver<Arc<AppliedEffects>>,
    abandoned: mpsc::Receiver<Abandoned>,
}

impl Service {
    /// Listens to the replica from here on; [`Service::run`] has to be running for polls to be
    /// woken and watchers to be told.
    #[must_use]
    pub fn new(replica: Replica, clock: SharedClock) -> Service {
        let (abandoned, abandoned_inbox) = mpsc::channel(ABANDONED_MAX);
        let inbox = Inbox { effects: replica.effects(), abandoned: abandoned_inbox };
        let ring = Ring::starting_after(*replica.applied().borrow());
        let inner = Inner {
            replica,
            clock,
            polls: Polls::default(),
            ring,
            abandoned,
            closing: CancellationToken::new(),
            inbox: Mutex::new(inbox),
        };
        Service { inner: Arc::new(inner) }
    }

    /// Wakes polls, tells watchers and hands abandoned grants back, until the replica has stopped
    /// or the future is dropped. To be run once.
    pub async fn run(&self) {
        let mut inbox = self.inner.inbox.lock().await;
        let Inbox { effects, abandoned } = &mut *inbox;
        let wake = async {
            loop {
                match effects.recv().await {
                    Ok(applied) => self.tell(&applied),
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        self.inner.ring.lose();
                        self.inner.polls.wake_all();
                    }
                    Err(broadcast::error::RecvError::Closed) => return,
                }
            }
        };
        let hand_back = async {
            while let Some(left) = abandoned.recv().await {
                self.hand_back(left).await;
            }
        };
        tokio::select! {
            () = wake => {}
            () = hand_back => {}
        }
    }

    /// Ends every poll and every watch, now and later, for this member is about to stop: a poll
    /// takes its offer back and is answered, a watch ends, and their callers ask another member.
    pub fn close(&self) {
        self.inner.closing.cancel();
    }

    fn tell(&self, applied: &AppliedEffects) {
        for effect in &applied.effects {
            if let Some(worker) = polls::granted_to(effect) {
                self.inner.polls.wake(worker);
            }
        }
        self.inner.ring.push(applied);
    }

    /// The index this member has applied.
    #[must_use]
    pub fn applied_index(&self) -> u64 {
        *self.inner.replica.applied().borrow()
    }

    /// The time for what is measured from "now": never behind the log's own.
    fn now(&self) -> Timestamp {
        self.inner.clock.now().max(self.inner.replica.view().state.stamp())
    }

    /// The state to answer a read from.
    async fn sight(&self, freshness: Freshness) -> Result<Sight, ServiceError> {
        let replica = &self.inner.replica;
        let mut view = if freshness.local {
            replica.view()
        } else {
            replica.linearizable(READ_WITHIN).await.map_err(|e| ServiceError::of_read(&e))?
        };
        if let Some(index) = freshness.at_least
            && view.applied_index < index
        {
            view = replica
                .wait_applied(index, READ_WITHIN)
                .await
                .map_err(|e| ServiceError::of_read(&e))?;
        }
        let lag = freshness.local.then(|| {
            let committed = replica.status().committed_index;
            committed.saturating_sub(view.applied_index)
        });
        Ok(Sight { state: view.state, index: view.applied_index, lag })
    }

    /// As [`Service::sight`], of a tenant that exists.
    async fn sight_of(&self, freshness: Freshness, tenant: &Name) -> Result<Sight, ServiceError> {
        let sight = self.sight(freshness).await?;
        if !sight.state.tenants().contains_key(tenant) {
            return Err(not_found(Noun::Tenant, format!("there is no tenant {tenant}")));
        }
        Ok(sight)
    }

    /// Has the machine decide. A rejection becomes an error.
    async fn propose(
        &self,
        caller: &Caller,
        tenant: &Name,
        command: Command,
    ) -> Result<Seen<Reply>, ServiceError> {
        let proposal = Proposal { request: caller.identity(tenant), command };
        let proposed = self
            .inner
            .replica
            .propose(proposal, WRITE_WITHIN)
            .await
            .map_err(|e| ServiceError::of_write(&e))?;
        if let Reply::Rejected(rejection) = proposed.reply {
            return Err(rejection.into());
        }
        Ok(Seen { value: proposed.reply, index: proposed.index, lag: None })
    }
}

/// One state, for one answer.
struct Sight {
    state: State,
    index: u64,
    lag: Option<u64>,
}

impl Sight {
    fn show<T>(&self, value: T) -> Seen<T> {
        Seen { value, index: self.index, lag: self.lag }
    }
}

fn not_found(noun: Noun, message: String) -> ServiceError {
    ServiceError::new(ErrorKind::NotFound(noun), message)
}

/// The machine answered a command with the reply of another one.
fn unexpected(reply: &Reply) -> ServiceError {
    ServiceError::internal(format!("a reply that does not belong to its command: {reply:?}"))
}
