//! Reading, changing and previewing the triggers of a job.

use reqwest::Method;
use serde::Deserialize;

use crate::client::error::ClientError;
use crate::client::jobs::Precondition;
use crate::client::transport::{Client, Request};
use crate::wire::trigger::{Preview, Trigger, TriggerSpec};

/// The address of a trigger inside a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerPath {
    pub group: String,
    pub job: String,
    pub trigger: String,
}

#[derive(Deserialize)]
struct Items {
    items: Vec<Trigger>,
}

impl Client {
    /// All triggers of a job.
    ///
    /// # Errors
    /// [`ClientError`]; 404 when there is no such job.
    pub async fn triggers(&self, group: &str, job: &str) -> Result<Vec<Trigger>, ClientError> {
        let mut path = self.job_path(group, job).to_vec();
        path.push("triggers");
        let list: Items = self.call(Request::get(&path)).await?;
        Ok(list.items)
    }

    /// # Errors
    /// [`ClientError`]; 404 when there is no such trigger.
    pub async fn trigger(&self, path: &TriggerPath) -> Result<Trigger, ClientError> {
        self.call(self.trigger_request(Method::GET, path, "")).await
    }

    /// Creates or replaces a trigger.
    ///
    /// # Errors
    /// [`ClientError`]; 412 when the precondition does not hold.
    pub async fn put_trigger(
        &self,
        path: &TriggerPath,
        spec: &TriggerSpec,
        precondition: Precondition,
    ) -> Result<Trigger, ClientError> {
        let request = self.trigger_request(Method::PUT, path, "").json(spec);
        self.call(precondition.on(request)).await
    }

    /// # Errors
    /// [`ClientError`]; 404 when there is no such trigger.
    pub async fn delete_trigger(&self, path: &TriggerPath) -> Result<(), ClientError> {
        self.send(self.trigger_request(Method::DELETE, path, "")).await.map(|_| ())
    }

    /// # Errors
    /// [`ClientError`]; 404 when there is no such trigger.
    pub async fn pause_trigger(&self, path: &TriggerPath) -> Result<(), ClientError> {
        self.send(self.trigger_request(Method::POST, path, ":pause")).await.map(|_| ())
    }

    /// # Errors
    /// [`ClientError`]; 404 when there is no such trigger.
    pub async fn resume_trigger(&self, path: &TriggerPath) -> Result<(), ClientError> {
        self.send(self.trigger_request(Method::POST, path, ":resume")).await.map(|_| ())
    }

    /// The coming times of a trigger, after `after` or after now.
    ///
    /// # Errors
    /// [`ClientError`]; 404 when there is no such trigger.
    pub async fn preview_trigger(
        &self,
        path: &TriggerPath,
        count: u32,
        after: Option<&str>,
    ) -> Result<Preview, ClientError> {
        let request = self
            .trigger_request(Method::GET, path, ":preview")
            .query("count", Some(count))
            .query("after", after);
        self.call(request).await
    }

    fn trigger_request(&self, method: Method, path: &TriggerPath, verb: &str) -> Request {
        let name = format!("{}{verb}", path.trigger);
        let mut segments = self.job_path(&path.group, &path.job).to_vec();
        segments.extend(["triggers", &name]);
        Request::new(method, &segments)
    }
}
