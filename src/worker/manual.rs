//! A worker driven by hand: for tests of your own handlers against a cluster, one step at a time.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::SystemClock;
use crate::base::time::Span;
use crate::client::error::ClientError;
use crate::client::transport::{Client, Patience};
use crate::wire::worker::{
    AcquireRequest, Answer, AnswerRequest, AnswerVerdict, ExtendRequest, ExtendVerdict, HeldRun,
    Registered, WorkerSpec,
};
use crate::worker::handler::{Handler, Run, stop_pair};

/// Does nothing by itself: it acquires, extends and answers when it is told to, and never in the
/// background.
#[derive(Debug)]
pub struct ManualWorker {
    client: Client,
    registered: Registered,
}

impl ManualWorker {
    /// # Errors
    /// [`ClientError`].
    pub async fn register(client: Client, spec: &WorkerSpec) -> Result<ManualWorker, ClientError> {
        let registered = client.register_worker(spec).await?;
        Ok(ManualWorker { client, registered })
    }

    /// The id of the session.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.registered.worker
    }

    /// Asks for up to `max` runs, and waits for the first of them up to `wait`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn acquire(&self, max: u32, wait: Duration) -> Result<Vec<Arc<Run>>, ClientError> {
        let wait_span = Span::from_ms(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        let request = AcquireRequest { max, wait: Some(wait_span.to_string()), holding: None };
        let response = self.client.acquire(self.id(), &request, wait).await?;
        let runs = response.grants.into_iter();
        Ok(runs.map(|grant| Arc::new(Run::of(grant, &SystemClock))).collect())
    }

    /// Extends the lease of one run.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn extend(&self, run: &Run) -> Result<Option<ExtendVerdict>, ClientError> {
        let held = HeldRun { run: run.grant.run.clone(), token: run.grant.token };
        let request = ExtendRequest { runs: vec![held] };
        let response = self.client.extend(self.id(), &request, Patience::default()).await?;
        Ok(response.verdicts.into_iter().next())
    }

    /// Gives one answer, whatever it says: also a wrong or a late one.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn answer(&self, answer: Answer) -> Result<Option<AnswerVerdict>, ClientError> {
        let request = AnswerRequest { answers: vec![answer] };
        let response = self.client.answer(self.id(), &request).await?;
        Ok(response.verdicts.into_iter().next())
    }

    /// Runs a handler to its end and answers for it. Leases are not extended meanwhile.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn run(
        &self,
        run: &Arc<Run>,
        handler: &dyn Handler,
    ) -> Result<Option<AnswerVerdict>, ClientError> {
        let (_sender, stop) = stop_pair();
        let report = handler.run(Arc::clone(run), stop).await;
        match report.into_answer(run, None) {
            Some(answer) => self.answer(answer).await,
            None => Ok(None),
        }
    }
}
