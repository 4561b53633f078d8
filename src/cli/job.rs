//! `horolog job`: define, list, fire and delete jobs.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::base::limits::PAGE_SIZE_DEFAULT;
use crate::cli::apply::{apply, read_drafts};
use crate::cli::args::{JobCommand, JobFireArgs, JobListArgs};
use crate::cli::error::{CliError, FAILED};
use crate::cli::fire::{has_ended, show_fire};
use crate::cli::input::read_input;
use crate::cli::output::Output;
use crate::cli::table::{Cell, Table, shortened, state_cell};
use crate::cli::trigger::trigger_table;
use crate::cli::words::{executor_text, word};
use crate::client::jobs::JobFilter;
use crate::client::transport::Client;
use crate::wire::fire::{Fire, FireRequest, FireState};
use crate::wire::job::Job;

const WAIT_FIRST: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(2);

/// # Errors
/// [`CliError`].
pub async fn run(client: &Client, command: JobCommand, output: &Output) -> Result<(), CliError> {
    match command {
        JobCommand::Apply { file } => apply_file(client, &file, output).await,
        JobCommand::List(args) => list(client, args, output).await,
        JobCommand::Get { job } => {
            let job = client.job(&job.group, &job.name).await?;
            if output.is_json() { output.json(&job) } else { show(&job, output) }
        }
        JobCommand::Pause { job } => {
            client.pause_job(&job.group, &job.name).await?;
            output.done(&format!("{job} is paused"))
        }
        JobCommand::Resume { job } => {
            client.resume_job(&job.group, &job.name).await?;
            output.done(&format!("{job} is active"))
        }
        JobCommand::Fire(args) => fire(client, args, output).await,
        JobCommand::Delete { job } => {
            client.delete_job(&job.group, &job.name).await?;
            output.done(&format!("{job} is deleted"))
        }
    }
}

#[derive(Serialize)]
struct AppliedJob {
    job: String,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A refused job does not keep the others from being tried; a cluster that is away does.
async fn apply_file(client: &Client, file: &str, output: &Output) -> Result<(), CliError> {
    let drafts = read_drafts(&read_input(file).await?)?;
    let mut results = Vec::new();
    let mut failure = None;
    for draft in &drafts {
        let job = draft.address.to_string();
        match apply(client, draft).await {
            Ok((applied, revision)) => {
                let (result, revision) = (applied.as_str(), Some(revision));
                results.push(AppliedJob { job, result, revision, error: None });
            }
            Err(error) => {
                let is_away = error.is_unavailable();
                output.message(&format!("error: {job}: {error}"));
                let error_text = Some(error.to_string());
                results.push(AppliedJob {
                    job,
                    result: "failed",
                    revision: None,
                    error: error_text,
                });
                failure = Some(error);
                if is_away {
                    break;
                }
            }
        }
    }
    if output.is_json() {
        output.json(&results)?;
    } else {
        let mut table = Table::new(&["JOB", "RESULT", "REVISION"]);
        for result in results {
            let revision = result.revision.map(|revision| revision.to_string());
            let cells: Vec<Cell> = vec![
                result.job.into(),
                state_cell(result.result),
                revision.unwrap_or_default().into(),
            ];
            table.row(cells);
        }
        output.table(&table)?;
    }
    match failure {
        Some(error) if error.is_unavailable() || drafts.len() == 1 => {
            Err(CliError::Said(CliError::from(error).code()))
        }
        Some(_) => Err(CliError::Said(FAILED)),
        None => Ok(()),
    }
}

async fn list(client: &Client, args: JobListArgs, output: &Output) -> Result<(), CliError> {
    let filter = JobFilter { group: args.group, name_prefix: args.prefix, state: args.state };
    let mut jobs: Vec<Job> = Vec::new();
    let mut cursor = None;
    while jobs.len() < args.limit {
        let page_size = (args.limit - jobs.len()).min(PAGE_SIZE_DEFAULT);
        let page = client.jobs(&filter, page_size, cursor.as_deref()).await?;
        jobs.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if output.is_json() {
        return output.json(&jobs);
    }
    let mut table = Table::new(&["JOB", "STATE", "NEXT", "OPEN", "OK", "FAILED", "RUNS"]);
    for job in &jobs {
        table.row(vec![
            format!("{}/{}", job.group, job.name).into(),
            state_cell(&word(&job.state)),
            next_of(job).into(),
            job.open_fires.to_string().into(),
            job.tally.succeeded.to_string().into(),
            job.tally.failed.to_string().into(),
            shortened(&executor_text(&job.spec.executor), 60).into(),
        ]);
    }
    output.table(&table)?;
    if cursor.is_some() {
        output.message(&format!("there are more; see them with --limit {}", args.limit * 2));
    }
    Ok(())
}

/// The earliest coming occurrence of any trigger.
fn next_of(job: &Job) -> String {
    let coming = job.triggers.values().filter_map(|status| status.next.as_ref());
    coming.map(|next| next.scheduled_at.clone()).min().unwrap_or_default()
}

fn show(job: &Job, output: &Output) -> Result<(), CliError> {
    let spec = &job.spec;
    let retry = spec.retry.as_ref().and_then(|retry| retry.attempts);
    let labels: Vec<String> =
        spec.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let fields: Vec<(&str, Cell)> = vec![
        ("job", format!("{}/{}", job.group, job.name).into()),
        ("description", spec.description.clone().unwrap_or_default().into()),
        ("state", state_cell(&word(&job.state))),
        ("revision", job.revision.to_string().into()),
        ("runs", executor_text(&spec.executor).into()),
        ("pool", spec.pool.clone().unwrap_or_default().into()),
        ("overlap", spec.overlap.as_ref().map(word).unwrap_or_default().into()),
        ("attempts", retry.map(|count| count.to_string()).unwrap_or_default().into()),
        ("timeout", spec.timeout.clone().unwrap_or_default().into()),
        ("lease", spec.lease.clone().unwrap_or_default().into()),
        ("payload", spec.payload.as_ref().map(|raw| raw.get()).unwrap_or_default().into()),
        ("labels", labels.join(" ").into()),
        ("open fires", job.open_fires.to_string().into()),
        ("succeeded", job.tally.succeeded.to_string().into()),
        ("failed", job.tally.failed.to_string().into()),
        ("skipped", job.tally.skipped.to_string().into()),
        ("cancelled", job.tally.cancelled.to_string().into()),
        ("updated", job.updated_at.clone().into()),
    ];
    output.fields(&fields)?;
    let Some(specs) = &spec.triggers else {
        return Ok(());
    };
    output.text("")?;
    let rows = specs.iter().filter_map(|(name, spec)| {
        let status = job.triggers.get(name)?;
        Some((name.as_str(), spec, status))
    });
    output.table(&trigger_table(rows))
}

async fn fire(client: &Client, args: JobFireArgs, output: &Output) -> Result<(), CliError> {
    let payload = match args.payload {
        Some(text) => Some(
            RawValue::from_string(text)
                .map_err(|error| CliError::Usage(format!("the payload is not JSON: {error}")))?,
        ),
        None => None,
    };
    let request = FireRequest {
        at: args.at.map(|at| at.to_string()),
        delay: args.delay.map(|delay| delay.to_string()),
        payload,
        allow_overlap: args.allow_overlap,
    };
    let fire = client.fire_job(&args.job.group, &args.job.name, &request).await?;
    if !args.wait {
        return if output.is_json() {
            output.json(&fire)
        } else {
            output.text(&format!("{} is {}", fire.id, word(&fire.state)))
        };
    }
    let ended = wait_for_end(client, fire).await?;
    if output.is_json() {
        output.json(&ended)?;
    } else {
        show_fire(&ended, output)?;
    }
    if ended.state == FireState::Succeeded { Ok(()) } else { Err(CliError::Said(FAILED)) }
}

async fn wait_for_end(client: &Client, mut fire: Fire) -> Result<Fire, CliError> {
    let mut pause = WAIT_FIRST;
    loop {
        // Also the first time: only a single fire that is read comes with its output.
        fire = client.fire(&fire.id).await?;
        if has_ended(fire.state) {
            return Ok(fire);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(WAIT_MAX);
    }
}
