//! Bad input of every class: a clear problem with the place and the limit, and nothing changed.

use horolog::base::limits;
use serde_json::{Value, json};

use crate::api::node::{JOBS, Node};

/// A request, and the problem it is answered with: status, code, pointer, limit.
struct Case {
    method: &'static str,
    path: String,
    headers: &'static [(&'static str, &'static str)],
    body: String,
    problem: (u16, &'static str, &'static str, Option<usize>),
}

const JSON: (&str, &str) = ("content-type", "application/json");

fn put(
    path: impl Into<String>,
    body: impl ToString,
    problem: (u16, &'static str, &'static str, Option<usize>),
) -> Case {
    let (path, body) = (path.into(), body.to_string());
    Case { method: "PUT", path, headers: &[JSON], body, problem }
}

fn job_with(fields: Value) -> Value {
    let mut body = json!({"executor": {"worker": {}}});
    for (key, value) in fields.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn names() -> Vec<Case> {
    let job = || job_with(json!({}));
    let long = "n".repeat(limits::NAME_BYTES_MAX + 1);
    let wrong =
        |path: String, pointer, limit| put(path, job(), (400, "invalid-path", pointer, limit));
    vec![
        wrong(format!("{JOBS}/{long}"), "{job}", Some(limits::NAME_BYTES_MAX)),
        wrong(format!("{JOBS}/%2Fusers%2Fx"), "{job}", None),
        wrong(format!("{JOBS}/夜间对账"), "{job}", None),
        wrong(format!("{JOBS}/a%00"), "{job}", None),
        wrong(format!("{JOBS}/.a"), "{job}", None),
        wrong("/v1/tenants/default/jobs/a%20b/j".to_owned(), "{group}", None),
        wrong(format!("{JOBS}/%ff"), "path", None),
        put("/v1/tenants/nowhere/jobs/g/j", job(), (404, "unknown-tenant", "", None)),
    ]
}

fn bodies() -> Vec<Case> {
    let path = format!("{JOBS}/new");
    let path = path.as_str();
    let cron = |expression: &str| {
        let schedule = json!({"cron": {"expression": expression}});
        job_with(json!({"triggers": {"t": {"schedule": schedule}}}))
    };
    let zone = json!({"cron": {"expression": "@daily", "timezone": "Mars/Olympus"}});
    let at = "/triggers/t/schedule/cron";
    let expression = "/triggers/t/schedule/cron/expression";
    let timezone = "/triggers/t/schedule/cron/timezone";
    assert!(expression.starts_with(at));
    vec![
        put(path, "{", (400, "malformed-json", "", None)),
        put(path, "", (400, "malformed-json", "", None)),
        put(path, "[]", (400, "wrong-field", "", None)),
        put(path, job_with(json!({"concurency": 1})), (400, "unknown-field", "/concurency", None)),
        put(path, job_with(json!({"priority": "high"})), (400, "wrong-field", "/priority", None)),
        put(path, job_with(json!({"priority": 10})), (422, "invalid", "/priority", Some(9))),
        put(path, job_with(json!({"lease": "10ms"})), (422, "invalid", "/lease", None)),
        put(path, job_with(json!({"overlap": "forbid"})), (400, "wrong-field", "/overlap", None)),
        put(path, cron("61 * * * *"), (422, "invalid", expression, None)),
        put(path, cron("0 0 31 2 *"), (422, "invalid", expression, None)),
        put(path, cron(""), (422, "invalid", expression, None)),
        put(
            path,
            cron(&"*".repeat(limits::CRON_BYTES_MAX + 1)),
            (422, "invalid", expression, Some(limits::CRON_BYTES_MAX)),
        ),
        put(
            path,
            job_with(json!({"triggers": {"t": {"schedule": zone}}})),
            (422, "invalid", timezone, None),
        ),
        put(
            path,
            job_with(json!({"payload": "p".repeat(limits::PAYLOAD_BYTES_MAX)})),
            (422, "invalid", "/payload", Some(limits::PAYLOAD_BYTES_MAX)),
        ),
        put(
            path,
            " ".repeat(limits::BODY_BYTES_MAX + 1),
            (413, "body-too-large", "", Some(limits::BODY_BYTES_MAX)),
        ),
    ]
}

fn headers() -> Vec<Case> {
    let path = format!("{JOBS}/there");
    let with = |headers, problem| Case {
        method: "PUT",
        path: path.clone(),
        headers,
        body: job_with(json!({"priority": 1})).to_string(),
        problem,
    };
    let media = (415, "unsupported-media-type", "", None);
    vec![
        with(&[("content-type", "text/plain")], media),
        with(&[], media),
        with(&[JSON, ("if-none-match", "*")], (412, "exists", "", None)),
        with(&[JSON, ("if-match", "\"99\"")], (412, "revision-mismatch", "", None)),
        with(&[JSON, ("if-match", "W/\"1\"")], (400, "invalid-header", "If-Match", None)),
        with(&[JSON, ("if-match", "7")], (400, "invalid-header", "If-Match", None)),
        with(
            &[JSON, ("if-match", "*"), ("if-none-match", "*")],
            (400, "invalid-header", "If-Match", None),
        ),
    ]
}

#[tokio::test]
async fn bad_input_is_refused_with_the_place_and_the_limit_and_changes_nothing() {
    let node = Node::start().await;
    node.put_job("there", &json!({})).await;
    let before = node.get("/v1/tenants/default/jobs").await.body;
    for case in names().into_iter().chain(bodies()).chain(headers()) {
        let mut request = node.request(case.method, &case.path).body(case.body.clone());
        for (name, value) in case.headers {
            request = request.header(*name, *value);
        }
        let answer = node.send(request).await;
        let shown = format!("{} {:.200}: {answer:?}", case.path, case.body);
        let (status, code, pointer, limit) = case.problem;
        assert_eq!((answer.status, answer.code()), (status, code), "{shown}");
        assert_eq!(answer.text("/errors/0/pointer"), pointer, "{shown}");
        let found = answer.body.pointer("/errors/0/limit").and_then(Value::as_u64);
        assert_eq!(found, limit.map(|limit| limit as u64), "{shown}");
        assert_eq!(answer.header("content-type"), "application/problem+json", "{shown}");
    }
    assert_eq!(node.get("/v1/tenants/default/jobs").await.body, before);
}

#[tokio::test]
async fn parameters_of_a_list_are_refused_by_name_and_limit() {
    let node = Node::start().await;
    let table = [
        ("jobs?limit=0", "?limit", Some(1_000)),
        ("jobs?limit=1001", "?limit", Some(1_000)),
        ("jobs?limit=ten", "?limit", None),
        ("jobs?state=asleep", "?state", None),
        ("jobs?group=a/b", "?group", None),
        ("jobs?read=stale", "?read", None),
        ("jobs?limit=1&limit=2", "?limit", None),
        ("fires?state=lost", "?state", None),
        ("fires?job=backup", "?job", None),
    ];
    for (path, pointer, limit) in table {
        let answer = node.get(&format!("/v1/tenants/default/{path}")).await;
        assert_eq!((answer.status, answer.code()), (400, "invalid-query"), "{path}");
        assert_eq!(answer.text("/errors/0/pointer"), pointer, "{path}");
        let found = answer.body.pointer("/errors/0/limit").and_then(Value::as_u64);
        assert_eq!(found, limit, "{path}");
    }
    let answer = node.get("/v1/tenants/default/jobs?cursor=zz").await;
    assert_eq!((answer.status, answer.text("/errors/0/pointer")), (422, "?cursor"));
}
