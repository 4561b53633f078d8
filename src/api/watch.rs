//! Fires as they change, as server-sent events. The id of an event is the index of the log, so that
//! a watcher goes on where it was, on any member.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderName;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, unfold};

use crate::api::answer::Answer;
use crate::api::extract::Call;
use crate::api::problem::Refusal;
use crate::api::to_wire;
use crate::service::error::FieldError;
use crate::service::watch::{FireWatch, WatchEvent};
use crate::wire;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// A comment is sent when nothing else was for this long, so that a lost connection is found out.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

pub(in crate::api) async fn fires(call: Call) -> Answer {
    let (tenant, freshness) = (call.tenant()?, call.freshness()?);
    let after = match call.header(&LAST_EVENT_ID) {
        None => None,
        Some(text) => {
            let error = |_| FieldError::new("Last-Event-ID", "it is not the id of an event here");
            Some(text.parse::<u64>().map_err(error).map_err(Refusal::Header)?)
        }
    };
    let watch = call.service().watch_fires(&tenant, after, freshness).await?;
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(events(watch)).keep_alive(keep_alive).into_response())
}

/// Ends when the member stops, or falls out of use.
fn events(watch: FireWatch) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold((watch, VecDeque::new()), |(mut watch, mut ready)| async move {
        if ready.is_empty() {
            ready.extend(watch.next().await?);
        }
        let event = shown(&ready.pop_front()?);
        Some((Ok(event), (watch, ready)))
    })
}

fn shown(event: &WatchEvent) -> Event {
    match event {
        WatchEvent::Changed { index, fire, last } => {
            let data = serde_json::to_string(&to_wire::fire(fire)).unwrap_or_default();
            let shown = Event::default().event("fire").data(data);
            // Resumed from an id, a watcher is told nothing of that entry again, so that only the
            // last event of an entry has it.
            if *last { shown.id(index.to_string()) } else { shown }
        }
        WatchEvent::Gap { after, before } => {
            let gap = wire::fire::WatchGap { after_index: *after, before_index: *before };
            let data = serde_json::to_string(&gap).unwrap_or_default();
            Event::default().event("gap").data(data).id((before - 1).to_string())
        }
    }
}
