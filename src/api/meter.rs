//! Counts calls and measures how long they take.

use std::time::Duration;

use axum::http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::base::metrics::{HTTP_REQUEST, HTTP_REQUESTS, Metric};

/// Half a millisecond to half a minute.
const BUCKETS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    method: &'static str,
    route: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Place {
    method: &'static str,
    route: &'static str,
}

pub(in crate::api) struct Meter {
    requests: Family<Outcome, Counter>,
    seconds: Family<Place, Histogram, fn() -> Histogram>,
}

impl Meter {
    pub(in crate::api) fn registered_in(registry: &mut Registry) -> Meter {
        let requests = Family::default();
        let constructor: fn() -> Histogram = || Histogram::new(BUCKETS);
        let seconds = Family::new_with_constructor(constructor);
        let Metric { name, help } = HTTP_REQUESTS;
        registry.register(name, help, requests.clone());
        let Metric { name, help } = HTTP_REQUEST;
        registry.register_with_unit(name, help, Unit::Seconds, seconds.clone());
        Meter { requests, seconds }
    }

    pub(in crate::api) fn count(
        &self,
        method: &Method,
        route: &'static str,
        status: u16,
        took: Duration,
    ) {
        let method = known(method);
        self.requests.get_or_create(&Outcome { method, route, status }).inc();
        self.seconds.get_or_create(&Place { method, route }).observe(took.as_secs_f64());
    }
}

/// One label for each method that some route takes, so that callers cannot make up new ones.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
