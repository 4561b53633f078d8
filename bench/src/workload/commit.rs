//! `commit-1` and `commit-256`: replaces of a job of 1 KiB at the leader, answered when durable.

use std::time::Duration;

use hyper::Method;

use crate::cluster::{Cluster, Plan};
use crate::error::Result;
use crate::jobs::{job_path, job_template};
use crate::load::{Caller, Connection, connect_shared};
use crate::report::Run;
use crate::workload::{Effort, closed_loop_run};

const BODY_BYTES: usize = 1_024;
const NAME: &str = "commit";

/// # Errors
/// When a call fails.
pub async fn run(plan: &Plan, effort: &Effort, callers: usize) -> Result<Run> {
    let cluster = Cluster::start(plan, NAME).await?;
    let leader = cluster.leader_api().await?;
    let connections = match callers {
        1 => vec![Connection::one(leader).await?],
        _ => connect_shared(leader, callers).await?,
    };
    let body = job_template(BODY_BYTES)?;
    let caller = |(i, connection): (usize, Connection)| Caller {
        connection,
        method: Method::PUT,
        path: job_path(&format!("commit-{i}")),
        body: body.clone(),
    };
    let callers = connections.into_iter().enumerate().map(caller).collect();
    closed_loop_run(&cluster, callers, Duration::from_secs(1), effort.window).await
}
