//! openraft's log storage over `store::log`.
//!
//! What openraft asks for, and who gives it: writes in the order of the calls (the store's one
//! writer); entries readable when `append` returns (its table); the callback once they are durable
//! (its group commit); a vote durable before `save_vote` returns (awaited here); the records
//! durable before the entries they came from are purged (here). An error of the store is fatal to
//! the core, which stops and says why.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{Stream, stream};
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::replica::codec::{DecodeError, entry_of, log_entry_of};
use crate::replica::types::{
    Entry, LogId, TypeConfig, Vote, log_id_of, position_of, stored_vote, vote_of,
};
use crate::store::error::StoreError;
use crate::store::log::Log;
use crate::store::records::Records;

/// Payload read for one message to a peer, or in one step of a replay.
const READ_BYTES: usize = 1_024 * 1_024;
/// Entries read in one step of a replay.
const REPLAY_ENTRIES: u64 = 1_024;
/// The commit index is saved no more often than this.
const COMMITTED_PAUSE: Duration = Duration::from_millis(100);

/// The applied index up to which the records are known to be on disk, shared by those who make
/// them durable and the one who purges.
#[derive(Clone, Debug, Default)]
pub(crate) struct DurableMark(Arc<AtomicU64>);

impl DurableMark {
    /// Everything applied up to `index` is durable.
    pub(crate) fn reached(&self, index: u64) {
        self.0.fetch_max(index.saturating_add(1), Ordering::SeqCst);
    }

    fn covers(&self, index: u64) -> bool {
        self.0.load(Ordering::SeqCst) > index
    }
}

#[derive(Clone)]
pub(crate) struct LogAdapter {
    log: Log,
    records: Records,
    durable: DurableMark,
    pace: Pace,
    committed_saved: Option<Instant>,
}

/// How the appends get on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    appends: Arc<AtomicU64>,
    /// When those began that are not durable yet, in order.
    waiting: Arc<Mutex<VecDeque<Instant>>>,
}

impl Pace {
    /// Appends so far.
    pub(crate) fn appends(&self) -> u64 {
        self.appends.load(Ordering::Relaxed)
    }

    /// How long the oldest append that is not durable yet has waited for the disk.
    pub(crate) fn oldest_wait(&self) -> Duration {
        self.waiting().front().map_or(Duration::ZERO, Instant::elapsed)
    }

    fn began(&self) {
        self.appends.fetch_add(1, Ordering::Relaxed);
        self.waiting().push_back(Instant::now());
    }

    fn ended(&self) {
        self.waiting().pop_front();
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Instant>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogAdapter {
    pub(crate) fn new(log: Log, records: Records, durable: DurableMark) -> LogAdapter {
        LogAdapter { log, records, durable, pace: Pace::default(), committed_saved: None }
    }

    pub(crate) fn pace(&self) -> Pace {
        self.pace.clone()
    }

    fn read(&self, from: u64, until: u64, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let entries = self.log.read(from..until, bytes_max).map_err(failed)?;
        entries.into_iter().map(|entry| entry_of(entry).map_err(malformed)).collect()
    }
}

pub(crate) fn failed(error: StoreError) -> io::Error {
    io::Error::other(error.to_string())
}

fn malformed(error: DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

fn bounds(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let from = match range.start_bound() {
        Bound::Included(index) => *index,
        Bound::Excluded(index) => index.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let until = match range.end_bound() {
        Bound::Included(index) => index.saturating_add(1),
        Bound::Excluded(index) => *index,
        Bound::Unbounded => u64::MAX,
    };
    (from, until)
}

impl RaftLogReader<TypeConfig> for LogAdapter {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> io::Result<Vec<Entry>> {
        let (from, until) = bounds(&range);
        self.read(from, until, usize::MAX)
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.log.vote().map(vote_of))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.read(start, end, READ_BYTES)
    }

    /// A replay is read step by step, so that a long log does not have to fit into memory.
    async fn entries_stream<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> impl Stream<Item = io::Result<Entry>> + Send {
        let (from, until) = bounds(&range);
        let steps = stream::unfold((self.clone(), from), move |(log, next)| async move {
            if next >= until {
                return None;
            }
            let step_end = until.min(next.saturating_add(REPLAY_ENTRIES));
            match log.read(next, step_end, READ_BYTES) {
                Ok(entries) => {
                    let last = entries.last()?.log_id.index;
                    let items: Vec<_> = entries.into_iter().map(Ok).collect();
                    Some((stream::iter(items), (log, last + 1)))
                }
                Err(error) => Some((stream::iter(vec![Err(error)]), (log, until))),
            }
        });
        Box::pin(futures_util::StreamExt::flatten(steps))
    }
}

impl RaftLogStorage<TypeConfig> for LogAdapter {
    type LogReader = LogAdapter;

    async fn get_log_state(&mut self) -> io::Result<LogState<TypeConfig>> {
        Ok(LogState {
            last_purged_log_id: self.log.purged().map(log_id_of),
            last_log_id: self.log.last_position().map(log_id_of),
        })
    }

    async fn get_log_reader(&mut self) -> LogAdapter {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let (tell, told) = oneshot::channel();
        let done = move |result| {
            // The core that asked may be gone; then nobody has to know.
            let _ = tell.send(result);
        };
        self.log.save_vote(stored_vote(vote), done).map_err(failed)?;
        let result = told.await.map_err(|_| io::Error::other("the log has stopped"))?;
        result.map_err(failed)
    }

    /// Now and then: it only lets a node that restarts alone apply a little more before it hears a
    /// leader, and every call wakes the log's writer.
    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        if self.committed_saved.is_some_and(|saved| saved.elapsed() < COMMITTED_PAUSE) {
            return Ok(());
        }
        self.committed_saved = Some(Instant::now());
        self.log.save_committed(committed.map(position_of)).map_err(failed)
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.log.committed().map(log_id_of))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let entries = entries.into_iter().map(log_entry_of).collect();
        let pace = self.pace.clone();
        pace.began();
        let done = move |result: Result<(), StoreError>| {
            pace.ended();
            callback.io_completed(result.map_err(failed));
        };
        self.log.append(entries, done).map_err(failed)
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        match last {
            Some(last) => self.log.truncate_after(last.index).map_err(failed),
            None => self.log.truncate_all().map_err(failed),
        }
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        if !self.durable.covers(upto.index) {
            // Rare: the snapshot that lets entries go has made the records durable before.
            // The mark is read first: one read afterwards might be newer than what was flushed.
            let applied = self.records.applied().map_err(failed)?.and_then(|mark| mark.position);
            self.records.make_durable().map_err(failed)?;
            if applied.is_some_and(|applied| applied.index < upto.index) {
                let problem = format!("the log cannot be purged up to {upto}: it is not applied");
                return Err(io::Error::other(problem));
            }
            self.durable.reached(upto.index);
        }
        self.log.purge(position_of(upto)).map_err(failed)
    }
}
