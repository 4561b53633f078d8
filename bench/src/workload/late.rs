//! `late-1k` and `late-5k`: how long after its due time a worker can begin a stored one-shot.

use std::time::Duration;

use crate::audit::{Audit, read_fires};
use crate::cluster::{Cluster, Plan};
use crate::crew::Crew;
use crate::error::Result;
use crate::report::Run;
use crate::stats::Samples;
use crate::usage::Usage;
use crate::workload::one_shots::{sleep_until_us, store};

const SECONDS: usize = 12;
const PAYLOAD_BYTES: usize = 128;
const WORKERS: usize = 4;
const SLOTS: u32 = 500;
const PATIENCE: Duration = Duration::from_secs(20);

/// # Errors
/// When a call fails, or when the work stands still.
pub async fn run(plan: &Plan, per_second: usize) -> Result<Run> {
    let cluster = Cluster::start(plan, "late").await?;
    let count = per_second * SECONDS;
    // Due times have milliseconds, so several a second share one.
    let offset_us = move |i: usize| (i * 1_000 / per_second) as i64 * 1_000;
    let stored = store(&cluster, count, PAYLOAD_BYTES, offset_us).await?;
    let mut crew = Crew::hire(&cluster.apis(), WORKERS, SLOTS).await?;
    sleep_until_us(stored.first_due_us).await;
    let before = Usage::now(&cluster)?.with_syncs(&cluster).await?;
    crew.wait_taken(count as u64, PATIENCE).await?;
    let after = Usage::now(&cluster)?.with_syncs(&cluster).await?;

    let late_us = crew.starts().iter().map(|start| start.started_us - start.due_us).collect();
    let late = Samples::new(late_us);
    let audit = Audit::of(read_fires(&cluster).await?, stored.count);
    let mut run = Run::default();
    run.add("throughput", count as f64 / before.until(&after).span.as_secs_f64(), "/s");
    run.add_samples("lateness", &late);
    run.add("lateness_min", late.min() as f64 / 1_000.0, "ms");
    run.add("early", late.count_below(0) as f64, "");
    run.add("missed", audit.missed as f64, "");
    run.add("doubled", audit.doubled as f64, "");
    run.add("refused", crew.refused() as f64, "");
    run.add_used(&before.until(&after), count);
    Ok(run)
}
