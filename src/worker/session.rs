//! Who the cluster knows this worker as. A session that was forgotten is replaced by a new one.

use std::time::Duration;

use tokio::sync::watch;

use crate::base::time::Span;
use crate::client::error::ClientError;
use crate::client::transport::Client;
use crate::wire::worker::{Registered, WorkerSpec};

const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The current session of one worker.
#[derive(Debug)]
pub struct Session {
    client: Client,
    spec: WorkerSpec,
    current: watch::Sender<Registered>,
    forgotten: watch::Sender<String>,
}

impl Session {
    /// Registers, and waits for a cluster that is not there yet.
    ///
    /// # Errors
    /// [`ClientError`] when the cluster refuses.
    pub async fn begin(client: Client, spec: WorkerSpec) -> Result<Session, ClientError> {
        let mut pause = PAUSE_FIRST;
        let registered = loop {
            match client.register_worker(&spec).await {
                Ok(registered) => break registered,
                Err(error) if error.is_unavailable() => {
                    tracing::warn!(%error, "cannot register, trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Err(error) => return Err(error),
            }
        };
        tracing::info!(worker = registered.worker, name = spec.name, "registered");
        let current = watch::Sender::new(registered);
        Ok(Session { client, spec, current, forgotten: watch::Sender::new(String::new()) })
    }

    #[must_use]
    pub fn id(&self) -> String {
        self.current.borrow().worker.clone()
    }

    /// Most items of one call.
    #[must_use]
    pub fn batch_max(&self) -> usize {
        (self.current.borrow().batch_max as usize).max(1)
    }

    /// The longest wait of a long poll.
    #[must_use]
    pub fn wait_max(&self) -> Duration {
        let wait = self.current.borrow().wait_max.parse::<Span>();
        wait.map_or(Duration::from_secs(30), Span::to_std)
    }

    /// Says that the cluster does not know the session `stale`, and waits for another.
    pub async fn renew(&self, stale: &str) {
        let mut current = self.current.subscribe();
        if self.id() == stale {
            self.forgotten.send_replace(stale.to_owned());
        }
        // The sender lives as long as we do.
        let _ = current.wait_for(|registered| registered.worker != stale).await;
    }

    /// Registers again whenever the current session was forgotten. Never ends.
    pub async fn keep(&self) {
        let mut forgotten = self.forgotten.subscribe();
        loop {
            let stale = match forgotten.wait_for(|stale| *stale == self.id()).await {
                Ok(stale) => stale.clone(),
                Err(_) => return,
            };
            tracing::warn!(worker = stale, "the cluster has forgotten this worker");
            let mut pause = PAUSE_FIRST;
            loop {
                match self.client.register_worker(&self.spec).await {
                    Ok(registered) => {
                        tracing::info!(worker = registered.worker, "registered again");
                        self.current.send_replace(registered);
                        break;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot register again, trying on");
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                    }
                }
            }
        }
    }
}

/// True for the refusal of a call in a session that the cluster does not know.
#[must_use]
pub fn is_forgotten(error: &ClientError) -> bool {
    error.status() == Some(404)
}
