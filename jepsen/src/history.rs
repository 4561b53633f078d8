//! What a cluster says it did, read through its public API into the little that the checkers need.

use std::collections::BTreeMap;

use horolog::base::time::Timestamp;
use horolog::client::error::ClientError;
use horolog::client::fires::FireFilter;
use horolog::client::jobs::JobFilter;
use horolog::client::transport::Client;
use horolog::wire::fire::Fire;
use horolog::wire::job::Job;
use horolog::wire::trigger::Schedule;

const PAGE: usize = 1_000;

/// One job's records.
pub(crate) struct JobHistory {
    pub(crate) name: String,
    /// The period of each trigger that fires at a fixed rate, in milliseconds.
    pub(crate) periods_ms: BTreeMap<String, i64>,
    pub(crate) records: Vec<Record>,
}

/// One fire, or one folded run of occurrences that did not fire.
pub(crate) struct Record {
    pub(crate) trigger: Option<String>,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) count: u64,
    pub(crate) tokens: Vec<u64>,
}

/// Reads all jobs of the client's tenant with all their fires.
pub(crate) async fn read(client: &Client) -> Result<Vec<JobHistory>, ClientError> {
    let mut jobs = Vec::new();
    let mut cursor = None;
    loop {
        let page = client.jobs(&JobFilter::default(), PAGE, cursor.as_deref()).await?;
        for job in page.items {
            jobs.push(read_job(client, &job).await?);
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(jobs),
        }
    }
}

async fn read_job(client: &Client, job: &Job) -> Result<JobHistory, ClientError> {
    let name = format!("{}/{}", job.group, job.name);
    let filter = FireFilter { job: Some(name.clone()), ..FireFilter::default() };
    let mut records = Vec::new();
    let mut cursor = None;
    loop {
        let page = client.fires(&filter, PAGE, cursor.as_deref()).await?;
        records.extend(page.items.iter().filter_map(record));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    let periods_ms = job.spec.triggers.iter().flatten().filter_map(|(trigger, spec)| {
        let Schedule::Every(every) = &spec.schedule else { return None };
        let period: horolog::base::time::Span = every.interval.parse().ok()?;
        Some((trigger.clone(), period.as_ms()))
    });
    Ok(JobHistory { name, periods_ms: periods_ms.collect(), records })
}

fn record(fire: &Fire) -> Option<Record> {
    let first: Timestamp = fire.scheduled_at.parse().ok()?;
    let (last, count) = match &fire.folded {
        Some(folded) => (folded.last_scheduled_at.parse().ok()?, folded.count),
        None => (first, 1),
    };
    let tokens = fire.attempts.iter().map(|attempt| attempt.token).collect();
    Some(Record { trigger: fire.trigger.clone(), first, last, count, tokens })
}
