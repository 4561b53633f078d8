//! The records in sled 0.34.7, kept to what was measured to be safe.
//!
//! - `flush` alone is not durable here: it calls `sync_file_range`. Our own `fdatasync` on sled's
//!   file follows.
//! - Large segments, so that no value spills to a file that is never flushed.
//! - No background flusher: it only logs a failed flush.
//! - sled re-uses a segment once a newer one is *written*, not once it is durable. So no more
//!   than one segment may be written between two real flushes: [`UNSYNCED_BYTES_MAX`] bounds what
//!   `apply` leaves unflushed.
//!
//! One folder a generation; `CURRENT` names the one in use, so that all records are replaced by
//! one rename.

use std::fs::{self, File};
use std::ops::Bound;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::files;
use crate::store::poison::Poison;
use crate::store::records::memory::is_empty_range;
use crate::store::records::value;
use crate::store::records::{AppliedMark, KeyValue, RecordBatch, RecordStore, Visit, prefix_end};

/// Keys and values applied between two real flushes, in bytes. sled writes up to sixteen times as
/// much, which still fits one segment.
const UNSYNCED_BYTES_MAX: usize = 1_024 * 1_024;
const SEGMENT_BYTES: usize = 16 * 1_024 * 1_024;
/// Records written at once while everything is replaced, in bytes.
const REPLACE_BATCH_BYTES: usize = 512 * 1_024;
const CURRENT: &str = "CURRENT";
/// First of the store's own keys; those of callers come after all of these.
const APPLIED_KEY: &[u8] = b"\0applied";
const CALLERS_FIRST_KEY: &[u8] = &[1];

pub(crate) struct DiskRecords {
    folder: PathBuf,
    cache_bytes: u64,
    faults: Faults,
    poison: Poison,
    /// Held while something is written; the value counts bytes since the last real flush.
    unsynced_bytes: Mutex<usize>,
    current: RwLock<Generation>,
}

/// One sled database.
struct Generation {
    number: u64,
    folder: PathBuf,
    db: sled::Db,
    /// A second handle on sled's file, for the flush that counts.
    heap: File,
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
            Some(bytes) => parse_pointer(&bytes).ok_or_else(|| {
                StoreError::corrupt(&pointer, 0, "it does not name the records in use")
            })?,
            None => {
                let first = Generation::open(folder, 1, cache_bytes, &faults)?;
                first.make_durable(&faults)?;
                drop(first);
                files::replace(&pointer, pointer_text(1).as_bytes(), &faults)?;
                1
            }
        };
        remove_generations(folder, number)?;
        let is_there = generation_folder(folder, number).is_dir();
        if !is_there {
            let problem = format!("it names records {number}, which are missing");
            return Err(StoreError::corrupt(&pointer, 0, problem));
        }
        let current = Generation::open(folder, number, cache_bytes, &faults)?;
        // What a killed process left in the page cache is believed from here on, so it must be
        // durable.
        current.make_durable(&faults)?;
        Ok(DiskRecords {
            folder: folder.to_path_buf(),
            cache_bytes,
            faults,
            poison,
            unsynced_bytes: Mutex::new(0),
            current: RwLock::new(current),
        })
    }

    fn current(&self) -> RwLockReadGuard<'_, Generation> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, usize> {
        self.unsynced_bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills a fresh generation; it is not in use yet.
    fn fill(
        &self,
        number: u64,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: &AppliedMark,
    ) -> Result<Generation, StoreError> {
        let folder = generation_folder(&self.folder, number);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .map_err(|source| StoreError::io("remove", &folder, source))?;
        }
        let fresh = Generation::open(&self.folder, number, self.cache_bytes, &self.faults)?;
        let mut batch = sled::Batch::default();
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
        let mark = value::seal(APPLIED_KEY, &value::encode_mark(applied));
        batch.insert(APPLIED_KEY, mark);
        fresh.write(batch)?;
        fresh.make_durable(&self.faults)?;
        Ok(fresh)
    }

    fn replace(
        &self,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: &AppliedMark,
    ) -> Result<(), StoreError> {
        let mut unsynced_bytes = self.writing();
        let number = self.current().number + 1;
        let fresh = self.fill(number, records, applied)?;
        let pointer = self.folder.join(CURRENT);
        files::replace(&pointer, pointer_text(number).as_bytes(), &self.faults)?;
        *unsynced_bytes = 0;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *current, fresh);
        drop(current);
        let old_folder = old.folder.clone();
        drop(old);
        fs::remove_dir_all(&old_folder)
            .map_err(|source| StoreError::io("remove", &old_folder, source))
    }
}

impl RecordStore for DiskRecords {
    fn apply(&self, batch: RecordBatch) -> Result<(), StoreError> {
        self.poison.check()?;
        let mut changes = sled::Batch::default();
        let mut bytes = 0;
        for key in batch.deletes {
            bytes += key.len();
            changes.remove(key);
        }
        for (key, value) in batch.puts {
            bytes += key.len() + value.len();
            let sealed = value::seal(&key, &value);
            changes.insert(key, sealed);
        }
        let mark = value::seal(APPLIED_KEY, &value::encode_mark(&batch.applied));
        bytes += mark.len();
        changes.insert(APPLIED_KEY, mark);

        let mut unsynced_bytes = self.writing();
        let current = self.current();
        let injected = self.faults.before_write();
        let injected = injected.map_err(|source| StoreError::io("write", &current.folder, source));
        self.poison.watch(injected.and_then(|()| current.write(changes)))?;
        *unsynced_bytes += bytes;
        if *unsynced_bytes >= UNSYNCED_BYTES_MAX {
            self.poison.watch(current.make_durable(&self.faults))?;
            *unsynced_bytes = 0;
        }
        Ok(())
    }

    fn applied(&self) -> Result<Option<AppliedMark>, StoreError> {
        let current = self.current();
        let Some(bytes) = self.poison.watch(current.get(APPLIED_KEY))? else {
            return Ok(None);
        };
        match value::decode_mark(&bytes) {
            Some(mark) => Ok(Some(mark)),
            None => {
                let problem = "the applied mark is cut off";
                Err(self.poison.note(StoreError::corrupt(&current.folder, 0, problem)))
            }
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.poison.watch(self.current().get(key))
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
        let current = self.current();
        let range = current.db.range::<&[u8], _>((from, to));
        let unsealed = |item| current.unseal(item);
        let found: Result<Vec<KeyValue>, StoreError> = if reverse {
            range.rev().take(limit).map(unsealed).collect()
        } else {
            range.take(limit).map(unsealed).collect()
        };
        self.poison.watch(found)
    }

    fn for_each(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let end = prefix_end(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let from = callers_only(Bound::Included(prefix));
        let current = self.current();
        for item in current.db.range::<&[u8], _>((from, to)) {
            let (key, value) = self.poison.watch(current.unseal(item))?;
            visit(&key, &value)?;
        }
        Ok(())
    }

    fn replace_all(
        &self,
        records: &mut dyn Iterator<Item = Result<KeyValue, StoreError>>,
        applied: AppliedMark,
    ) -> Result<(), StoreError> {
        self.poison.check()?;
        // An error of the caller's records leaves the old ones in use and poisons nothing.
        let mut callers_error = None;
        let mut watched = records.map_while(|record| match record {
            Ok(record) => Some(Ok(record)),
            Err(error) => {
                callers_error = Some(error.clone());
                Some(Err(error))
            }
        });
        let replaced = self.replace(&mut watched, &applied);
        match callers_error {
            Some(error) => Err(error),
            None => self.poison.watch(replaced),
        }
    }

    fn make_durable(&self) -> Result<(), StoreError> {
        self.poison.check()?;
        let mut unsynced_bytes = self.writing();
        self.poison.watch(self.current().make_durable(&self.faults))?;
        *unsynced_bytes = 0;
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        files::folder_bytes(&self.folder)
    }
}

impl Generation {
    fn open(
        parent: &Path,
        number: u64,
        cache_bytes: u64,
        faults: &Faults,
    ) -> Result<Generation, StoreError> {
        let folder = generation_folder(parent, number);
        files::create_folder(&folder, faults)?;
        // sled refuses to open beside an unfinished snapshot of its own.
        for name in files::names(&folder)? {
            if name.starts_with("snap.") && name.ends_with(".generating") {
                let path = folder.join(name);
                fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, source))?;
            }
        }
        let config = sled::Config::new()
            .path(&folder)
            .segment_size(SEGMENT_BYTES)
            .cache_capacity(cache_bytes)
            .flush_every_ms(None);
        // sled panics on some damage.
        let opened = std::panic::catch_unwind(AssertUnwindSafe(|| config.open()));
        let opened =
            opened.map_err(|_| StoreError::corrupt(&folder, 0, "sled cannot read its file"))?;
        let db = opened.map_err(|error| StoreError::sled("open", &folder, error))?;
        let heap_path = folder.join("db");
        let heap =
            File::open(&heap_path).map_err(|source| StoreError::io("open", &heap_path, source))?;
        for name in ["conf", "db"] {
            let path = folder.join(name);
            File::open(&path)
                .and_then(|file| faults.sync_all(&file))
                .map_err(|source| StoreError::io("flush", &path, source))?;
        }
        files::sync_folder(&folder, faults)?;
        Ok(Generation { number, folder, db, heap })
    }

    fn write(&self, batch: sled::Batch) -> Result<(), StoreError> {
        let written = self.db.apply_batch(batch);
        written.map_err(|error| StoreError::sled("write", &self.folder, error))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.db.get(key);
        let found = found.map_err(|error| StoreError::sled("read", &self.folder, error))?;
        match found {
            None => Ok(None),
            Some(sealed) => self.open_value(key, &sealed).map(|value| Some(value.to_vec())),
        }
    }

    fn unseal(&self, item: sled::Result<(sled::IVec, sled::IVec)>) -> Result<KeyValue, StoreError> {
        let item = item.map_err(|error| StoreError::sled("read", &self.folder, error))?;
        let (key, sealed) = item;
        let value = self.open_value(&key, &sealed)?.to_vec();
        Ok((key.to_vec(), value))
    }

    fn open_value<'a>(&self, key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8], StoreError> {
        value::open(key, sealed).map_err(|problem| {
            let problem = format!("{problem} (key {})", key.escape_ascii());
            StoreError::corrupt(&self.folder, 0, problem)
        })
    }

    /// sled's own flush hands the bytes to the kernel; ours makes them durable.
    fn make_durable(&self, faults: &Faults) -> Result<(), StoreError> {
        let flushed = self.db.flush();
        flushed.map_err(|error| StoreError::sled("flush", &self.folder, error))?;
        faults.sync_data(&self.heap).map_err(|source| StoreError::io("flush", &self.folder, source))
    }
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

fn generation_folder(parent: &Path, number: u64) -> PathBuf {
    parent.join(format!("{number:016x}"))
}

fn pointer_text(number: u64) -> String {
    let body = format!("records {number:016x}");
    format!("{body} {:08x}\n", crc32fast::hash(body.as_bytes()))
}

fn parse_pointer(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let digits = text.strip_prefix("records ")?.get(..16)?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (pointer_text(number) == text).then_some(number)
}

/// Removes generations that a crash left behind.
fn remove_generations(folder: &Path, in_use: u64) -> Result<(), StoreError> {
    for name in files::names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() && path != generation_folder(folder, in_use) {
            fs::remove_dir_all(&path).map_err(|source| StoreError::io("remove", &path, source))?;
        }
    }
    Ok(())
}
