//! Stored one-shots: fires with an instant and a payload of their own, spread over many jobs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::clock::now_us;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::jobs::{job, job_path, one_shot, to_json};
use crate::load::{Call, make_all};

/// One entry of the log grants each job at most once, so that its tokens grow: a burst for one job
/// alone would be granted one by one.
const JOBS: usize = 2_000;
const CALLERS: usize = 128;
/// Slower than this and the one-shots would fall due while they are being stored.
const STORED_PER_SECOND_MIN: usize = 1_500;
const SLACK_US: i64 = 3_000_000;

/// One-shots that are stored, and when they fall due.
pub struct Stored {
    pub first_due_us: i64,
    pub count: usize,
}

/// Stores one-shots; the `i`th falls due `offset_us(i)` after the first.
///
/// # Errors
/// When a call fails, or when storing took so long that some are due already.
pub async fn store<F>(
    cluster: &Cluster,
    count: usize,
    payload_bytes: usize,
    offset_us: F,
) -> Result<Stored>
where
    F: Fn(usize) -> i64 + Send + Sync + 'static,
{
    let leader = cluster.leader_api().await?;
    let definition = to_json(&job(None)?)?;
    let jobs = JOBS.min(count);
    let define = move |i: usize| Ok(Call::put(job_path(&name(i, jobs)), definition.clone()));
    make_all(leader, CALLERS, jobs, define).await?;
    let storing_us = (count / STORED_PER_SECOND_MIN) as i64 * 1_000_000;
    // Due times have milliseconds.
    let first_due_us = (now_us() + storing_us + SLACK_US) / 1_000 * 1_000;
    let offset_us = Arc::new(offset_us);
    let submit = move |i: usize| {
        let body = one_shot(first_due_us + offset_us(i), payload_bytes)?;
        Ok(Call::post(format!("{}:fire", job_path(&name(i, jobs))), body))
    };
    make_all(leader, CALLERS, count, submit).await?;
    if now_us() + SLACK_US / 3 > first_due_us {
        return Err(Error::TooLong(format!("storing {count} one-shots")));
    }
    Ok(Stored { first_due_us, count })
}

/// # Errors
/// Never.
pub async fn sleep_until_us(at_us: i64) {
    let wait_us = u64::try_from(at_us - now_us()).unwrap_or_default();
    sleep(Duration::from_micros(wait_us)).await;
}

fn name(i: usize, jobs: usize) -> String {
    format!("shot-{}", i % jobs)
}
