//! `drain-20k`: one-shots due at one instant, until the last completion is durable.

use std::time::Duration;

use crate::audit::{Audit, read_fires};
use crate::cluster::{Cluster, Plan};
use crate::crew::Crew;
use crate::error::Result;
use crate::report::Run;
use crate::stats::Samples;
use crate::usage::Usage;
use crate::workload::one_shots::{sleep_until_us, store};

const COUNT: usize = 20_000;
const PAYLOAD_BYTES: usize = 128;
const WORKERS: usize = 4;
const SLOTS: u32 = 1_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// # Errors
/// When a call fails, or when the work stands still.
pub async fn run(plan: &Plan) -> Result<Run> {
    let cluster = Cluster::start(plan, "drain").await?;
    let stored = store(&cluster, COUNT, PAYLOAD_BYTES, |_| 0).await?;
    let mut crew = Crew::hire(&cluster.apis(), WORKERS, SLOTS).await?;
    sleep_until_us(stored.first_due_us - 200_000).await;
    let before = Usage::now(&cluster)?.with_syncs(&cluster).await?;
    crew.wait_taken(COUNT as u64, PATIENCE).await?;
    let after = Usage::now(&cluster)?.with_syncs(&cluster).await?;

    let drained_us = crew.last_taken_us() - stored.first_due_us;
    let late_us = crew.starts().iter().map(|start| start.started_us - start.due_us).collect();
    let audit = Audit::of(read_fires(&cluster).await?, stored.count);
    let mut run = Run::default();
    run.add("throughput", COUNT as f64 / (drained_us as f64 / 1e6), "/s");
    run.add("drained_after", drained_us as f64 / 1e6, "s");
    run.add_samples("lateness", &Samples::new(late_us));
    run.add("missed", audit.missed as f64, "");
    run.add("doubled", audit.doubled as f64, "");
    run.add("refused", crew.refused() as f64, "");
    run.add_used(&before.until(&after), COUNT);
    Ok(run)
}
