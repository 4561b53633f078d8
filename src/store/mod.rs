//! The disk: the only module that knows sled. It stores bytes and knows nothing of jobs.
//!
//! ```text
//! FORMAT      version of everything below
//! LOCK        held by the process that uses the folder
//! IDENTITY    cluster id and node id
//! log/        Raft log and vote: segment files            the truth
//! records/    applied state: sled, one folder a generation  a view of it, may lag
//! snapshots/  whole states to send to other members        disposable
//! ```
//!
//! **What is atomic.** One group of the log; one `apply` of the records, which carries the
//! applied mark; one `replace_all`; one snapshot; one identity.
//!
//! **What is durable when.** The log and the vote: when `done` is called. The records: when
//! `make_durable` returns; until then a loss of power takes them back to an older applied mark,
//! and the log replays the rest. So `make_durable` comes before every purge, and the log is never
//! purged beyond the applied mark that is durable. A snapshot and the identity: when the call
//! that writes them returns.
//!
//! **Errors.** The first failed write or flush poisons the whole folder: nothing is written any
//! more, every call says so, and the node stops. A refused value or a broken contract poisons
//! nothing.

pub mod entities;
pub mod error;
pub mod fault;
mod files;
pub mod format;
pub mod identity;
pub mod keys;
pub mod log;
pub mod poison;
pub mod records;
pub mod snapshot_file;

#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::format::FormatVersion;
use crate::store::identity::IdentityFile;
use crate::store::log::{Log, LogOptions};
use crate::store::poison::Poison;
use crate::store::records::Records;
use crate::store::snapshot_file::Snapshots;

const LOCK_FILE: &str = "LOCK";

/// Sizes, in bytes, and the faults a test injects. The defaults fit a node with 100,000 jobs.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub log_segment_bytes: usize,
    pub log_cache_bytes: usize,
    pub records_cache_bytes: u64,
    pub faults: Faults,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            log_segment_bytes: 16 * 1_024 * 1_024,
            log_cache_bytes: 16 * 1_024 * 1_024,
            records_cache_bytes: 24 * 1_024 * 1_024,
            faults: Faults::default(),
        }
    }
}

/// Everything a node keeps in its data folder.
pub struct Store {
    pub log: Log,
    pub records: Records,
    pub snapshots: Snapshots,
    pub identity: IdentityFile,
    /// Last, so that the folder is free only when all of the above is closed.
    _lock: File,
}

impl Store {
    /// Opens the data folder, creating what is missing.
    ///
    /// # Errors
    /// Another process uses the folder, a newer format, damage, or the disk.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Store, StoreError> {
        let StoreOptions { log_segment_bytes, log_cache_bytes, records_cache_bytes, faults } =
            options;
        let poison = Poison::default();
        files::create_folder(dir, &faults)?;
        let lock = lock(dir)?;
        files::remove_unfinished(dir)?;
        FormatVersion::check_or_create(dir, &faults)?;
        let log_options =
            LogOptions { segment_bytes: log_segment_bytes, cache_bytes: log_cache_bytes };
        let identity = IdentityFile::new(dir, faults.clone(), poison.clone());
        let log = Log::open(&dir.join("log"), log_options, faults.clone(), poison.clone())?;
        let records = Records::open(
            &dir.join("records"),
            records_cache_bytes,
            faults.clone(),
            poison.clone(),
        )?;
        let snapshots = Snapshots::open(&dir.join("snapshots"), faults.clone(), poison)?;
        files::sync_folder(dir, &faults)?;
        Ok(Store { log, records, snapshots, identity, _lock: lock })
    }
}

/// Takes the folder for this process, until the file is closed.
fn lock(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join(LOCK_FILE);
    let failed = |source| StoreError::io("lock", &path, source);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(failed)?;
            let holder = match holder.trim() {
                "" => "another process".to_owned(),
                process => format!("process {process}"),
            };
            return Err(StoreError::Locked { path: dir.to_path_buf(), holder });
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}
