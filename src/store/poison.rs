//! Refuses everything after the first failed write or flush.
//!
//! After a failed `fsync` the kernel may mark the pages clean: the next one succeeds, and the
//! data is gone (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC
//! 2020). So the first failure is the last thing the store does; the node stops and starts again
//! from what the disk really holds.

use std::sync::{Arc, OnceLock};

use crate::store::error::StoreError;

/// Shared by the log, the records and the snapshots of one folder.
#[derive(Clone, Debug, Default)]
pub struct Poison {
    first: Arc<OnceLock<String>>,
}

impl Poison {
    /// # Errors
    /// [`StoreError::Poisoned`] with the first failure, once there was one.
    pub fn check(&self) -> Result<(), StoreError> {
        match self.first.get() {
            None => Ok(()),
            Some(first) => Err(StoreError::Poisoned { first: first.clone() }),
        }
    }

    /// Keeps `error` when it is fatal and the first one; hands it back, so that `?` may follow.
    pub fn note(&self, error: StoreError) -> StoreError {
        let already_known = matches!(error, StoreError::Poisoned { .. });
        if error.is_fatal() && !already_known && self.first.set(error.to_string()).is_ok() {
            tracing::error!(%error, "the store stops writing");
        }
        error
    }

    /// [`Poison::note`] for a result.
    pub(crate) fn watch<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        result.map_err(|error| self.note(error))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::*;

    #[test]
    fn only_the_first_fatal_error_is_kept() {
        let poison = Poison::default();
        poison.note(StoreError::TooLarge { what: "a value", bytes: 2, bytes_max: 1 });
        assert!(poison.check().is_ok(), "a refused value stops nothing");
        poison.note(StoreError::io("write", Path::new("/a"), io::Error::other("first")));
        poison.note(StoreError::io("write", Path::new("/b"), io::Error::other("second")));
        let refusal = poison.check().unwrap_err().to_string();
        assert!(refusal.contains("/a") && !refusal.contains("/b"), "{refusal}");
    }
}
