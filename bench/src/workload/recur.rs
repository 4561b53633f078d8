//! `recur-10k`: cron and interval jobs, 1,000 fires a second, each leased and completed.

use std::time::Duration;

use crate::audit::{Audit, read_fires};
use crate::clock::now_us;
use crate::cluster::{Cluster, Plan};
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::jobs::{PERIOD_US, Recurring, job_path};
use crate::load::{Call, make_all};
use crate::report::Run;
use crate::stats::Samples;
use crate::usage::Usage;
use crate::workload::one_shots::sleep_until_us;

/// Each fires once a period of 10 s: 1,000 fires a second.
pub const JOBS: usize = 10_000;
const PERIODS: usize = 6;
const WORKERS: usize = 4;
const SLOTS: u32 = 500;
const CALLERS: usize = 128;
const STORED_PER_SECOND_MIN: usize = 1_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// # Errors
/// When a call fails, or when the work stands still without being complete.
pub async fn run(plan: &Plan) -> Result<Run> {
    let cluster = Cluster::start(plan, "recur").await?;
    let recurring = define(&cluster, Some(PERIODS)).await?;
    let mut crew = Crew::hire(&cluster.apis(), WORKERS, SLOTS).await?;
    sleep_until_us(recurring.from_us).await;
    let before = Usage::now(&cluster)?.with_syncs(&cluster).await?;
    let count = JOBS * PERIODS;
    let ended = crew.wait_taken(count as u64, PATIENCE).await;
    if let Err(error) = ended
        && !matches!(error, Error::TooLong(_))
    {
        return Err(error);
    }
    let after = Usage::now(&cluster)?.with_syncs(&cluster).await?;

    let starts = crew.starts();
    let late = Samples::new(starts.iter().map(|start| start.started_us - start.due_us).collect());
    let audit = Audit::of(read_fires(&cluster).await?, count);
    let span_s = (crew.last_taken_us() - recurring.from_us) as f64 / 1e6;
    let mut run = Run::default();
    run.add("throughput", starts.len() as f64 / span_s, "/s");
    run.add_samples("lateness", &late);
    run.add("lateness_min", late.min() as f64 / 1_000.0, "ms");
    run.add("early", late.count_below(0) as f64, "");
    run.add("missed", audit.missed as f64, "");
    run.add("doubled", audit.doubled as f64, "");
    run.add("refused", crew.refused() as f64, "");
    run.add_used(&before.until(&after), count);
    Ok(run)
}

/// Defines the recurring jobs; they begin at a period's start that is still to come, and end after
/// some periods or never.
///
/// # Errors
/// When a call fails, or when the definitions took so long that some are due already.
pub async fn define(cluster: &Cluster, periods: Option<usize>) -> Result<Recurring> {
    let leader = cluster.leader_api().await?;
    let defining_us = (JOBS / STORED_PER_SECOND_MIN) as i64 * 1_000_000;
    let from_us = ((now_us() + defining_us) / PERIOD_US + 1) * PERIOD_US;
    let to_us = periods.map(|periods| from_us + periods as i64 * PERIOD_US);
    let recurring = Recurring { jobs: JOBS, from_us, to_us };
    let define = move |i: usize| Ok(Call::put(job_path(&format!("recur-{i}")), recurring.job(i)?));
    make_all(leader, CALLERS, JOBS, define).await?;
    if now_us() + 500_000 > from_us {
        return Err(Error::TooLong(format!("defining {JOBS} jobs")));
    }
    Ok(recurring)
}
