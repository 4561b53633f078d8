//! The one thread that writes the log: takes everything that waits, one write, one flush, then
//! the callbacks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::log::codec::{self, Checkpoint, GroupBuilder, Record};
use crate::store::log::housekeeper::Housekeeper;
use crate::store::log::recovery::Tail;
use crate::store::log::segment::{HEADER_BYTES, Segment};
use crate::store::log::table::{Place, Table};
use crate::store::log::{Done, LogEntry, LogOptions, LogPosition, Vote};
use crate::store::poison::Poison;

/// One group takes no more commands once it holds this much payload, so that no callback waits
/// for long.
const GROUP_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// A change of the log, as the writer sees it.
pub(crate) enum Command {
    Append { entries: Vec<LogEntry>, first_ticket: u64 },
    Vote(Vote),
    Committed(Option<LogPosition>),
    Truncate { last: Option<LogPosition> },
    Purge(LogPosition),
}

/// The way in. The writer ends, with everything written, when this is dropped.
pub(crate) struct Queue {
    sender: Sender<(Command, Done)>,
    poison: Poison,
}

impl Queue {
    /// # Errors
    /// The writer is gone; `done` is not called then.
    pub(crate) fn push(&self, command: Command, done: Done) -> Result<(), StoreError> {
        self.sender.send((command, done)).map_err(|_| {
            self.poison.check().err().unwrap_or_else(|| StoreError::Poisoned {
                first: "the log's writer has ended".to_owned(),
            })
        })
    }
}

/// What a writer is made of.
pub(crate) struct Parts {
    pub(crate) folder: PathBuf,
    pub(crate) options: LogOptions,
    pub(crate) faults: Faults,
    pub(crate) poison: Poison,
    pub(crate) table: Arc<Mutex<Table>>,
    pub(crate) syncs: Arc<AtomicU64>,
    pub(crate) tail: Tail,
}

pub(crate) fn start(parts: Parts) -> Result<(Queue, JoinHandle<()>), StoreError> {
    let (sender, commands) = channel();
    let queue = Queue { sender, poison: parts.poison.clone() };
    let folder = parts.folder.clone();
    let writer = Writer::new(parts)?;
    let thread = std::thread::Builder::new()
        .name("log-writer".to_owned())
        .spawn(move || writer.run(&commands))
        .map_err(|source| StoreError::io("start a thread for", &folder, source))?;
    Ok((queue, thread))
}

struct Writer {
    options: LogOptions,
    faults: Faults,
    poison: Poison,
    table: Arc<Mutex<Table>>,
    syncs: Arc<AtomicU64>,
    housekeeper: Housekeeper,
    active: Arc<Segment>,
    at: u64,
    sequence: u64,
    /// The log as of the last command taken, for the start of the next segment.
    state: Checkpoint,
    committed_is_unwritten: bool,
    index_max: BTreeMap<u64, u64>,
    /// Entries of the group in the making: index, ticket, place.
    places: Vec<(u64, u64, Place)>,
}

impl Writer {
    fn new(parts: Parts) -> Result<Writer, StoreError> {
        let Parts { folder, options, faults, poison, table, syncs, tail } = parts;
        let state = table.lock().unwrap_or_else(PoisonError::into_inner).checkpoint();
        let mut index_max = tail.index_max;
        index_max.entry(tail.active.number).or_insert(0);
        Ok(Writer {
            housekeeper: Housekeeper::start(folder, faults.clone(), tail.spare)?,
            options,
            faults,
            poison,
            table,
            syncs,
            active: tail.active,
            at: tail.at,
            sequence: tail.sequence,
            state,
            committed_is_unwritten: false,
            index_max,
            places: Vec::new(),
        })
    }

    fn run(mut self, commands: &Receiver<(Command, Done)>) {
        self.remove_purged();
        while let Ok(first) = commands.recv() {
            let batch = collect(first, commands);
            let (batch, callbacks): (Vec<Command>, Vec<Done>) = batch.into_iter().unzip();
            let result = self.poison.check().and_then(|()| {
                let written = self.write_batch(batch);
                self.poison.watch(written)
            });
            for done in callbacks {
                done(result.clone());
            }
        }
        let last_words = self.poison.check().and_then(|()| self.write_last_words());
        if let Err(error) = self.poison.watch(last_words) {
            tracing::warn!(%error, "the committed position was not written at the end");
        }
    }

    /// Writes all commands, in one group unless a segment ends in between; durable when it returns.
    fn write_batch(&mut self, batch: Vec<Command>) -> Result<(), StoreError> {
        let mut group = GroupBuilder::new(self.active.nonce);
        let mut has_purge = false;
        for command in batch {
            match command {
                Command::Append { entries, first_ticket } => {
                    for (entry, ticket) in entries.into_iter().zip(first_ticket..) {
                        let position = entry.position;
                        group = self.add(group, &Record::Entry(entry), Some((position, ticket)))?;
                        self.state.last = Some(position);
                    }
                }
                Command::Vote(vote) => {
                    group = self.add(group, &Record::Vote(vote), None)?;
                    self.state.vote = Some(vote);
                }
                Command::Committed(position) => {
                    self.committed_is_unwritten |= self.state.committed != position;
                    self.state.committed = position;
                }
                Command::Truncate { last } => {
                    group = self.add(group, &Record::Truncate(last), None)?;
                    self.state.last = last;
                }
                Command::Purge(upto) => {
                    if self.state.purged.is_some_and(|purged| purged.index >= upto.index) {
                        continue;
                    }
                    group = self.add(group, &Record::Purge(upto), None)?;
                    self.state.purged = Some(upto);
                    let is_empty = self.state.last.is_none_or(|last| last.index <= upto.index);
                    self.state.last = if is_empty { Some(upto) } else { self.state.last };
                    has_purge = true;
                }
            }
        }
        if group.is_empty() {
            return Ok(());
        }
        self.flush(group)?;
        if has_purge {
            self.remove_purged();
        }
        Ok(())
    }

    /// Adds a record to the group; flushes it and begins the next segment first when there is no
    /// room.
    fn add(
        &mut self,
        mut group: GroupBuilder,
        record: &Record,
        entry: Option<(LogPosition, u64)>,
    ) -> Result<GroupBuilder, StoreError> {
        let record_bytes = codec::record_bytes(record);
        let checkpoint_bytes = codec::record_bytes(&Record::Checkpoint(self.state));
        let needed = group.bytes_with(record_bytes + checkpoint_bytes);
        if self.at + needed as u64 > self.active.capacity() {
            if !group.is_empty() {
                self.flush(group)?;
            }
            let alone = GroupBuilder::new(0).bytes_with(record_bytes + checkpoint_bytes);
            self.rotate(HEADER_BYTES + alone)?;
            group = GroupBuilder::new(self.active.nonce);
        }
        if self.at == HEADER_BYTES as u64 && group.is_empty() {
            group.push(&Record::Checkpoint(self.state));
            self.committed_is_unwritten = false;
        }
        let (offset, bytes) = group.push(record);
        if let Some((position, ticket)) = entry {
            let at = self.at + offset as u64;
            let place = Place { segment: self.active.number, at, bytes: bytes as u32 };
            self.places.push((position.index, ticket, place));
        }
        Ok(group)
    }

    /// One write, one flush; then the entries can be read from the file.
    fn flush(&mut self, mut group: GroupBuilder) -> Result<(), StoreError> {
        let committed = Record::Committed(self.state.committed);
        let needed = group.bytes_with(codec::record_bytes(&committed)) as u64;
        if self.committed_is_unwritten && self.at + needed <= self.active.capacity() {
            group.push(&committed);
            self.committed_is_unwritten = false;
        }
        let bytes = group.finish(self.sequence);
        self.active.write(self.at, &bytes, &self.faults)?;
        self.active.sync(&self.faults)?;
        self.syncs.fetch_add(1, Ordering::SeqCst);
        self.at += bytes.len() as u64;
        self.sequence += 1;
        self.publish();
        if self.at > self.active.capacity() / 2 {
            self.housekeeper.prepare(self.active.number + 1, self.options.segment_bytes);
        }
        Ok(())
    }

    fn publish(&mut self) {
        let highest = self.index_max.entry(self.active.number).or_insert(0);
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, ticket, place) in self.places.drain(..) {
            *highest = (*highest).max(index);
            table.written(index, ticket, place);
        }
        table.shrink_cache();
    }

    fn rotate(&mut self, bytes_min: usize) -> Result<(), StoreError> {
        let capacity = self.options.segment_bytes.max(bytes_min);
        let next = Arc::new(self.housekeeper.take(self.active.number + 1, capacity)?);
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.segments.insert(next.number, Arc::clone(&next));
        self.index_max.insert(next.number, 0);
        self.active = next;
        self.at = HEADER_BYTES as u64;
        Ok(())
    }

    /// Removes the files in front in which every entry is purged. The purge is durable by now.
    fn remove_purged(&mut self) {
        let Some(purged) = self.state.purged else {
            return;
        };
        let mut paths = Vec::new();
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((number, highest)) = self.index_max.first_key_value() {
            if *number == self.active.number || *highest > purged.index {
                break;
            }
            let removed = table.segments.remove(number);
            paths.extend(removed.map(|segment| segment.path.clone()));
            self.index_max.pop_first();
        }
        drop(table);
        self.housekeeper.remove(paths);
    }

    fn write_last_words(&mut self) -> Result<(), StoreError> {
        if !self.committed_is_unwritten {
            return Ok(());
        }
        let record = Record::Committed(self.state.committed);
        let group = self.add(GroupBuilder::new(self.active.nonce), &record, None)?;
        self.committed_is_unwritten = false;
        self.flush(group)
    }
}

/// The first command and everything that waits behind it, up to a bound.
fn collect(first: (Command, Done), commands: &Receiver<(Command, Done)>) -> Vec<(Command, Done)> {
    let mut bytes = payload_bytes(&first.0);
    let mut batch = vec![first];
    while bytes < GROUP_BYTES_MAX
        && let Ok(next) = commands.try_recv()
    {
        bytes += payload_bytes(&next.0);
        batch.push(next);
    }
    batch
}

fn payload_bytes(command: &Command) -> usize {
    match command {
        Command::Append { entries, .. } => entries.iter().map(|entry| entry.payload.len()).sum(),
        Command::Vote(_) | Command::Committed(_) | Command::Purge(_) => 0,
        Command::Truncate { .. } => 0,
    }
}
