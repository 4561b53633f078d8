//! Jobs that fire every second, a worker that runs them, and the account of every occurrence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use horolog::base::time::{Span, Timestamp};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::http::Http;
use crate::support::poll;
use crate::support::processes::Cluster;

pub const TENANT: &str = "/v1/tenants/default";
const GROUP: &str = "second";

/// Makes `count` jobs with one trigger each that fires at every full second, whatever was missed.
pub async fn make_jobs(cluster: &Cluster, count: usize) {
    let body = json!({
        "executor": {"worker": {}},
        "overlap": "allow",
        "lease": "5s",
        "triggers": {"tick": {
            "schedule": {"every": {"interval": "1s"}},
            "misfire": {"policy": "fire_all"},
        }},
    });
    let leader = cluster.leader().await;
    for number in 0..count {
        let url = format!("{}{TENANT}/jobs/{GROUP}/job-{number}", cluster.base(leader));
        let answer = cluster.http.put(&url, &body).await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
}

/// A worker in the test's own process: pulls from whichever node answers, completes at once.
pub struct Worker {
    running: JoinHandle<()>,
}

impl Worker {
    pub fn start(bases: Vec<String>) -> Worker {
        Worker { running: tokio::spawn(work(bases)) }
    }

    pub fn stop(self) {
        self.running.abort();
    }
}

async fn work(bases: Vec<String>) {
    let http = Http::new();
    let mut turn = 0;
    let mut session: Option<String> = None;
    let mut unanswered: Vec<Value> = Vec::new();
    loop {
        let tenant = format!("{}{TENANT}", bases[turn % bases.len()]);
        if one_round(&http, &tenant, &mut session, &mut unanswered).await.is_err() {
            turn += 1;
            poll::let_pass(Duration::from_millis(50)).await;
        }
    }
}

/// Answers what is unanswered, then takes the next work. An error of any kind: try another node.
async fn one_round(
    http: &Http,
    tenant: &str,
    session: &mut Option<String>,
    unanswered: &mut Vec<Value>,
) -> Result<(), String> {
    let worker = match session {
        Some(worker) => worker.clone(),
        None => {
            let body = json!({"name": "test", "slots": 1000});
            let answer = http.post(&format!("{tenant}/workers"), &body).await?;
            let worker = answer.body["worker"].as_str().ok_or(answer.body.to_string())?.to_owned();
            session.insert(worker).clone()
        }
    };
    let worker_url = format!("{tenant}/workers/{worker}");
    if !unanswered.is_empty() {
        let body = json!({"answers": unanswered});
        let answer = http.post(&format!("{worker_url}:answer"), &body).await?;
        if answer.status != 200 {
            return Err(answer.body.to_string());
        }
        unanswered.clear();
    }
    let body = json!({"max": 500, "wait": "1s", "holding": []});
    let answer = http.post(&format!("{worker_url}:acquire"), &body).await?;
    if answer.status == 404 {
        *session = None;
    }
    if answer.status != 200 {
        return Err(answer.body.to_string());
    }
    for grant in answer.body["grants"].as_array().into_iter().flatten() {
        let verdict = json!({
            "run": grant["run"], "token": grant["token"], "outcome": "succeeded",
        });
        unanswered.push(verdict);
    }
    Ok(())
}

/// Waits until every job's occurrences up to `end` are recorded, then checks that each second since
/// the first has exactly one fire.
pub async fn check_every_second_once(cluster: &Cluster, base: &str, jobs: usize, end: Timestamp) {
    for number in 0..jobs {
        let job = format!("job-{number}");
        poll::reached("the backlog is recorded", Duration::from_secs(60), || async {
            let seconds = occurrences(&cluster.http, base, &job).await?;
            let last = seconds.keys().next_back().copied().ok_or("no fire yet")?;
            if last >= end { Ok(()) } else { Err(format!("{job} is at {last}, not at {end}")) }
        })
        .await;
        let seconds = occurrences(&cluster.http, base, &job).await.unwrap();
        let (first, last) = (*seconds.keys().next().unwrap(), *seconds.keys().next_back().unwrap());
        let mut expected = BTreeSet::new();
        let mut at = first;
        while at <= last {
            expected.insert(at);
            at = at.plus(Span::from_secs(1));
        }
        let lost: Vec<String> = expected
            .iter()
            .filter(|at| !seconds.contains_key(at))
            .map(Timestamp::to_string)
            .collect();
        let doubled: Vec<String> =
            seconds.iter().filter(|(_, n)| **n != 1).map(|(at, n)| format!("{at}×{n}")).collect();
        assert!(lost.is_empty(), "{job} lost {lost:?} between {first} and {last}");
        assert!(doubled.is_empty(), "{job} doubled {doubled:?}");
    }
}

/// How many records each scheduled time of a job has. A skipped occurrence counts as lost here: the
/// jobs' policy fires all of them.
pub async fn occurrences(
    http: &Http,
    base: &str,
    job: &str,
) -> Result<BTreeMap<Timestamp, usize>, String> {
    let mut seconds = BTreeMap::new();
    for fire in all_fires(http, base, &format!("{GROUP}/{job}")).await? {
        if fire["state"] != "skipped" {
            let at = fire["scheduled_at"].as_str().unwrap_or_default();
            let at: Timestamp = at.parse().map_err(|error| format!("{fire}: {error}"))?;
            *seconds.entry(at).or_insert(0) += 1;
        }
    }
    Ok(seconds)
}

/// All pages of a job's fires.
pub async fn all_fires(http: &Http, base: &str, job: &str) -> Result<Vec<Value>, String> {
    let mut fires = Vec::new();
    let mut cursor = String::new();
    loop {
        let url = format!("{base}{TENANT}/fires?job={job}&limit=1000{cursor}");
        let answer = http.get(&url).await?;
        if answer.status != 200 {
            return Err(answer.body.to_string());
        }
        fires.extend(answer.body["items"].as_array().cloned().unwrap_or_default());
        match answer.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(fires),
        }
    }
}
