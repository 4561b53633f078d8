//! Extending leases: in batches, in time, and hearing what the cluster has to say about each run.

use std::time::Duration;

use tokio::time::Instant;

use crate::base::time::Span;
use crate::client::error::ClientError;
use crate::client::transport::{Client, Patience};
use crate::wire::worker::{ExtendOutcome, ExtendRequest, ExtendVerdict, HeldRun};
use crate::worker::book::{Book, Due};
use crate::worker::handler::StopReason;
use crate::worker::session::{Session, is_forgotten};

/// How long one call may wait for its answer, with as much again on other nodes.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// The pause after a call without a verdict.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How far leases that fall due soon are taken along.
const GATHER: Duration = Duration::from_millis(250);

/// Extends the leases of all runs that are held. Never ends.
pub async fn keep_leases(client: &Client, session: &Session, book: &Book) {
    let mut changes = book.changes();
    loop {
        let next = book.next_extension();
        let due_at = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due_at => extend_due(client, session, book).await,
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

async fn extend_due(client: &Client, session: &Session, book: &Book) {
    let sent_at = Instant::now();
    let due = book.due(sent_at + GATHER, session.batch_max());
    let Some(first) = due.first() else {
        return;
    };
    let of_session = first.session.clone();
    let runs = due.iter().map(|due| HeldRun { run: due.run.clone(), token: due.token }).collect();
    let patience = Patience { answer: ANSWER_MAX, retry_for: ANSWER_MAX };
    match client.extend(&of_session, &ExtendRequest { runs }, patience).await {
        Ok(response) => {
            for verdict in &response.verdicts {
                note(book, verdict, sent_at);
            }
            postpone_unanswered(book, &due, &response.verdicts);
        }
        Err(error) if is_forgotten(&error) => {
            // With the session its leases are gone: the cluster has given the work to others, or
            // will.
            tracing::warn!(worker = of_session, runs = due.len(), "leases lost with the session");
            for due in &due {
                book.stop(&due.run, StopReason::LeaseLost);
                book.extend_again(&due.run, Instant::now() + Duration::from_hours(24));
            }
            if session.id() == of_session {
                session.renew(&of_session).await;
            }
        }
        Err(error) => {
            warn_without_verdict(&error, due.len());
            for due in &due {
                book.extend_again(&due.run, Instant::now() + AGAIN_AFTER);
            }
        }
    }
}

/// A cluster that is away has given the work to nobody, so the work goes on; should others hold it
/// already, the next verdict says so, and its token keeps it from doing harm.
fn warn_without_verdict(error: &ClientError, runs: usize) {
    tracing::warn!(%error, runs, "cannot extend leases, trying again");
}

fn note(book: &Book, verdict: &ExtendVerdict, sent_at: Instant) {
    match verdict.verdict {
        ExtendOutcome::Extended => {
            // A third of the length that the cluster has just granted, counted from before it did.
            let ttl = verdict.ttl.as_ref().and_then(|text| text.parse::<Span>().ok());
            let third = ttl.map(|ttl| ttl.to_std() / 3);
            let every = third.or_else(|| book.extend_every(&verdict.run)).unwrap_or(AGAIN_AFTER);
            book.extend_again(&verdict.run, sent_at + every);
            if verdict.cancel_requested {
                book.stop(&verdict.run, StopReason::Cancelled);
            }
        }
        ExtendOutcome::Stale | ExtendOutcome::NotOpen => {
            tracing::warn!(run = verdict.run, verdict = ?verdict.verdict, "the lease is lost");
            book.stop(&verdict.run, StopReason::LeaseLost);
            book.extend_again(&verdict.run, Instant::now() + Duration::from_hours(24));
        }
    }
}

/// A run that the answer passes over must not be asked for in a tight loop.
fn postpone_unanswered(book: &Book, due: &[Due], verdicts: &[ExtendVerdict]) {
    for due in due {
        if !verdicts.iter().any(|verdict| verdict.run == due.run) {
            book.extend_again(&due.run, Instant::now() + AGAIN_AFTER);
        }
    }
}
