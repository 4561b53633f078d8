//! Words of the wire for people: states, reasons, schedules.

use serde::Serialize;
use serde_json::Value;

use crate::wire::job::Executor;
use crate::wire::trigger::{Cron, Dialect, Schedule};

/// The word that an enum without data has on the wire.
#[must_use]
pub fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// How a job is run, in few words.
#[must_use]
pub fn executor_text(executor: &Executor) -> String {
    match executor {
        Executor::Worker(_) => "worker".to_owned(),
        Executor::Command(spec) => format!("command: {}", spec.argv.join(" ")),
        Executor::Http(spec) => format!("http: {} {}", word(&spec.method), spec.url),
    }
}

/// When a trigger fires, in few words.
#[must_use]
pub fn schedule_text(schedule: &Schedule) -> String {
    match schedule {
        Schedule::Cron(cron) => cron_text(cron),
        Schedule::Every(every) => format!("every {}", every.interval),
        Schedule::At(at) => format!("at {at}"),
        Schedule::After(delay) => format!("after {delay}"),
    }
}

fn cron_text(cron: &Cron) -> String {
    let dialect = match cron.dialect.unwrap_or_default() {
        Dialect::Unix => "cron",
        Dialect::Quartz => "quartz",
    };
    let zone = cron.timezone.as_deref().unwrap_or("UTC");
    format!("{dialect} {} ({zone})", cron.expression)
}
