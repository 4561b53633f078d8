//! The workloads by name, one file for each kind.

pub mod commit;
pub mod drain;
pub mod footprint;
pub mod late;
pub mod leader_kill;
pub mod one_shots;
pub mod recur;
pub mod submit;

use std::time::Duration;

use clap::ValueEnum;

use crate::cluster::{Cluster, Plan};
use crate::error::Result;
use crate::load::{Caller, closed_loop};
use crate::machine::{self, Place};
use crate::report::Run;
use crate::stats::Samples;
use crate::usage::Usage;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bench {
    /// `fdatasync` alone, without a cluster: what this machine's disk allows.
    Floor,
    /// One caller replaces a job of 1 KiB, next after reply.
    #[value(name = "commit-1")]
    Commit1,
    /// 256 callers over 8 connections replace jobs of 1 KiB.
    #[value(name = "commit-256")]
    Commit256,
    /// 256 connections, one delayed job of 512 B a call.
    SubmitOne,
    /// 20,000 one-shots due at one instant, four workers, until the last completion is durable.
    #[value(name = "drain-20k")]
    Drain20k,
    /// 12,000 stored one-shots, 1,000 due a second: worker's start minus due time.
    #[value(name = "late-1k")]
    Late1k,
    /// 60,000 stored one-shots, 5,000 due a second.
    #[value(name = "late-5k")]
    Late5k,
    /// 10,000 cron and interval jobs, 1,000 fires a second for 60 s.
    #[value(name = "recur-10k")]
    Recur10k,
    /// `kill -9` of the leader under 1,000 fires a second: next write, next fire.
    LeaderKill,
    /// Memory, start, list page, and disk bytes a job's life.
    Footprint,
    /// Every one of them, in this order.
    All,
}

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub window: Duration,
    pub jobs: usize,
    pub kills: usize,
}

impl Bench {
    pub fn name(self) -> &'static str {
        match self {
            Bench::Floor => "floor",
            Bench::Commit1 => "commit-1",
            Bench::Commit256 => "commit-256",
            Bench::SubmitOne => "submit-one",
            Bench::Drain20k => "drain-20k",
            Bench::Late1k => "late-1k",
            Bench::Late5k => "late-5k",
            Bench::Recur10k => "recur-10k",
            Bench::LeaderKill => "leader-kill",
            Bench::Footprint => "footprint",
            Bench::All => "all",
        }
    }
}

/// The benches that the names stand for.
pub fn wanted(names: &[Bench]) -> Vec<Bench> {
    let all = Bench::value_variants();
    match names.contains(&Bench::All) {
        true => all.iter().copied().filter(|bench| *bench != Bench::All).collect(),
        false => names.to_vec(),
    }
}

/// One run, on a cluster of its own.
///
/// # Errors
/// When the cluster does not come up, or when a call fails that should not.
pub async fn run(bench: Bench, plan: &Plan, effort: &Effort) -> Result<Run> {
    match bench {
        Bench::Floor => floor(plan, effort),
        Bench::Commit1 => commit::run(plan, effort, 1).await,
        Bench::Commit256 => commit::run(plan, effort, 256).await,
        Bench::SubmitOne => submit::run(plan, effort).await,
        Bench::Drain20k => drain::run(plan).await,
        Bench::Late1k => late::run(plan, 1_000).await,
        Bench::Late5k => late::run(plan, 5_000).await,
        Bench::Recur10k => recur::run(plan).await,
        Bench::LeaderKill => leader_kill::run(plan, effort).await,
        Bench::Footprint => footprint::run(plan, effort).await,
        Bench::All => Ok(Run::default()),
    }
}

fn floor(plan: &Plan, effort: &Effort) -> Result<Run> {
    let mut run = Run::default();
    for (name, place) in [("append", Place::Appended), ("prepared", Place::Prepared)] {
        let syncs = machine::sync_floor(&plan.folder, place, effort.window)?;
        run.add(format!("{name}_rate"), syncs.count() as f64 / effort.window.as_secs_f64(), "/s");
        run.add_samples(name, &syncs);
    }
    Ok(run)
}

/// Lets the callers call in a closed loop, and says how often, how long, and at what cost.
async fn closed_loop_run(
    cluster: &Cluster,
    callers: Vec<Caller>,
    warm_up: Duration,
    window: Duration,
) -> Result<Run> {
    let mut before = None;
    let mark = async { Usage::now(cluster)?.with_syncs(cluster).await };
    let measured = closed_loop(callers, warm_up, window, async {
        before = Some(mark.await?);
        Ok(())
    });
    let measured = measured.await?;
    let after = Usage::now(cluster)?.with_syncs(cluster).await?;
    let count = measured.call_us.len();
    let mut run = Run::default();
    run.add("throughput", count as f64 / window.as_secs_f64(), "/s");
    run.add_samples("", &Samples::new(measured.call_us));
    run.add("busy", measured.busy as f64, "");
    if let Some(before) = before {
        run.add_used(&before.until(&after), count);
    }
    Ok(run)
}
