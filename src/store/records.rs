//! The records: what the entries of the log have made, key by key, with the mark of how far they
//! were applied.
//!
//! Callers choose the keys; a key is not empty and does not begin with the byte 0, which is the
//! store's own. Keys are ordered bytewise.

mod disk;
mod generation;
pub mod memory;
mod overlay;
pub mod value;

#[cfg(test)]
mod tests;

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::limits::VALUE_BYTES_MAX;
use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::log::LogPosition;
use crate::store::poison::Poison;
use crate::store::records::memory::MemoryRecords;

/// A key with its value.
pub type KeyValue = (Vec<u8>, Vec<u8>);

/// What looks at a key and its value, and may end the visit with an error.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError> + 'a;

/// How far the log was applied, with what belongs to that moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedMark {
    pub position: Option<LogPosition>,
    /// The membership in force, as its owner encodes it.
    pub membership: Bytes,
    /// The highest stamp applied, in milliseconds since the epoch.
    pub stamp_ms: i64,
}

/// The changes of some applied entries, written as one.
#[derive(Clone, Debug, Default)]
pub struct RecordBatch {
    /// A later value of the same key wins.
    pub puts: Vec<KeyValue>,
    /// Removed before the puts are made, so a key in both ends with its value.
    pub deletes: Vec<Vec<u8>>,
    pub applied: AppliedMark,
}

/// What the records can do, on a disk or in memory.
pub trait RecordStore: Send + Sync + 'static {
    fn apply(&self, batch: RecordBatch) -> Result<(), StoreError>;
    fn applied(&self) -> Result<Option<AppliedMark>, StoreError>;
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;
    fn scan(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<KeyValue>, StoreError>;
    /// By one scan, which holds all of the prefix in memory; a store that can walk does so.
    fn for_each(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        scan_each(self, prefix, visit)
    }
    fn replace_all(
        &self,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: AppliedMark,
    ) -> Result<(), StoreError>;
    fn make_durable(&self) -> Result<(), StoreError>;
    fn disk_bytes(&self) -> u64;
}

/// A shared handle on the records.
#[derive(Clone)]
pub struct Records {
    store: Arc<dyn RecordStore>,
}

impl Records {
    pub(crate) fn open(
        folder: &Path,
        cache_bytes: u64,
        faults: Faults,
        poison: Poison,
    ) -> Result<Records, StoreError> {
        let store = disk::DiskRecords::open(folder, cache_bytes, faults, poison)?;
        Ok(Records { store: Arc::new(store) })
    }

    /// Records kept by something else, such as a layer over these.
    #[must_use]
    pub fn over(store: Arc<dyn RecordStore>) -> Records {
        Records { store }
    }

    /// Records without files, for tests and simulation.
    #[must_use]
    pub fn in_memory() -> Records {
        Records { store: Arc::new(MemoryRecords::default()) }
    }

    /// Writes the changes and the applied mark as one. Not durable before
    /// [`Records::make_durable`]; a loss of power may take back whole batches, the last ones
    /// first.
    ///
    /// # Errors
    /// A key that is empty or begins with 0, a value above [`VALUE_BYTES_MAX`] (nothing is
    /// written then), or the disk.
    pub fn apply(&self, batch: RecordBatch) -> Result<(), StoreError> {
        for (key, value) in &batch.puts {
            check_key(key)?;
            check_value(value)?;
        }
        for key in &batch.deletes {
            check_key(key)?;
        }
        check_value(&batch.applied.membership)?;
        self.store.apply(batch)
    }

    /// The mark of the last batch, or none before the first one.
    ///
    /// # Errors
    /// Damage or the disk.
    pub fn applied(&self) -> Result<Option<AppliedMark>, StoreError> {
        self.store.applied()
    }

    /// # Errors
    /// Damage (also: another key's value under this key) or the disk.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(key)
    }

    /// Up to `limit` records between the bounds, from the end when `reverse`. It may see a batch
    /// that is applied meanwhile, in part.
    ///
    /// # Errors
    /// Damage or the disk.
    pub fn scan(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        self.store.scan(from, to, reverse, limit)
    }

    /// Shows every record whose key begins with `prefix`, in order, and stops at the visitor's
    /// first error.
    ///
    /// # Errors
    /// Damage, the disk, or the visitor's.
    pub fn for_each(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.store.for_each(prefix, visit)
    }

    /// Replaces everything by `records` and `applied`, durably: after a crash there is the old or
    /// the new whole. Nothing is replaced when `records` ends in an error.
    ///
    /// # Errors
    /// That of `records`, those of [`Records::apply`].
    pub fn replace_all(
        &self,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: AppliedMark,
    ) -> Result<(), StoreError> {
        let mut checked = records.map(|record| {
            let (key, value) = record?;
            check_key(&key)?;
            check_value(&value)?;
            Ok((key, value))
        });
        self.store.replace_all(&mut checked, applied)
    }

    /// Makes every batch so far durable; before each purge of the log, and on shutdown.
    ///
    /// # Errors
    /// The disk.
    pub fn make_durable(&self) -> Result<(), StoreError> {
        self.store.make_durable()
    }

    /// Bytes of the files. They are used again, but never given back before
    /// [`Records::replace_all`].
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.store.disk_bytes()
    }
}

/// The first key after all keys that begin with `prefix`, or none when there is no such key.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

/// Visits what one scan of a prefix found.
pub(crate) fn scan_each(
    records: &(impl RecordStore + ?Sized),
    prefix: &[u8],
    visit: &mut Visit<'_>,
) -> Result<(), StoreError> {
    let end = prefix_end(prefix);
    let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    for (key, value) in records.scan(Bound::Included(prefix), to, false, usize::MAX)? {
        visit(&key, &value)?;
    }
    Ok(())
}

/// Whether nothing can lie between the bounds; the maps of the standard library panic on some of
/// those.
pub(crate) fn is_empty_range(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Included(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
    }
}

fn check_key(key: &[u8]) -> Result<(), StoreError> {
    match key.first() {
        None => Err(StoreError::misuse("the key of a record is not empty")),
        Some(0) => Err(StoreError::misuse("the key of a record does not begin with the byte 0")),
        Some(_) => Ok(()),
    }
}

fn check_value(value: &[u8]) -> Result<(), StoreError> {
    if value.len() <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let (bytes, bytes_max) = (value.len(), VALUE_BYTES_MAX);
    Err(StoreError::TooLarge { what: "a record", bytes, bytes_max })
}
