//! Records that hold still while a snapshot reads them.
//!
//! A snapshot is a copy of all records at one applied index, made while entries go on being
//! applied. As long as it is read nothing is written to the records: changes pile up in a map over
//! them, every reader looks at both, and when the snapshot is done they are written in one batch
//! with the mark they belong to. A crash meanwhile loses the map only, and the log is applied again
//! from the mark on the disk.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::store::error::StoreError;
use crate::store::records::{
    AppliedMark, KeyValue, RecordBatch, RecordStore, Records, Visit, prefix_end,
};

pub(crate) struct Overlay {
    base: Records,
    piled: RwLock<Piled>,
}

#[derive(Default)]
struct Piled {
    /// Snapshots that read the base.
    readers: u32,
    /// New values, and none for what was deleted.
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    mark: Option<AppliedMark>,
}

/// The base as of one index; it stands still until this is dropped.
pub(crate) struct Still {
    overlay: Arc<Overlay>,
}

impl Overlay {
    pub(crate) fn new(base: Records) -> Arc<Overlay> {
        Arc::new(Overlay { base, piled: RwLock::default() })
    }

    /// Both layers as records.
    pub(crate) fn records(self: &Arc<Overlay>) -> Records {
        Records::over(Arc::clone(self) as Arc<dyn RecordStore>)
    }

    /// Makes the base stand still at its applied mark. None while changes of an earlier snapshot
    /// are piled up: the base is behind then.
    pub(crate) fn hold(self: &Arc<Overlay>) -> Option<Still> {
        let mut piled = self.write();
        if piled.mark.is_some() {
            return None;
        }
        piled.readers += 1;
        Some(Still { overlay: Arc::clone(self) })
    }

    fn release(&self) {
        let mut piled = self.write();
        piled.readers = piled.readers.saturating_sub(1);
        if piled.readers > 0 {
            return;
        }
        let Some(applied) = piled.mark.take() else {
            return;
        };
        let mut batch = RecordBatch { applied, ..RecordBatch::default() };
        for (key, value) in std::mem::take(&mut piled.changes) {
            match value {
                Some(value) => batch.puts.push((key, value)),
                None => batch.deletes.push(key),
            }
        }
        if let Err(error) = self.base.apply(batch) {
            // The store is poisoned now: the next chunk of entries is refused and stops the node.
            tracing::error!(%error, "changes made during a snapshot were not written");
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Piled> {
        self.piled.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Piled> {
        self.piled.write().unwrap_or_else(PoisonError::into_inner)
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
        let mut piled = self.write();
        if piled.readers == 0 {
            return self.base.apply(batch);
        }
        for key in batch.deletes {
            piled.changes.insert(key, None);
        }
        for (key, value) in batch.puts {
            piled.changes.insert(key, Some(value));
        }
        piled.mark = Some(batch.applied);
        Ok(())
    }

    fn applied(&self) -> Result<Option<AppliedMark>, StoreError> {
        let piled = self.read();
        match &piled.mark {
            Some(mark) => Ok(Some(mark.clone())),
            None => self.base.applied(),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let piled = self.read();
        match piled.changes.get(key) {
            Some(value) => Ok(value.clone()),
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
        let piled = self.read();
        if piled.changes.is_empty() || is_empty(from, to) {
            return self.base.scan(from, to, reverse, limit);
        }
        let changes: Vec<_> = piled.changes.range::<[u8], _>((from, to)).collect();
        // Each change hides one record of the base at most.
        let wanted = limit.saturating_add(changes.len());
        let base = self.base.scan(from, to, reverse, wanted)?;
        let mut merged: BTreeMap<Vec<u8>, Vec<u8>> = base.into_iter().collect();
        for (key, value) in changes {
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
        let end = prefix_end(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        for (key, value) in self.scan(Bound::Included(prefix), to, false, usize::MAX)? {
            visit(&key, &value)?;
        }
        Ok(())
    }

    fn replace_all(
        &self,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: AppliedMark,
    ) -> Result<(), StoreError> {
        self.base.replace_all(records, applied)?;
        // What was piled up belonged to the records that are gone.
        let mut piled = self.write();
        piled.changes.clear();
        piled.mark = None;
        Ok(())
    }

    fn make_durable(&self) -> Result<(), StoreError> {
        self.base.make_durable()
    }

    fn disk_bytes(&self) -> u64 {
        self.base.disk_bytes()
    }
}

/// Whether the bounds leave nothing between them; a map would panic over them.
fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Included(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
    }
}
