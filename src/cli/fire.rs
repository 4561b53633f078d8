//! `horolog fire`: what was run, what came of it, and why.

use std::time::Duration;

use crate::base::limits::PAGE_SIZE_DEFAULT;
use crate::base::time::{Span, Timestamp};
use crate::cli::address::JobAddress;
use crate::cli::args::{FireCommand, FireListArgs};
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::signals::StopSignals;
use crate::cli::table::{Cell, Table, state_cell};
use crate::cli::words::word;
use crate::client::fires::FireFilter;
use crate::client::transport::Client;
use crate::wire::fire::{Attempt, Fire, FireState, WatchGap};

/// The pause before a broken stream is opened again.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// # Errors
/// [`CliError`].
pub async fn run(client: &Client, command: FireCommand, output: &Output) -> Result<(), CliError> {
    match command {
        FireCommand::List(args) => list(client, args, output).await,
        FireCommand::Get { id } => {
            let fire = client.fire(&id).await?;
            if output.is_json() { output.json(&fire) } else { show_fire(&fire, output) }
        }
        FireCommand::Cancel { id } => {
            client.cancel_fire(&id).await?;
            let fire = client.fire(&id).await?;
            if output.is_json() {
                return output.json(&fire);
            }
            let says = match fire.state {
                FireState::Cancelled => "is cancelled".to_owned(),
                state @ (FireState::Waiting
                | FireState::Ready
                | FireState::Running
                | FireState::Succeeded
                | FireState::Failed
                | FireState::Skipped) => {
                    format!("is {}; its worker was asked to stop it", word(&state))
                }
            };
            output.text(&format!("{id} {says}"))
        }
        FireCommand::Watch { job } => watch(client, job.as_ref(), output).await,
    }
}

#[must_use]
pub fn has_ended(state: FireState) -> bool {
    match state {
        FireState::Waiting | FireState::Ready | FireState::Running => false,
        FireState::Succeeded | FireState::Failed | FireState::Skipped | FireState::Cancelled => {
            true
        }
    }
}

async fn list(client: &Client, args: FireListArgs, output: &Output) -> Result<(), CliError> {
    let job = args.job.map(|job| job.to_string());
    let filter = FireFilter { job, state: args.state };
    let mut fires: Vec<Fire> = Vec::new();
    let mut cursor = None;
    while fires.len() < args.limit {
        let page_size = (args.limit - fires.len()).min(PAGE_SIZE_DEFAULT);
        let page = client.fires(&filter, page_size, cursor.as_deref()).await?;
        fires.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if output.is_json() {
        return output.json(&fires);
    }
    let mut table = Table::new(&["FIRE", "JOB", "SCHEDULED", "STATE", "TRIES", "TOOK", "WHY"]);
    for fire in &fires {
        table.row(vec![
            fire.id.clone().into(),
            job_text(fire).into(),
            fire.scheduled_at.clone().into(),
            state_cell(&word(&fire.state)),
            fire.attempt_count.to_string().into(),
            took(fire).into(),
            why(fire).into(),
        ]);
    }
    output.table(&table)?;
    if cursor.is_some() {
        output.message(&format!("there are more; see them with --limit {}", args.limit * 2));
    }
    Ok(())
}

/// A fire with everything that is known of it.
///
/// # Errors
/// [`CliError::Closed`].
pub fn show_fire(fire: &Fire, output: &Output) -> Result<(), CliError> {
    let folded = fire
        .folded
        .as_ref()
        .map(|folded| format!("{} occurrences up to {}", folded.count, folded.last_scheduled_at));
    let fenced = if fire.fenced_count > 0 { fire.fenced_count.to_string() } else { String::new() };
    let fields: Vec<(&str, Cell)> = vec![
        ("fire", fire.id.clone().into()),
        ("job", job_text(fire).into()),
        ("trigger", fire.trigger.clone().unwrap_or_default().into()),
        ("reason", word(&fire.reason).into()),
        ("state", state_cell(&word(&fire.state))),
        ("why", why(fire).into()),
        ("scheduled", fire.scheduled_at.clone().into()),
        ("stands for", folded.unwrap_or_default().into()),
        ("recorded", format!("{} at index {}", fire.recorded_at, fire.recorded_index).into()),
        ("ended", fire.ended_at.clone().unwrap_or_default().into()),
        ("took", took(fire).into()),
        ("key", fire.idempotency_key.clone().into()),
        ("refused calls", fenced.into()),
    ];
    output.fields(&fields)?;
    for attempt in &fire.attempts {
        show_attempt(attempt, output)?;
    }
    Ok(())
}

fn show_attempt(attempt: &Attempt, output: &Output) -> Result<(), CliError> {
    let outcome = attempt.outcome.as_ref().map_or("running".to_owned(), word);
    output.text("")?;
    let error = attempt.error.as_ref().map(|error| {
        let message = error.message.as_deref().unwrap_or_default();
        format!("{}: {message}", error.kind)
    });
    let took = attempt.ended_at.as_deref().and_then(|end| between(&attempt.granted_at, end));
    let fields: Vec<(&str, Cell)> = vec![
        ("attempt", attempt.number.to_string().into()),
        ("outcome", state_cell(&outcome)),
        ("worker", format!("{} ({})", attempt.worker_name, attempt.worker).into()),
        ("token", attempt.token.to_string().into()),
        ("granted", attempt.granted_at.clone().into()),
        ("took", took.unwrap_or_default().into()),
        ("exit code", attempt.exit_code.map(|code| code.to_string()).unwrap_or_default().into()),
        ("error", error.unwrap_or_default().into()),
        ("result", attempt.result.as_ref().map(|raw| raw.get()).unwrap_or_default().into()),
    ];
    output.fields(&fields)?;
    if let Some(text) = attempt.output.as_deref().filter(|text| !text.is_empty()) {
        output.text("output")?;
        let indented: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
        output.text(&indented.join("\n"))?;
    }
    Ok(())
}

/// Why a fire stands as it does, in few words; empty when that goes without saying.
#[must_use]
pub fn why(fire: &Fire) -> String {
    let latest = fire.attempts.last();
    match fire.state {
        FireState::Waiting => {
            let cause = fire.waiting_for.as_ref().map(word).unwrap_or_default();
            let until = fire.not_before.as_ref().map(|at| format!(" until {at}"));
            format!("waiting for {cause}{}", until.unwrap_or_default())
        }
        FireState::Ready => "no free worker yet".to_owned(),
        FireState::Running => {
            latest.map(|one| format!("on {}", one.worker_name)).unwrap_or_default()
        }
        FireState::Succeeded => String::new(),
        FireState::Failed => {
            let error = latest.and_then(|one| one.error.as_ref()).map(|error| error.kind.clone());
            let outcome = latest.and_then(|one| one.outcome.as_ref()).map(word);
            error.or(outcome).unwrap_or_default()
        }
        FireState::Skipped => fire.skip_reason.as_ref().map(word).unwrap_or_default(),
        FireState::Cancelled => match &fire.cancel_requested_at {
            Some(at) => format!("asked for at {at}"),
            None => "by request".to_owned(),
        },
    }
}

#[must_use]
pub fn job_text(fire: &Fire) -> String {
    format!("{}/{}", fire.job.group, fire.job.name)
}

/// From the first grant that is listed to the end.
#[must_use]
pub fn took(fire: &Fire) -> String {
    let start = fire.attempts.first().map(|attempt| attempt.granted_at.as_str());
    let span = start.zip(fire.ended_at.as_deref()).and_then(|(start, end)| between(start, end));
    span.unwrap_or_default()
}

fn between(start: &str, end: &str) -> Option<String> {
    let start: Timestamp = start.parse().ok()?;
    let end: Timestamp = end.parse().ok()?;
    let ms = end.since(start).as_ms();
    let seconds = ms / 1_000;
    Some(if ms < 1_000 {
        format!("{ms}ms")
    } else if seconds < 60 {
        format!("{seconds}.{}s", ms % 1_000 / 100)
    } else {
        Span::from_secs(seconds).to_string()
    })
}

/// Goes on after a broken connection with the event after the last one seen.
async fn watch(client: &Client, job: Option<&JobAddress>, output: &Output) -> Result<(), CliError> {
    let mut signals = StopSignals::listen()?;
    tokio::select! {
        () = signals.next() => Ok(()),
        result = watch_on(client, job, output) => result,
    }
}

async fn watch_on(
    client: &Client,
    job: Option<&JobAddress>,
    output: &Output,
) -> Result<(), CliError> {
    let mut last_id: Option<String> = None;
    let mut was_open = false;
    loop {
        match client.watch_fires(last_id.as_deref()).await {
            Ok(mut events) => {
                was_open = true;
                while let Some(event) = events.next().await {
                    show_event(&event.name, &event.data, job, output)?;
                    last_id = event.id.or(last_id);
                }
                output.message("the connection has ended, opening it again");
            }
            Err(error) if was_open && error.is_unavailable() => {
                output.message(&format!("{error}"));
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(REOPEN_AFTER).await;
    }
}

fn show_event(
    name: &str,
    data: &str,
    job: Option<&JobAddress>,
    output: &Output,
) -> Result<(), CliError> {
    if name == "gap" {
        if let Ok(gap) = serde_json::from_str::<WatchGap>(data) {
            output.message(&format!(
                "changes from index {} to {} were missed",
                gap.after_index + 1,
                gap.before_index.saturating_sub(1)
            ));
        }
        return Ok(());
    }
    let Ok(fire) = serde_json::from_str::<Fire>(data) else {
        return Ok(());
    };
    let is_other = job.is_some_and(|job| job.to_string() != job_text(&fire));
    if is_other {
        return Ok(());
    }
    if output.is_json() { output.json_line(&fire) } else { output.text(&event_line(&fire)) }
}

/// One line for a change of a fire.
#[must_use]
pub fn event_line(fire: &Fire) -> String {
    let mut line = format!("{}  {}  {}", fire.scheduled_at, job_text(fire), word(&fire.state));
    let details = [took(fire), why(fire)];
    for detail in details.iter().filter(|detail| !detail.is_empty()) {
        line.push_str("  ");
        line.push_str(detail);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_shown_as_fine_as_they_matter() {
        let start = "2026-12-01T00:00:00Z";
        let table = [
            ("2026-12-01T00:00:00.017Z", "17ms"),
            ("2026-12-01T00:00:03.304Z", "3.3s"),
            ("2026-12-01T01:30:00.999Z", "90m"),
            ("2026-11-30T00:00:00Z", "0ms"),
        ];
        for (end, shown) in table {
            assert_eq!(between(start, end).as_deref(), Some(shown), "{end}");
        }
        assert_eq!(between(start, "soon"), None);
    }
}
