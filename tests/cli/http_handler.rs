//! The handler against a server of our own on the loopback interface.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::any;

use horolog::base::limits::OUTPUT_BYTES_MAX;
use horolog::base::time::Span;
use horolog::worker::handler::{Ending, Failure, Handler, Report, Run, StopReason, stop_pair};
use horolog::worker::http_handler::HttpHandler;

use crate::cli::support::run_of;

/// Tells what it was sent, or does what its path says.
async fn answer(request: Request) -> Response {
    let path = request.uri().path().to_owned();
    match path.trim_start_matches('/') {
        "echo" => echo(request).await.into_response(),
        "silent" => std::future::pending().await,
        "large" => Body::from("y".repeat(1_000_000)).into_response(),
        "later" => (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "7")], "").into_response(),
        "moved" => (StatusCode::FOUND, [(LOCATION, "/echo")], "").into_response(),
        status => StatusCode::from_u16(status.parse().unwrap()).unwrap().into_response(),
    }
}

async fn echo(request: Request) -> String {
    let mut lines = vec![request.method().to_string()];
    for (name, value) in request.headers() {
        if name.as_str().contains("horolog-") || name == "idempotency-key" || name == "x-own" {
            lines.push(format!("{name}={}", value.to_str().unwrap()));
        }
    }
    let body = axum::body::to_bytes(request.into_body(), 1_000_000).await.unwrap();
    lines.push(String::from_utf8(body.to_vec()).unwrap());
    lines.sort();
    lines.join("\n")
}

async fn serve() -> String {
    let router = Router::new().fallback(any(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}")
}

fn run(url: &str, method: &str) -> Arc<Run> {
    let headers = serde_json::json!({ "X-Own": "mine", "Horolog-Token": "forged" });
    let spec = serde_json::json!({ "url": url, "method": method, "headers": headers });
    run_of(&serde_json::json!({ "http": spec }))
}

async fn report(run: Arc<Run>) -> Report {
    let (sender, stop) = stop_pair();
    let report = HttpHandler::new().unwrap().run(run, stop).await;
    drop(sender);
    report
}

fn failure(report: &Report) -> &Failure {
    match &report.ending {
        Ending::Failed(failure) => failure,
        other @ (Ending::Succeeded(_) | Ending::Stopped) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_call_carries_the_fields_the_key_and_the_payload() {
    let base = serve().await;
    let report = report(run(&format!("{base}/echo"), "POST")).await;
    assert!(matches!(report.ending, Ending::Succeeded(_)), "{report:?}");
    let text = report.output.unwrap().text;
    for part in [
        "POST",
        "{\"n\":1}",
        "x-own=mine",
        "horolog-token=77",
        "horolog-attempt=2",
        "horolog-job=nightly",
        "horolog-trigger=daily",
        "horolog-scheduled-at=2026-12-01T03:00:00Z",
        "idempotency-key=default/reports/nightly/daily/2026-12-01T03:00:00Z",
    ] {
        assert!(text.lines().any(|line| line == part), "{part} in {text}");
    }
    assert!(!text.contains("forged"));
}

#[tokio::test]
async fn answers_become_outcomes_by_their_status() {
    let base = serve().await;
    let table = [
        ("200", None),
        ("204", None),
        ("400", Some(("http_400", false, None))),
        ("404", Some(("http_404", false, None))),
        ("500", Some(("http_500", true, None))),
        ("502", Some(("http_502", true, None))),
        ("503", Some(("http_503", true, None))),
        ("later", Some(("http_429", true, Some(Span::from_secs(7))))),
        ("moved", Some(("http_302", false, None))),
    ];
    for (path, expected) in table {
        let report = report(run(&format!("{base}/{path}"), "GET")).await;
        match expected {
            None => assert!(matches!(report.ending, Ending::Succeeded(_)), "{path}"),
            Some((kind, retryable, retry_after)) => {
                let failure = failure(&report);
                assert_eq!(failure.kind, kind);
                assert_eq!(failure.retryable, retryable, "{path}");
                assert_eq!(failure.retry_after, retry_after, "{path}");
            }
        }
    }
}

#[tokio::test]
async fn a_large_answer_is_kept_in_part() {
    let base = serve().await;
    let output = report(run(&format!("{base}/large"), "GET")).await.output.unwrap();
    assert!(output.truncated);
    assert_eq!(output.text.len(), OUTPUT_BYTES_MAX);
}

#[tokio::test]
async fn a_call_ends_at_the_job_s_time_out_and_when_it_is_told_to() {
    let base = serve().await;
    let mut late = Run::clone(&run(&format!("{base}/silent"), "POST"));
    late.time_left = Some(Duration::from_millis(100));
    assert_eq!(failure(&report(Arc::new(late)).await).kind, "timeout");

    let (sender, stop) = stop_pair();
    let run = run(&format!("{base}/silent"), "POST");
    let call = tokio::spawn(HttpHandler::new().unwrap().run(run, stop));
    sender.stop(StopReason::Cancelled);
    assert!(matches!(call.await.unwrap().ending, Ending::Stopped));
}

#[tokio::test]
async fn a_call_that_cannot_be_made_says_why() {
    let nobody = report(run("http://127.0.0.1:1/", "GET")).await;
    assert!(failure(&nobody).retryable);
    assert!(failure(&nobody).message.contains("refused"), "{}", failure(&nobody).message);
    let nonsense = report(run("not a url", "GET")).await;
    assert!(!failure(&nonsense).retryable);
}
