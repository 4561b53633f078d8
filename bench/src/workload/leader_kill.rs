//! `leader-kill`: `kill -9` of the leader under 1,000 fires a second, again and again.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::audit::{Audit, read_fires};
use crate::clock::now_us;
use crate::cluster::{Cluster, Plan};
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::jobs::{PERIOD_US, Recurring, job_path, job_template};
use crate::load::{Call, call_once, micros};
use crate::report::{Run, progress};
use crate::stats::Samples;
use crate::usage::Usage;
use crate::workload::Effort;
use crate::workload::one_shots::sleep_until_us;
use crate::workload::recur::{JOBS, define};

const WORKERS: usize = 4;
const SLOTS: u32 = 500;
/// Between a node's return and the next kill.
const SETTLE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// # Errors
/// When nothing is written or fired for long after a kill, or when a node does not come back.
pub async fn run(plan: &Plan, effort: &Effort) -> Result<Run> {
    if plan.nodes < 3 {
        return Err(Error::Wrong("leader-kill needs 3 nodes or more".to_owned()));
    }
    let mut cluster = Cluster::start(plan, "leader-kill").await?;
    let recurring = define(&cluster, None).await?;
    let crew = Crew::hire(&cluster.apis(), WORKERS, SLOTS).await?;
    sleep_until_us(recurring.from_us + 2_000_000).await;
    let (mut write_us, mut fire_us) = (Vec::new(), Vec::new());
    let first = Usage::now(&cluster)?;
    for i in 1..=effort.kills {
        let (write, fire) = kill_once(&mut cluster, &crew).await?;
        progress(&format!(
            "kill {i}: next write after {} ms, next fire after {} ms",
            write / 1_000,
            fire / 1_000
        ));
        write_us.push(write);
        fire_us.push(fire);
        sleep(SETTLE).await;
    }
    let other_cores = first.until(&Usage::now(&cluster)?).other_cores;
    let audit = audit(&cluster, &recurring).await?;
    let starts = crew.starts();
    let early = starts.iter().filter(|start| start.started_us < start.due_us).count();
    let mut run = Run::default();
    for (name, samples) in [("next_write", write_us), ("next_fire", fire_us)] {
        let samples = Samples::new(samples);
        run.add(format!("{name}_min"), samples.min() as f64 / 1_000.0, "ms");
        run.add(format!("{name}_p50"), samples.permille(500) as f64 / 1_000.0, "ms");
        run.add(format!("{name}_max"), samples.max() as f64 / 1_000.0, "ms");
    }
    run.add("kills", effort.kills as f64, "");
    run.add("fires", starts.len() as f64, "");
    run.add("early", early as f64, "");
    run.add("missed", audit.missed as f64, "");
    run.add("doubled", audit.doubled as f64, "");
    run.add("refused", crew.refused() as f64, "");
    run.add("other_cores", other_cores, "cores");
    Ok(run)
}

/// Microseconds from the kill to the next durable write, and to the first start of a fire that fell
/// due after the kill.
async fn kill_once(cluster: &mut Cluster, crew: &Crew) -> Result<(i64, i64)> {
    let leader = cluster.leader().await?;
    let survivors: Vec<SocketAddr> = cluster
        .running()
        .into_iter()
        .filter(|&i| i != leader)
        .map(|i| cluster.nodes[i].api)
        .collect();
    let killed_us = now_us();
    let killed_at = Instant::now();
    cluster.kill(leader).await?;
    let mut writers = JoinSet::new();
    for (i, api) in survivors.into_iter().enumerate() {
        writers.spawn(write_until_taken(api, i, killed_at));
    }
    let write_us = async {
        match writers.join_next().await {
            Some(Ok(taken)) => taken,
            Some(Err(_)) | None => Err(Error::Wrong("no writer is left".to_owned())),
        }
    };
    let (write_us, fire_us) = tokio::join!(write_us, next_fire(crew, killed_us, killed_at));
    cluster.restart(leader)?;
    cluster.wait_ready(leader).await?;
    cluster.wait_voters().await?;
    Ok((write_us?, fire_us?))
}

async fn write_until_taken(api: SocketAddr, writer: usize, killed_at: Instant) -> Result<i64> {
    let body = job_template(1_024)?;
    let path = job_path(&format!("probe-{writer}"));
    let mut number = 0;
    while killed_at.elapsed() < PATIENCE {
        number += 1;
        let call = Call::put(path.as_str(), body.with(number));
        let reply = call_once(api, &call, PATIENCE).await;
        if reply.is_ok_and(|reply| reply.is_success()) {
            return Ok(micros(killed_at.elapsed()));
        }
        sleep(LOOK_AGAIN).await;
    }
    Err(Error::TooLong("the next write after a kill".to_owned()))
}

async fn next_fire(crew: &Crew, killed_us: i64, killed_at: Instant) -> Result<i64> {
    while killed_at.elapsed() < PATIENCE {
        if let Some(start) = crew.first_start_due_from(killed_us) {
            return Ok(start.started_us - killed_us);
        }
        sleep(LOOK_AGAIN).await;
    }
    Err(Error::TooLong("the next fire after a kill".to_owned()))
}

/// Looks at the whole periods that have passed by now, once their fires had time to end.
async fn audit(cluster: &Cluster, recurring: &Recurring) -> Result<Audit> {
    let periods = (now_us() - recurring.from_us) / PERIOD_US;
    let to_us = recurring.from_us + periods * PERIOD_US;
    let limit = Instant::now() + PATIENCE;
    let expected = JOBS * usize::try_from(periods).unwrap_or_default();
    loop {
        let mut fires = read_fires(cluster).await?;
        fires.retain(|fire| fire.scheduled_us < to_us);
        let audit = Audit::of(fires, expected);
        if audit.missed == 0 || Instant::now() > limit {
            return Ok(audit);
        }
        sleep(SETTLE).await;
    }
}
