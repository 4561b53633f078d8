//! Job definitions as registers: written on any member, read on any other at once.

use serde_json::json;

use crate::cluster::firing::TENANT;
use crate::support::processes::Cluster;

/// P6: a read that begins after a write was acknowledged shows it, on every member.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_on_any_member_is_read_on_any_other_at_once() {
    let cluster = Cluster::start(3).await;
    let path = format!("{TENANT}/jobs/default/register");
    for round in 0..60 {
        let (writer, reader) = (round % 3, (round / 3) % 3);
        let text = format!("round {round}");
        let body = json!({"description": text, "executor": {"worker": {}}});
        let url = format!("{}{path}", cluster.base(writer));
        let written = cluster.http.put(&url, &body).await.unwrap();
        assert!(written.status < 300, "{}", written.body);
        let url = format!("{}{path}", cluster.base(reader));
        let read = cluster.http.get(&url).await.unwrap();
        assert_eq!(read.body["spec"]["description"], text, "round {round}: {}", read.body);
        assert!(read.index >= written.index, "round {round}");
    }
}

/// Two writers that start from the same revision: one wins, the other is told, whichever members
/// they ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_writers_from_one_revision_exactly_one_wins() {
    let cluster = Cluster::start(3).await;
    let path = format!("{TENANT}/jobs/default/contended");
    let body = |text: &str| json!({"description": text, "executor": {"worker": {}}});
    let url = |position: usize| format!("{}{path}", cluster.base(position));
    let made = cluster.http.put(&url(0), &body("first")).await.unwrap();
    assert_eq!(made.status, 201, "{}", made.body);
    for round in 0..20 {
        let tag = cluster.http.etag(&url(round % 3)).await.unwrap();
        let (left, right) = (body(&format!("left {round}")), body(&format!("right {round}")));
        let (url_left, url_right) = (url(round % 3), url((round + 1) % 3));
        let (left, right) = tokio::join!(
            cluster.http.put_if_match(&url_left, &left, &tag),
            cluster.http.put_if_match(&url_right, &right, &tag),
        );
        let mut statuses = [left.unwrap().status, right.unwrap().status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412], "round {round}");
    }
}

/// D13: fifty requests at once with one idempotency key, on all members: one fire, fifty equal
/// answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_requests_with_one_idempotency_key_make_one_fire() {
    let cluster = Cluster::start(3).await;
    let job = format!("{TENANT}/jobs/default/keyed");
    let body = json!({"executor": {"worker": {}}, "overlap": "allow"});
    let made = cluster.http.put(&format!("{}{job}", cluster.base(0)), &body).await.unwrap();
    assert_eq!(made.status, 201, "{}", made.body);
    let urls: Vec<String> =
        (0..50).map(|number| format!("{}{job}:fire", cluster.base(number % 3))).collect();
    let empty = json!({});
    let calls = urls.iter().map(|url| cluster.http.post_keyed(url, &empty, "one-key"));
    let answers = futures_util::future::join_all(calls).await;
    let mut ids: Vec<String> = answers
        .into_iter()
        .map(|answer| {
            let answer = answer.unwrap();
            assert!(answer.status < 300, "{}", answer.body);
            answer.body["id"].as_str().unwrap().to_owned()
        })
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");

    let other = json!({"payload": 2});
    let url = format!("{}{job}:fire", cluster.base(1));
    let reused = cluster.http.post_keyed(&url, &other, "one-key").await.unwrap();
    assert_eq!(reused.status, 422, "{}", reused.body);
}
