//! Listing, reading, watching and cancelling fires.

use crate::client::error::ClientError;
use crate::client::events::Events;
use crate::client::transport::{Client, Request};
use crate::wire::fire::Fire;
use crate::wire::page::Page;

/// Which fires a list shows.
#[derive(Clone, Debug, Default)]
pub struct FireFilter {
    /// As `group/name`.
    pub job: Option<String>,
    pub state: Option<String>,
}

impl Client {
    /// One page of fires, newest first; `limit` is the page's size.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn fires(
        &self,
        filter: &FireFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Fire>, ClientError> {
        let request = Request::get(&["v1", "tenants", self.tenant(), "fires"])
            .query("job", filter.job.as_ref())
            .query("state", filter.state.as_ref())
            .query("limit", Some(limit))
            .query("cursor", cursor);
        self.call(request).await
    }

    /// A fire with its attempts and what they left behind.
    ///
    /// # Errors
    /// [`ClientError`]; 404 when there is no such fire.
    pub async fn fire(&self, id: &str) -> Result<Fire, ClientError> {
        self.call(Request::get(&["v1", "tenants", self.tenant(), "fires", id])).await
    }

    /// Asks to cancel a fire: one that waits ends at once, one that runs when its worker has
    /// stopped it.
    ///
    /// # Errors
    /// [`ClientError`]; 409 when it has ended.
    pub async fn cancel_fire(&self, id: &str) -> Result<(), ClientError> {
        let verb = format!("{id}:cancel");
        let path = ["v1", "tenants", self.tenant(), "fires", &verb];
        self.send(Request::post(&path)).await.map(|_| ())
    }

    /// Every change of a fire from now on, or from the event after `last_event_id`.
    ///
    /// # Errors
    /// [`ClientError`] when no node opens the stream.
    pub async fn watch_fires(&self, last_event_id: Option<&str>) -> Result<Events, ClientError> {
        let mut request = Request::get(&["v1", "tenants", self.tenant(), "fires:watch"]);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = self.open(&request.header("accept", "text/event-stream")).await?;
        Ok(Events::of(response))
    }
}
