//! Checks a running cluster from outside: reads what it says it did, and gives a verdict.
//!
//! `jepsen accounts -s URL,URL` reads every job's fires through the public API and judges them by
//! the promises P1, P2 and P4: no occurrence of an `every` schedule without a record, none with
//! two, tokens of a job that strictly grow. It changes nothing, so it may be run against any
//! cluster. The verdict is true, false or unknown; exit codes 0, 1 and 2.

#![allow(clippy::print_stdout, reason = "a verdict is printed")]

mod checker;
mod history;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use horolog::client::transport::Client;

use crate::checker::Verdict;

#[derive(Parser)]
#[command(name = "jepsen", about = "Judges a running Horolog cluster by its promises")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Judge the accounts of every job: occurrences and tokens.
    Accounts {
        /// Nodes of the cluster; the first that answers is asked.
        #[arg(short, long, value_delimiter = ',', default_value = "http://127.0.0.1:7601")]
        server: Vec<String>,
        #[arg(short, long, default_value = "default")]
        tenant: String,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let Command::Accounts { server, tenant } = Arguments::parse().command;
    let verdict = accounts(&server, &tenant).await;
    println!("{verdict}");
    match verdict {
        Verdict::True { .. } => ExitCode::SUCCESS,
        Verdict::False { .. } => ExitCode::from(1),
        Verdict::Unknown { .. } => ExitCode::from(2),
    }
}

async fn accounts(server: &[String], tenant: &str) -> Verdict {
    let read = match Client::new(server, tenant) {
        Ok(client) => history::read(&client).await,
        Err(error) => Err(error),
    };
    match read {
        Ok(jobs) => checker::judge(&jobs),
        Err(error) => Verdict::Unknown { why: error.to_string() },
    }
}
