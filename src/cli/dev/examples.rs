//! Jobs that show something within the first minute.

use serde_json::{Value, json};

/// The group they come into.
pub const GROUP: &str = "examples";

/// Name and definition of each.
#[must_use]
pub fn examples() -> Vec<(&'static str, Value)> {
    vec![
        ("date", date()),
        ("each-minute", each_minute()),
        ("third-time-lucky", third_time_lucky()),
        ("slow", slow()),
    ]
}

fn shell(script: &str) -> Value {
    json!({ "command": { "argv": ["/bin/sh", "-c", script] } })
}

fn date() -> Value {
    json!({
        "description": "Prints the date every ten seconds.",
        "executor": { "command": { "argv": ["date"] } },
        "triggers": { "every-10s": { "schedule": { "every": { "interval": "10s" } } } },
    })
}

fn each_minute() -> Value {
    json!({
        "description": "A Quartz expression: at second 0 of each minute.",
        "executor": shell("echo \"$HOROLOG_SCHEDULED_AT has token $HOROLOG_TOKEN\""),
        "triggers": { "quartz": { "schedule": { "cron": {
            "expression": "0 * * * * ?",
            "dialect": "quartz",
            "timezone": "Europe/Berlin",
        } } } },
    })
}

fn third_time_lucky() -> Value {
    let script = "if [ \"$HOROLOG_ATTEMPT\" -lt 3 ]; then echo \"attempt $HOROLOG_ATTEMPT \
                  fails\"; exit 1; fi; echo \"attempt $HOROLOG_ATTEMPT succeeds\"";
    json!({
        "description": "Fails twice, and succeeds on its second retry.",
        "executor": shell(script),
        "retry": { "attempts": 3, "first_delay": "1s", "factor": 2 },
        "triggers": { "every-30s": { "schedule": { "every": { "interval": "30s" } } } },
    })
}

fn slow() -> Value {
    json!({
        "description": "Takes longer than its interval: each second occurrence is skipped.",
        "executor": shell("sleep 20; echo done"),
        "overlap": "skip",
        "triggers": { "every-15s": { "schedule": { "every": { "interval": "15s" } } } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::job::JobSpec;

    #[test]
    fn every_example_is_a_definition_of_a_job() {
        for (name, json) in examples() {
            serde_json::from_value::<JobSpec>(json).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}
