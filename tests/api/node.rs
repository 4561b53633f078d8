//! One node in this process, with its own folder, and a caller that sees everything of an answer.

use std::sync::Arc;

use horolog::api;
use horolog::base::clock::SystemClock;
use horolog::base::entropy::OsEntropy;
use horolog::leader;
use horolog::replica::Replica;
use horolog::replica::config::{Addresses, ReplicaConfig, Start};
use horolog::replica::start::Parts;
use horolog::service::Service;
use horolog::store::{Store, StoreOptions};
use prometheus_client::registry::Registry;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A job's address in the tests: tenant `default`, group `g`.
pub const JOBS: &str = "/v1/tenants/default/jobs/g";
pub const WORKERS: &str = "/v1/tenants/default/workers";
pub const FIRES: &str = "/v1/tenants/default/fires";

pub struct Node {
    base: String,
    http: reqwest::Client,
    service: Service,
    /// Stops with the node.
    _loops: JoinSet<()>,
    _folder: TempDir,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The text at a place of the body.
    pub fn text(&self, pointer: &str) -> &str {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

impl Node {
    /// A cluster of one that leads.
    pub async fn start() -> Node {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        let peer_listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let public = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = public.local_addr().unwrap();
        let addresses = Addresses {
            peer: peer_listener.local_addr().unwrap().to_string(),
            api: address.to_string(),
        };
        let clock = Arc::new(SystemClock);
        let config = ReplicaConfig::new(addresses);
        let entropy = Arc::new(OsEntropy);
        let parts = Parts { store, peer_listener, config, clock: clock.clone(), entropy };
        let replica = Replica::start(parts, Start::Bootstrap).await.unwrap();
        replica.recovered().await.unwrap();
        replica.leadership().wait_for(|leadership| leadership.leading).await.unwrap();

        let service = Service::new(replica.clone(), clock.clone());
        let router = api::router(service.clone(), Registry::default());
        let mut loops = JoinSet::new();
        loops.spawn(leader::run(replica, clock));
        let working = service.clone();
        loops.spawn(async move { working.run().await });
        loops.spawn(async move { axum::serve(public, router).await.unwrap() });
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().build().unwrap();
        Node { base: format!("http://{address}"), http, service, _loops: loops, _folder: folder }
    }

    /// As a node does before it stops serving.
    pub fn close(&self) {
        self.service.close();
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), format!("{}{path}", self.base))
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { status, headers, body }
    }

    pub async fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(self.request(method, path).json(body)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path)).await
    }

    pub async fn post(&self, path: &str) -> Answer {
        self.send(self.request("POST", path)).await
    }

    /// Makes a job in group `g` that workers run, with some fields of its own.
    pub async fn put_job(&self, name: &str, fields: &Value) -> Answer {
        let mut body = serde_json::json!({"executor": {"worker": {}}});
        for (key, value) in fields.as_object().unwrap() {
            body[key] = value.clone();
        }
        let answer = self.call("PUT", &format!("{JOBS}/{name}"), &body).await;
        assert!(answer.status < 300, "{answer:?}");
        answer
    }

    /// Registers a worker; gives its path.
    pub async fn register(&self, slots: u32) -> String {
        let spec = serde_json::json!({"name": "w", "slots": slots});
        let answer = self.call("POST", WORKERS, &spec).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        format!("{WORKERS}/{}", answer.text("/worker"))
    }

    /// Fires a job; gives the id of the fire.
    pub async fn fire(&self, name: &str) -> String {
        let answer = self.post(&format!("{JOBS}/{name}:fire")).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.text("/id").to_owned()
    }
}
