//! `footprint`: what a cluster takes while it does little: memory, start, list pages, disk.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::cluster::{Cluster, Plan};
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::jobs::{daily_job, job_path};
use crate::load::{Call, Connection, make_all, micros};
use crate::report::{Run, progress};
use crate::stats::Samples;
use crate::usage::{Usage, folder_bytes, memory_mb};
use crate::workload::Effort;
use crate::workload::one_shots::store;

const IDLE: Duration = Duration::from_secs(10);
/// Until what was written behind is on the disk.
const WRITTEN_BEHIND: Duration = Duration::from_secs(3);
const LIVES: usize = 10_000;
const LIFE_PAYLOAD_BYTES: usize = 256;
const WORKERS: usize = 4;
const SLOTS: u32 = 500;
const PATIENCE: Duration = Duration::from_secs(20);
const CALLERS: usize = 128;
const PAGES: usize = 500;

/// # Errors
/// When a call fails, or when a node does not come back.
pub async fn run(plan: &Plan, effort: &Effort) -> Result<Run> {
    let mut cluster = Cluster::start(plan, "footprint").await?;
    let mut run = Run::default();
    idle(&cluster, &mut run).await?;
    lives(&cluster, &mut run).await?;
    load(&cluster, effort.jobs, &mut run).await?;
    pages(&cluster, &mut run).await?;
    starts(&mut cluster, &mut run).await?;
    Ok(run)
}

async fn idle(cluster: &Cluster, run: &mut Run) -> Result<()> {
    sleep(WRITTEN_BEHIND).await;
    let before = Usage::now(cluster)?;
    sleep(IDLE).await;
    let used = before.until(&Usage::now(cluster)?);
    run.add("idle_memory", memory_max_mb(cluster)?, "MB");
    run.add("idle_cores", used.node_cores.iter().sum(), "cores");
    run.add("idle_disk", used.written_bytes as f64 / 1_000.0 / used.span.as_secs_f64(), "KB/s");
    Ok(())
}

/// What a job's life costs the disks of all nodes: stored, fired, granted, completed.
async fn lives(cluster: &Cluster, run: &mut Run) -> Result<()> {
    progress(&format!("{LIVES} lives"));
    let before = Usage::now(cluster)?.with_syncs(cluster).await?;
    store(cluster, LIVES, LIFE_PAYLOAD_BYTES, |_| 0).await?;
    let mut crew = Crew::hire(&cluster.apis(), WORKERS, SLOTS).await?;
    crew.wait_taken(LIVES as u64, PATIENCE).await?;
    sleep(WRITTEN_BEHIND).await;
    let used = before.until(&Usage::now(cluster)?.with_syncs(cluster).await?);
    run.add("life_disk", used.written_bytes as f64 / 1_000.0 / LIVES as f64, "KB");
    run.add("life_syncs", used.log_syncs as f64 / LIVES as f64, "");
    Ok(())
}

async fn load(cluster: &Cluster, jobs: usize, run: &mut Run) -> Result<()> {
    progress(&format!("{jobs} jobs"));
    let leader = cluster.leader_api().await?;
    let began = Instant::now();
    let define = |i: usize| Ok(Call::put(job_path(&format!("daily-{i}")), daily_job(i)?));
    make_all(leader, CALLERS, jobs, define).await?;
    run.add("load_rate", jobs as f64 / began.elapsed().as_secs_f64(), "/s");
    sleep(WRITTEN_BEHIND).await;
    run.add("loaded_memory", memory_max_mb(cluster)?, "MB");
    let mut bytes = 0;
    for node in &cluster.nodes {
        bytes += folder_bytes(&node.folder)?;
    }
    run.add("loaded_folders", bytes as f64 / 1e6, "MB");
    let before = Usage::now(cluster)?;
    sleep(IDLE).await;
    let used = before.until(&Usage::now(cluster)?);
    run.add("loaded_cores", used.node_cores.iter().sum(), "cores");
    run.add("other_cores", used.other_cores, "cores");
    Ok(())
}

/// Pages of 100 jobs, one after the other through the list, at the leader.
async fn pages(cluster: &Cluster, run: &mut Run) -> Result<()> {
    let mut connection = Connection::one(cluster.leader_api().await?).await?;
    let first = "/v1/tenants/default/jobs?limit=100".to_owned();
    let mut path = first.clone();
    let mut page_us = Vec::new();
    for _ in 0..PAGES {
        let from = Instant::now();
        let reply = connection.send(&Call::get(path.as_str())).await?.accepted(&path)?;
        page_us.push(micros(from.elapsed()));
        let page = serde_json::from_slice::<Next<'_>>(&reply.body);
        let next = page.map_err(Error::json("page"))?.next_cursor;
        path = next.map_or_else(|| first.clone(), |cursor| format!("{first}&cursor={cursor}"));
    }
    run.add_samples("list_page", &Samples::new(page_us));
    Ok(())
}

#[derive(serde::Deserialize)]
struct Next<'a> {
    next_cursor: Option<&'a str>,
}

/// From a process's start to its readiness: one node beside the others, and all at once.
async fn starts(cluster: &mut Cluster, run: &mut Run) -> Result<()> {
    let leader = cluster.leader().await?;
    let follower = (leader + 1) % cluster.nodes.len();
    cluster.stop(follower).await?;
    let began = Instant::now();
    cluster.restart(follower)?;
    cluster.wait_ready(follower).await?;
    run.add("loaded_start", began.elapsed().as_secs_f64(), "s");
    cluster.wait_voters().await?;
    for i in 0..cluster.nodes.len() {
        cluster.kill(i).await?;
    }
    let began = Instant::now();
    for i in 0..cluster.nodes.len() {
        cluster.restart(i)?;
    }
    for i in 0..cluster.nodes.len() {
        cluster.wait_ready(i).await?;
    }
    run.add("loaded_start_all", began.elapsed().as_secs_f64(), "s");
    run.add("restarted_memory", memory_max_mb(cluster)?, "MB");
    Ok(())
}

/// Of the node that takes most.
fn memory_max_mb(cluster: &Cluster) -> Result<f64> {
    let mut most = 0.0_f64;
    for node in &cluster.nodes {
        if let Some(pid) = node.pid() {
            most = most.max(memory_mb(pid)?);
        }
    }
    Ok(most)
}
