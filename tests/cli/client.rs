//! The client's way over several nodes, against small servers of our own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap as AxumHeaders;
use axum::response::IntoResponse;
use axum::routing::any;

use horolog::client::error::ClientError;
use horolog::client::transport::{Client, Patience, Request};

/// A node that gives these answers one after the other, the last one for ever.
struct Scripted {
    answers: Vec<(u16, &'static str)>,
    asked: AtomicU32,
    keys: Mutex<Vec<String>>,
}

async fn answer(State(script): State<Arc<Scripted>>, headers: AxumHeaders) -> impl IntoResponse {
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
    script.keys.lock().unwrap().extend(key);
    let turn = script.asked.fetch_add(1, Ordering::SeqCst) as usize;
    let (status, body) = script.answers[turn.min(script.answers.len() - 1)];
    if status == 0 {
        std::future::pending::<()>().await;
    }
    (axum::http::StatusCode::from_u16(status).unwrap(), body)
}

async fn node(answers: &[(u16, &'static str)]) -> (String, Arc<Scripted>) {
    let script = Arc::new(Scripted {
        answers: answers.to_vec(),
        asked: AtomicU32::new(0),
        keys: Mutex::new(Vec::new()),
    });
    let router = Router::new().fallback(any(answer)).with_state(Arc::clone(&script));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, script)
}

/// An address at which nobody listens.
async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

fn quick() -> Patience {
    Patience { answer: Duration::from_millis(300), retry_for: Duration::from_millis(700) }
}

const PROBLEM: &str = r#"{"type":"urn:horolog:problem:x","title":"t","status":409,"detail":"d",
    "code":"overlap"}"#;
const UNKNOWN: &str = r#"{"type":"urn:horolog:problem:x","title":"t","status":503,"detail":"d",
    "code":"timeout","outcome_unknown":true}"#;

#[tokio::test]
async fn the_next_node_is_asked_when_one_is_away_or_overloaded() {
    let (busy, _) = node(&[(503, "")]).await;
    let (good, script) = node(&[(200, "7")]).await;
    let client = Client::new(&[nobody().await, busy, good], "default").unwrap();
    for _ in 0..2 {
        let seven: u32 = client.call(Request::post(&["x"]).patience(quick())).await.unwrap();
        assert_eq!(seven, 7);
    }
    assert_eq!(script.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn every_try_of_a_write_carries_the_same_key_and_every_write_another() {
    let (address, script) = node(&[(503, ""), (503, UNKNOWN), (200, "1")]).await;
    let client = Client::new(&[address], "default").unwrap();
    let _: u32 = client.call(Request::post(&["x"]).patience(quick())).await.unwrap();
    let _: u32 = client.call(Request::post(&["x"]).patience(quick())).await.unwrap();
    let keys = script.keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 4);
    assert!(keys[0] == keys[1] && keys[1] == keys[2]);
    assert_ne!(keys[2], keys[3]);
}

#[tokio::test]
async fn a_write_without_an_answer_is_unknown_and_a_read_is_not() {
    let (silent, _) = node(&[(0, "")]).await;
    let client = Client::new(&[silent], "default").unwrap();
    let write = client.send(Request::post(&["x"]).patience(quick())).await.unwrap_err();
    assert!(write.is_unknown(), "{write}");
    let read = client.send(Request::get(&["x"]).patience(quick())).await.unwrap_err();
    assert!(matches!(read, ClientError::Unreachable { .. }), "{read}");
    let once = Patience { retry_for: Duration::ZERO, ..quick() };
    let poll = client.send(Request::post(&["x"]).patience(once)).await.unwrap_err();
    assert!(poll.is_unknown(), "{poll}");
}

#[tokio::test]
async fn nobody_reached_means_nothing_changed() {
    let client = Client::new(&[nobody().await, nobody().await], "default").unwrap();
    let error = client.send(Request::post(&["x"]).patience(quick())).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_refusal_is_a_verdict_and_is_not_tried_again() {
    let (address, script) = node(&[(409, PROBLEM)]).await;
    let client = Client::new(&[address], "default").unwrap();
    let error = client.send(Request::post(&["x"]).patience(quick())).await.unwrap_err();
    assert_eq!(error.code(), Some("overlap"));
    assert_eq!(script.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_refusal_that_is_no_problem_document_is_shown_as_it_is() {
    let (address, _) = node(&[(404, "nothing here")]).await;
    let client = Client::new(&[address], "default").unwrap();
    let error = client.send(Request::get(&["x"]).patience(quick())).await.unwrap_err();
    assert_eq!(error.to_string(), "nothing here (404 unexpected)");
}
