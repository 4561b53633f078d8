//! A failing, slow or lying disk, for tests; the default does nothing.
//!
//! Every write and every flush of the store passes here, so that a test can make one fail, hold
//! it back, or leave it out. Leaving it out is a deliberate defect: the power-cut suite must
//! catch it.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Shared handle; clones act on the same disk.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    skip_syncs: AtomicBool,
    fail_next_write: AtomicBool,
    fail_next_sync: AtomicBool,
    sync_delay_ms: AtomicU64,
    syncs: AtomicU64,
    held: Mutex<bool>,
    released: Condvar,
}

impl Faults {
    /// The deliberate defect: report success without flushing anything.
    pub fn skip_syncs(&self, on: bool) {
        self.inner.skip_syncs.store(on, Ordering::SeqCst);
    }

    /// The next write fails with EIO.
    pub fn fail_next_write(&self) {
        self.inner.fail_next_write.store(true, Ordering::SeqCst);
    }

    /// The next flush fails with EIO, as a disk does that has lost the pages.
    pub fn fail_next_sync(&self) {
        self.inner.fail_next_sync.store(true, Ordering::SeqCst);
    }

    /// Every flush takes this much longer.
    pub fn delay_syncs(&self, delay: Duration) {
        let ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.inner.sync_delay_ms.store(ms, Ordering::SeqCst);
    }

    /// Flushes wait until [`Faults::release_syncs`].
    pub fn hold_syncs(&self) {
        *self.held() = true;
    }

    pub fn release_syncs(&self) {
        *self.held() = false;
        self.inner.released.notify_all();
    }

    /// Flushes of file contents so far, of all files of the store.
    #[must_use]
    pub fn sync_count(&self) -> u64 {
        self.inner.syncs.load(Ordering::SeqCst)
    }

    /// Called before each write.
    pub(crate) fn before_write(&self) -> io::Result<()> {
        if self.inner.fail_next_write.swap(false, Ordering::SeqCst) {
            return Err(io::Error::other("injected write failure"));
        }
        Ok(())
    }

    /// Makes the contents of `file` durable.
    pub(crate) fn sync_data(&self, file: &File) -> io::Result<()> {
        self.sync(file, File::sync_data)
    }

    /// Makes the contents and the size of a new `file`, or a folder, durable.
    pub(crate) fn sync_all(&self, file: &File) -> io::Result<()> {
        self.sync(file, File::sync_all)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "a slow disk blocks the thread that syncs, and that thread does nothing else"
    )]
    fn sync(&self, file: &File, flush: fn(&File) -> io::Result<()>) -> io::Result<()> {
        let delay_ms = self.inner.sync_delay_ms.load(Ordering::SeqCst);
        if delay_ms > 0 {
            std::thread::sleep(Duration::from_millis(delay_ms));
        }
        let mut held = self.held();
        while *held {
            held = self.inner.released.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        drop(held);
        self.inner.syncs.fetch_add(1, Ordering::SeqCst);
        if self.inner.fail_next_sync.swap(false, Ordering::SeqCst) {
            return Err(io::Error::other("injected flush failure"));
        }
        if self.inner.skip_syncs.load(Ordering::SeqCst) {
            return Ok(());
        }
        flush(file)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, bool> {
        self.inner.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
