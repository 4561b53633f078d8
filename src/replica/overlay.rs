//! A layer over the records: what was applied is seen at once, and written a little later.
//!
//! Changes are staged in a map over the records, where every reader sees them, and then written
//! without holding up a reader. Two things follow. Nobody who looks at the state waits for the
//! disk. And the records can be made to stand still at one applied index while a snapshot copies
//! them: changes pile up in the map meanwhile, and are written in one batch, with the mark they
//! belong to, when the copy is done. A crash loses the map only, and the log is applied again from
//! the mark on the disk.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use crate::store::error::StoreError;
use crate::store::records::{
    AppliedMark, KeyValue, RecordBatch, RecordStore, Records, Visit, is_empty_range, scan_each,
};

pub(crate) struct Overlay {
    base: Records,
    staged: RwLock<Staged>,
    /// Held while the base is written, so that batches come to it in order and whole.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Staged {
    /// Snapshots that read the base.
    readers: u32,
    /// Counts the batches that were staged.
    latest: u64,
    /// By key: in which batch it was staged, and the new value, or none for a deletion.
    changes: BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>,
    mark: Option<AppliedMark>,
}

/// The base as of one index; it stands still until this is dropped.
pub(crate) struct Still {
    overlay: Arc<Overlay>,
}

impl Overlay {
    pub(crate) fn new(base: Records) -> Arc<Overlay> {
        Arc::new(Overlay { base, staged: RwLock::default(), writing: Mutex::default() })
    }

    /// Both layers as records.
    pub(crate) fn records(self: &Arc<Overlay>) -> Records {
        Records::over(Arc::clone(self) as Arc<dyn RecordStore>)
    }

    /// Shows the batch to every reader. [`Overlay::write_out`] follows.
    pub(crate) fn stage(&self, batch: RecordBatch) {
        let mut staged = self.write();
        staged.latest += 1;
        let latest = staged.latest;
        for key in batch.deletes {
            staged.changes.insert(key, (latest, None));
        }
        for (key, value) in batch.puts {
            staged.changes.insert(key, (latest, Some(value)));
        }
        staged.mark = Some(batch.applied);
    }

    /// Writes what is staged, unless a snapshot reads the base: then it is written afterwards.
    ///
    /// # Errors
    /// Those of `Records::apply`.
    pub(crate) fn write_out(&self) -> Result<(), StoreError> {
        let _order = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((latest, batch)) = self.staged_batch() else {
            return Ok(());
        };
        self.base.apply(batch)?;
        let mut staged = self.write();
        staged.changes.retain(|_, (at, _)| *at > latest);
        if staged.latest == latest {
            staged.mark = None;
        }
        Ok(())
    }

    fn staged_batch(&self) -> Option<(u64, RecordBatch)> {
        let staged = self.read();
        if staged.readers > 0 {
            return None;
        }
        let mut batch = RecordBatch { applied: staged.mark.clone()?, ..RecordBatch::default() };
        for (key, (_, value)) in &staged.changes {
            match value {
                Some(value) => batch.puts.push((key.clone(), value.clone())),
                None => batch.deletes.push(key.clone()),
            }
        }
        Some((staged.latest, batch))
    }

    /// Makes the base stand still at the applied mark. None while it is behind, or being written.
    pub(crate) fn hold(self: &Arc<Overlay>) -> Option<Still> {
        let _order = match self.writing.try_lock() {
            Ok(order) => order,
            Err(TryLockError::Poisoned(order)) => order.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let mut staged = self.write();
        if staged.mark.is_some() {
            return None;
        }
        staged.readers += 1;
        Some(Still { overlay: Arc::clone(self) })
    }

    fn release(&self) {
        {
            let mut staged = self.write();
            staged.readers = staged.readers.saturating_sub(1);
        }
        if let Err(error) = self.write_out() {
            // The store is poisoned now: the next entries are refused and stop the node.
            tracing::error!(%error, "changes made during a snapshot were not written");
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Staged> {
        self.staged.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Staged> {
        self.staged.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Still {
    pub(crate) fn records(&self) -> &Records {
        &self.overlay.base
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        self.overlay.release();
    }
}

impl RecordStore for Overlay {
    fn apply(&self, batch: RecordBatch) -> Result<(), StoreError> {
        self.stage(batch);
        self.write_out()
    }

    fn applied(&self) -> Result<Option<AppliedMark>, StoreError> {
        let staged = self.read();
        match &staged.mark {
            Some(mark) => Ok(Some(mark.clone())),
            None => self.base.applied(),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let staged = self.read();
        match staged.changes.get(key) {
            Some((_, value)) => Ok(value.clone()),
            None => self.base.get(key),
        }
    }

    fn scan(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let staged = self.read();
        if staged.changes.is_empty() || is_empty_range(from, to) {
            return self.base.scan(from, to, reverse, limit);
        }
        let changes: Vec<_> = staged.changes.range::<[u8], _>((from, to)).collect();
        // Each change hides one record of the base at most.
        let wanted = limit.saturating_add(changes.len());
        let base = self.base.scan(from, to, reverse, wanted)?;
        let mut merged: BTreeMap<Vec<u8>, Vec<u8>> = base.into_iter().collect();
        for (key, (_, value)) in changes {
            match value {
                Some(value) => merged.insert(key.clone(), value.clone()),
                None => merged.remove(key),
            };
        }
        Ok(if reverse {
            merged.into_iter().rev().take(limit).collect()
        } else {
            merged.into_iter().take(limit).collect()
        })
    }

    fn for_each(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if self.read().changes.is_empty() {
            return self.base.for_each(prefix, visit);
        }
        scan_each(self, prefix, visit)
    }

    fn replace_all(
        &self,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: AppliedMark,
    ) -> Result<(), StoreError> {
        let _order = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.base.replace_all(records, applied)?;
        // What was staged belonged to the records that are gone.
        let mut staged = self.write();
        staged.changes.clear();
        staged.mark = None;
        Ok(())
    }

    fn make_durable(&self) -> Result<(), StoreError> {
        self.base.make_durable()
    }

    fn disk_bytes(&self) -> u64 {
        self.base.disk_bytes()
    }
}
