//! Calls of a worker.

use std::time::Duration;

use reqwest::Method;

use crate::client::error::ClientError;
use crate::client::transport::{Client, Patience, Request};
use crate::wire::worker::{
    AcquireRequest, AcquireResponse, AnswerRequest, AnswerResponse, ExtendRequest, ExtendResponse,
    Registered, WorkerSpec,
};

/// How long the answer to a long poll may take beyond its wait.
const POLL_SLACK: Duration = Duration::from_secs(10);

impl Client {
    /// Begins a session.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn register_worker(&self, spec: &WorkerSpec) -> Result<Registered, ClientError> {
        let path = ["v1", "tenants", self.tenant(), "workers"];
        self.call(Request::post(&path).json(spec)).await
    }

    /// Asks for work, and waits for it at a node for up to `wait`. Not tried again when the answer
    /// is lost: the next call says what is held, and gets the rest.
    ///
    /// # Errors
    /// [`ClientError`]; 404 when the session is not known any more.
    pub async fn acquire(
        &self,
        worker: &str,
        acquire: &AcquireRequest,
        wait: Duration,
    ) -> Result<AcquireResponse, ClientError> {
        let patience = Patience { answer: wait + POLL_SLACK, retry_for: Duration::ZERO };
        let request = self.worker_verb(worker, "acquire").json(acquire);
        self.call(request.patience(patience)).await
    }

    /// Extends leases, within `patience`: an extension that comes late is worth nothing.
    ///
    /// # Errors
    /// [`ClientError`]; 404 when the session is not known any more.
    pub async fn extend(
        &self,
        worker: &str,
        extend: &ExtendRequest,
        patience: Patience,
    ) -> Result<ExtendResponse, ClientError> {
        let request = self.worker_verb(worker, "extend").json(extend);
        self.call(request.patience(patience)).await
    }

    /// Says how attempts ended.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn answer(
        &self,
        worker: &str,
        answers: &AnswerRequest,
    ) -> Result<AnswerResponse, ClientError> {
        self.call(self.worker_verb(worker, "answer").json(answers)).await
    }

    /// Says that the worker takes no more work.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn drain_worker(&self, worker: &str) -> Result<(), ClientError> {
        self.send(self.worker_verb(worker, "drain")).await.map(|_| ())
    }

    /// Ends a session.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn remove_worker(&self, worker: &str) -> Result<(), ClientError> {
        let path = ["v1", "tenants", self.tenant(), "workers", worker];
        self.send(Request::new(Method::DELETE, &path)).await.map(|_| ())
    }

    fn worker_verb(&self, worker: &str, verb: &str) -> Request {
        let verb = format!("{worker}:{verb}");
        Request::post(&["v1", "tenants", self.tenant(), "workers", &verb])
    }
}
