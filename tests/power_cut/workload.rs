//! A store at work as a member drives it, the list of what it was asked, and the check of what a
//! power cut left of it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use bytes::Bytes;
use horolog::base::entropy::SeededEntropy;
use horolog::store::Store;
use horolog::store::log::{EntryKind, LogEntry, LogPosition, Vote};
use horolog::store::records::{AppliedMark, RecordBatch, Records};

use crate::power_cut::disk::below;
use crate::power_cut::mount::Cut;

/// Changes that may be on their way to the disk.
const IN_FLIGHT_MAX: u64 = 64;
const KEYS: u64 = 150;

/// One change of the log, in the order of the calls; an entry counts alone.
#[derive(Clone, Debug)]
pub enum Op {
    Entry(LogEntry),
    Vote(Vote),
    Truncate(u64),
    Purge(LogPosition),
}

/// The log as a list.
#[derive(Clone, Debug, Default)]
pub struct LogModel {
    pub entries: VecDeque<LogEntry>,
    pub purged: Option<LogPosition>,
    pub vote: Option<Vote>,
}

impl LogModel {
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Entry(entry) => self.entries.push_back(entry.clone()),
            Op::Vote(vote) => self.vote = Some(*vote),
            Op::Truncate(index) => {
                while self.entries.back().is_some_and(|entry| entry.position.index > *index) {
                    self.entries.pop_back();
                }
            }
            Op::Purge(upto) => {
                self.purged = self.purged.max(Some(*upto));
                while self.entries.front().is_some_and(|e| e.position.index <= upto.index) {
                    self.entries.pop_front();
                }
            }
        }
    }

    pub fn last(&self) -> Option<LogPosition> {
        self.entries.back().map(|entry| entry.position).or(self.purged)
    }

    fn equals(&self, store: &Store) -> Result<bool, String> {
        let log = &store.log;
        if (log.last_position(), log.purged(), log.vote()) != (self.last(), self.purged, self.vote)
        {
            return Ok(false);
        }
        let entries = log.read(0..u64::MAX, usize::MAX).map_err(|error| error.to_string())?;
        Ok(self.entries == entries)
    }
}

/// What the store was asked over all its starts, and what it acknowledged.
#[derive(Default)]
pub struct History {
    pub ops: Vec<Op>,
    pub acked: Arc<AtomicU64>,
}

impl History {
    /// Whether the log is what some prefix of the history makes, with nothing acknowledged missing.
    /// Forgets what did not survive.
    pub fn check_log(&mut self, store: &Store, acked: u64) -> Result<LogModel, String> {
        let mut model = LogModel::default();
        let acked = acked as usize;
        for op in &self.ops[..acked] {
            model.apply(op);
        }
        for survivors in acked..=self.ops.len() {
            if survivors > acked {
                model.apply(&self.ops[survivors - 1]);
            }
            if model.equals(store)? {
                self.ops.truncate(survivors);
                self.acked.store(survivors as u64, Ordering::SeqCst);
                return Ok(model);
            }
        }
        let log = &store.log;
        Err(format!(
            "the log holds {:?}..{:?} and vote {:?}, which is no state from change {acked} \
             (acknowledged) to {} (asked); the model ends at {:?}",
            log.purged(),
            log.last_position(),
            log.vote(),
            self.ops.len(),
            model.last(),
        ))
    }
}

/// Whether the records are exactly what the entries up to their mark make, and whether the log can
/// replay the rest. Returns the index of the mark.
pub fn check_records(store: &Store, log: &LogModel) -> Result<u64, String> {
    let mark = store.records.applied().map_err(|error| error.to_string())?;
    let position = mark.and_then(|mark| mark.position);
    let applied = position.map_or(0, |position| position.index);
    let purged = log.purged.map_or(0, |purged| purged.index);
    let last = log.last().map_or(0, |last| last.index);
    if applied < purged || applied > last {
        return Err(format!("applied up to {applied}, but the log holds {purged}..{last}"));
    }
    if let Some(position) = position
        && store.log.position_at(applied) != Some(position)
    {
        return Err(format!("applied {position}, which the log does not hold"));
    }
    check_contents(&store.records, applied)?;
    Ok(applied)
}

pub fn check_contents(records: &Records, applied: u64) -> Result<(), String> {
    let mut expected = BTreeMap::new();
    for index in 1..=applied {
        let batch = changes(index, 1);
        for key in &batch.deletes {
            expected.remove(key);
        }
        expected.extend(batch.puts);
    }
    let found = records.scan(Bound::Unbounded, Bound::Unbounded, false, usize::MAX);
    let found = found.map_err(|error| error.to_string())?;
    if expected.into_iter().collect::<Vec<_>>() != found {
        return Err(format!("the records are not those of index {applied}"));
    }
    Ok(())
}

/// What applying entry `index` changes; the same at every start.
pub fn changes(index: u64, term: u64) -> RecordBatch {
    let key = |n: u64| format!("job/{:03}", n % KEYS).into_bytes();
    let value = |n: u64| vec![(index + n) as u8; 20 + (index % 11) as usize * 90];
    let puts = (0..=index % 20).map(|n| (key(index * 31 + n * 17), value(n))).collect();
    let position = Some(LogPosition { term, index });
    let applied = AppliedMark { position, membership: Bytes::new(), stamp_ms: index as i64 };
    RecordBatch { puts, deletes: vec![key(index * 13), key(index * 7)], applied }
}

/// A running store with its place in the history.
pub struct Driver<'a> {
    pub store: &'a Store,
    pub history: &'a mut History,
    pub model: LogModel,
    pub applied: u64,
    pub chance: &'a SeededEntropy,
    /// Entries that were sent, with the number of changes up to them.
    pub sent: VecDeque<(u64, LogPosition)>,
    pub term: u64,
}

impl<'a> Driver<'a> {
    pub fn new(
        store: &'a Store,
        history: &'a mut History,
        model: LogModel,
        applied: u64,
        chance: &'a SeededEntropy,
    ) -> Driver<'a> {
        let term = model.last().map_or(1, |last| last.term);
        let sent = model.entries.iter().map(|entry| (0, entry.position)).collect();
        Driver { store, history, model, applied, chance, sent, term }
    }

    /// Works until the power is cut.
    pub fn run(&mut self, cut: &Receiver<Cut>) -> Cut {
        loop {
            if let Ok(cut) = cut.try_recv() {
                return cut;
            }
            match below(self.chance, 20) {
                0..13 => self.append(),
                13 => self.vote(),
                14 => self.truncate(),
                15..19 => self.apply(),
                _ => self.purge(),
            }
            while self.history.ops.len() as u64 - self.acked() > IN_FLIGHT_MAX {
                std::thread::yield_now();
            }
        }
    }

    fn acked(&self) -> u64 {
        self.history.acked.load(Ordering::SeqCst)
    }

    fn note(&mut self, op: Op) {
        self.model.apply(&op);
        self.history.ops.push(op);
    }

    /// Raises what is acknowledged to the changes so far, once it is called.
    fn acknowledge(
        &self,
    ) -> impl FnOnce(Result<(), horolog::store::error::StoreError>) + Send + 'static {
        let acked = Arc::clone(&self.history.acked);
        let upto = self.history.ops.len() as u64;
        move |result| {
            result.unwrap();
            let before = acked.swap(upto, Ordering::SeqCst);
            assert!(before <= upto, "callbacks keep their order");
        }
    }

    fn append(&mut self) {
        let next = self.model.last().map_or(1, |last| last.index + 1);
        let mut entries = Vec::new();
        for index in next..=next + below(self.chance, 6) as u64 {
            let payload = Bytes::from(vec![index as u8; below(self.chance, 3_000)]);
            let position = LogPosition { term: self.term, index };
            let entry = LogEntry { position, kind: EntryKind::Normal, payload };
            self.note(Op::Entry(entry.clone()));
            self.sent.push_back((self.history.ops.len() as u64, position));
            entries.push(entry);
        }
        self.store.log.append(entries, self.acknowledge()).unwrap();
    }

    fn vote(&mut self) {
        self.term += 1;
        let vote = Vote { term: self.term, node_id: 3, committed: false };
        self.note(Op::Vote(vote));
        self.store.log.save_vote(vote, self.acknowledge()).unwrap();
    }

    /// Replaces the last entries, as a follower does whose leader was deposed.
    fn truncate(&mut self) {
        let last = self.model.last().map_or(0, |last| last.index);
        let kept = last.saturating_sub(below(self.chance, 5) as u64).max(self.applied);
        self.sent.retain(|(_, position)| position.index <= kept);
        self.note(Op::Truncate(kept));
        self.store.log.truncate_after(kept).unwrap();
        self.term += 1;
        self.append();
    }

    /// Applies what is acknowledged, and tells the log so.
    fn apply(&mut self) {
        let acked = self.acked();
        while let Some((count, position)) = self.sent.front().copied()
            && count <= acked
        {
            self.sent.pop_front();
            if position.index <= self.applied {
                continue;
            }
            self.store.records.apply(changes(position.index, position.term)).unwrap();
            self.applied = position.index;
            self.store.log.save_committed(Some(position)).unwrap();
        }
    }

    fn purge(&mut self) {
        let upto = self.applied.saturating_sub(below(self.chance, 30) as u64);
        let entry = self.model.entries.iter().find(|entry| entry.position.index == upto);
        let Some(position) = entry.map(|entry| entry.position) else {
            return;
        };
        self.store.records.make_durable().unwrap();
        self.note(Op::Purge(position));
        self.store.log.purge(position).unwrap();
    }
}
