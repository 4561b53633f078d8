//! `horolog trigger`: when jobs fire.

use crate::cli::address::TriggerAddress;
use crate::cli::args::TriggerCommand;
use crate::cli::error::CliError;
use crate::cli::input::read_input;
use crate::cli::output::Output;
use crate::cli::table::{Cell, Table, state_cell};
use crate::cli::words::{schedule_text, word};
use crate::client::jobs::Precondition;
use crate::client::transport::Client;
use crate::client::triggers::TriggerPath;
use crate::wire::trigger::{Trigger, TriggerSpec, TriggerStatus};

/// # Errors
/// [`CliError`].
pub async fn run(
    client: &Client,
    command: TriggerCommand,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        TriggerCommand::List { job } => {
            let triggers = client.triggers(&job.group, &job.name).await?;
            if output.is_json() {
                return output.json(&triggers);
            }
            let rows = triggers.iter().map(|one| (one.name.as_str(), &one.spec, &one.status));
            output.table(&trigger_table(rows))
        }
        TriggerCommand::Get { trigger } => {
            let trigger = client.trigger(&path(&trigger)).await?;
            if output.is_json() { output.json(&trigger) } else { show(&trigger, output) }
        }
        TriggerCommand::Apply { trigger, file } => {
            apply(client, &trigger, &read_input(&file).await?, output).await
        }
        TriggerCommand::Pause { trigger } => {
            client.pause_trigger(&path(&trigger)).await?;
            output.done(&format!("{trigger} is paused"))
        }
        TriggerCommand::Resume { trigger } => {
            client.resume_trigger(&path(&trigger)).await?;
            output.done(&format!("{trigger} is active"))
        }
        TriggerCommand::Delete { trigger } => {
            client.delete_trigger(&path(&trigger)).await?;
            output.done(&format!("{trigger} is deleted"))
        }
        TriggerCommand::Preview { trigger, count, after } => {
            let after = after.map(|after| after.to_string());
            let path = path(&trigger);
            let preview = client.preview_trigger(&path, count, after.as_deref()).await?;
            if output.is_json() {
                return output.json(&preview);
            }
            preview.times.iter().try_for_each(|time| output.text(time))
        }
    }
}

/// One row for each trigger: what it is called, when it fires, how it stands.
#[must_use]
pub fn trigger_table<'a>(
    triggers: impl Iterator<Item = (&'a str, &'a TriggerSpec, &'a TriggerStatus)>,
) -> Table {
    let mut table = Table::new(&["TRIGGER", "STATE", "NEXT", "SCHEDULE"]);
    for (name, spec, status) in triggers {
        table.row(vec![
            name.into(),
            state_cell(&word(&status.state)),
            next_text(status).into(),
            schedule_text(&spec.schedule).into(),
        ]);
    }
    table
}

fn next_text(status: &TriggerStatus) -> String {
    status.next.as_ref().map(|next| next.scheduled_at.clone()).unwrap_or_default()
}

fn show(trigger: &Trigger, output: &Output) -> Result<(), CliError> {
    let (spec, status) = (&trigger.spec, &trigger.status);
    let misfire = spec.misfire.as_ref();
    let policy = misfire.and_then(|misfire| misfire.policy);
    let job = format!("{}/{}", trigger.job.group, trigger.job.name);
    let fields: Vec<(&str, Cell)> = vec![
        ("trigger", format!("{job}/{}", trigger.name).into()),
        ("description", spec.description.clone().unwrap_or_default().into()),
        ("state", state_cell(&word(&status.state))),
        ("revision", status.revision.to_string().into()),
        ("schedule", schedule_text(&spec.schedule).into()),
        ("starts", spec.start_at.clone().unwrap_or_default().into()),
        ("ends", spec.end_at.clone().unwrap_or_default().into()),
        ("misfire", policy.as_ref().map(word).unwrap_or_default().into()),
        ("next", next_text(status).into()),
        ("accounted to", status.accounted_to.clone().into()),
    ];
    output.fields(&fields)
}

async fn apply(
    client: &Client,
    trigger: &TriggerAddress,
    json: &[u8],
    output: &Output,
) -> Result<(), CliError> {
    let spec: TriggerSpec = serde_json::from_slice(json)
        .map_err(|error| CliError::Usage(format!("this is not a trigger: {error}")))?;
    let stored = client.put_trigger(&path(trigger), &spec, Precondition::Any).await?;
    if output.is_json() {
        return output.json(&stored);
    }
    let next = next_text(&stored.status);
    let coming = if next.is_empty() { String::new() } else { format!(", next at {next}") };
    output.text(&format!("{trigger} is at revision {}{coming}", stored.status.revision))
}

fn path(address: &TriggerAddress) -> TriggerPath {
    TriggerPath {
        group: address.job.group.clone(),
        job: address.job.name.clone(),
        trigger: address.trigger.clone(),
    }
}
