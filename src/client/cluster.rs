//! Calls about the cluster itself.

use reqwest::Method;

use crate::client::error::ClientError;
use crate::client::transport::{Client, Patience, Request};
use crate::wire::cluster::{Cluster, TransferRequest, Version};

impl Client {
    /// The cluster as the answering member sees it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn cluster(&self) -> Result<Cluster, ClientError> {
        self.call(Request::get(&["v1", "cluster"])).await
    }

    /// Removes a member from the group.
    ///
    /// # Errors
    /// [`ClientError`]; 404 when there is no such member.
    pub async fn remove_member(&self, node: u64) -> Result<(), ClientError> {
        let path = ["v1", "cluster", "members", &node.to_string()];
        self.send(Request::new(Method::DELETE, &path)).await.map(|_| ())
    }

    /// Asks the leader to hand over, to the given voter or to the one that is most up to date.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn transfer_leadership(&self, to: Option<u64>) -> Result<(), ClientError> {
        let path = ["v1", "cluster:transfer-leadership"];
        self.send(Request::post(&path).json(&TransferRequest { to })).await.map(|_| ())
    }

    /// # Errors
    /// [`ClientError`].
    pub async fn version(&self) -> Result<Version, ClientError> {
        self.call(Request::get(&["v1", "version"])).await
    }

    /// Whether a node takes requests, without trying for long.
    pub async fn is_ready(&self) -> bool {
        let second = std::time::Duration::from_secs(1);
        let patience = Patience { answer: second, retry_for: std::time::Duration::ZERO };
        self.send(Request::get(&["readyz"]).patience(patience)).await.is_ok()
    }
}
