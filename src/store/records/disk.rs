//! The records on disk: batches are merged in memory and written behind the caller's back.
//!
//! A batch is seen as soon as `apply` returns, and written some milliseconds later together with
//! those that came meanwhile: one batch of sled, one real flush. The log is the truth until then.
//!
//! **Why each write is flushed before the next.** sled uses a segment again once the pages that
//! replace its own are *written*, not once they are durable. With writes that pile up unflushed, a
//! torn cut destroys what had been durable: at 16 MiB applied between two flushes 2 of 40 cuts did,
//! one of them silently; without any flush 8 of 12 did. Merging makes the strict order cheap.
//!
//! One folder a generation; `CURRENT` names the one in use, so that all records are replaced by one
//! rename.

use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::files;
use crate::store::poison::Poison;
use crate::store::records::generation::{self, Generation};
use crate::store::records::overlay::{Layer, Merged, Overlay};
use crate::store::records::value;
use crate::store::records::{
    AppliedMark, KeyValue, RecordBatch, RecordStore, Visit, is_empty_range, prefix_end,
};

/// Changes that are written at once when there are so many, in bytes.
const WRITE_BYTES: usize = 256 * 1_024;
/// Changes that may wait; `apply` waits when there are more. Well below one segment of sled.
const WAITING_BYTES_MAX: usize = 2 * 1_024 * 1_024;
/// How long a change waits for others to be written with.
const LINGER: Duration = Duration::from_millis(20);
/// Records written at once while everything is replaced, in bytes.
const REPLACE_BATCH_BYTES: usize = 512 * 1_024;
const CURRENT: &str = "CURRENT";
/// The store's own keys; those of callers come after all of these.
const APPLIED_KEY: &[u8] = b"\0applied";
/// Written before a generation comes into use. sled opens as empty when it cannot find its way, so
/// a generation without this key has lost everything.
const BIRTH_KEY: &[u8] = b"\0birth";
const CALLERS_FIRST_KEY: &[u8] = &[1];

pub(crate) struct DiskRecords {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

struct Shared {
    folder: PathBuf,
    cache_bytes: u64,
    faults: Faults,
    poison: Poison,
    state: Mutex<State>,
    changed: Condvar,
    /// Held while sled is written to; taken before `state`.
    writing: Mutex<()>,
    current: RwLock<Generation>,
}

#[derive(Default)]
struct State {
    overlay: Overlay,
    /// Batches that were applied, and how many of them are durable.
    applied_count: u64,
    durable_count: u64,
    /// Somebody waits until all is durable.
    is_urgent: bool,
    is_closing: bool,
    failed: Option<StoreError>,
}

impl DiskRecords {
    pub(crate) fn open(
        folder: &Path,
        cache_bytes: u64,
        faults: Faults,
        poison: Poison,
    ) -> Result<DiskRecords, StoreError> {
        files::create_folder(folder, &faults)?;
        files::remove_unfinished(folder)?;
        let pointer = folder.join(CURRENT);
        let number = match files::read_if_there(&pointer)? {
            Some(bytes) => generation::parse_pointer(&bytes).ok_or_else(|| {
                StoreError::corrupt(&pointer, 0, "it does not name the records in use")
            })?,
            None => {
                let first = Generation::open(folder, 1, cache_bytes, &faults)?;
                let mut batch = sled::Batch::default();
                batch.insert(BIRTH_KEY, value::seal(BIRTH_KEY, b""));
                first.write(batch)?;
                first.make_durable(&faults)?;
                drop(first);
                let text = generation::pointer_text(1);
                files::replace(&pointer, text.as_bytes(), &faults)?;
                1
            }
        };
        generation::remove_generations(folder, number)?;
        if !generation::generation_folder(folder, number).is_dir() {
            let problem = format!("it names records {number}, which are missing");
            return Err(StoreError::corrupt(&pointer, 0, problem));
        }
        let current = Generation::open(folder, number, cache_bytes, &faults)?;
        if current.get(BIRTH_KEY)?.is_none() {
            let problem = "sled opened it as empty";
            return Err(StoreError::corrupt(&current.folder, 0, problem));
        }
        // What a killed process left in the page cache is believed from here on, so it must be
        // durable.
        current.make_durable(&faults)?;
        let shared = Arc::new(Shared {
            folder: folder.to_path_buf(),
            cache_bytes,
            faults,
            poison,
            state: Mutex::default(),
            changed: Condvar::new(),
            writing: Mutex::new(()),
            current: RwLock::new(current),
        });
        let behind = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("records-writer".to_owned())
            .spawn(move || behind.write_behind())
            .map_err(|source| StoreError::io("start a thread for", folder, source))?;
        Ok(DiskRecords { shared, writer: Some(writer) })
    }
}

impl Drop for DiskRecords {
    /// Writes what waits, so that the next start has nothing to replay.
    fn drop(&mut self) {
        self.shared.state().is_closing = true;
        self.shared.changed.notify_all();
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the records' writer ended in a panic");
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> RwLockReadGuard<'_, Generation> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_behind(&self) {
        while self.wait_for_work() {
            let written = self.write_layer();
            let written = self.poison.watch(written);
            let mut state = self.state();
            match written {
                Ok(durable_count) => {
                    state.overlay.writing = None;
                    state.durable_count = durable_count;
                    state.is_urgent &= durable_count < state.applied_count;
                }
                Err(error) => state.failed = Some(error),
            }
            let has_failed = state.failed.is_some();
            drop(state);
            self.changed.notify_all();
            if has_failed {
                return;
            }
        }
    }

    /// Waits until something should be written; false when there is nothing left and it is closing.
    fn wait_for_work(&self) -> bool {
        let mut state = self.state();
        while state.overlay.waiting.is_empty() {
            if state.is_closing {
                return false;
            }
            state = self.wait(state);
        }
        let is_patient = |state: &mut State| {
            state.overlay.waiting.bytes < WRITE_BYTES && !state.is_urgent && !state.is_closing
        };
        drop(self.changed.wait_timeout_while(state, LINGER, is_patient));
        true
    }

    /// Writes what waits by now, and flushes it. Returns how many batches are durable then.
    fn write_layer(&self) -> Result<u64, StoreError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        let count = state.applied_count;
        let layer = Arc::new(std::mem::take(&mut state.overlay.waiting));
        state.overlay.writing = Some(Arc::clone(&layer));
        drop(state);
        let current = self.current();
        let injected = self.faults.before_write();
        injected.map_err(|source| StoreError::io("write", &current.folder, source))?;
        current.write(sealed(&layer))?;
        current.make_durable(&self.faults)?;
        Ok(count)
    }

    /// Fills a fresh generation; it is not in use yet.
    fn fill(
        &self,
        number: u64,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: AppliedMark,
    ) -> Result<Generation, StoreError> {
        let folder = generation::generation_folder(&self.folder, number);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .map_err(|source| StoreError::io("remove", &folder, source))?;
        }
        let fresh = Generation::open(&self.folder, number, self.cache_bytes, &self.faults)?;
        let mut batch = sled::Batch::default();
        batch.insert(BIRTH_KEY, value::seal(BIRTH_KEY, b""));
        let mut bytes = 0;
        for record in records {
            let (key, value) = record?;
            bytes += key.len() + value.len();
            batch.insert(key.as_slice(), value::seal(&key, &value));
            if bytes >= REPLACE_BATCH_BYTES {
                fresh.write(std::mem::take(&mut batch))?;
                fresh.make_durable(&self.faults)?;
                bytes = 0;
            }
        }
        batch.insert(APPLIED_KEY, sealed_mark(&applied));
        fresh.write(batch)?;
        fresh.make_durable(&self.faults)?;
        Ok(fresh)
    }

    fn replace(
        &self,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: AppliedMark,
    ) -> Result<(), StoreError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.current().number + 1;
        let fresh = self.fill(number, records, applied)?;
        let pointer = self.folder.join(CURRENT);
        let text = generation::pointer_text(number);
        files::replace(&pointer, text.as_bytes(), &self.faults)?;
        let mut state = self.state();
        state.overlay = Overlay::default();
        state.durable_count = state.applied_count;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *current, fresh);
        drop(current);
        drop(state);
        self.changed.notify_all();
        let old_folder = old.folder.clone();
        drop(old);
        fs::remove_dir_all(&old_folder)
            .map_err(|source| StoreError::io("remove", &old_folder, source))
    }
}

impl RecordStore for DiskRecords {
    fn apply(&self, batch: RecordBatch) -> Result<(), StoreError> {
        let mut state = self.shared.state();
        while state.overlay.waiting.bytes >= WAITING_BYTES_MAX && state.failed.is_none() {
            state = self.shared.wait(state);
        }
        self.shared.poison.check()?;
        state.overlay.waiting.merge(batch);
        state.applied_count += 1;
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    fn applied(&self) -> Result<Option<AppliedMark>, StoreError> {
        if let Some(mark) = self.shared.state().overlay.applied() {
            return Ok(Some(mark));
        }
        let current = self.shared.current();
        let Some(bytes) = self.shared.poison.watch(current.get(APPLIED_KEY))? else {
            return Ok(None);
        };
        value::decode_mark(&bytes).map(Some).ok_or_else(|| {
            let error = StoreError::corrupt(&current.folder, 0, "the applied mark is cut off");
            self.shared.poison.note(error)
        })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(change) = self.shared.state().overlay.get(key) {
            return Ok(change);
        }
        self.shared.poison.watch(self.shared.current().get(key))
    }

    fn scan(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let from = callers_only(from);
        if is_empty_range(from, to) {
            return Ok(Vec::new());
        }
        let changes = self.shared.state().overlay.range(from, to).into_iter();
        let current = self.shared.current();
        let found: Result<Vec<KeyValue>, StoreError> = if reverse {
            let disk = current.range(from, to)?.rev().map(|item| current.unseal(item));
            Merged::new(disk, changes.rev(), reverse).take(limit).collect()
        } else {
            let disk = current.range(from, to)?.map(|item| current.unseal(item));
            Merged::new(disk, changes, reverse).take(limit).collect()
        };
        self.shared.poison.watch(found)
    }

    fn for_each(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let end = prefix_end(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let from = callers_only(Bound::Included(prefix));
        let changes = self.shared.state().overlay.range(from, to).into_iter();
        let current = self.shared.current();
        let disk = current.range(from, to)?.map(|item| current.unseal(item));
        for record in Merged::new(disk, changes, false) {
            let (key, value) = self.shared.poison.watch(record)?;
            visit(&key, &value)?;
        }
        Ok(())
    }

    fn replace_all(
        &self,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: AppliedMark,
    ) -> Result<(), StoreError> {
        self.shared.poison.check()?;
        // An error of the caller's records leaves the old ones in use and poisons nothing.
        let mut callers_error = None;
        let mut watched = records.inspect(|record| callers_error = record.as_ref().err().cloned());
        let replaced = self.shared.replace(&mut watched, applied);
        match callers_error {
            Some(error) => Err(error),
            None => self.shared.poison.watch(replaced),
        }
    }

    fn make_durable(&self) -> Result<(), StoreError> {
        self.shared.poison.check()?;
        let mut state = self.shared.state();
        let wanted = state.applied_count;
        while state.durable_count < wanted {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            state.is_urgent = true;
            self.shared.changed.notify_all();
            state = self.shared.wait(state);
        }
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        files::folder_bytes(&self.shared.folder)
    }
}

fn sealed(layer: &Layer) -> sled::Batch {
    let mut batch = sled::Batch::default();
    for (key, value) in &layer.changes {
        match value {
            Some(value) => batch.insert(key.as_slice(), value::seal(key, value)),
            None => batch.remove(key.as_slice()),
        }
    }
    if let Some(applied) = &layer.applied {
        batch.insert(APPLIED_KEY, sealed_mark(applied));
    }
    batch
}

fn sealed_mark(applied: &AppliedMark) -> Vec<u8> {
    value::seal(APPLIED_KEY, &value::encode_mark(applied))
}

/// Hides the store's own keys from callers.
fn callers_only(from: Bound<&[u8]>) -> Bound<&[u8]> {
    match from {
        Bound::Included(key) | Bound::Excluded(key) if key >= CALLERS_FIRST_KEY => from,
        Bound::Included(_) | Bound::Excluded(_) | Bound::Unbounded => {
            Bound::Included(CALLERS_FIRST_KEY)
        }
    }
}
