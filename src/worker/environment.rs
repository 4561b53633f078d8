//! What a run is told: the same fields as environment variables of a command and as headers of a
//! call.

use crate::worker::handler::Run;

/// The fields, in a fixed order; each name is that of a header without its prefix.
#[must_use]
pub fn fields(run: &Run) -> Vec<(&'static str, String)> {
    let grant = &run.grant;
    let mut fields = vec![
        ("Tenant", grant.tenant.clone()),
        ("Group", grant.group.clone()),
        ("Job", grant.job.clone()),
        ("Fire", grant.fire.clone()),
        ("Run", grant.run.clone()),
        ("Attempt", grant.attempt.to_string()),
        ("Reason", text_of(&grant.reason)),
        ("Scheduled-At", grant.scheduled_at.clone()),
        ("Due-At", grant.due_at.clone()),
        ("Idempotency-Key", grant.idempotency_key.clone()),
        ("Token", grant.token.to_string()),
        ("Lease-Deadline", run.lease_deadline.to_string()),
    ];
    if let Some(trigger) = &grant.trigger {
        fields.push(("Trigger", trigger.clone()));
    }
    if let Some(deadline) = &grant.deadline {
        fields.push(("Deadline", deadline.clone()));
    }
    fields
}

/// `Scheduled-At` as `HOROLOG_SCHEDULED_AT`, and so on, with the payload beside them.
#[must_use]
pub fn variables(run: &Run) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = fields(run)
        .into_iter()
        .map(|(name, value)| (format!("HOROLOG_{}", name.to_uppercase().replace('-', "_")), value))
        .collect();
    variables.push(("HOROLOG_PAYLOAD".to_owned(), run.grant.payload.get().to_owned()));
    variables
}

/// The word that an enum without data has on the wire.
fn text_of(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::handler::tests::run_of;

    #[test]
    fn every_field_reaches_the_command() {
        let run = run_of("{\"worker\":{}}", "{\"a\": 1}");
        let text: Vec<String> =
            variables(&run).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected = [
            "HOROLOG_TENANT=default",
            "HOROLOG_GROUP=reports",
            "HOROLOG_JOB=nightly",
            "HOROLOG_FIRE=1f0000-2a0001",
            "HOROLOG_RUN=1f0000-2a0001.2",
            "HOROLOG_ATTEMPT=2",
            "HOROLOG_REASON=schedule",
            "HOROLOG_SCHEDULED_AT=2026-12-01T03:00:00Z",
            "HOROLOG_DUE_AT=2026-12-01T03:00:00Z",
            "HOROLOG_IDEMPOTENCY_KEY=default/reports/nightly/daily/2026-12-01T03:00:00Z",
            "HOROLOG_TOKEN=77",
            "HOROLOG_LEASE_DEADLINE=2026-12-01T03:00:35Z",
            "HOROLOG_TRIGGER=daily",
            "HOROLOG_PAYLOAD={\"a\": 1}",
        ];
        assert_eq!(text, expected);
    }
}
