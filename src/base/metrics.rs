//! The names, units and meanings of every metric, in one list; the exporter lives in `node`.

/// Prefix of every metric's name.
pub const PREFIX: &str = "horolog";

/// A metric as it is registered: without the prefix, the unit and the suffix of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
}

/// Counter by method, route and status.
pub const HTTP_REQUESTS: Metric =
    Metric { name: "http_requests", help: "Answered calls of the HTTP API" };
/// Histogram of seconds by method and route; long polls are in it with the time they waited.
pub const HTTP_REQUEST: Metric =
    Metric { name: "http_request", help: "Time from the head of a call to its answer" };
