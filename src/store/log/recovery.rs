//! From the folder to the table: reads every segment, refuses damage, cuts a torn tail.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::files;
use crate::store::log::LogOptions;
use crate::store::log::codec::Record;
use crate::store::log::segment::{self, Contents, Group, HEADER_BYTES, Segment};
use crate::store::log::table::{Place, Table};

/// The log as it was found.
pub(crate) struct Recovered {
    pub(crate) table: Table,
    pub(crate) tail: Tail,
}

/// Where the writer goes on.
pub(crate) struct Tail {
    pub(crate) active: Arc<Segment>,
    pub(crate) at: u64,
    /// Number of the next group.
    pub(crate) sequence: u64,
    /// An empty segment that is ready to follow the active one.
    pub(crate) spare: Option<Segment>,
    /// Highest index ever written into each segment.
    pub(crate) index_max: BTreeMap<u64, u64>,
}

/// Reads the log in `folder`, which is created when it is missing.
///
/// # Errors
/// Damage, a newer format, or the disk.
pub(crate) fn recover(
    folder: &Path,
    options: LogOptions,
    faults: &Faults,
) -> Result<Recovered, StoreError> {
    files::create_folder(folder, faults)?;
    files::remove_unfinished(folder)?;
    let numbers = usable_numbers(folder)?;
    let mut replay = Replay::new(options);
    for number in numbers {
        let (segment, bytes) = Segment::open(folder, number)?;
        let contents = segment.scan(&bytes, replay.next_sequence)?;
        replay.add(Arc::new(segment), contents)?;
    }
    let recovered = replay.finish(folder, options, faults)?;
    // What a killed process wrote without flushing it is believed from here on, so it must be
    // durable.
    recovered.tail.active.sync(faults)?;
    files::sync_folder(folder, faults)?;
    Ok(recovered)
}

/// The segments after the last gap in the numbers. A gap is left when a crash undid one of two
/// removals; what lies before it was purged, and if it was not, the hole in the entries is
/// noticed later.
fn usable_numbers(folder: &Path) -> Result<Vec<u64>, StoreError> {
    let mut numbers: Vec<u64> = Vec::new();
    for name in files::names(folder)? {
        let Some(number) = segment::number_of(&name) else {
            continue;
        };
        if numbers.last().is_some_and(|last| last + 1 != number) {
            numbers.clear();
        }
        numbers.push(number);
    }
    Ok(numbers)
}

struct Replay {
    table: Table,
    index_max: BTreeMap<u64, u64>,
    next_sequence: Option<u64>,
    /// The last segment with anything in it, where its groups end, and whether a torn one follows
    /// them.
    tail: Option<(Arc<Segment>, u64, bool)>,
    /// Empty segments behind the tail.
    empty: Vec<Arc<Segment>>,
}

impl Replay {
    fn new(options: LogOptions) -> Replay {
        Replay {
            table: Table::new(options.cache_bytes),
            index_max: BTreeMap::new(),
            next_sequence: None,
            tail: None,
            empty: Vec::new(),
        }
    }

    fn add(&mut self, segment: Arc<Segment>, contents: Contents) -> Result<(), StoreError> {
        if contents.groups.is_empty() && !contents.is_torn {
            self.empty.push(segment);
            return Ok(());
        }
        let number = segment.number;
        if let Some(empty) = self.empty.first() {
            let problem = format!("the segment is empty, though segment {number} is not");
            return Err(empty.damaged(HEADER_BYTES as u64, problem));
        }
        if let Some((torn, end, true)) = &self.tail {
            let problem = format!("a group is not whole, though segment {number} follows");
            return Err(torn.damaged(*end, problem));
        }
        self.index_max.insert(number, 0);
        for (nth, group) in contents.groups.into_iter().enumerate() {
            self.next_sequence = Some(group.sequence + 1);
            self.apply(&segment, group, nth == 0)?;
        }
        self.table.segments.insert(number, Arc::clone(&segment));
        self.tail = Some((segment, contents.end, contents.is_torn));
        Ok(())
    }

    fn apply(
        &mut self,
        segment: &Arc<Segment>,
        group: Group,
        is_first: bool,
    ) -> Result<(), StoreError> {
        let begins_right = matches!(group.records.first(), Some((Record::Checkpoint(_), ..)));
        if is_first != begins_right {
            let problem = "a segment begins with a checkpoint, and has no other";
            return Err(segment.damaged(HEADER_BYTES as u64, problem));
        }
        for (record, at, bytes) in group.records {
            match record {
                Record::Entry(entry) => {
                    let follows = self.table.check_follows(std::slice::from_ref(&entry));
                    follows.map_err(|error| segment.damaged(at, error.to_string()))?;
                    let highest = self.index_max.entry(segment.number).or_insert(0);
                    *highest = (*highest).max(entry.position.index);
                    let place = Place { segment: segment.number, at, bytes };
                    self.table.append_recovered(entry, place);
                }
                Record::Vote(vote) => self.table.vote = Some(vote),
                Record::Committed(position) => self.table.committed = position,
                Record::Truncate(last) => self.table.truncated_to(last),
                Record::Purge(upto) => self.table.purge(upto),
                Record::Checkpoint(checkpoint) => {
                    if self.tail.is_none() {
                        self.table.start_from(checkpoint);
                        continue;
                    }
                    let mut known = self.table.checkpoint();
                    known.committed = checkpoint.committed;
                    if known != checkpoint {
                        let problem = "the checkpoint does not continue the segment before";
                        return Err(segment.damaged(at, problem));
                    }
                    self.table.committed = checkpoint.committed;
                }
            }
        }
        Ok(())
    }

    fn finish(
        mut self,
        folder: &Path,
        options: LogOptions,
        faults: &Faults,
    ) -> Result<Recovered, StoreError> {
        if self.table.has_hole() {
            let problem = "entries are missing between the purge and the first one that is there";
            return Err(StoreError::corrupt(folder, 0, problem));
        }
        let mut empty = self.empty.into_iter();
        let (active, at) = match self.tail {
            Some((active, end, is_torn)) => {
                if is_torn {
                    tracing::warn!(file = %active.path.display(), end, "cut a torn write");
                    active.clear_from(end, faults)?;
                }
                (active, end)
            }
            None => (first_segment(folder, empty.next(), options, faults)?, HEADER_BYTES as u64),
        };
        self.table.segments.insert(active.number, Arc::clone(&active));
        let spare = empty.next().and_then(Arc::into_inner);
        let sequence = self.next_sequence.unwrap_or(1);
        let tail = Tail { active, at, sequence, spare, index_max: self.index_max };
        Ok(Recovered { table: self.table, tail })
    }
}

/// The segment of a log in which nothing was ever written.
fn first_segment(
    folder: &Path,
    empty: Option<Arc<Segment>>,
    options: LogOptions,
    faults: &Faults,
) -> Result<Arc<Segment>, StoreError> {
    match empty {
        None => Ok(Arc::new(Segment::create(folder, 1, options.segment_bytes, faults)?)),
        Some(segment) if segment.number == 1 => Ok(segment),
        Some(segment) => {
            let problem = "the segment is empty, and those before it are missing";
            Err(segment.damaged(HEADER_BYTES as u64, problem))
        }
    }
}
