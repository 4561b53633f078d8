//! `horolog worker`: runs commands and calls URLs for the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::sync::Arc;

use crate::base::bounded::Name;
use crate::cli::args::WorkerArgs;
use crate::cli::error::CliError;
use crate::cli::signals::StopSignals;
use crate::client::transport::Client;
use crate::wire::worker::ExecutorKind;
use crate::worker::command_handler::CommandHandler;
use crate::worker::handler::Handler;
use crate::worker::http_handler::HttpHandler;
use crate::worker::puller::{Puller, Shutdown};

/// Where the machine's name is read.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// # Errors
/// [`CliError`] when the cluster refuses the worker.
pub async fn run(client: Client, args: WorkerArgs) -> Result<(), CliError> {
    trace_to_stderr();
    let mut signals = StopSignals::listen()?;
    let shutdown = Shutdown::default();
    let told = shutdown.clone();
    let listening = tokio::spawn(async move {
        signals.next().await;
        told.drain.cancel();
        signals.next().await;
        told.hurry.cancel();
    });
    let result = puller(client, args)?.run(shutdown).await;
    listening.abort();
    result.map_err(CliError::from)
}

/// The worker that the arguments describe.
///
/// # Errors
/// [`CliError::Failed`] when calls cannot be made from this machine.
pub fn puller(client: Client, args: WorkerArgs) -> Result<Puller, CliError> {
    let http = HttpHandler::new()
        .map_err(|error| CliError::Failed(format!("cannot make calls: {error}")))?;
    let command = CommandHandler { kill_grace: args.kill_grace.to_std() };
    let handlers: BTreeMap<ExecutorKind, Arc<dyn Handler>> = BTreeMap::from([
        (ExecutorKind::Command, Arc::new(command) as Arc<dyn Handler>),
        (ExecutorKind::Http, Arc::new(http) as Arc<dyn Handler>),
    ]);
    Ok(Puller {
        client,
        name: args.name.unwrap_or_else(machine_name),
        pools: args.pool.into_iter().collect::<BTreeSet<String>>(),
        slots: args.slots,
        labels: BTreeMap::new(),
        grace: args.grace.to_std(),
        handlers,
    })
}

/// Events of the worker on standard error; `RUST_LOG` chooses which.
pub fn trace_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing::Level::INFO.into())
        .from_env_lossy();
    // A subscriber that is there already is the one to keep.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .try_init();
}

/// The machine's name as far as it is a name here, else `worker`.
fn machine_name() -> String {
    let text = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
    match Name::new(text.trim()) {
        Ok(name) => name.as_str().to_owned(),
        Err(_) => "worker".to_owned(),
    }
}
