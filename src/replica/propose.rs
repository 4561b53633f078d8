//! Proposals: taken in on any node, sent on in one hop, stamped by the leader, appended in batches.
//!
//! One task of each node hands proposals to the core, so that stamps and entries have one order.
//! While a batch is under way the next one gathers: proposals that arrive together go out in one
//! append. The same holds for those that a follower sends on.
//!
//! A stamp is the leader's clock, and never less than the stamp before it or the last one applied.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use openraft::errors::{ClientWriteError, Fatal};
use openraft::impls::ProgressResponder;
use openraft::raft::{WriteResponse, WriteResult};
use openraft::vote::leader_id_std::CommittedLeaderId;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::base::time::Timestamp;
use crate::machine::codec::{decode, encode, encode_proposal, stamp_proposal};
use crate::machine::command::Proposal;
use crate::machine::reply::Reply;
use crate::model::id::NodeId;
use crate::replica::Proposed;
use crate::replica::codec::{DecodeError, Reader, put_bytes};
use crate::replica::error::ProposeError;
use crate::replica::frames::{Kind, put_error, read_error};
use crate::replica::inner::Inner;
use crate::replica::link::LinkError;
use crate::replica::peers::Purpose;
use crate::replica::types::{StampedProposal, TypeConfig};

/// Proposals in one append.
const BATCH_MAX: usize = 1_024;
/// Bytes of proposals in one append.
const BATCH_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// Batches under way at once: one is on its way to the disks while the next one leaves.
const BATCHES_MAX: usize = 2;
/// Batches on their way to the leader at once.
const FORWARDS_MAX: usize = 4;
/// The largest proposal, in bytes.
const PROPOSAL_BYTES_MAX: usize = 6 * 1_024 * 1_024;

type Answer = Result<Vec<Proposed>, ProposeError>;

/// Proposals that belong together, on their way to the core.
pub(crate) struct Job {
    proposals: Vec<Bytes>,
    /// Only if this node leads in that term.
    term: Option<u64>,
    answer: oneshot::Sender<Answer>,
}

/// A proposal on its way to the leader.
pub(crate) struct Forward {
    proposal: Bytes,
    deadline: Instant,
    answer: oneshot::Sender<Answer>,
}

/// See `Replica::propose`.
pub(crate) async fn propose(
    inner: &Inner,
    proposal: &Proposal,
    within: Duration,
) -> Result<Proposed, ProposeError> {
    let deadline = Instant::now() + within;
    let bytes = encoded(proposal)?;
    loop {
        let leader = inner.leader_until(deadline).await?;
        let answer = if leader == inner.me {
            here(inner, vec![bytes.clone()], None, deadline).await
        } else {
            forwarded(inner, bytes.clone(), deadline).await
        };
        match answer {
            Ok(mut proposed) => {
                let Some(proposed) = proposed.pop() else {
                    let reason = "a proposal has no answer".to_owned();
                    return Err(ProposeError::Unknown { reason });
                };
                inner.wait_applied(proposed.index, deadline).await?;
                return Ok(proposed);
            }
            // It was certainly not proposed: the leader has changed, so ask the next one.
            Err(ProposeError::NotLeader { .. } | ProposeError::NoLeader)
                if Instant::now() < deadline =>
            {
                inner.leadership_moves(deadline).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// See `Replica::propose_leading`.
pub(crate) async fn propose_leading(
    inner: &Inner,
    term: u64,
    proposals: &[Proposal],
    deadline: Instant,
) -> Answer {
    if proposals.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = proposals.iter().map(encoded).collect::<Result<Vec<_>, _>>()?;
    here(inner, bytes, Some(term), deadline).await
}

/// Proposes on this node, which must lead.
pub(crate) async fn here(
    inner: &Inner,
    proposals: Vec<Bytes>,
    term: Option<u64>,
    deadline: Instant,
) -> Answer {
    let (answer, answered) = oneshot::channel();
    enqueue(&inner.proposals, Job { proposals, term, answer }, inner)?;
    match timeout_at(deadline, answered).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(inner.stopped_error()),
        Err(_) => Err(ProposeError::Timeout),
    }
}

async fn forwarded(inner: &Inner, proposal: Bytes, deadline: Instant) -> Answer {
    let (answer, answered) = oneshot::channel();
    enqueue(&inner.forwards, Forward { proposal, deadline, answer }, inner)?;
    match timeout_at(deadline, answered).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(inner.stopped_error()),
        Err(_) => Err(ProposeError::Timeout),
    }
}

pub(crate) fn enqueue<T>(
    queue: &mpsc::Sender<T>,
    item: T,
    inner: &Inner,
) -> Result<(), ProposeError> {
    queue.try_send(item).map_err(|error| match error {
        TrySendError::Full(_) => ProposeError::Overloaded,
        TrySendError::Closed(_) => inner.stopped_error(),
    })
}

fn encoded(proposal: &Proposal) -> Result<Bytes, ProposeError> {
    let invalid = |reason: String| ProposeError::Invalid { reason };
    let bytes = encode_proposal(proposal).map_err(|error| invalid(error.to_string()))?;
    if bytes.len() > PROPOSAL_BYTES_MAX {
        let length = bytes.len();
        let reason = format!("it has {length} bytes, at most {PROPOSAL_BYTES_MAX} are taken");
        return Err(invalid(reason));
    }
    Ok(Bytes::from(bytes))
}

/// Hands proposals to the core, in batches, until the node stops.
pub(crate) async fn run_batches(inner: Arc<Inner>, mut queue: mpsc::Receiver<Job>) {
    let slots = Arc::new(Semaphore::new(BATCHES_MAX));
    let mut stamp = Timestamp::MIN;
    let mut kept = None;
    loop {
        let first = match kept.take() {
            Some(job) => job,
            None => tokio::select! {
                biased;
                () = inner.stop.cancelled() => return,
                job = queue.recv() => match job {
                    Some(job) => job,
                    None => return,
                },
            },
        };
        // Waiting for the slot before gathering lets the batch grow meanwhile.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let term = first.term;
        let jobs = gather(first, &mut queue, &mut kept);
        stamp = next_stamp(&inner, stamp);
        let results = submit(&inner, &jobs, term, stamp).await;
        let inner = Arc::clone(&inner);
        tokio::spawn(async move {
            answer_jobs(&inner, jobs, results).await;
            drop(slot);
        });
    }
}

fn next_stamp(inner: &Inner, before: Timestamp) -> Timestamp {
    let applied = inner.live.read().machine.state().stamp();
    inner.clock.now().max(before).max(applied)
}

/// Takes what waits and has the same condition, up to the size of a batch.
fn gather(first: Job, queue: &mut mpsc::Receiver<Job>, kept: &mut Option<Job>) -> Vec<Job> {
    let term = first.term;
    let (mut count, mut bytes) = first.size();
    let mut jobs = vec![first];
    while count < BATCH_MAX && bytes < BATCH_BYTES_MAX {
        let Ok(job) = queue.try_recv() else {
            break;
        };
        if job.term != term {
            *kept = Some(job);
            break;
        }
        let (more, more_bytes) = job.size();
        count += more;
        bytes += more_bytes;
        jobs.push(job);
    }
    jobs
}

impl Job {
    fn size(&self) -> (usize, usize) {
        (self.proposals.len(), self.proposals.iter().map(Bytes::len).sum())
    }
}

type Results = BoxStream<'static, Result<WriteResult<TypeConfig>, Fatal<TypeConfig>>>;

/// Gives the batch to the core. The results come in the order of the proposals.
async fn submit(
    inner: &Inner,
    jobs: &[Job],
    term: Option<u64>,
    stamp: Timestamp,
) -> Result<Results, Fatal<TypeConfig>> {
    let proposals = jobs.iter().flat_map(|job| &job.proposals);
    let stamped = proposals
        .map(|bytes| StampedProposal(Bytes::from(stamp_proposal(stamp, bytes))))
        .collect::<Vec<_>>();
    let Some(term) = term else {
        return inner.raft.client_write_many(stamped).await;
    };
    let mut receivers = Vec::with_capacity(stamped.len());
    for proposal in stamped {
        let (responder, completed) = ProgressResponder::complete_only();
        let write = inner.raft.write(proposal).with_leader(CommittedLeaderId::new(term));
        write.responder(responder).await?;
        receivers.push(completed);
    }
    let results = stream::iter(receivers).then(|completed| async {
        match completed.await {
            Ok(result) => Ok(result.map(WriteResponse::from)),
            Err(_) => Err(Fatal::Stopped),
        }
    });
    Ok(results.boxed())
}

async fn answer_jobs(inner: &Inner, jobs: Vec<Job>, results: Result<Results, Fatal<TypeConfig>>) {
    let mut results = results.unwrap_or_else(|fatal| stream::iter([Err(fatal)]).boxed());
    for job in jobs {
        let answer = collect(inner, &mut results, &job).await;
        // The caller may have given up waiting.
        let _ = job.answer.send(answer);
    }
}

async fn collect(inner: &Inner, results: &mut Results, job: &Job) -> Answer {
    let mut proposed = Vec::with_capacity(job.proposals.len());
    let mut refusal = None;
    for _ in &job.proposals {
        match results.next().await {
            Some(Ok(Ok(written))) => {
                let index = written.log_id.index;
                proposed.push(Proposed { index, reply: written.response });
            }
            Some(Ok(Err(error))) => refusal = Some(write_error(error, job.term)),
            Some(Err(_)) | None => return Err(inner.stopped_error()),
        }
    }
    match refusal {
        None => Ok(proposed),
        Some(error) if proposed.is_empty() => Err(error),
        Some(_) => {
            let reason = "leadership moved while the proposals were taken in".to_owned();
            Err(ProposeError::Unknown { reason })
        }
    }
}

fn write_error(error: ClientWriteError<TypeConfig>, term: Option<u64>) -> ProposeError {
    match error {
        ClientWriteError::ForwardToLeader(forward) => {
            let leader = forward.leader_id.map(NodeId);
            ProposeError::NotLeader { term: term.unwrap_or(0), leader }
        }
        other => ProposeError::Unknown { reason: other.to_string() },
    }
}

/// Sends proposals on to the leader, in batches, until the node stops.
pub(crate) async fn run_forwards(inner: Arc<Inner>, mut queue: mpsc::Receiver<Forward>) {
    let slots = Arc::new(Semaphore::new(FORWARDS_MAX));
    loop {
        let first = tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            forward = queue.recv() => match forward {
                Some(forward) => forward,
                None => return,
            },
        };
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let mut batch = vec![first];
        let mut bytes = 0;
        while batch.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX {
            let Ok(forward) = queue.try_recv() else {
                break;
            };
            bytes += forward.proposal.len();
            batch.push(forward);
        }
        let inner = Arc::clone(&inner);
        tokio::spawn(async move {
            send_on(&inner, batch).await;
            drop(slot);
        });
    }
}

async fn send_on(inner: &Inner, batch: Vec<Forward>) {
    let answers = match ask_leader(inner, &batch).await {
        Ok(answers) => answers,
        Err(error) => vec![Err(error); batch.len()],
    };
    for (forward, answer) in batch.into_iter().zip(answers) {
        let _ = forward.answer.send(answer.map(|proposed| vec![proposed]));
    }
}

async fn ask_leader(
    inner: &Inner,
    batch: &[Forward],
) -> Result<Vec<Result<Proposed, ProposeError>>, ProposeError> {
    let now = Instant::now();
    let leader = inner.leader_elsewhere()?;
    let longest = batch.iter().map(|forward| forward.deadline).max().unwrap_or(now);
    let within = longest.saturating_duration_since(now);
    let mut question = inner.peers.begin(Kind::Propose);
    question.put_u64_le(u64::try_from(within.as_millis()).unwrap_or(u64::MAX));
    question.put_u32_le(batch.len() as u32);
    for forward in batch {
        put_bytes(&mut question, &forward.proposal);
    }
    let answer = inner.peers.call(leader.0, Purpose::Call, question, within).await;
    let frame = answer.map_err(call_error)?;
    read_proposed(frame.body, batch.len()).map_err(|error| {
        let reason = format!("the leader's answer cannot be read: {error}");
        ProposeError::Unknown { reason }
    })
}

/// What a failed call of the leader means for the caller.
pub(crate) fn call_error(error: LinkError) -> ProposeError {
    match error {
        LinkError::NotSent(_) => ProposeError::NoLeader,
        LinkError::Broken(reason) => ProposeError::Unknown { reason },
        LinkError::Timeout => ProposeError::Timeout,
        LinkError::Refused(reason) => ProposeError::Invalid { reason },
        LinkError::Answered(error) => error,
    }
}

/// The leader's side of a forwarded batch.
pub(crate) async fn handle_forwarded(inner: &Inner, body: Bytes) -> Result<BytesMut, ProposeError> {
    let (within, proposals) = read_forwarded(body)
        .map_err(|error| ProposeError::Invalid { reason: error.to_string() })?;
    let deadline = Instant::now() + within;
    // One job each: each has its own verdict.
    let mut waiting = Vec::with_capacity(proposals.len());
    for proposal in proposals {
        let (answer, answered) = oneshot::channel();
        let job = Job { proposals: vec![proposal], term: None, answer };
        waiting.push(enqueue(&inner.proposals, job, inner).map(|()| answered));
    }
    let mut out = inner.peers.begin(Kind::Proposed);
    for queued in waiting {
        let answer = match queued {
            Err(error) => Err(error),
            Ok(answered) => match timeout_at(deadline, answered).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => Err(inner.stopped_error()),
                Err(_) => Err(ProposeError::Timeout),
            },
        };
        put_answer(&mut out, answer);
    }
    Ok(out)
}

fn put_answer(out: &mut BytesMut, answer: Answer) {
    let answer = answer.and_then(|mut proposed| {
        let missing = || ProposeError::Unknown { reason: "no answer".to_owned() };
        let proposed = proposed.pop().ok_or_else(missing)?;
        let reply = encode("reply", &proposed.reply)
            .map_err(|error| ProposeError::Unknown { reason: error.to_string() })?;
        Ok((proposed.index, reply))
    });
    match answer {
        Ok((index, reply)) => {
            out.put_u8(0);
            out.put_u64_le(index);
            put_bytes(out, &reply);
        }
        Err(error) => {
            out.put_u8(1);
            put_error(out, &error);
        }
    }
}

fn read_forwarded(body: Bytes) -> Result<(Duration, Vec<Bytes>), DecodeError> {
    let mut input = Reader(body);
    let within = Duration::from_millis(input.u64("proposals")?);
    let count = input.count("proposals")?;
    let mut proposals = Vec::with_capacity(count);
    for _ in 0..count {
        proposals.push(input.bytes("proposal")?);
    }
    input.end()?;
    Ok((within, proposals))
}

fn read_proposed(
    body: Bytes,
    count: usize,
) -> Result<Vec<Result<Proposed, ProposeError>>, DecodeError> {
    let mut input = Reader(body);
    let mut answers = Vec::with_capacity(count);
    for _ in 0..count {
        answers.push(match input.u8("answer")? {
            0 => {
                let index = input.u64("answer")?;
                let reply: Reply = decode("reply", &input.bytes("reply")?)
                    .map_err(|_| DecodeError::Malformed("reply"))?;
                Ok(Proposed { index, reply })
            }
            1 => Err(read_error(&mut input)?),
            _ => return Err(DecodeError::Malformed("answer")),
        });
    }
    input.end()?;
    Ok(answers)
}
