//! The commands a person types, and what they print.
//!
//! `args` declares the grammar and nothing else; each command is a function in the file of its
//! noun; `output` is the only place that prints. Exit codes: 0 done, 1 failed, 2 wrong usage or
//! refused input, 3 the cluster cannot be reached or did not answer.

pub mod address;
pub mod apply;
pub mod args;
pub mod cluster;
pub mod cron_next;
pub mod crontab;
pub mod dev;
pub mod error;
pub mod fire;
pub mod import;
pub mod input;
pub mod job;
pub mod output;
pub mod serve;
pub mod signals;
pub mod table;
pub mod trigger;
pub mod words;
pub mod worker;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;

use crate::cli::args::{Cli, Command};
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::client::transport::{Client, Patience};

/// Longer than a change of leader takes, shorter than a person's patience.
const RETRY_FOR: Duration = Duration::from_secs(5);

/// Reads the command line, does what it says, and tells how that went.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let output = Output::new(cli.global.output, cli.global.no_color.as_deref());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output.message(&format!("error: cannot start the runtime: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(dispatch(cli, &output));
    // A blocked read of standard input must not keep the process.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(text) = error.text() {
                output.message(&format!("error: {text}"));
            }
            ExitCode::from(error.code())
        }
    }
}

/// Help and version go to standard output and succeed; everything else is wrong usage.
fn refuse(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(error::USAGE),
    }
}

async fn dispatch(cli: Cli, output: &Output) -> Result<(), CliError> {
    let global = cli.global;
    let client = || -> Result<Client, CliError> {
        let client = Client::new(&global.server, &global.tenant)?;
        Ok(client.with_patience(Patience { retry_for: RETRY_FOR, ..Patience::default() }))
    };
    match cli.command {
        Command::Serve(args) => serve::run(*args).await,
        Command::Dev(args) => dev::run(args, output).await,
        Command::Worker(args) => worker::run(client()?, args).await,
        Command::Job(command) => job::run(&client()?, command, output).await,
        Command::Trigger(command) => trigger::run(&client()?, command, output).await,
        Command::Fire(command) => fire::run(&client()?, command, output).await,
        Command::Cluster(command) => cluster::run(&client()?, command, output).await,
        Command::Cron(command) => cron_next::run(&command, output),
        Command::Import(command) => import::run(&client()?, command, output).await,
    }
}
