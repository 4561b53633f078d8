//! A cluster that hands out what a test gives it, and remembers what it was told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use horolog::client::transport::Client;
use serde_json::{Value, json};
use tokio::sync::Notify;

#[derive(Clone, Default)]
pub struct FakeCluster {
    state: Arc<Mutex<FakeState>>,
    granted: Arc<Notify>,
    pub address: String,
}

#[derive(Default)]
pub struct FakeState {
    /// Sessions so far; the latest one is known, earlier ones are forgotten.
    pub registered: u32,
    pub grants: VecDeque<Value>,
    /// Largest `max` of a poll, and every `holding`.
    pub polls: Vec<(u64, Vec<String>)>,
    pub extended: BTreeMap<String, u32>,
    /// Verdicts of extends other than `extended`, by run.
    pub verdicts: BTreeMap<String, Value>,
    pub answers: Vec<Value>,
    /// How many answers are still to be refused, and with what status.
    pub refuse_answers: (u32, u16),
    pub draining: bool,
    pub removed: bool,
}

impl FakeCluster {
    pub async fn start() -> FakeCluster {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let cluster = FakeCluster { address, ..FakeCluster::default() };
        let router = Router::new()
            .route("/v1/tenants/default/workers", post(register))
            .route("/v1/tenants/default/workers/{verb}", post(verb).delete(remove))
            .with_state(cluster.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        cluster
    }

    pub fn client(&self) -> Client {
        Client::new(std::slice::from_ref(&self.address), "default").unwrap()
    }

    pub fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap()
    }

    pub fn give(&self, grant: Value) {
        self.state().grants.push_back(grant);
        self.granted.notify_one();
    }

    /// The answer for a run, once there is one.
    pub fn answer_for(&self, run: &str) -> Option<Value> {
        self.state().answers.iter().find(|answer| answer["run"] == run).cloned()
    }

    async fn acquire(&self, body: &Value) -> Value {
        let max = body["max"].as_u64().unwrap();
        let holding = body["holding"].as_array().unwrap();
        let holding = holding.iter().map(|run| run.as_str().unwrap().to_owned()).collect();
        self.state().polls.push((max, holding));
        let wait: horolog::base::time::Span = body["wait"].as_str().unwrap().parse().unwrap();
        let grants = tokio::time::timeout(wait.to_std().min(Duration::from_secs(5)), async {
            loop {
                let granted = self.granted.notified();
                let mut grants = Vec::new();
                while grants.len() < usize::try_from(max).unwrap() {
                    let Some(grant) = self.state().grants.pop_front() else { break };
                    grants.push(grant);
                }
                if !grants.is_empty() {
                    return grants;
                }
                granted.await;
            }
        });
        json!({ "grants": grants.await.unwrap_or_default() })
    }

    fn extend(&self, body: &Value) -> Value {
        let mut state = self.state();
        let mut verdicts = Vec::new();
        for held in body["runs"].as_array().unwrap() {
            let run = held["run"].as_str().unwrap().to_owned();
            *state.extended.entry(run.clone()).or_default() += 1;
            let fine = json!({ "run": run, "verdict": "extended", "ttl": "300ms" });
            verdicts.push(state.verdicts.get(&run).cloned().unwrap_or(fine));
        }
        json!({ "verdicts": verdicts })
    }

    fn answer(&self, body: &Value) -> Response {
        let mut state = self.state();
        if state.refuse_answers.0 > 0 {
            state.refuse_answers.0 -= 1;
            return StatusCode::from_u16(state.refuse_answers.1).unwrap().into_response();
        }
        let mut verdicts = Vec::new();
        for answer in body["answers"].as_array().unwrap() {
            verdicts.push(json!({ "run": answer["run"], "verdict": "taken" }));
            state.answers.push(answer.clone());
        }
        axum::Json(json!({ "verdicts": verdicts })).into_response()
    }
}

async fn register(State(cluster): State<FakeCluster>) -> Response {
    let mut state = cluster.state();
    state.registered += 1;
    let worker = format!("w{}", state.registered);
    let registered =
        json!({ "worker": worker, "ttl": "60s", "wait_max": "60s", "batch_max": 1000 });
    (StatusCode::CREATED, axum::Json(registered)).into_response()
}

async fn verb(
    State(cluster): State<FakeCluster>,
    Path(verb): Path<String>,
    body: String,
) -> Response {
    let (worker, verb) = verb.split_once(':').unwrap();
    let is_known = worker == format!("w{}", cluster.state().registered);
    if !is_known {
        return StatusCode::NOT_FOUND.into_response();
    }
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    match verb {
        "acquire" => axum::Json(cluster.acquire(&body).await).into_response(),
        "extend" => axum::Json(cluster.extend(&body)).into_response(),
        "answer" => cluster.answer(&body),
        "drain" => {
            cluster.state().draining = true;
            StatusCode::OK.into_response()
        }
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}

async fn remove(State(cluster): State<FakeCluster>) -> StatusCode {
    cluster.state().removed = true;
    StatusCode::NO_CONTENT
}
