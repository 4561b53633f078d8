//! `horolog dev`: a cluster to try things out on, in one terminal.
//!
//! Three child processes serve, this process works. Whatever way this process ends, the children
//! end too: by a signal from here, by being dropped, or by the end of the pipe that they hold.

pub mod examples;
pub mod nodes;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::base::time::Span;
use crate::cli::args::{DevArgs, WorkerArgs};
use crate::cli::dev::examples::{GROUP, examples};
use crate::cli::dev::nodes::{NODES, Nodes};
use crate::cli::error::CliError;
use crate::cli::fire::{event_line, has_ended};
use crate::cli::output::Output;
use crate::cli::signals::StopSignals;
use crate::cli::table::shortened;
use crate::cli::worker::puller;
use crate::client::error::ClientError;
use crate::client::events::Events;
use crate::client::jobs::Precondition;
use crate::client::transport::{Client, Patience};
use crate::wire::cluster::MemberRole;
use crate::wire::fire::Fire;
use crate::worker::puller::Shutdown;

const READY_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);
const RETRY_FOR: Duration = Duration::from_secs(5);
const WORKER_STOP_WITHIN: Duration = Duration::from_secs(15);
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// # Errors
/// [`CliError::Failed`] when the cluster does not come up; everything is stopped then too.
pub async fn run(args: DevArgs, output: &Output) -> Result<(), CliError> {
    let mut signals = StopSignals::listen()?;
    nodes::check_ports(args.ports_from)?;
    let folder = Folder::open(args.data)?;
    let mut nodes = Nodes::new(folder.path(), args.ports_from)?;
    let mut worker = None;
    let result = tokio::select! {
        result = live(&mut nodes, &mut worker, output) => result,
        () = signals.next() => {
            output.message("stopping");
            Ok(())
        }
    };
    if let Some(worker) = worker {
        worker.stop().await;
    }
    nodes.stop().await;
    drop(folder);
    result
}

/// Where the data is, and whether it stays.
struct Folder {
    path: PathBuf,
    goes_away: bool,
}

impl Folder {
    fn open(chosen: Option<PathBuf>) -> Result<Folder, CliError> {
        let goes_away = chosen.is_none();
        let name = format!("horolog-dev-{}", std::process::id());
        let path = chosen.unwrap_or_else(|| std::env::temp_dir().join(name));
        std::fs::create_dir_all(&path).map_err(|error| {
            CliError::Failed(format!("cannot make the folder {}: {error}", path.display()))
        })?;
        Ok(Folder { path, goes_away })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.goes_away {
            // What cannot be removed lies in the system's folder for such things.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Brings everything up and shows what happens, until it is dropped or fails.
async fn live(
    nodes: &mut Nodes,
    worker: &mut Option<Worker>,
    output: &Output,
) -> Result<(), CliError> {
    output.message(&format!("starting {NODES} nodes, their logs are in {}", nodes.folder()));
    let addresses = nodes.api_addresses();
    let patience = Patience { retry_for: RETRY_FOR, ..Patience::default() };
    let client = Client::new(&addresses, "default")?.with_patience(patience);
    nodes.start(0)?;
    // Alone, a node that knows of others from last time cannot be ready.
    let alone = if nodes.had_data() { Duration::from_secs(2) } else { READY_WITHIN };
    let first_is_ready = until_ready(nodes, &addresses[..1], alone).await?;
    if !first_is_ready && !nodes.had_data() {
        return Err(CliError::Failed(nodes.why_not_ready(0)));
    }
    for at in 1..NODES {
        nodes.start(at)?;
    }
    if !until_ready(nodes, &addresses, READY_WITHIN).await? {
        return Err(CliError::Failed("the nodes are not ready after a minute".to_owned()));
    }
    until_all_vote(&client).await;
    *worker = Some(Worker::start(client.clone())?);
    let watch_from = client.watch_fires(None).await?;
    let names = apply_examples(&client).await?;
    introduce(&addresses, &names, output)?;
    tokio::select! {
        result = show_fires(&client, watch_from, output) => result,
        ended = nodes.report_ends(output) => ended,
    }
}

async fn until_ready(
    nodes: &mut Nodes,
    addresses: &[String],
    within: Duration,
) -> Result<bool, CliError> {
    let give_up_at = Instant::now() + within;
    let mut look = tokio::time::interval(LOOK_EVERY);
    for address in addresses {
        let client = Client::new(std::slice::from_ref(address), "default")?;
        while !client.is_ready().await {
            if let Some(why) = nodes.ended_early() {
                return Err(CliError::Failed(why));
            }
            if Instant::now() >= give_up_at {
                return Ok(false);
            }
            look.tick().await;
        }
    }
    Ok(true)
}

/// Three voters outlive the loss of one. Not worth failing for: it happens soon after, too.
async fn until_all_vote(client: &Client) {
    let give_up_at = Instant::now() + Duration::from_secs(15);
    let mut look = tokio::time::interval(LOOK_EVERY);
    while Instant::now() < give_up_at {
        look.tick().await;
        let Ok(cluster) = client.cluster().await else { continue };
        let voters = cluster.members.iter().filter(|member| match member.role {
            MemberRole::Voter => true,
            MemberRole::Learner => false,
        });
        if voters.count() == NODES {
            return;
        }
    }
}

/// The worker of this process.
struct Worker {
    shutdown: Shutdown,
    life: JoinHandle<Result<(), ClientError>>,
}

impl Worker {
    fn start(client: Client) -> Result<Worker, CliError> {
        let args = WorkerArgs {
            pool: vec!["default".to_owned()],
            slots: 8,
            name: Some("dev".to_owned()),
            grace: Span::ZERO,
            kill_grace: Span::from_secs(2),
        };
        let shutdown = Shutdown::default();
        let life = tokio::spawn(puller(client, args)?.run(shutdown.clone()));
        Ok(Worker { shutdown, life })
    }

    /// Hands back what is held. Without a cluster to take it, the work is stopped all the same.
    async fn stop(mut self) {
        self.shutdown.drain.cancel();
        self.shutdown.hurry.cancel();
        if tokio::time::timeout(WORKER_STOP_WITHIN, &mut self.life).await.is_err() {
            self.life.abort();
        }
    }
}

async fn apply_examples(client: &Client) -> Result<Vec<String>, CliError> {
    let mut names = Vec::new();
    for (name, json) in examples() {
        let spec = serde_json::from_value(json)
            .map_err(|error| CliError::Failed(format!("the example {name}: {error}")))?;
        client.put_job(GROUP, name, &spec, Precondition::Any).await?;
        names.push(format!("{GROUP}/{name}"));
    }
    Ok(names)
}

fn introduce(addresses: &[String], jobs: &[String], output: &Output) -> Result<(), CliError> {
    let first = addresses.first().map(String::as_str).unwrap_or_default();
    let lines = [
        String::new(),
        format!("The API is at {}", addresses.join(" ")),
        format!("Jobs: {}", jobs.join(" ")),
        String::new(),
        "In another terminal:".to_owned(),
        format!("  export HOROLOG_SERVER={}", addresses.join(",")),
        "  horolog job list".to_owned(),
        "  horolog fire list".to_owned(),
        "  horolog cluster status".to_owned(),
        format!("  curl {first}/v1/tenants/default/jobs"),
        "Kill a node and see the others go on. Ctrl-C stops everything.".to_owned(),
        String::new(),
    ];
    output.text(&lines.join("\n"))
}

/// Prints each fire as it ends, with the last line of what it printed.
async fn show_fires(client: &Client, first: Events, output: &Output) -> Result<(), CliError> {
    let mut last_id: Option<String> = None;
    let mut stream = Some(first);
    loop {
        if let Some(mut events) = stream.take() {
            while let Some(event) = events.next().await {
                last_id = event.id.or(last_id);
                let fire = serde_json::from_str::<Fire>(&event.data).ok();
                if let Some(fire) = fire.filter(|fire| has_ended(fire.state)) {
                    show_end(client, &fire, output).await?;
                }
            }
        }
        tokio::time::sleep(REOPEN_AFTER).await;
        stream = client.watch_fires(last_id.as_deref()).await.ok();
    }
}

async fn show_end(client: &Client, fire: &Fire, output: &Output) -> Result<(), CliError> {
    let patience = Patience { answer: Duration::from_secs(2), retry_for: Duration::from_secs(2) };
    // The stream has no output; a fire whose output cannot be had is shown without.
    let whole = client.clone().with_patience(patience).fire(&fire.id).await.ok();
    let last = whole.as_ref().and_then(|fire| fire.attempts.last());
    let said = last.and_then(|attempt| attempt.output.as_deref()).unwrap_or_default();
    let said = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let attempts = match fire.attempt_count {
        0 | 1 => String::new(),
        count => format!("  {count} attempts"),
    };
    let line = format!("{}{attempts}  {}", event_line(fire), shortened(said, 60));
    output.text(line.trim_end())
}
