//! `submit-one`: 256 connections, one delayed job a call, answered when durable.

use std::time::Duration;

use hyper::Method;

use crate::cluster::{Cluster, Plan};
use crate::error::Result;
use crate::jobs::{delayed_template, job, job_path, to_json};
use crate::load::{Call, Caller, Connection, make_all};
use crate::report::Run;
use crate::workload::{Effort, closed_loop_run};

const BODY_BYTES: usize = 512;
const CONNECTIONS: usize = 256;
/// The jobs that the one-shots belong to; their payloads are their own.
const JOBS: usize = 64;
/// Later than the run ends.
const DELAY: &str = "1h";

/// # Errors
/// When a call fails.
pub async fn run(plan: &Plan, effort: &Effort) -> Result<Run> {
    let cluster = Cluster::start(plan, "submit").await?;
    let leader = cluster.leader_api().await?;
    let definition = to_json(&job(None)?)?;
    let define = move |i: usize| Ok(Call::put(job_path(&name(i)), definition.clone()));
    make_all(leader, 16, JOBS, define).await?;
    let body = delayed_template(BODY_BYTES, DELAY)?;
    let mut callers = Vec::new();
    for i in 0..CONNECTIONS {
        callers.push(Caller {
            connection: Connection::one(leader).await?,
            method: Method::POST,
            path: format!("{}:fire", job_path(&name(i))),
            body: body.clone(),
        });
    }
    closed_loop_run(&cluster, callers, Duration::from_secs(1), effort.window).await
}

fn name(i: usize) -> String {
    format!("submit-{}", i % JOBS)
}
