//! Grants as a node would send them, and waiting for what is to happen.

use std::sync::Arc;
use std::time::Duration;

use horolog::base::clock::ManualClock;
use horolog::worker::handler::Run;
use tokio::time::Instant;

/// How long anything may take before its test gives up.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A grant of this executor, as JSON.
pub fn grant(run: &str, ttl: &str, executor: &serde_json::Value) -> serde_json::Value {
    serde_json::json!({
        "run": run,
        "fire": run.split('.').next().unwrap(),
        "attempt": 2,
        "tenant": "default",
        "group": "reports",
        "job": "nightly",
        "trigger": "daily",
        "reason": "schedule",
        "scheduled_at": "2026-12-01T03:00:00Z",
        "due_at": "2026-12-01T03:00:00Z",
        "idempotency_key": "default/reports/nightly/daily/2026-12-01T03:00:00Z",
        "token": 77,
        "lease": { "ttl": ttl, "extend_every": ttl },
        "payload": { "n": 1 },
        "executor": executor,
    })
}

pub fn run_of(executor: &serde_json::Value) -> Arc<Run> {
    let json = grant("1f0000-2a0001.2", "30s", executor).to_string();
    let now = "2026-12-01T03:00:05Z".parse().unwrap();
    Arc::new(Run::of(serde_json::from_str(&json).unwrap(), &ManualClock::starting_at(now)))
}

/// Looks again and again until there is something to see.
pub async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let give_up_at = Instant::now() + PATIENCE;
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up_at, "this did not happen in time: {what}");
        tick.tick().await;
    }
}
