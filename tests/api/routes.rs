//! All routes by class, from the table that the router is built from.

use horolog::api::ROUTES;
use serde_json::Value;

use crate::api::node::Node;

/// The path with every named part filled in.
fn filled(path: &str) -> String {
    let parts = [
        ("{tenant}", "default"),
        ("{group}", "g"),
        ("{job}", "j"),
        ("{trigger}", "t"),
        ("{fire}", "1-1"),
        ("{worker}", "1"),
        ("{member}", "999"),
    ];
    parts.iter().fold(path.to_owned(), |path, (part, value)| path.replace(part, value))
}

#[tokio::test]
async fn every_route_refuses_other_methods_and_names_its_own() {
    let node = Node::start().await;
    for route in ROUTES {
        let answer = node.send(node.request("PATCH", &filled(route.path))).await;
        assert_eq!(answer.status, 405, "{}", route.path);
        assert_eq!(answer.code(), "method-not-allowed");
        let allow: Vec<&str> = answer.header("allow").split(", ").collect();
        for other in ROUTES.iter().filter(|other| other.path == route.path) {
            assert!(allow.contains(&other.method), "{} {allow:?}", route.path);
        }
    }
}

#[tokio::test]
async fn what_is_not_served_is_a_problem_that_says_so() {
    let node = Node::start().await;
    let paths = [
        "/",
        "/v2/tenants",
        "/v1/tenants/",
        "/v1/tenants/default/jobs/g/j:explode",
        "/v1/tenants/default/jobs/g/j:",
        "/v1/tenants/default/fires:explode",
        "/v1/tenants/default/groups/g",
    ];
    for path in paths {
        let answer = node.get(path).await;
        assert_eq!((answer.status, answer.code()), (404, "no-such-route"), "{path}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert_eq!(answer.body["status"], answer.status);
    }
    // The last colon is the verb's, so that the other one belongs to a name that cannot be.
    let answer = node.post("/v1/tenants/default/jobs/g/j:fire:fire").await;
    assert_eq!((answer.status, answer.code()), (400, "invalid-path"));
}

#[tokio::test]
async fn every_route_refuses_a_parameter_that_it_does_not_take() {
    let node = Node::start().await;
    for route in ROUTES {
        let path = format!("{}?bogus=1", filled(route.path));
        let answer = node.send(node.request(route.method, &path)).await;
        assert_eq!((answer.status, answer.code()), (400, "invalid-query"), "{path}");
        assert_eq!(answer.text("/errors/0/pointer"), "?bogus");
    }
}

#[tokio::test]
async fn every_answer_says_which_index_it_belongs_to() {
    let node = Node::start().await;
    for route in ROUTES.iter().filter(|route| !route.path.ends_with(":watch")) {
        let answer = node.send(node.request(route.method, &filled(route.path))).await;
        let index: u64 = answer.header("horolog-index").parse().unwrap();
        assert!(index > 0, "{} {}", route.method, route.path);
        assert!(answer.status < 500, "{} {}: {answer:?}", route.method, route.path);
    }
}

#[tokio::test]
async fn a_node_says_how_it_is_and_what_it_serves() {
    let node = Node::start().await;
    for path in ["/livez", "/readyz"] {
        assert_eq!(node.get(path).await.status, 200, "{path}");
    }
    let document = node.get("/v1/openapi.json").await;
    assert_eq!(document.body["openapi"].as_str().map(|version| &version[..3]), Some("3.1"));
    let cluster = node.get("/v1/cluster").await;
    assert_eq!(cluster.body["leader"], cluster.body["node"]);
    assert_eq!(cluster.body["members"].as_array().map(Vec::len), Some(1));
    assert!(!node.get("/v1/version").await.text("/tzdata").is_empty());
    let Value::String(metrics) = node.get("/metrics").await.body else { panic!("no text") };
    assert!(
        metrics.contains("http_requests_total{method=\"GET\",route=\"/readyz\",status=\"200\"}")
    );
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let node = Node::start().await;
    let answer = node.send(node.request("HEAD", "/v1/tenants")).await;
    assert_eq!((answer.status, answer.body), (200, Value::String(String::new())));
}
