//! The only file that asks the operating system for the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::base::time::{Span, Timestamp};

/// Where the time comes from; shared by everything that needs it, so that tests can hold it in
/// their hands.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock. It may step in both directions: callers compare it with stamps, never with
    /// itself.
    fn now(&self) -> Timestamp;
}

/// A clock that many parts share.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the system clock"
    )]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_ms(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that moves only when it is told to.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ms: AtomicI64,
}

impl ManualClock {
    #[must_use]
    pub fn starting_at(at: Timestamp) -> ManualClock {
        ManualClock { now_ms: AtomicI64::new(at.as_ms()) }
    }

    pub fn set(&self, at: Timestamp) {
        self.now_ms.store(at.as_ms(), Ordering::SeqCst);
    }

    pub fn advance(&self, span: Span) {
        self.now_ms.fetch_add(span.as_ms(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_ms.load(Ordering::SeqCst))
    }
}
