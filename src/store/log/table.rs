//! The log in memory: where each entry is, and the recent entries themselves.
//!
//! Invariants: the slots are the entries after `purged` without a hole; the cache is a suffix of
//! them; an entry that is not written yet is in the cache.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::store::error::StoreError;
use crate::store::log::codec::Checkpoint;
use crate::store::log::segment::Segment;
use crate::store::log::{LogEntry, LogPosition, Vote};

/// Where the record of an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    pub(crate) at: u64,
    pub(crate) bytes: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    term: u64,
    /// Tells an entry from another one that replaced it after a truncation.
    ticket: u64,
    payload_bytes: u32,
    place: Option<Place>,
}

/// An entry that was found in the table.
pub(crate) enum Found {
    Cached(LogEntry),
    OnDisk { segment: Arc<Segment>, place: Place, position: LogPosition },
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogPosition>,
    pub(crate) purged: Option<LogPosition>,
    /// Files that may hold live entries, by number; the writer adds, purges remove.
    pub(crate) segments: BTreeMap<u64, Arc<Segment>>,
    /// Index of the first slot, or of the next entry when there is none.
    first_index: u64,
    slots: VecDeque<Slot>,
    cache: VecDeque<LogEntry>,
    cached_bytes: usize,
    cache_bytes_max: usize,
    next_ticket: u64,
    /// The position right before the first slot: the purge, except while recovery replays a log
    /// whose first files were removed.
    before: Option<LogPosition>,
}

impl Table {
    pub(crate) fn new(cache_bytes_max: usize) -> Table {
        Table {
            vote: None,
            committed: None,
            purged: None,
            segments: BTreeMap::new(),
            first_index: 0,
            slots: VecDeque::new(),
            cache: VecDeque::new(),
            cached_bytes: 0,
            cache_bytes_max,
            next_ticket: 1,
            before: None,
        }
    }

    /// Forgets everything and starts from what a segment says of the time before it.
    pub(crate) fn start_from(&mut self, checkpoint: Checkpoint) {
        self.vote = checkpoint.vote;
        self.committed = checkpoint.committed;
        self.purged = checkpoint.purged;
        self.clear(checkpoint.last);
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            vote: self.vote,
            committed: self.committed,
            purged: self.purged,
            last: self.last(),
        }
    }

    pub(crate) fn last(&self) -> Option<LogPosition> {
        match self.slots.back() {
            Some(slot) => Some(LogPosition { term: slot.term, index: self.next_index() - 1 }),
            None => self.before,
        }
    }

    /// Whether entries are missing between the purge and the first slot, once recovery has
    /// replayed all.
    pub(crate) fn has_hole(&self) -> bool {
        // A log that was never purged begins wherever its first entry was. When the file that holds
        // it is gone, the next one says what came before.
        self.before != self.purged
    }

    /// # Errors
    /// The entries leave a hole, or go back.
    pub(crate) fn check_follows(&self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let mut last = self.last();
        for entry in entries {
            let position = entry.position;
            let fits = match last {
                Some(last) => position.index == last.index + 1 && position.term >= last.term,
                None => true,
            };
            if !fits {
                let after = last.map_or("nothing".to_owned(), |last| last.to_string());
                let problem = format!("log entry {position} cannot follow {after}");
                return Err(StoreError::misuse(problem));
            }
            last = Some(position);
        }
        Ok(())
    }

    /// Appends entries that were checked; returns the ticket of the first one.
    pub(crate) fn append(&mut self, entries: Vec<LogEntry>) -> u64 {
        let first_ticket = self.next_ticket;
        for entry in entries {
            self.push(entry, None);
        }
        self.shrink_cache();
        first_ticket
    }

    /// Appends one entry that is on disk already.
    pub(crate) fn append_recovered(&mut self, entry: LogEntry, place: Place) {
        self.push(entry, Some(place));
        self.shrink_cache();
    }

    /// Notes where the entry is, unless it was truncated, replaced or purged meanwhile.
    pub(crate) fn written(&mut self, index: u64, ticket: u64, place: Place) {
        let slot = index
            .checked_sub(self.first_index)
            .and_then(|offset| self.slots.get_mut(usize::try_from(offset).ok()?));
        if let Some(slot) = slot
            && slot.ticket == ticket
        {
            slot.place = Some(place);
        }
    }

    /// Drops from the front of the cache what is over its size and on disk.
    pub(crate) fn shrink_cache(&mut self) {
        while self.cached_bytes > self.cache_bytes_max {
            let oldest = self.slots.len() - self.cache.len();
            if self.slots.get(oldest).is_none_or(|slot| slot.place.is_none()) {
                return;
            }
            self.forget_oldest();
        }
    }

    pub(crate) fn truncate_after(&mut self, index: u64) {
        while !self.slots.is_empty() && self.next_index() - 1 > index {
            self.drop_newest();
        }
    }

    pub(crate) fn truncate_all(&mut self) {
        while !self.slots.is_empty() {
            self.drop_newest();
        }
    }

    fn drop_newest(&mut self) {
        self.slots.pop_back();
        if let Some(entry) = self.cache.pop_back() {
            self.cached_bytes -= cost(&entry);
        }
    }

    /// A truncation as recovery finds it: `last` is what was kept.
    pub(crate) fn truncated_to(&mut self, last: Option<LogPosition>) {
        match last {
            Some(last) => self.truncate_after(last.index),
            None => self.clear(None),
        }
        if self.slots.is_empty() {
            self.clear(last);
        }
    }

    pub(crate) fn purge(&mut self, upto: LogPosition) {
        if self.purged.is_some_and(|purged| purged.index >= upto.index) {
            return;
        }
        self.purged = Some(upto);
        while !self.slots.is_empty() && self.first_index <= upto.index {
            if self.slots.len() == self.cache.len() {
                self.forget_oldest();
            }
            self.slots.pop_front();
            self.first_index += 1;
        }
        if self.first_index == upto.index + 1 {
            self.before = Some(upto);
        }
        if self.slots.is_empty() && self.before.is_none_or(|before| before.index <= upto.index) {
            self.clear(Some(upto));
        }
    }

    pub(crate) fn find(&self, range: Range<u64>, bytes_max: usize) -> Vec<Found> {
        let (start, end) = (range.start.max(self.first_index), range.end.min(self.next_index()));
        let mut found = Vec::new();
        let mut bytes = 0;
        for index in start..end {
            let offset = (index - self.first_index) as usize;
            let Some(slot) = self.slots.get(offset) else {
                break;
            };
            bytes += slot.payload_bytes as usize;
            if bytes > bytes_max && !found.is_empty() {
                break;
            }
            let uncached = self.slots.len() - self.cache.len();
            let cached = offset.checked_sub(uncached).and_then(|at| self.cache.get(at));
            let position = LogPosition { term: slot.term, index };
            match (cached, slot.place) {
                (Some(entry), _) => found.push(Found::Cached(entry.clone())),
                (None, Some(place)) => match self.segments.get(&place.segment) {
                    Some(segment) => {
                        let segment = Arc::clone(segment);
                        found.push(Found::OnDisk { segment, place, position });
                    }
                    None => break,
                },
                (None, None) => break,
            }
        }
        found
    }

    pub(crate) fn position_at(&self, index: u64) -> Option<LogPosition> {
        if let Some(purged) = self.purged.filter(|purged| purged.index == index) {
            return Some(purged);
        }
        let offset = usize::try_from(index.checked_sub(self.first_index)?).ok()?;
        let slot = self.slots.get(offset)?;
        Some(LogPosition { term: slot.term, index })
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        self.segments.values().map(|segment| segment.capacity()).sum()
    }

    fn next_index(&self) -> u64 {
        self.first_index + self.slots.len() as u64
    }

    fn push(&mut self, entry: LogEntry, place: Option<Place>) {
        if self.slots.is_empty() {
            self.first_index = entry.position.index;
        }
        let payload_bytes = entry.payload.len() as u32;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.slots.push_back(Slot { term: entry.position.term, ticket, payload_bytes, place });
        self.cached_bytes += cost(&entry);
        self.cache.push_back(entry);
    }

    fn forget_oldest(&mut self) {
        if let Some(entry) = self.cache.pop_front() {
            self.cached_bytes -= cost(&entry);
        }
    }

    /// Empties the log; the next entry follows `before`.
    fn clear(&mut self, before: Option<LogPosition>) {
        self.slots.clear();
        self.cache.clear();
        self.cached_bytes = 0;
        self.before = before;
        self.first_index = before.map_or(0, |position| position.index + 1);
    }
}

/// Bytes an entry takes in the cache, about.
fn cost(entry: &LogEntry) -> usize {
    entry.payload.len() + size_of::<LogEntry>()
}

impl Found {
    /// The entry itself; read from disk when it is not in memory.
    pub(crate) fn load(self) -> Result<LogEntry, StoreError> {
        match self {
            Found::Cached(entry) => Ok(entry),
            Found::OnDisk { segment, place, position } => segment.read_entry(place, position),
        }
    }
}
