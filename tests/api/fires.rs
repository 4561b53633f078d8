//! Fires on request: overlap, idempotency, delay, cancelling, listing.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::node::{Answer, FIRES, JOBS, Node};

async fn fire_with_key(node: &Node, job: &str, key: &str, body: &Value) -> Answer {
    let path = format!("{JOBS}/{job}:fire");
    node.send(node.request("POST", &path).json(body).header("idempotency-key", key)).await
}

/// O03: a manual fire counts as one.
#[tokio::test]
async fn a_fire_beside_an_open_one_is_a_conflict_that_names_it() {
    let node = Node::start().await;
    node.put_job("backup", &json!({})).await;
    let path = format!("{JOBS}/backup:fire");
    let made = node.post(&path).await;
    assert_eq!((made.status, made.text("/state")), (201, "ready"), "{made:?}");
    let id = made.text("/id");
    assert_eq!(made.header("location"), format!("{FIRES}/{id}"));
    let refused = node.post(&path).await;
    assert_eq!((refused.status, refused.code()), (409, "overlap"));
    assert_eq!(refused.text("/fire"), id);
    let beside = node.call("POST", &path, &json!({"allow_overlap": true})).await;
    assert_eq!(beside.status, 201, "{beside:?}");
}

/// D13: many callers, one key, one fire.
#[tokio::test]
async fn fifty_calls_with_one_key_make_one_fire() {
    let node = Node::start().await;
    node.put_job("backup", &json!({"overlap": "allow"})).await;
    let body = json!({"payload": {"n": 1}});
    let calls = (0..50).map(|_| fire_with_key(&node, "backup", "order-1", &body));
    let answers = futures_util::future::join_all(calls).await;
    let ids: BTreeSet<&str> = answers.iter().map(|answer| answer.text("/id")).collect();
    assert!(answers.iter().all(|answer| answer.status == 201));
    assert_eq!(ids.len(), 1);
    let listed = node.get(FIRES).await;
    assert_eq!(listed.body["items"].as_array().map(Vec::len), Some(1));
    let other = fire_with_key(&node, "backup", "order-1", &json!({"payload": {"n": 2}})).await;
    assert_eq!((other.status, other.code()), (422, "idempotency-key-reused"));
    let too_long = fire_with_key(&node, "backup", &"k".repeat(256), &body).await;
    assert_eq!((too_long.status, too_long.text("/errors/0/pointer")), (400, "Idempotency-Key"));
    assert_eq!(too_long.body["errors"][0]["limit"], 255);
}

#[tokio::test]
async fn a_delayed_fire_waits_and_can_be_cancelled() {
    let node = Node::start().await;
    node.put_job("backup", &json!({})).await;
    let path = format!("{JOBS}/backup:fire");
    let made = node.call("POST", &path, &json!({"delay": "1h", "payload": [1, 2.0]})).await;
    assert_eq!((made.text("/state"), made.text("/waiting_for")), ("waiting", "due"), "{made:?}");
    let fire = format!("{FIRES}/{}", made.text("/id"));
    let cancelled = node.post(&format!("{fire}:cancel")).await;
    assert_eq!(cancelled.text("/state"), "cancelled", "{cancelled:?}");
    let read = node.get(&fire).await;
    assert_eq!(read.text("/state"), "cancelled");
    assert_eq!(read.body["payload"], json!([1, 2.0]));
    let again = node.post(&format!("{fire}:cancel")).await;
    assert_eq!((again.status, again.code()), (409, "fire-ended"), "{again:?}");
    assert_eq!(node.get(&format!("{FIRES}/1-1")).await.code(), "unknown-fire");
    assert_eq!(node.get(&format!("{FIRES}/xyz")).await.code(), "invalid-path");
}

#[tokio::test]
async fn open_and_ended_fires_are_one_list_newest_first() {
    let node = Node::start().await;
    node.put_job("a", &json!({"overlap": "allow"})).await;
    node.put_job("b", &json!({"overlap": "allow"})).await;
    let mut made = Vec::new();
    for number in 0..12 {
        let id = node.fire(if number % 3 == 0 { "b" } else { "a" }).await;
        if number % 2 == 0 {
            assert_eq!(node.post(&format!("{FIRES}/{id}:cancel")).await.status, 200);
        }
        made.push(id);
    }
    made.reverse();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = node.get(&format!("{FIRES}?limit=5{cursor}")).await.body;
        seen.extend(ids(&page));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, made);
    let of_b = node.get(&format!("{FIRES}?job=g/b")).await.body;
    let every_third: Vec<&String> = made.iter().skip(2).step_by(3).collect();
    assert_eq!(ids(&of_b).iter().collect::<Vec<_>>(), every_third);
    let ended = node.get(&format!("{FIRES}?state=cancelled")).await.body;
    assert_eq!(ids(&ended).len(), 6);
    let ready = node.get(&format!("{FIRES}?state=ready&job=g/a")).await.body;
    assert_eq!(ids(&ready).len(), 4);
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}
