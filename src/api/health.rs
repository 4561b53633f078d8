//! What supervisors, balancers and collectors ask: is it alive, is it ready, how is it, what is it.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use crate::api::answer::{Answer, ok};
use crate::api::extract::Call;
use crate::api::problem::Problem;
use crate::service::call::Seen;
use crate::service::error::ServiceError;
use crate::wire;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Not alive, it should be started again: its disk failed, or it was removed.
pub(in crate::api) async fn live(call: Call) -> Answer {
    match call.service().stopped() {
        None => Ok("ok\n".into_response()),
        Some(reason) => Err(Problem::not_ready(reason)),
    }
}

/// Not ready, it should be sent no callers for now.
pub(in crate::api) async fn ready(call: Call) -> Answer {
    match call.service().ready() {
        Ok(()) => Ok("ok\n".into_response()),
        Err(reason) => Err(Problem::not_ready(reason)),
    }
}

pub(in crate::api) async fn metrics(call: Call) -> Answer {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, call.registry())
        .map_err(ServiceError::internal)?;
    Ok(([(CONTENT_TYPE, OPENMETRICS)], text).into_response())
}

pub(in crate::api) async fn version(call: Call) -> Answer {
    let service = call.service();
    let value = wire::cluster::Version {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tzdata: service.tzdata().to_owned(),
    };
    ok(Seen { value, index: service.applied_index(), lag: None })
}

pub(in crate::api) async fn openapi(call: Call) -> Answer {
    Ok(([(CONTENT_TYPE, "application/json")], call.openapi()).into_response())
}
