//! The HTTP API: axum at the edge.
//!
//! [`ROUTES`] is the whole of it on one screen. A call is taken apart (`extract`), its shapes
//! become nouns (`from_wire`), one use case of the service is called, and the result becomes shapes
//! again (`to_wire`) or a problem (`problem`). No handler decides anything, and none knows a status
//! code: `answer` and `problem` do.
//!
//! Actions are `:verb` at the end of a path. A router matches whole segments, so a last segment
//! that is a name is split here at its last colon, which no name holds.

mod answer;
mod cluster;
mod extract;
mod fires;
mod from_wire;
mod groups;
mod health;
mod jobs;
mod meter;
pub mod openapi;
mod problem;
mod tenants;
mod to_wire;
mod triggers;
mod watch;
mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::{HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::future::BoxFuture;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::api::answer::{Answer, INDEX};
use crate::api::extract::Call;
use crate::api::meter::Meter;
use crate::api::problem::{Problem, Refusal};
use crate::service::Service;
use crate::service::error::FieldError;

/// One route: what it is called with, and what answers.
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    /// Parameters that its query may have.
    pub parameters: &'static [&'static str],
    handler: fn(Call) -> BoxFuture<'static, Answer>,
}

/// No parameters.
const NONE: &[&str] = &[];
/// Of a read.
const READ: &[&str] = &["read"];
/// Of a list.
const LIST: &[&str] = &["read", "limit", "cursor"];
const JOBS: &[&str] = &["read", "limit", "cursor", "group", "name_prefix", "state"];
const FIRES: &[&str] = &["read", "limit", "cursor", "job", "state"];
const TIMES: &[&str] = &["read", "count", "after"];

macro_rules! routes {
    ($($method:ident $path:literal $parameters:ident => $module:ident::$handler:ident;)*) => {
        &[$(Route {
            method: stringify!($method),
            path: $path,
            parameters: $parameters,
            handler: |call| Box::pin($module::$handler(call)),
        }),*]
    };
}

/// Every route there is.
pub const ROUTES: &[Route] = routes! {
    GET    "/livez" NONE => health::live;
    GET    "/readyz" NONE => health::ready;
    GET    "/metrics" NONE => health::metrics;
    GET    "/v1/version" NONE => health::version;
    GET    "/v1/openapi.json" NONE => health::openapi;
    GET    "/v1/cluster" NONE => cluster::get;
    POST   "/v1/cluster:transfer-leadership" NONE => cluster::transfer;
    DELETE "/v1/cluster/members/{member}" NONE => cluster::remove;
    POST   "/v1/schedules:preview" NONE => triggers::preview_any;
    GET    "/v1/tenants" LIST => tenants::list;
    GET    "/v1/tenants/{tenant}" READ => tenants::get;
    PUT    "/v1/tenants/{tenant}" NONE => tenants::put;
    DELETE "/v1/tenants/{tenant}" NONE => tenants::delete;
    GET    "/v1/tenants/{tenant}/groups" LIST => groups::list;
    POST   "/v1/tenants/{tenant}/groups/{group}:pause" NONE => groups::pause;
    POST   "/v1/tenants/{tenant}/groups/{group}:resume" NONE => groups::resume;
    GET    "/v1/tenants/{tenant}/jobs" JOBS => jobs::list;
    GET    "/v1/tenants/{tenant}/jobs/{group}/{job}" READ => jobs::get;
    PUT    "/v1/tenants/{tenant}/jobs/{group}/{job}" NONE => jobs::put;
    DELETE "/v1/tenants/{tenant}/jobs/{group}/{job}" NONE => jobs::delete;
    POST   "/v1/tenants/{tenant}/jobs/{group}/{job}:pause" NONE => jobs::pause;
    POST   "/v1/tenants/{tenant}/jobs/{group}/{job}:resume" NONE => jobs::resume;
    POST   "/v1/tenants/{tenant}/jobs/{group}/{job}:fire" NONE => fires::request;
    GET    "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers" READ => triggers::list;
    GET    "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}" READ => triggers::get;
    PUT    "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}" NONE => triggers::put;
    DELETE "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}" NONE => triggers::delete;
    POST   "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}:pause"
               NONE => triggers::pause;
    POST   "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}:resume"
               NONE => triggers::resume;
    GET    "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}:preview"
               TIMES => triggers::preview;
    GET    "/v1/tenants/{tenant}/fires" FIRES => fires::list;
    GET    "/v1/tenants/{tenant}/fires:watch" READ => watch::fires;
    GET    "/v1/tenants/{tenant}/fires/{fire}" READ => fires::get;
    POST   "/v1/tenants/{tenant}/fires/{fire}:cancel" NONE => fires::cancel;
    GET    "/v1/tenants/{tenant}/workers" LIST => workers::list;
    POST   "/v1/tenants/{tenant}/workers" NONE => workers::register;
    DELETE "/v1/tenants/{tenant}/workers/{worker}" NONE => workers::remove;
    POST   "/v1/tenants/{tenant}/workers/{worker}:drain" NONE => workers::drain;
    POST   "/v1/tenants/{tenant}/workers/{worker}:acquire" NONE => workers::acquire;
    POST   "/v1/tenants/{tenant}/workers/{worker}:extend" NONE => workers::extend;
    POST   "/v1/tenants/{tenant}/workers/{worker}:answer" NONE => workers::answer;
};

/// What all calls share.
struct Edge {
    service: Service,
    registry: Registry,
    meter: Meter,
    /// The OpenAPI document, ready to be sent.
    openapi: Bytes,
}

/// The public routes over a service. `registry` holds the metrics of the other parts; those of the
/// calls are added to it, and all are shown at `/metrics`.
pub fn router(service: Service, mut registry: Registry) -> Router {
    let meter = Meter::registered_in(&mut registry);
    let openapi = Bytes::from(openapi::document());
    let edge = Arc::new(Edge { service, registry, meter, openapi });
    let mut router = Router::new();
    for place in places() {
        let (edge, place) = (edge.clone(), Arc::new(place));
        let path = place.path;
        let handler = move |request| serve(edge.clone(), place.clone(), request);
        router = router.route(path, any(handler));
    }
    router.fallback(move |request| nothing_here(edge.clone(), request))
}

/// All routes that a router cannot tell apart: they differ by method, and by a verb after a name.
struct Place {
    path: &'static str,
    /// The last segment is a name, so that a verb may follow it.
    takes_verb: bool,
    /// With their verbs; the empty one for none.
    routes: Vec<(&'static str, &'static Route)>,
}

fn places() -> Vec<Place> {
    let mut places: BTreeMap<&'static str, Place> = BTreeMap::new();
    for route in ROUTES {
        let takes_verb = last_segment(route.path).starts_with('{');
        let (path, verb) = match route.path.rsplit_once(':') {
            Some((path, verb)) if takes_verb => (path, verb),
            _ => (route.path, ""),
        };
        let place = Place { path, takes_verb, routes: Vec::new() };
        places.entry(path).or_insert(place).routes.push((verb, route));
    }
    places.into_values().collect()
}

fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

impl Place {
    /// The route for a method and a verb, and what may be said when there is none.
    fn find(&self, method: &Method, verb: &str, path: &str) -> Result<&'static Route, Refusal> {
        let mut allowed = Vec::new();
        let method = if method == Method::HEAD { "GET" } else { method.as_str() };
        for (_, route) in self.routes.iter().filter(|(of, _)| *of == verb) {
            if route.method == method {
                return Ok(route);
            }
            allowed.push(route.method);
            if route.method == "GET" {
                allowed.push("HEAD");
            }
        }
        if allowed.is_empty() {
            return Err(Refusal::NoRoute { path: path.chars().take(256).collect() });
        }
        Err(Refusal::Method { allow: allowed.join(", ") })
    }
}

async fn serve(edge: Arc<Edge>, place: Arc<Place>, request: Request) -> Response {
    let began = Instant::now();
    let (mut parts, body) = request.into_parts();
    let method = parts.method.clone();
    let traceparent = parts.headers.get("traceparent").cloned();
    let mut label = place.path;
    let outcome = async {
        let (path, verb) = path_of(&mut parts, &place).await?;
        let route = place.find(&parts.method, &verb, parts.uri.path())?;
        label = route.path;
        let call = Call::new(edge.clone(), parts, body, path, route.parameters)?;
        (route.handler)(call).await
    };
    let outcome = outcome.await;
    finish(&edge, &method, label, traceparent.as_ref(), began, outcome)
}

async fn nothing_here(edge: Arc<Edge>, request: Request) -> Response {
    let path = request.uri().path().chars().take(256).collect();
    let outcome = Err(Refusal::NoRoute { path }.into());
    finish(&edge, request.method(), "", None, Instant::now(), outcome)
}

/// The named parts of the path, and the verb behind the last one.
async fn path_of(
    parts: &mut axum::http::request::Parts,
    place: &Place,
) -> Result<(Vec<(String, String)>, String), Problem> {
    let params = RawPathParams::from_request_parts(parts, &()).await.map_err(|_| {
        let detail = "it holds an escape that is not UTF-8";
        Refusal::Path(FieldError::new("path", detail))
    })?;
    let mut path: Vec<(String, String)> =
        params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut verb = String::new();
    if place.takes_verb
        && let Some((_, last)) = path.last_mut()
        && let Some(colon) = last.rfind(':')
    {
        verb = last[colon + 1..].to_owned();
        last.truncate(colon);
        if verb.is_empty() {
            // Not the route without a verb: a colon was written.
            verb.push(':');
        }
    }
    Ok((path, verb))
}

/// Counts and logs a call, and marks its answer with the index that this member has applied.
fn finish(
    edge: &Edge,
    method: &Method,
    route: &'static str,
    traceparent: Option<&HeaderValue>,
    began: Instant,
    outcome: Answer,
) -> Response {
    if let Err(problem) = &outcome
        && let Some(context) = &problem.context
    {
        let status = problem.status().as_u16();
        tracing::warn!(%method, route, status, ?traceparent, context, "a call was not answered");
    }
    let mut response = outcome.unwrap_or_else(IntoResponse::into_response);
    let status = response.status().as_u16();
    let took = began.elapsed();
    edge.meter.count(method, route, status, took);
    tracing::debug!(%method, route, status, ?traceparent, ?took, "answered");
    let index = || HeaderValue::from(edge.service.applied_index());
    response.headers_mut().entry(INDEX).or_insert_with(index);
    response
}
