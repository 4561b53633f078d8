//! What the edge refuses in a body, and what it makes of what is left out.

use serde_json::{Value, json};

use crate::api::from_wire::job::{fire_draft, job_draft};
use crate::api::from_wire::trigger::trigger;
use crate::api::from_wire::work::{answers, ask, worker_spec};
use crate::base::limits;
use crate::base::time::Span;
use crate::model::id::{Seq, WorkerId};
use crate::model::job::{Executor, JobSpec};
use crate::model::policy::{Misfire, Overlap, RetryPolicy};
use crate::service::error::{ErrorKind, FieldError, ServiceError};
use crate::service::jobs::JobDraft;

fn read<T: serde::de::DeserializeOwned>(body: &Value) -> T {
    serde_json::from_str(&body.to_string()).unwrap()
}

fn job(body: &Value) -> Result<JobDraft, ServiceError> {
    job_draft(&read(body))
}

fn errors<T: std::fmt::Debug>(outcome: Result<T, ServiceError>) -> Vec<FieldError> {
    match outcome.unwrap_err().kind {
        ErrorKind::Invalid(errors) => errors,
        other => panic!("{other:?}"),
    }
}

fn pointers<T: std::fmt::Debug>(outcome: Result<T, ServiceError>) -> Vec<String> {
    errors(outcome).into_iter().map(|error| error.pointer).collect()
}

#[test]
fn what_a_job_leaves_out_has_its_default() {
    let draft = job(&json!({"executor": {"worker": {}}})).unwrap();
    assert_eq!(draft.spec.executor, Executor::Worker);
    assert_eq!(draft.spec.payload.as_str(), "null");
    assert_eq!(draft.spec.pool.as_str(), "default");
    assert_eq!(draft.spec.priority, JobSpec::PRIORITY_DEFAULT);
    assert_eq!(draft.spec.overlap, Overlap::Skip);
    assert_eq!(draft.spec.retry, RetryPolicy::default());
    assert_eq!(draft.spec.timeout.start_to_finish, None);
    assert_eq!(draft.spec.lease_ttl, limits::LEASE_TTL_DEFAULT);
    assert!(draft.triggers.is_none());
}

#[test]
fn all_wrong_fields_of_a_job_are_named_at_once() {
    let body = json!({
        "description": "d".repeat(limits::TEXT_BYTES_MAX + 1),
        "executor": {"command": {"argv": [], "env": {"A=B": "x", "N": "a\u{0}"}}},
        "payload": "p".repeat(limits::PAYLOAD_BYTES_MAX),
        "pool": "夜间对账",
        "priority": 10,
        "overlap": {"allow": {"max": 0}},
        "retry": {"attempts": 0, "first_delay": "soon", "factor": 0.5, "max_delay": "1000000w"},
        "timeout": "-5s",
        "lease": "10ms",
        "history": 0,
        "labels": {"a/b": "x"},
        "triggers": {
            "/users/x": {"schedule": {"every": {"interval": "0s"}}},
            "b": {"schedule": {"at": "tomorrow"}, "misfire": {"grace": "x", "count": 0}},
        },
    });
    let expected = [
        "/description",
        "/executor/command/argv",
        "/executor/command/env/A=B",
        "/executor/command/env/N",
        "/labels/a~1b",
        "/lease",
        "/overlap/allow/max",
        "/payload",
        "/pool",
        "/priority",
        "/retry/attempts",
        "/retry/factor",
        "/retry/first_delay",
        "/retry/max_delay",
        "/history",
        "/timeout",
        "/triggers/b/misfire/count",
        "/triggers/b/misfire/grace",
        "/triggers/b/schedule/at",
        "/triggers/~1users~1x",
        "/triggers/~1users~1x/schedule/every/interval",
    ];
    let mut found = pointers(job(&body));
    let mut expected = expected.map(str::to_owned).to_vec();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_limit_that_was_met_is_named_in_the_refusal() {
    let long = "n".repeat(limits::NAME_BYTES_MAX + 1);
    let table = [
        (json!({"executor": {"worker": {}}, "pool": long}), limits::NAME_BYTES_MAX as u64),
        (json!({"executor": {"worker": {}}, "priority": 10}), 9),
        (json!({"executor": {"worker": {}}, "lease": "2h"}), 3_600),
    ];
    for (body, limit) in table {
        let errors = errors(job(&body));
        assert_eq!(errors[0].limit, Some(limit), "{}", errors[0].detail);
        assert!(errors[0].detail.contains(&limit.to_string()) || limit == 3_600, "{errors:?}");
    }
}

#[test]
fn urls_and_headers_that_http_cannot_carry_are_refused() {
    for url in ["", "example.com", "ftp://example.com", "http://", "https:///x", "http://a b"] {
        let body = json!({"executor": {"http": {"url": url}}});
        assert_eq!(pointers(job(&body)), ["/executor/http/url"], "{url}");
    }
    let body = json!({"executor": {"http": {"url": "http://a", "headers": {"A b": "x"}}}});
    assert_eq!(pointers(job(&body)), ["/executor/http/headers/A b"]);
    let body = json!({"executor": {"http": {"url": "http://a:8080/x?y=1"}}});
    assert!(job(&body).is_ok());
}

#[test]
fn the_factor_is_kept_in_hundredths() {
    for (factor, percent) in [(1.0, 100), (1.5, 150), (2.0, 200), (1.29, 129), (100.0, 10_000)] {
        let body = json!({"executor": {"worker": {}}, "retry": {"factor": factor}});
        assert_eq!(job(&body).unwrap().spec.retry.factor_percent, percent);
    }
}

#[test]
fn what_a_trigger_leaves_out_has_its_default() {
    let body = json!({"schedule": {"every": {"interval": "PT5M"}}});
    let draft = trigger(&read(&body)).unwrap();
    assert_eq!(draft.misfire, Misfire::default());
    assert_eq!(draft.payload, None);
}

#[test]
fn a_fire_has_one_time_at_most() {
    let both = json!({"at": "2026-12-01T00:00:00Z", "delay": "5m"});
    assert_eq!(pointers(fire_draft(&read(&both))), ["/delay"]);
    assert_eq!(pointers(fire_draft(&read(&json!({"delay": "-1s"})))), ["/delay"]);
    assert!(fire_draft(&read(&json!({}))).is_ok());
}

#[test]
fn workers_say_what_they_can_run() {
    let body = json!({"name": "a b", "pools": [], "executors": [], "slots": 0});
    let mut found = pointers(worker_spec(&read(&body)));
    found.sort();
    assert_eq!(found, ["/executors", "/name", "/pools", "/slots"]);
    let spec = worker_spec(&read(&json!({"name": "w", "slots": 4}))).unwrap();
    assert_eq!((spec.pools.len(), spec.executors.len()), (1, 1));
}

#[test]
fn a_poll_waits_no_longer_than_the_limit() {
    let worker = WorkerId(Seq::new(1, 0));
    let body = json!({"max": 0, "wait": "61s", "holding": ["1-1"]});
    let mut found = pointers(ask(worker, &read(&body)));
    found.sort();
    assert_eq!(found, ["/holding/0", "/max", "/wait"]);
    let taken = ask(worker, &read(&json!({"max": 1, "wait": "60s", "holding": ["1-1.1"]})));
    assert_eq!(taken.unwrap().wait, Span::from_secs(60));
}

#[test]
fn long_texts_of_an_answer_are_cut_and_a_long_result_is_refused() {
    let long = "x".repeat(limits::OUTPUT_BYTES_MAX + 1);
    let answer = |result: &str| {
        json!({"answers": [{"run": "1-1.1", "token": 7, "outcome": "failed", "output": long,
            "result": result, "error": {"kind": long, "message": long}}]})
    };
    let taken = answers(&read(&answer("ok"))).unwrap();
    assert!(taken[0].report.output_truncated);
    assert_eq!(taken[0].report.output.as_ref().unwrap().len(), limits::OUTPUT_BYTES_MAX);
    assert_eq!(taken[0].report.error_message.as_ref().unwrap().len(), limits::ERROR_BYTES_MAX);
    assert_eq!(pointers(answers(&read(&answer(&long)))), ["/answers/0/result"]);
}
