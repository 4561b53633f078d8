//! What the tasks of one member share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::clock::SharedClock;
use crate::model::id::NodeId;
use crate::replica::View;
use crate::replica::config::ReplicaConfig;
use crate::replica::error::ProposeError;
use crate::replica::leader_call::LeaderHandler;
use crate::replica::leadership::Leadership;
use crate::replica::live::Live;
use crate::replica::log_adapter::Pace;
use crate::replica::peers::Peers;
use crate::replica::propose::{Forward, Job};
use crate::replica::read::ReadRequest;
use crate::replica::types::Raft;
use crate::store::Store;
use crate::store::records::Records;

pub(crate) struct Inner {
    pub(crate) me: NodeId,
    pub(crate) cluster_id: String,
    pub(crate) config: ReplicaConfig,
    pub(crate) clock: SharedClock,
    pub(crate) raft: Raft,
    pub(crate) live: Arc<Live>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) store: Store,
    /// The records with what a snapshot in the making holds back.
    pub(crate) records: Records,
    pub(crate) pace: Pace,
    pub(crate) proposals: mpsc::Sender<Job>,
    pub(crate) forwards: mpsc::Sender<Forward>,
    pub(crate) reads_here: mpsc::Sender<ReadRequest>,
    pub(crate) reads_at_leader: mpsc::Sender<ReadRequest>,
    pub(crate) leadership: watch::Sender<Leadership>,
    pub(crate) recovered: watch::Sender<bool>,
    pub(crate) stopped: watch::Sender<Option<String>>,
    pub(crate) handler: RwLock<Option<Arc<dyn LeaderHandler>>>,
    pub(crate) stop: CancellationToken,
    pub(crate) running: TaskTracker,
    /// When a leader was heard last, or this node started.
    pub(crate) heard: Mutex<Instant>,
    /// A dead leader is being looked into.
    pub(crate) takeover: AtomicBool,
}

impl Inner {
    pub(crate) fn leader_handler(&self) -> Option<Arc<dyn LeaderHandler>> {
        self.handler.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The leader, as soon as one is known.
    pub(crate) async fn leader_until(&self, deadline: Instant) -> Result<NodeId, ProposeError> {
        let mut leadership = self.leadership.subscribe();
        let known = leadership.wait_for(|now| now.leader.is_some());
        let waited = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(self.stopped_error()),
            waited = timeout_at(deadline, known) => waited,
        };
        match waited {
            Ok(Ok(now)) => now.leader.ok_or(ProposeError::NoLeader),
            Ok(Err(_)) => Err(self.stopped_error()),
            Err(_) => Err(ProposeError::NoLeader),
        }
    }

    /// The leader, when it is another node.
    pub(crate) fn leader_elsewhere(&self) -> Result<NodeId, ProposeError> {
        let leadership = *self.leadership.borrow();
        match leadership.leader {
            Some(leader) if leader != self.me => Ok(leader),
            Some(_) | None => Err(ProposeError::NoLeader),
        }
    }

    /// Returns after a change of leadership, or a short while: whoever refused may not have known
    /// yet what this node knows already.
    pub(crate) async fn leadership_moves(&self, deadline: Instant) {
        let mut leadership = self.leadership.subscribe();
        leadership.mark_unchanged();
        let soon = deadline.min(Instant::now() + self.config.heartbeat / 4);
        // Either way the caller looks again.
        let _ = timeout_at(soon, leadership.changed()).await;
    }

    pub(crate) async fn wait_applied(
        &self,
        index: u64,
        deadline: Instant,
    ) -> Result<View, ProposeError> {
        let reached = timeout_at(deadline, self.live.reached(index));
        tokio::select! {
            biased;
            reached = reached => match reached {
                Ok(()) => Ok(self.live.view()),
                Err(_) => Err(ProposeError::Timeout),
            },
            () = self.stop.cancelled() => Err(self.stopped_error()),
        }
    }

    pub(crate) fn heard_from_leader(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether this node follows and its leader has been silent for longer than an election takes.
    pub(crate) fn is_leader_silent(&self) -> bool {
        if self.leadership.borrow().leading {
            return false;
        }
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.elapsed() > self.config.election_max * 2
    }

    /// Says why this node stops, unless somebody has already, and stops its tasks.
    pub(crate) fn stop_because(&self, reason: &str) {
        self.stopped.send_if_modified(|stopped| {
            let is_first = stopped.is_none();
            if is_first {
                *stopped = Some(reason.to_owned());
            }
            is_first
        });
        self.stop.cancel();
    }

    /// The consensus core has ended; it knows why.
    pub(crate) fn core_stopped(&self) {
        use openraft::async_runtime::watch::WatchReceiver;
        let reason = match &self.raft.metrics().borrow_watched().running_state {
            Ok(()) => "the consensus core has ended".to_owned(),
            Err(fatal) => fatal.to_string(),
        };
        tracing::error!(node = self.me.0, reason, "this member stops");
        self.stop_because(&reason);
    }

    pub(crate) fn stopped_error(&self) -> ProposeError {
        let reason = self.stopped.borrow().clone();
        ProposeError::Stopped(reason.unwrap_or_else(|| "it shuts down".to_owned()))
    }
}
