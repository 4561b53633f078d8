//! Calls about jobs, groups and tenants.

use reqwest::Method;

use crate::client::error::ClientError;
use crate::client::transport::{Client, Request};
use crate::wire::fire::{Fire, FireRequest};
use crate::wire::job::{Job, JobSpec};
use crate::wire::page::Page;

/// Which revision a write is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Whatever is there.
    Any,
    /// Only when nothing is there yet.
    Absent,
    /// Only when this revision is there.
    Revision(u64),
}

/// Which jobs a list shows.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    pub group: Option<String>,
    pub name_prefix: Option<String>,
    pub state: Option<String>,
}

impl Precondition {
    pub(crate) fn on(self, request: Request) -> Request {
        match self {
            Precondition::Any => request,
            Precondition::Absent => request.header("if-none-match", "*"),
            Precondition::Revision(revision) => {
                request.header("if-match", &format!("\"{revision}\""))
            }
        }
    }
}

impl Client {
    /// One page of jobs; `limit` is the page's size.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn jobs(
        &self,
        filter: &JobFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Job>, ClientError> {
        let request = Request::get(&["v1", "tenants", self.tenant(), "jobs"])
            .query("group", filter.group.as_ref())
            .query("name_prefix", filter.name_prefix.as_ref())
            .query("state", filter.state.as_ref())
            .query("limit", Some(limit))
            .query("cursor", cursor);
        self.call(request).await
    }

    /// # Errors
    /// [`ClientError`]; 404 when there is no such job.
    pub async fn job(&self, group: &str, name: &str) -> Result<Job, ClientError> {
        self.call(Request::get(&self.job_path(group, name))).await
    }

    /// Creates or replaces a job.
    ///
    /// # Errors
    /// [`ClientError`]; 412 when the precondition does not hold.
    pub async fn put_job(
        &self,
        group: &str,
        name: &str,
        spec: &JobSpec,
        precondition: Precondition,
    ) -> Result<Job, ClientError> {
        let request = Request::new(Method::PUT, &self.job_path(group, name)).json(spec);
        self.call(precondition.on(request)).await
    }

    /// # Errors
    /// [`ClientError`]; 404 when there is no such job.
    pub async fn delete_job(&self, group: &str, name: &str) -> Result<(), ClientError> {
        let request = Request::new(Method::DELETE, &self.job_path(group, name));
        self.send(request).await.map(|_| ())
    }

    /// # Errors
    /// [`ClientError`]; 404 when there is no such job.
    pub async fn pause_job(&self, group: &str, name: &str) -> Result<(), ClientError> {
        self.job_verb(group, name, "pause").await
    }

    /// # Errors
    /// [`ClientError`]; 404 when there is no such job.
    pub async fn resume_job(&self, group: &str, name: &str) -> Result<(), ClientError> {
        self.job_verb(group, name, "resume").await
    }

    /// Asks for a fire.
    ///
    /// # Errors
    /// [`ClientError`]; 409 when the job's overlap policy refuses it.
    pub async fn fire_job(
        &self,
        group: &str,
        name: &str,
        fire: &FireRequest,
    ) -> Result<Fire, ClientError> {
        let verb = format!("{name}:fire");
        self.call(Request::post(&self.job_path(group, &verb)).json(fire)).await
    }

    pub(crate) fn job_path<'a>(&'a self, group: &'a str, name: &'a str) -> [&'a str; 6] {
        ["v1", "tenants", self.tenant(), "jobs", group, name]
    }

    async fn job_verb(&self, group: &str, name: &str, verb: &str) -> Result<(), ClientError> {
        let verb = format!("{name}:{verb}");
        self.send(Request::post(&self.job_path(group, &verb))).await.map(|_| ())
    }
}
