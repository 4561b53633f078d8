//! Answers on their way: sent in batches, to any member, until the cluster has acknowledged each.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::base::limits::BODY_BYTES_MAX;
use crate::client::error::ClientError;
use crate::client::transport::Client;
use crate::wire::worker::{Answer, AnswerRequest, AnswerStatus, AnswerVerdict};
use crate::worker::book::Book;
use crate::worker::session::{Session, is_forgotten};

/// JSON may need up to six bytes for one byte of text.
const BATCH_TEXT_BYTES_MAX: usize = BODY_BYTES_MAX / 8;
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Answers that were not acknowledged yet; at most one for each slot.
#[derive(Debug, Default)]
pub struct Outbox {
    pending: Mutex<VecDeque<Answer>>,
    arrived: Notify,
}

impl Outbox {
    #[must_use]
    pub fn new() -> Outbox {
        Outbox::default()
    }

    pub fn push(&self, answer: Answer) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push_back(answer);
        self.arrived.notify_one();
    }

    /// Sends what arrives, and frees the slot of each run once its answer is acknowledged. Never
    /// ends.
    pub async fn deliver(&self, client: &Client, session: &Session, book: &Book) {
        loop {
            let batch = self.take_batch(session.batch_max());
            if batch.is_empty() {
                self.arrived.notified().await;
                continue;
            }
            deliver_batch(client, session, book, batch).await;
        }
    }

    fn take_batch(&self, count_max: usize) -> Vec<Answer> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some(answer) = pending.front() {
            bytes += text_bytes(answer);
            let is_full = batch.len() >= count_max || bytes > BATCH_TEXT_BYTES_MAX;
            if is_full && !batch.is_empty() {
                break;
            }
            batch.extend(pending.pop_front());
        }
        batch
    }
}

fn text_bytes(answer: &Answer) -> usize {
    let output = answer.output.as_ref().map_or(0, String::len);
    let result = answer.result.as_ref().map_or(0, |result| result.get().len());
    let message = answer.error.as_ref().and_then(|error| error.message.as_ref());
    output + result + message.map_or(0, String::len) + 256
}

/// Sends one batch until it is acknowledged. A batch that is refused as a whole is sent answer by
/// answer, so that one that cannot be taken does not hold up the others.
async fn deliver_batch(client: &Client, session: &Session, book: &Book, batch: Vec<Answer>) {
    let Err(refusal) = until_verdict(client, session, book, &batch).await else {
        return;
    };
    if let [only] = batch.as_slice() {
        drop_refused(book, only, &refusal);
        return;
    }
    for answer in batch {
        let one = [answer];
        if let Err(refusal) = until_verdict(client, session, book, &one).await {
            drop_refused(book, &one[0], &refusal);
        }
    }
}

async fn until_verdict(
    client: &Client,
    session: &Session,
    book: &Book,
    batch: &[Answer],
) -> Result<(), ClientError> {
    let request = AnswerRequest { answers: batch.to_vec() };
    loop {
        let id = session.id();
        let error = match client.answer(&id, &request).await {
            Ok(response) => {
                acknowledged(book, batch, &response.verdicts);
                return Ok(());
            }
            Err(error) => error,
        };
        if is_forgotten(&error) {
            session.renew(&id).await;
        } else if error.problem().is_some() && !error.is_unavailable() {
            return Err(error);
        } else {
            tracing::warn!(%error, answers = batch.len(), "answers not acknowledged, trying again");
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }
}

fn acknowledged(book: &Book, batch: &[Answer], verdicts: &[AnswerVerdict]) {
    for verdict in verdicts {
        match verdict.verdict {
            AnswerStatus::Taken | AnswerStatus::Already => {}
            AnswerStatus::Stale | AnswerStatus::NotFound => {
                tracing::warn!(
                    run = verdict.run,
                    verdict = ?verdict.verdict,
                    current_token = verdict.current_token,
                    "the answer came too late and changed nothing"
                );
            }
        }
    }
    for answer in batch {
        book.release(&answer.run);
    }
}

/// Its lease runs out, and the cluster counts the attempt as lost.
fn drop_refused(book: &Book, answer: &Answer, refusal: &ClientError) {
    tracing::error!(run = answer.run, %refusal, "the cluster does not take the answer");
    book.release(&answer.run);
}
