//! The Raft log and the vote: preallocated segment files behind one writer thread.
//!
//! **Order.** Votes, appends, truncations and purges enter one queue in the order of the calls,
//! and the writer takes them out in that order. Everything that waits is written as one *group*
//! with one write and one `fdatasync`; then the callbacks run, in order. Group N+1 is written
//! only after group N is durable.
//!
//! **Readable at once, durable later.** A call changes the table in memory before it returns, so
//! entries are readable when `append` returns; `done` says when they are durable.
//!
//! **A torn tail is cut, damage is refused.** What follows from the order: whatever was written
//! after a bad group proves that the group had been flushed, so it is damage. A bad group at the
//! very end is a tear when it has a hole (the file was filled with zeros before, so what did not
//! arrive is zero), and damage when every sector of it arrived. One disk sector is taken to be
//! written whole or not at all.
//!
//! **Errors poison.** After a failed write or flush the file is never touched again, and every
//! later call says so.
//!
//! Files: `codec` (records and groups as bytes), `segment` (one file), `recovery` (folder to
//! table), `table` (the log in memory), `writer` (the thread), `housekeeper` (prepares and
//! removes files behind its back).

pub mod codec;
mod housekeeper;
mod recovery;
mod segment;
mod table;
mod writer;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::log::table::Table;
use crate::store::log::writer::{Command, Queue};
use crate::store::poison::Poison;

/// Largest payload of one entry, in bytes.
pub const ENTRY_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// A place in the log. Ordered by term, then index, as Raft orders logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    pub term: u64,
    pub index: u64,
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.term, self.index)
    }
}

/// What an entry carries; the store does not look into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Blank,
    Normal,
    Membership,
}

/// One entry. Its payload has at most [`ENTRY_BYTES_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub position: LogPosition,
    pub kind: EntryKind,
    pub payload: Bytes,
}

/// The vote a node has given, or the leadership it knows of (`committed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    pub term: u64,
    pub node_id: u64,
    pub committed: bool,
}

/// Called exactly once, on the writer's thread, when a change is durable or has failed. It must
/// not block.
pub(crate) type Done = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Sizes of one log, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Size of one segment file; it is the unit in which space comes back after a purge.
    pub segment_bytes: usize,
    /// Payload of recent entries kept in memory.
    pub cache_bytes: usize,
}

/// A shared handle on the log. The writer stops when the last handle is dropped.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Shared>,
}

struct Shared {
    /// The lock is held while a command enters the queue, so that both have the same order.
    table: Arc<Mutex<Table>>,
    /// None in memory: every change is "durable" at once.
    queue: Option<Queue>,
    writer: Mutex<Option<JoinHandle<()>>>,
    syncs: Arc<AtomicU64>,
    poison: Poison,
}

impl Log {
    /// Opens the log in `folder`, creating it when it is missing.
    ///
    /// # Errors
    /// Damage (with file and offset), a newer format, or the disk.
    pub(crate) fn open(
        folder: &Path,
        options: LogOptions,
        faults: Faults,
        poison: Poison,
    ) -> Result<Log, StoreError> {
        let recovered = recovery::recover(folder, options, &faults)?;
        let table = Arc::new(Mutex::new(recovered.table));
        let syncs = Arc::new(AtomicU64::new(0));
        let (queue, writer) = writer::start(writer::Parts {
            folder: folder.to_path_buf(),
            options,
            faults,
            poison: poison.clone(),
            table: Arc::clone(&table),
            syncs: Arc::clone(&syncs),
            tail: recovered.tail,
        })?;
        let writer = Mutex::new(Some(writer));
        Ok(Log { shared: Arc::new(Shared { table, queue: Some(queue), writer, syncs, poison }) })
    }

    /// A log without files, for simulation: a change is done when the call returns, and the log
    /// lives as long as a handle on it.
    #[must_use]
    pub fn in_memory() -> Log {
        let table = Arc::new(Mutex::new(Table::new(usize::MAX)));
        let (writer, syncs) = (Mutex::new(None), Arc::new(AtomicU64::new(0)));
        let poison = Poison::default();
        Log { shared: Arc::new(Shared { table, queue: None, writer, syncs, poison }) }
    }

    /// Position of the last entry, or of the purge when nothing follows it.
    #[must_use]
    pub fn last_position(&self) -> Option<LogPosition> {
        self.table().last()
    }

    /// Everything up to here is gone.
    #[must_use]
    pub fn purged(&self) -> Option<LogPosition> {
        self.table().purged
    }

    #[must_use]
    pub fn vote(&self) -> Option<Vote> {
        self.table().vote
    }

    /// The last position given to [`Log::save_committed`]; after a restart possibly an older one.
    #[must_use]
    pub fn committed(&self) -> Option<LogPosition> {
        self.table().committed
    }

    /// Appends entries that follow the last position without a hole. They are readable when this
    /// returns; `done` is called exactly once, in the order of the calls, when they are durable
    /// or have failed. When this returns an error `done` is not called and nothing has changed.
    ///
    /// # Errors
    /// A poisoned store, an entry above [`ENTRY_BYTES_MAX`], or a hole.
    pub fn append(
        &self,
        entries: Vec<LogEntry>,
        done: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) -> Result<(), StoreError> {
        for entry in &entries {
            if entry.payload.len() > ENTRY_BYTES_MAX {
                let (bytes, bytes_max) = (entry.payload.len(), ENTRY_BYTES_MAX);
                return Err(StoreError::TooLarge { what: "a log entry", bytes, bytes_max });
            }
        }
        self.change(Box::new(done), |table| {
            table.check_follows(&entries)?;
            let first_ticket = table.append(entries.clone());
            Ok(Command::Append { entries, first_ticket })
        })
    }

    /// Keeps the vote; durable before `done` is called.
    ///
    /// # Errors
    /// A poisoned store. `done` is not called then.
    pub fn save_vote(
        &self,
        vote: Vote,
        done: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) -> Result<(), StoreError> {
        self.change(Box::new(done), |table| {
            table.vote = Some(vote);
            Ok(Command::Vote(vote))
        })
    }

    /// Keeps the committed position. Not flushed on its own: it goes out with the next change.
    ///
    /// # Errors
    /// A poisoned store.
    pub fn save_committed(&self, position: Option<LogPosition>) -> Result<(), StoreError> {
        self.change(Box::new(|_| {}), |table| {
            table.committed = position;
            Ok(Command::Committed(position))
        })
    }

    /// Drops every entry above `index`. Durable before anything that is appended afterwards is.
    ///
    /// # Errors
    /// A poisoned store.
    pub fn truncate_after(&self, index: u64) -> Result<(), StoreError> {
        self.change(Box::new(|_| {}), |table| {
            table.truncate_after(index);
            Ok(Command::Truncate { last: table.last() })
        })
    }

    /// Drops every entry that is left after the purge, that of index 0 too. Durable before
    /// anything that is appended afterwards is.
    ///
    /// # Errors
    /// A poisoned store.
    pub fn truncate_all(&self) -> Result<(), StoreError> {
        self.change(Box::new(|_| {}), |table| {
            table.truncate_all();
            Ok(Command::Truncate { last: table.last() })
        })
    }

    /// Drops every entry up to and including `upto`, which may lie beyond the last entry (after a
    /// snapshot was installed). Files are removed once the purge is durable. The records must
    /// have been made durable up to here before.
    ///
    /// # Errors
    /// A poisoned store.
    pub fn purge(&self, upto: LogPosition) -> Result<(), StoreError> {
        self.change(Box::new(|_| {}), |table| {
            table.purge(upto);
            Ok(Command::Purge(upto))
        })
    }

    /// The entries with an index in `range` that are there, in order, up to about `bytes_max` of
    /// payload, but at least one. Recent ones come from memory, older ones from disk, checked.
    ///
    /// # Errors
    /// Damage, the disk, or a poisoned store.
    pub fn read(&self, range: Range<u64>, bytes_max: usize) -> Result<Vec<LogEntry>, StoreError> {
        self.shared.poison.check()?;
        let places = self.table().find(range, bytes_max);
        let entries = places.into_iter().map(table::Found::load).collect();
        self.shared.poison.watch(entries)
    }

    /// The position of the entry at `index`, or of the purge, from memory.
    #[must_use]
    pub fn position_at(&self, index: u64) -> Option<LogPosition> {
        self.table().position_at(index)
    }

    /// Bytes of all segment files in use.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.table().disk_bytes()
    }

    /// Flushes of log data since the log was opened.
    #[must_use]
    pub fn sync_count(&self) -> u64 {
        self.shared.syncs.load(Ordering::SeqCst)
    }

    /// Changes the table and queues the command under one lock.
    fn change(
        &self,
        done: Done,
        edit: impl FnOnce(&mut Table) -> Result<Command, StoreError>,
    ) -> Result<(), StoreError> {
        self.shared.poison.check()?;
        let mut table = self.table();
        let command = edit(&mut table)?;
        match &self.shared.queue {
            Some(queue) => queue.push(command, done),
            None => {
                drop(table);
                done(Ok(()));
                Ok(())
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    /// Waits until everything that was queued is on disk.
    fn drop(&mut self) {
        self.queue = None;
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = writer.take() else {
            return;
        };
        // The last handle may die inside a callback, which runs on the writer's own thread.
        if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
            tracing::error!("the log's writer ended in a panic");
        }
    }
}
