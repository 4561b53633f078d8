//! The pull side over HTTP: registering, taking work, extending, answering.

use futures_util::future::select;
use serde_json::{Value, json};

use crate::api::node::{Answer, FIRES, JOBS, Node};

async fn acquire(node: &Node, worker: &str, body: &Value) -> Answer {
    let answer = node.call("POST", &format!("{worker}:acquire"), body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

/// The one grant that a worker gets when it waits for it.
async fn one_grant(node: &Node, worker: &str) -> Value {
    let answer = acquire(node, worker, &json!({"max": 1, "wait": "20s"})).await;
    let grants = answer.body["grants"].as_array().unwrap();
    assert_eq!(grants.len(), 1, "{answer:?}");
    grants[0].clone()
}

async fn answer(node: &Node, worker: &str, grant: &Value, outcome: &str) -> Value {
    let answers = json!([{"run": grant["run"], "token": grant["token"], "outcome": outcome,
        "result": {"rows": 3}, "output": "done\n", "exit_code": 0,
        "error": {"kind": "exit", "message": "code 1"}}]);
    let body = json!({"answers": answers});
    let answer = node.call("POST", &format!("{worker}:answer"), &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body["verdicts"][0].clone()
}

#[tokio::test]
async fn a_waiting_worker_gets_a_fire_with_all_it_needs_and_ends_it() {
    let node = Node::start().await;
    node.put_job("backup", &json!({"payload": {"a": 1}, "labels": {"team": "db"}})).await;
    let worker = node.register(2).await;
    let (grant, fire) = tokio::join!(one_grant(&node, &worker), node.fire("backup"));
    assert_eq!(grant["fire"], fire);
    assert_eq!((&grant["job"], &grant["attempt"]), (&json!("backup"), &json!(1)));
    assert_eq!(grant["payload"], json!({"a": 1}));
    assert_eq!(grant["lease"], json!({"ttl": "30s", "extend_every": "10s"}));
    assert_eq!(grant["labels"]["team"], "db");

    let runs = json!({"runs": [{"run": grant["run"], "token": grant["token"]}]});
    let extended = node.call("POST", &format!("{worker}:extend"), &runs).await;
    assert_eq!(extended.body["verdicts"][0]["verdict"], "extended", "{extended:?}");
    let verdict = answer(&node, &worker, &grant, "succeeded").await;
    assert_eq!((&verdict["verdict"], &verdict["state"]), (&json!("taken"), &json!("succeeded")));

    let ended = node.get(&format!("{FIRES}/{fire}")).await;
    let attempt = &ended.body["attempts"][0];
    assert_eq!(attempt["outcome"], "succeeded", "{ended:?}");
    assert_eq!((&attempt["result"], &attempt["output"]), (&json!({"rows": 3}), &json!("done\n")));
    assert_eq!(attempt["token"], grant["token"]);
}

/// D11: the first report's answer was lost, so the worker reports again.
#[tokio::test]
async fn a_repeated_answer_changes_nothing_and_is_no_error() {
    let node = Node::start().await;
    node.put_job("backup", &json!({})).await;
    let worker = node.register(1).await;
    node.fire("backup").await;
    let grant = one_grant(&node, &worker).await;
    answer(&node, &worker, &grant, "succeeded").await;
    let again = answer(&node, &worker, &grant, "succeeded").await;
    assert_eq!((&again["verdict"], &again["state"]), (&json!("already"), &json!("succeeded")));
    let mut other = grant.clone();
    other["token"] = json!(1);
    assert_eq!(answer(&node, &worker, &other, "succeeded").await["verdict"], "stale");
    other["run"] = json!("1-1.1");
    assert_eq!(answer(&node, &worker, &other, "succeeded").await["verdict"], "not_found");
}

#[tokio::test]
async fn a_stale_token_changes_nothing_and_is_counted() {
    let node = Node::start().await;
    node.put_job("backup", &json!({})).await;
    let worker = node.register(1).await;
    let fire = node.fire("backup").await;
    let first = one_grant(&node, &worker).await;
    answer(&node, &worker, &first, "released").await;
    let second = one_grant(&node, &worker).await;
    assert!(second["token"].as_u64() > first["token"].as_u64());
    let stale = answer(&node, &worker, &first, "succeeded").await;
    assert_eq!((&stale["verdict"], &stale["current_token"]), (&json!("stale"), &second["token"]));
    let runs = json!({"runs": [{"run": first["run"], "token": first["token"]}]});
    let extended = node.call("POST", &format!("{worker}:extend"), &runs).await;
    assert_eq!(extended.body["verdicts"][0]["verdict"], "stale", "{extended:?}");
    let read = node.get(&format!("{FIRES}/{fire}")).await;
    assert_eq!((read.text("/state"), &read.body["fenced_count"]), ("running", &json!(1)));
}

#[tokio::test]
async fn a_grant_is_handed_out_again_until_the_worker_holds_it() {
    let node = Node::start().await;
    node.put_job("backup", &json!({})).await;
    let worker = node.register(2).await;
    node.fire("backup").await;
    let grant = one_grant(&node, &worker).await;
    // As if the answer had been lost on its way.
    let again = one_grant(&node, &worker).await;
    assert_eq!((&again["run"], &again["token"]), (&grant["run"], &grant["token"]));
    let holding = json!({"max": 1, "holding": [grant["run"]]});
    assert_eq!(acquire(&node, &worker, &holding).await.body["grants"], json!([]));
}

#[tokio::test]
async fn a_newer_poll_ends_the_older_one_of_its_worker() {
    let node = Node::start().await;
    node.put_job("backup", &json!({})).await;
    let worker = node.register(1).await;
    let wait = json!({"max": 1, "wait": "30s"});
    let polls = [(); 2].map(|()| Box::pin(acquire(&node, &worker, &wait)));
    let [one, another] = polls;
    // Nothing is there to be granted, so that the one that ends first was ended by the other.
    let (ended, newer) = select(one, another).await.factor_first();
    assert_eq!(ended.body["grants"], json!([]));
    let (newer, _) = tokio::join!(newer, node.fire("backup"));
    assert_eq!(newer.body["grants"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn work_granted_to_a_poll_that_nobody_listens_to_is_not_held_up() {
    let node = Node::start().await;
    node.put_job("backup", &json!({})).await;
    let gone = node.register(1).await;
    let other = node.register(1).await;
    let poll = node
        .request("POST", &format!("{gone}:acquire"))
        .json(&json!({"max": 1, "wait": "60s"}))
        .timeout(std::time::Duration::from_millis(300));
    assert!(poll.send().await.is_err_and(|error| error.is_timeout()));
    let fire = node.fire("backup").await;
    // Its lease would keep it for thirty seconds.
    let grant = one_grant(&node, &other).await;
    assert_eq!(grant["fire"], fire);
}

#[tokio::test]
async fn a_node_that_closes_lets_its_polls_go() {
    let node = Node::start().await;
    let worker = node.register(1).await;
    let wait = json!({"max": 1, "wait": "60s"});
    let poll = acquire(&node, &worker, &wait);
    let close = async {
        node.get("/readyz").await;
        node.close();
    };
    let limit = std::time::Duration::from_secs(30);
    let (answer, ()) =
        tokio::time::timeout(limit, async { tokio::join!(poll, close) }).await.unwrap();
    assert_eq!(answer.body["grants"], json!([]));
}

#[tokio::test]
async fn a_worker_that_is_not_known_is_asked_to_register_again() {
    let node = Node::start().await;
    let worker = node.register(1).await;
    assert_eq!(node.send(node.request("DELETE", &worker)).await.status, 204);
    let poll = node.call("POST", &format!("{worker}:acquire"), &json!({"max": 1})).await;
    assert_eq!((poll.status, poll.code()), (404, "unknown-worker"));
    let extend = node.call("POST", &format!("{worker}:extend"), &json!({"runs": []})).await;
    assert_eq!(extend.code(), "unknown-worker");
}

#[tokio::test]
async fn a_draining_worker_gets_no_more_work() {
    let node = Node::start().await;
    node.put_job("backup", &json!({})).await;
    let worker = node.register(1).await;
    let drained = node.post(&format!("{worker}:drain")).await;
    assert_eq!(drained.text("/state"), "draining", "{drained:?}");
    node.fire("backup").await;
    let none = acquire(&node, &worker, &json!({"max": 1, "wait": "1s"})).await;
    assert_eq!(none.body["grants"], json!([]));
}

#[tokio::test]
async fn a_failed_attempt_shows_its_error_and_what_comes_next() {
    let node = Node::start().await;
    let retry = json!({"attempts": 2, "first_delay": "1h"});
    node.put_job("backup", &json!({"retry": retry})).await;
    let worker = node.register(1).await;
    let fire = node.fire("backup").await;
    let grant = one_grant(&node, &worker).await;
    let verdict = answer(&node, &worker, &grant, "failed").await;
    assert_eq!(verdict["state"], "waiting");
    let read = node.get(&format!("{FIRES}/{fire}")).await;
    assert_eq!(read.text("/waiting_for"), "retry");
    let error = json!({"kind": "exit", "message": "code 1"});
    assert_eq!(read.body["attempts"][0]["error"], error);
    let stats = node.get(&format!("{JOBS}/backup")).await;
    assert_eq!(stats.body["open_fires"], 1);
}
