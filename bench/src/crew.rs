//! Pulling workers that do nothing with a job but note when they could have begun it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use horolog::wire::worker::Registered;
use serde::Deserialize;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::clock::{now_us, parse_us};
use crate::error::{Error, Result};
use crate::load::{Call, Connection, Reply, call_once};

/// Workers of the pool `default`, each with one connection for its poll and one for its answers.
pub struct Crew {
    record: Arc<Mutex<Record>>,
    taken: watch::Receiver<u64>,
    running: JoinSet<Result<()>>,
}

/// One attempt that a worker was given.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub due_us: i64,
    pub started_us: i64,
}

/// What the workers saw.
#[derive(Debug, Default)]
struct Record {
    starts: Vec<Start>,
    last_taken_us: i64,
    /// Answers that the cluster did not take: the attempt was another's, or unknown.
    refused: u64,
}

/// Most grants of one acquire and most answers of one call; as many as the API allows.
pub const BATCH_MAX: usize = 1_000;
const POLL_WAIT: &str = "20s";
const CALL_LIMIT: Duration = Duration::from_secs(40);

impl Crew {
    /// Registers workers and lets them pull, each at another node.
    ///
    /// # Errors
    /// When a worker is not taken.
    pub async fn hire(apis: &[SocketAddr], workers: usize, slots: u32) -> Result<Crew> {
        let record = Arc::new(Mutex::new(Record::default()));
        let (count, taken) = watch::channel(0);
        let mut running = JoinSet::new();
        for i in 0..workers {
            let body = format!("{{\"name\":\"bench-{i}\",\"slots\":{slots}}}");
            let call = Call::post(format!("{TENANT}/workers"), body);
            let reply = call_once(apis[i % apis.len()], &call, CALL_LIMIT).await?;
            let reply = reply.accepted(&call.path)?;
            let registered = serde_json::from_slice(&reply.body);
            let registered: Registered = registered.map_err(Error::json("registration"))?;
            let shared = Arc::new(Shared {
                worker: registered.worker,
                slots: slots as usize,
                held: Mutex::default(),
                freed: Notify::new(),
                record: record.clone(),
                taken: count.clone(),
            });
            let (queue, answers) = mpsc::channel(slots as usize);
            running.spawn(pull(shared.clone(), Line::new(apis, i), queue));
            running.spawn(answer(shared, Line::new(apis, i), answers));
        }
        Ok(Crew { record, taken, running })
    }

    /// Waits until the cluster has taken this many answers; they are durable then.
    ///
    /// # Errors
    /// When a worker fails, or when nothing was taken for `patience`.
    pub async fn wait_taken(&mut self, count: u64, patience: Duration) -> Result<()> {
        loop {
            let so_far = *self.taken.borrow_and_update();
            if so_far >= count {
                return Ok(());
            }
            let limit = Instant::now() + patience;
            tokio::select! {
                changed = timeout_at(limit, self.taken.changed()) => {
                    let stuck = |_| Error::TooLong(format!("answer {} of {count}", so_far + 1));
                    changed.map_err(stuck)?.map_err(|_| Error::Wrong("no worker is left".into()))?;
                }
                Some(ended) = self.running.join_next() => {
                    ended.map_err(|e| Error::Wrong(format!("a worker ended early: {e}")))??;
                }
            }
        }
    }

    pub fn starts(&self) -> Vec<Start> {
        lock(&self.record).starts.clone()
    }

    /// The first start of work that fell due at or after an instant.
    pub fn first_start_due_from(&self, due_us: i64) -> Option<Start> {
        let record = lock(&self.record);
        let starts = record.starts.iter().filter(|start| start.due_us >= due_us);
        starts.min_by_key(|start| start.started_us).copied()
    }

    /// When the last answer was known to be taken.
    pub fn last_taken_us(&self) -> i64 {
        lock(&self.record).last_taken_us
    }

    pub fn refused(&self) -> u64 {
        lock(&self.record).refused
    }
}

const TENANT: &str = "/v1/tenants/default";

struct Shared {
    worker: String,
    slots: usize,
    /// Runs that are granted and not known to be answered.
    held: Mutex<BTreeSet<String>>,
    freed: Notify,
    record: Arc<Mutex<Record>>,
    taken: watch::Sender<u64>,
}

/// A run to be answered.
struct Done {
    run: String,
    token: u64,
}

#[derive(Deserialize)]
struct Grants<'a> {
    #[serde(borrow)]
    grants: Vec<Grant<'a>>,
}

#[derive(Deserialize)]
struct Grant<'a> {
    run: &'a str,
    token: u64,
    due_at: &'a str,
}

#[derive(Deserialize)]
struct Verdicts<'a> {
    #[serde(borrow)]
    verdicts: Vec<Verdict<'a>>,
}

#[derive(Deserialize)]
struct Verdict<'a> {
    verdict: &'a str,
}

async fn pull(shared: Arc<Shared>, mut line: Line, queue: mpsc::Sender<Done>) -> Result<()> {
    let path = format!("{TENANT}/workers/{}:acquire", shared.worker);
    loop {
        let Some(body) = shared.acquire_body() else {
            shared.freed.notified().await;
            continue;
        };
        let Some(reply) = line.send(&Call::post(path.as_str(), body)).await? else { continue };
        for done in shared.begin(&reply.body)? {
            let queued = queue.send(done).await;
            queued.map_err(|_| Error::Wrong("nobody answers any more".to_owned()))?;
        }
    }
}

async fn answer(
    shared: Arc<Shared>,
    mut line: Line,
    mut queue: mpsc::Receiver<Done>,
) -> Result<()> {
    let path = format!("{TENANT}/workers/{}:answer", shared.worker);
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let call = Call::post(path.as_str(), answer_body(&batch));
        // What became of an answer that broke off is unknown; the same answer is safe to repeat.
        let reply = loop {
            if let Some(reply) = line.send(&call).await? {
                break reply;
            }
        };
        shared.end(&batch, &reply.body)?;
        batch.clear();
    }
    Ok(())
}

fn answer_body(batch: &[Done]) -> String {
    let mut body = String::with_capacity(batch.len() * 80 + 16);
    body.push_str("{\"answers\":[");
    for (i, done) in batch.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(
            body,
            "{comma}{{\"run\":\"{}\",\"token\":{},\"outcome\":\"succeeded\"}}",
            done.run, done.token
        );
    }
    body.push_str("]}");
    body
}

impl Shared {
    /// `None` while every slot is taken.
    fn acquire_body(&self) -> Option<String> {
        let held = lock(&self.held);
        let free = self.slots.saturating_sub(held.len()).min(BATCH_MAX);
        if free == 0 {
            return None;
        }
        let runs: Vec<String> = held.iter().map(|run| format!("\"{run}\"")).collect();
        let runs = runs.join(",");
        Some(format!("{{\"max\":{free},\"wait\":\"{POLL_WAIT}\",\"holding\":[{runs}]}}"))
    }

    fn begin(&self, body: &[u8]) -> Result<Vec<Done>> {
        let grants: Grants<'_> = serde_json::from_slice(body).map_err(Error::json("grants"))?;
        let started_us = now_us();
        let mut held = lock(&self.held);
        let mut record = lock(&self.record);
        let mut begun = Vec::with_capacity(grants.grants.len());
        for grant in grants.grants {
            // Handed out again because an earlier answer was lost: it was begun already.
            if !held.insert(grant.run.to_owned()) {
                continue;
            }
            record.starts.push(Start { due_us: parse_us(grant.due_at)?, started_us });
            begun.push(Done { run: grant.run.to_owned(), token: grant.token });
        }
        Ok(begun)
    }

    fn end(&self, batch: &[Done], body: &[u8]) -> Result<()> {
        let verdicts = serde_json::from_slice::<Verdicts<'_>>(body);
        let verdicts = verdicts.map_err(Error::json("verdicts"))?.verdicts;
        let is_taken = |verdict: &&Verdict<'_>| matches!(verdict.verdict, "taken" | "already");
        let taken = verdicts.iter().filter(is_taken).count();
        let mut held = lock(&self.held);
        for done in batch {
            held.remove(&done.run);
        }
        drop(held);
        let mut record = lock(&self.record);
        record.last_taken_us = now_us();
        record.refused += (batch.len() - taken.min(batch.len())) as u64;
        drop(record);
        self.taken.send_modify(|count| *count += taken as u64);
        self.freed.notify_one();
        Ok(())
    }
}

/// A connection to one node after the other: to the next when one breaks or is busy.
struct Line {
    apis: Vec<SocketAddr>,
    at: usize,
    connection: Option<Connection>,
}

impl Line {
    fn new(apis: &[SocketAddr], at: usize) -> Line {
        Line { apis: apis.to_vec(), at, connection: None }
    }

    /// `None` when the node could not answer; another is asked the next time.
    async fn send(&mut self, call: &Call) -> Result<Option<Reply>> {
        match self.try_send(call).await {
            Ok(reply) if reply.is_success() => return Ok(Some(reply)),
            // Not now: without a leader, or too much to do.
            Ok(reply) if reply.status < 500 && reply.status != 429 => {
                reply.accepted(&call.path)?;
            }
            Ok(_) | Err(_) => {}
        }
        self.connection = None;
        self.at += 1;
        sleep(Duration::from_millis(5)).await;
        Ok(None)
    }

    async fn try_send(&mut self, call: &Call) -> Result<Reply> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::one(self.apis[self.at % self.apis.len()]).await?,
        };
        let limit = Instant::now() + CALL_LIMIT;
        let reply = timeout_at(limit, connection.send(call)).await;
        let reply = reply.map_err(|_| Error::TooLong(call.path.clone()))??;
        self.connection = Some(connection);
        Ok(reply)
    }
}

/// A worker that panicked has ended the run anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
