//! Applied changes that are not on disk yet, and how they are seen together with what is there.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use crate::store::error::StoreError;
use crate::store::records::{AppliedMark, KeyValue, RecordBatch};

/// A value, or none when the key was removed.
pub(crate) type Change = (Vec<u8>, Option<Vec<u8>>);

/// Some batches merged into one: the last change of each key, and the last mark.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    pub(crate) changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    pub(crate) applied: Option<AppliedMark>,
    /// Keys and values, in bytes.
    pub(crate) bytes: usize,
}

impl Layer {
    pub(crate) fn is_empty(&self) -> bool {
        self.applied.is_none()
    }

    pub(crate) fn merge(&mut self, batch: RecordBatch) {
        for key in batch.deletes {
            self.set(key, None);
        }
        for (key, value) in batch.puts {
            self.set(key, Some(value));
        }
        self.applied = Some(batch.applied);
    }

    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let key_bytes = key.len();
        let value_bytes = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
        self.bytes += value_bytes(&value);
        match self.changes.insert(key, value) {
            Some(before) => self.bytes -= value_bytes(&before),
            None => self.bytes += key_bytes,
        }
    }
}

/// The layer that takes batches, and the one that is being written.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    pub(crate) waiting: Layer,
    pub(crate) writing: Option<Arc<Layer>>,
}

impl Overlay {
    /// The change of `key` that is not on disk yet; the inner none says that it was removed.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let in_writing = || self.writing.as_ref().and_then(|layer| layer.changes.get(key));
        self.waiting.changes.get(key).or_else(in_writing).cloned()
    }

    pub(crate) fn applied(&self) -> Option<AppliedMark> {
        let in_writing = || self.writing.as_ref().and_then(|layer| layer.applied.as_ref());
        self.waiting.applied.as_ref().or_else(in_writing).cloned()
    }

    /// The changes between two bounds that do not contradict each other, in order.
    pub(crate) fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Vec<Change> {
        let mut changes: BTreeMap<&Vec<u8>, &Option<Vec<u8>>> = BTreeMap::new();
        if let Some(layer) = &self.writing {
            changes.extend(layer.changes.range::<[u8], _>((from, to)));
        }
        changes.extend(self.waiting.changes.range::<[u8], _>((from, to)));
        changes.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// Records from disk with the changes on top; both in the same order.
pub(crate) struct Merged<D, C>
where
    D: Iterator<Item = Result<KeyValue, StoreError>>,
    C: Iterator<Item = Change>,
{
    disk: Peekable<D>,
    changes: Peekable<C>,
    reverse: bool,
}

impl<D, C> Merged<D, C>
where
    D: Iterator<Item = Result<KeyValue, StoreError>>,
    C: Iterator<Item = Change>,
{
    pub(crate) fn new(disk: D, changes: C, reverse: bool) -> Merged<D, C> {
        Merged { disk: disk.peekable(), changes: changes.peekable(), reverse }
    }

    /// Whether the next change comes before, or instead of, the next record from disk.
    fn change_is_next(&mut self) -> bool {
        let (Some((changed, _)), disk) = (self.changes.peek(), self.disk.peek()) else {
            return false;
        };
        match disk {
            None => true,
            Some(Err(_)) => false,
            Some(Ok((key, _))) if self.reverse => changed >= key,
            Some(Ok((key, _))) => changed <= key,
        }
    }
}

impl<D, C> Iterator for Merged<D, C>
where
    D: Iterator<Item = Result<KeyValue, StoreError>>,
    C: Iterator<Item = Change>,
{
    type Item = Result<KeyValue, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.change_is_next() {
            let (key, value) = self.changes.next()?;
            let is_same = |record: &Result<KeyValue, StoreError>| {
                record.as_ref().is_ok_and(|(on_disk, _)| *on_disk == key)
            };
            self.disk.next_if(is_same);
            if let Some(value) = value {
                return Some(Ok((key, value)));
            }
        }
        self.disk.next()
    }
}
