//! The records in a map: the twin of the ones on disk, for tests and simulation.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::error::StoreError;
use crate::store::records::{AppliedMark, KeyValue, RecordBatch, RecordStore, is_empty_range};

/// Lives as long as a handle on it; a batch is "durable" at once.
#[derive(Default)]
pub struct MemoryRecords {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    applied: Option<AppliedMark>,
}

impl MemoryRecords {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordStore for MemoryRecords {
    fn apply(&self, batch: RecordBatch) -> Result<(), StoreError> {
        let mut inner = self.inner();
        for key in &batch.deletes {
            inner.records.remove(key);
        }
        inner.records.extend(batch.puts);
        inner.applied = Some(batch.applied);
        Ok(())
    }

    fn applied(&self) -> Result<Option<AppliedMark>, StoreError> {
        Ok(self.inner().applied.clone())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.inner().records.get(key).cloned())
    }

    fn scan(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        if is_empty_range(from, to) {
            return Ok(Vec::new());
        }
        let inner = self.inner();
        let range = inner.records.range::<[u8], _>((from, to));
        let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        Ok(if reverse {
            range.rev().take(limit).map(owned).collect()
        } else {
            range.take(limit).map(owned).collect()
        })
    }

    fn replace_all(
        &self,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: AppliedMark,
    ) -> Result<(), StoreError> {
        let fresh = records.collect::<Result<BTreeMap<_, _>, _>>()?;
        *self.inner() = Inner { records: fresh, applied: Some(applied) };
        Ok(())
    }

    fn make_durable(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        0
    }
}
