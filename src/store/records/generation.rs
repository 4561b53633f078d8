//! One sled database, opened and flushed in the only ways that were measured to be safe.
//!
//! - `flush` alone is not durable here: it calls `sync_file_range`. Our own `fdatasync` on sled's
//!   file follows.
//! - Large segments, so that no value spills to a file that is never flushed.
//! - No background flusher: it only logs a failed flush.

use std::fs::{self, File};
use std::ops::Bound;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::files;
use crate::store::records::KeyValue;
use crate::store::records::value;

const SEGMENT_BYTES: usize = 16 * 1_024 * 1_024;
/// How long to wait for sled's threads when it is closed.
const CLOSE_WAIT_MS: u32 = 5_000;

/// One sled database.
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) folder: PathBuf,
    /// None only while this is dropped.
    db: Option<sled::Db>,
    /// A second handle on sled's file, for the flush that counts.
    heap: File,
}

impl Generation {
    pub(crate) fn open(
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
        Ok(Generation { number, folder, db: Some(db), heap })
    }

    fn db(&self) -> Result<&sled::Db, StoreError> {
        self.db.as_ref().ok_or_else(|| StoreError::misuse("the records are closed"))
    }

    pub(crate) fn write(&self, batch: sled::Batch) -> Result<(), StoreError> {
        let written = self.db()?.apply_batch(batch);
        written.map_err(|error| StoreError::sled("write", &self.folder, error))
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.db()?.get(key);
        let found = found.map_err(|error| StoreError::sled("read", &self.folder, error))?;
        match found {
            None => Ok(None),
            Some(sealed) => self.open_value(key, &sealed).map(|value| Some(value.to_vec())),
        }
    }

    pub(crate) fn range(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<sled::Iter, StoreError> {
        Ok(self.db()?.range::<&[u8], _>((from, to)))
    }

    pub(crate) fn unseal(
        &self,
        item: sled::Result<(sled::IVec, sled::IVec)>,
    ) -> Result<KeyValue, StoreError> {
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
    pub(crate) fn make_durable(&self, faults: &Faults) -> Result<(), StoreError> {
        let flushed = self.db()?.flush();
        flushed.map_err(|error| StoreError::sled("flush", &self.folder, error))?;
        faults.sync_data(&self.heap).map_err(|source| StoreError::io("flush", &self.folder, source))
    }
}

impl Drop for Generation {
    /// Waits until sled's threads have let go of the file, so that whoever opens the folder next
    /// finds it free.
    #[allow(
        clippy::disallowed_methods,
        reason = "polls a lock that sled lets go of within milliseconds, with a deadline"
    )]
    fn drop(&mut self) {
        self.db = None;
        for _ in 0..CLOSE_WAIT_MS {
            if self.heap.try_lock().is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        tracing::warn!(folder = %self.folder.display(), "sled has not closed its file");
    }
}

pub(crate) fn generation_folder(parent: &Path, number: u64) -> PathBuf {
    parent.join(format!("{number:016x}"))
}

pub(crate) fn pointer_text(number: u64) -> String {
    let body = format!("records {number:016x}");
    format!("{body} {:08x}\n", crc32fast::hash(body.as_bytes()))
}

pub(crate) fn parse_pointer(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let digits = text.strip_prefix("records ")?.get(..16)?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (pointer_text(number) == text).then_some(number)
}

/// Removes generations that a crash left behind.
pub(crate) fn remove_generations(folder: &Path, in_use: u64) -> Result<(), StoreError> {
    for name in files::names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() && path != generation_folder(folder, in_use) {
            fs::remove_dir_all(&path).map_err(|source| StoreError::io("remove", &path, source))?;
        }
    }
    Ok(())
}
