//! Measures three real nodes on this machine, with synced disks, from outside.

pub mod audit;
pub mod clock;
pub mod cluster;
pub mod crew;
pub mod error;
pub mod jobs;
pub mod load;
pub mod machine;
pub mod report;
pub mod stats;
pub mod target;
pub mod usage;
pub mod workload;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;

use crate::cluster::Plan;
use crate::error::{Error, Result};
use crate::report::Setting;
use crate::workload::{Bench, Effort};

/// Measures a cluster of real nodes on this machine.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Args {
    /// What to measure.
    #[arg(value_enum, required = true)]
    names: Vec<Bench>,
    /// How often; the median and the range are shown.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// One line of JSON per figure, and no table.
    #[arg(long)]
    json: bool,
    /// How long `commit-*` and `submit-one` are measured, after a warm-up of 1 s.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Nodes of the cluster.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Jobs of `footprint`.
    #[arg(long, default_value_t = 100_000)]
    jobs: usize,
    /// Kills of `leader-kill`.
    #[arg(long, default_value_t = 15)]
    kills: usize,
    /// The server to measure; built from this source by default, always in release.
    #[arg(long)]
    server: Option<PathBuf>,
    /// Where the nodes keep their data; on a real disk.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Leave the folders of the nodes behind.
    #[arg(long)]
    keep: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match measure(&Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::progress(&format!("bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn measure(args: &Args) -> Result<()> {
    let program = match &args.server {
        Some(program) => program.clone(),
        None => build_server()?,
    };
    let folder = args.data.clone().unwrap_or_else(|| root().join("target/bench"));
    fs::create_dir_all(&folder).map_err(Error::at(&folder))?;
    machine::require_disk(&folder)?;
    let setting = Setting { nodes: args.nodes, machine: machine::describe(&folder) };
    let plan = Plan { program, folder, nodes: args.nodes, keep: args.keep };
    let effort =
        Effort { window: Duration::from_secs(args.seconds), jobs: args.jobs, kills: args.kills };
    for bench in workload::wanted(&args.names) {
        let mut runs = Vec::new();
        for i in 1..=args.runs {
            report::progress(&format!("{}: run {i} of {}", bench.name(), args.runs));
            runs.push(workload::run(bench, &plan, &effort).await?);
        }
        report::show(bench.name(), &setting, &runs, args.json)?;
    }
    Ok(())
}

fn root() -> &'static Path {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    bench.parent().unwrap_or(bench)
}

/// Builds the server from this source, so that never an older one is measured.
fn build_server() -> Result<PathBuf> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "horolog", "--bin", "horolog"])
        .current_dir(root())
        .status()
        .map_err(Error::io("cargo build"))?;
    if !built.success() {
        return Err(Error::Wrong("the server does not build".to_owned()));
    }
    let this = std::env::current_exe().map_err(Error::io("this program"))?;
    let beside = this.with_file_name("horolog");
    let in_target = root().join("target/release/horolog");
    [beside, in_target]
        .into_iter()
        .find(|program| program.ends_with("release/horolog") && program.exists())
        .ok_or_else(|| Error::Wrong("no release binary beside this program".to_owned()))
}
