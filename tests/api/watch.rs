//! Fires as they change, as a stream of events that can be resumed by index.

use serde_json::{Value, json};

use crate::api::node::{FIRES, Node};

/// One event, as text: its name, its id when it has one, and its data.
#[derive(Debug)]
struct Event {
    name: String,
    id: Option<u64>,
    data: Value,
}

struct Stream {
    response: reqwest::Response,
    text: String,
}

impl Stream {
    async fn open(node: &Node, last: Option<u64>) -> Stream {
        let mut request = node.request("GET", &format!("{FIRES}:watch"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        Stream { response, text: String::new() }
    }

    async fn next(&mut self) -> Event {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = parsed(event);
                self.text = rest.to_owned();
                if let Some(event) = event {
                    return event;
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap().expect("the stream goes on");
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

/// `None` for a comment.
fn parsed(text: &str) -> Option<Event> {
    let field = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
    };
    Some(Event {
        name: field("event")?,
        id: field("id").map(|id| id.parse().unwrap()),
        data: serde_json::from_str(&field("data")?).unwrap(),
    })
}

#[tokio::test]
async fn a_watcher_sees_each_change_and_goes_on_from_where_it_was() {
    let node = Node::start().await;
    node.put_job("backup", &json!({"overlap": "allow"})).await;
    let mut stream = Stream::open(&node, None).await;
    let first = node.fire("backup").await;
    let event = stream.next().await;
    assert_eq!((event.name.as_str(), &event.data["id"]), ("fire", &json!(first)));
    assert_eq!(event.data["state"], "ready");
    let id = event.id.unwrap();
    assert_eq!(event.data["recorded_index"], id);
    drop(stream);

    node.post(&format!("{FIRES}/{first}:cancel")).await;
    let second = node.fire("backup").await;
    let mut stream = Stream::open(&node, Some(id)).await;
    let event = stream.next().await;
    assert_eq!((&event.data["id"], &event.data["state"]), (&json!(first), &json!("cancelled")));
    assert!(event.id.unwrap() > id);
    assert_eq!(stream.next().await.data["id"], second);
}

#[tokio::test]
async fn a_watcher_that_asks_for_too_long_ago_is_told_of_the_gap() {
    let node = Node::start().await;
    let mut stream = Stream::open(&node, Some(0)).await;
    let event = stream.next().await;
    assert_eq!((event.name.as_str(), &event.data["after_index"]), ("gap", &json!(0)));
    assert!(event.data["before_index"].as_u64() > Some(1));
    let bad = node.request("GET", &format!("{FIRES}:watch")).header("last-event-id", "x");
    assert_eq!(node.send(bad).await.text("/errors/0/pointer"), "Last-Event-ID");
}

#[tokio::test]
async fn a_node_that_closes_ends_its_watches() {
    let node = Node::start().await;
    let mut stream = Stream::open(&node, None).await;
    node.close();
    assert_eq!(stream.response.chunk().await.unwrap(), None);
}
