//! Jobs and triggers: put, read, list, pause, delete.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::node::{JOBS, Node};

#[tokio::test]
async fn a_job_is_created_replaced_and_left_alone_by_its_own_definition() {
    let node = Node::start().await;
    let path = format!("{JOBS}/backup");
    let body = json!({
        "executor": {"command": {"argv": ["/bin/true"]}},
        "payload": {"n": 1.50},
        "triggers": {"nightly": {"schedule": {"cron": {"expression": "0 2 * * *"}}}},
    });
    let made = node.call("PUT", &path, &body).await;
    assert_eq!((made.status, made.header("etag")), (201, "\"1\""), "{made:?}");
    let read = node.get(&path).await;
    assert_eq!((read.status, read.header("etag")), (200, "\"1\""));
    assert_eq!(read.body["spec"], made.body["spec"]);
    assert_eq!(read.body["spec"]["triggers"]["nightly"]["misfire"]["policy"], "fire_once");

    // What is read can be sent back, and that changes nothing.
    let again = node.call("PUT", &path, &read.body["spec"]).await;
    assert_eq!((again.status, again.header("etag")), (200, "\"1\""), "{again:?}");

    let mut changed = read.body["spec"].clone();
    changed["priority"] = json!(9);
    let fresh = node.request("PUT", &path).json(&changed).header("if-match", "\"1\"");
    let replaced = node.send(fresh).await;
    assert_eq!((replaced.status, replaced.header("etag")), (200, "\"2\""));
    let stale = node.request("PUT", &path).json(&body).header("if-match", "\"1\"");
    let refused = node.send(stale).await;
    assert_eq!((refused.status, refused.code()), (412, "revision-mismatch"));
    assert_eq!(refused.body["current_revision"], 2);
    assert_eq!(node.get(&path).await.body["spec"]["priority"], 9);
}

#[tokio::test]
async fn a_job_can_be_paused_resumed_and_deleted() {
    let node = Node::start().await;
    node.put_job("backup", &json!({})).await;
    let path = format!("{JOBS}/backup");
    assert_eq!(node.post(&format!("{path}:pause")).await.body["state"], "paused");
    assert_eq!(node.get("/v1/tenants/default/jobs?state=active").await.body["items"], json!([]));
    assert_eq!(node.post(&format!("{path}:resume")).await.body["state"], "active");
    assert_eq!(node.send(node.request("DELETE", &path)).await.status, 204);
    let gone = node.get(&path).await;
    assert_eq!((gone.status, gone.code()), (404, "unknown-job"));
    assert_eq!(node.post(&format!("{path}:pause")).await.code(), "unknown-job");
}

#[tokio::test]
async fn a_trigger_lives_inside_its_job_and_shows_its_coming_times() {
    let node = Node::start().await;
    node.put_job("backup", &json!({})).await;
    let path = format!("{JOBS}/backup/triggers/hourly");
    let body = json!({"schedule": {"every": {"interval": "1h"}}});
    let made = node.call("PUT", &path, &body).await;
    assert_eq!((made.status, made.header("etag")), (201, "\"1\""), "{made:?}");
    let times = node.get(&format!("{path}:preview?count=2&after=2026-12-01T00:30:00Z")).await;
    let expected = json!(["2026-12-01T01:00:00Z", "2026-12-01T02:00:00Z"]);
    assert_eq!(times.body["times"], expected);
    let paused = node.post(&format!("{path}:pause")).await;
    assert_eq!(paused.body["status"]["state"], "paused");
    let listed = node.get(&format!("{JOBS}/backup/triggers")).await;
    assert_eq!(listed.body["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(node.send(node.request("DELETE", &path)).await.status, 204);
    assert_eq!(node.get(&path).await.code(), "unknown-trigger");
}

#[tokio::test]
async fn a_schedule_can_be_looked_at_before_it_is_stored() {
    let node = Node::start().await;
    let cron = json!({"expression": "30 2 * * *", "timezone": "Europe/Berlin"});
    let body = json!({"schedule": {"cron": cron}, "after": "2026-03-28T12:00:00Z", "count": 2});
    let shown = node.call("POST", "/v1/schedules:preview", &body).await;
    let expected = json!(["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    assert_eq!(shown.body["times"], expected, "{shown:?}");
    let wrong = json!({"schedule": {"cron": {"expression": "* * *"}}});
    let refused = node.call("POST", "/v1/schedules:preview", &wrong).await;
    assert_eq!(refused.text("/errors/0/pointer"), "/schedule/cron/expression");
}

#[tokio::test]
async fn a_delay_is_stored_as_the_instant_it_leads_to() {
    let node = Node::start().await;
    let once = json!({"triggers": {"once": {"schedule": {"after": "30m"}}}});
    let made = node.put_job("later", &once).await;
    let at = made.text("/spec/triggers/once/schedule/at");
    assert!(at.starts_with("20") && at.ends_with('Z'), "{made:?}");
}

#[tokio::test]
async fn a_group_pauses_all_its_jobs_and_is_listed() {
    let node = Node::start().await;
    node.put_job("a", &json!({})).await;
    node.put_job("b", &json!({})).await;
    let paused = node.post("/v1/tenants/default/groups/g:pause").await;
    assert_eq!((paused.status, paused.text("/state")), (200, "paused"));
    let names = |answer: &Value| -> Vec<String> {
        let items = answer["items"].as_array().unwrap();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    node.call("PUT", "/v1/tenants/default/jobs/a/x", &json!({"executor": {"worker": {}}})).await;
    let first = node.get("/v1/tenants/default/groups?limit=1").await.body;
    assert_eq!(names(&first), ["a"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = node.get(&format!("/v1/tenants/default/groups?limit=1&cursor={cursor}")).await;
    assert_eq!(names(&second.body), ["g"]);
    assert_eq!(second.body["items"][0]["state"], "paused");
    assert_eq!(second.body.get("next_cursor"), None);
}

#[tokio::test]
async fn each_job_that_existed_throughout_a_listing_is_in_it_once() {
    let node = Node::start().await;
    for number in 0..25 {
        node.put_job(&format!("stays-{number:02}"), &json!({})).await;
        node.put_job(&format!("goes-{number:02}"), &json!({})).await;
    }
    let (mut seen, mut cursor, mut round) = (Vec::new(), String::new(), 0);
    loop {
        let after = if cursor.is_empty() { String::new() } else { format!("&cursor={cursor}") };
        let page = node.get(&format!("/v1/tenants/default/jobs?limit=7{after}")).await.body;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 7);
        seen.extend(items.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        node.send(node.request("DELETE", &format!("{JOBS}/goes-{round:02}"))).await;
        node.put_job(&format!("a-new-{round:02}"), &json!({})).await;
        node.put_job(&format!("z-new-{round:02}"), &json!({})).await;
        round += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "a job is listed twice: {seen:?}");
    let stayed = seen.iter().filter(|name| name.starts_with("stays-")).count();
    assert_eq!(stayed, 25, "{seen:?}");
}

#[tokio::test]
async fn a_read_is_never_older_than_the_index_a_caller_has_seen() {
    let node = Node::start().await;
    let made = node.put_job("backup", &json!({})).await;
    let index = made.header("horolog-index").to_owned();
    let path = format!("{JOBS}/backup?read=local");
    let read = node.send(node.request("GET", &path).header("horolog-index", &index)).await;
    assert_eq!(read.status, 200);
    let of = |text: &str| text.parse::<u64>().unwrap();
    assert!(of(read.header("horolog-index")) >= of(&index));
    assert_eq!(read.header("horolog-lag"), "0");
}

#[tokio::test]
async fn a_tenant_keeps_its_jobs_to_itself_and_is_deleted_only_when_empty() {
    let node = Node::start().await;
    let made = node.call("PUT", "/v1/tenants/acme", &json!({"description": "d"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let job = json!({"executor": {"worker": {}}});
    assert_eq!(node.call("PUT", "/v1/tenants/acme/jobs/g/j", &job).await.status, 201);
    assert_eq!(node.get("/v1/tenants/default/jobs").await.body["items"], json!([]));
    let delete = || node.request("DELETE", "/v1/tenants/acme");
    assert_eq!(node.send(delete()).await.code(), "tenant-not-empty");
    node.send(node.request("DELETE", "/v1/tenants/acme/jobs/g/j")).await;
    assert_eq!(node.send(delete()).await.status, 204);
    let protected = node.send(node.request("DELETE", "/v1/tenants/default")).await;
    assert_eq!((protected.status, protected.code()), (409, "tenant-protected"));
}
