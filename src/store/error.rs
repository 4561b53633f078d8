//! What can go wrong on the disk, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error of the store. Cheap to clone: one failed flush answers many callers.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Stored bytes are not what was written. Nothing is repaired by guessing.
    #[error(
        "{path} is damaged at byte {offset}: {problem}; move the data folder away and let this \
         node join again as a new one, or restore a backup"
    )]
    Corrupt { path: PathBuf, offset: u64, problem: String },
    /// A record does not fit the others, or is not what its key says.
    #[error(
        "the records are damaged: {problem}; move the data folder away and let this node join \
         again as a new one, or restore a backup"
    )]
    BadRecord { problem: String },
    /// The folder was written by a newer version.
    #[error(
        "{path} has format {found}, this version knows formats up to {known}; start the newer \
         version of horolog that wrote it"
    )]
    NewerFormat { path: PathBuf, found: u32, known: u32 },
    /// Another process uses the folder.
    #[error(
        "the data folder {path} is in use by {holder}; stop that process or choose another folder"
    )]
    Locked { path: PathBuf, holder: String },
    /// There is no room left.
    #[error("the disk is full: cannot {action} {path}; free space and start this node again")]
    DiskFull { action: &'static str, path: PathBuf },
    /// The operating system refused.
    #[error("cannot {action} {path}")]
    Io { action: &'static str, path: PathBuf, source: Arc<io::Error> },
    /// An earlier write or flush failed: a second one proves nothing, so nothing is written again.
    #[error("the store stopped after an error, restart this node: {first}")]
    Poisoned { first: String },
    /// A value or entry above its limit; nothing was written.
    #[error("{what} has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLarge { what: &'static str, bytes: usize, bytes_max: usize },
    /// The caller broke the contract; nothing was written.
    #[error("{problem}")]
    Misuse { problem: String },
}

impl StoreError {
    /// Whether the node must stop. The others refuse one request and change nothing.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            StoreError::Corrupt { .. }
            | StoreError::BadRecord { .. }
            | StoreError::NewerFormat { .. }
            | StoreError::Locked { .. }
            | StoreError::DiskFull { .. }
            | StoreError::Io { .. }
            | StoreError::Poisoned { .. } => true,
            StoreError::TooLarge { .. } | StoreError::Misuse { .. } => false,
        }
    }

    /// The error of one call to the operating system.
    #[must_use]
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> StoreError {
        let path = path.to_path_buf();
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        if full.contains(&source.kind()) {
            return StoreError::DiskFull { action, path };
        }
        StoreError::Io { action, path, source: Arc::new(source) }
    }

    pub(crate) fn corrupt(path: &Path, offset: u64, problem: impl Into<String>) -> StoreError {
        StoreError::Corrupt { path: path.to_path_buf(), offset, problem: problem.into() }
    }

    pub(crate) fn misuse(problem: impl Into<String>) -> StoreError {
        StoreError::Misuse { problem: problem.into() }
    }

    /// An error of sled in the folder `path`.
    pub(crate) fn sled(action: &'static str, path: &Path, error: sled::Error) -> StoreError {
        match error {
            sled::Error::Io(source) => StoreError::io(action, path, source),
            sled::Error::Corruption { at, .. } => {
                StoreError::corrupt(path, 0, format!("sled found a damaged page ({at:?})"))
            }
            other => StoreError::io(action, path, io::Error::other(other.to_string())),
        }
    }
}
