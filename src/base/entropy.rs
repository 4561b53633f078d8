//! The only file that asks the operating system for randomness.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::hash::mix;

/// Where chance comes from; shared, so that a simulation can replay it from a seed.
pub trait Entropy: Send + Sync + 'static {
    fn next_u64(&self) -> u64;

    /// 128 bits as 32 lower-case hexadecimal digits, for identities that must not collide.
    fn next_token(&self) -> String {
        format!("{:016x}{:016x}", self.next_u64(), self.next_u64())
    }
}

pub type SharedEntropy = Arc<dyn Entropy>;

/// The operating system's generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    #[allow(
        clippy::expect_used,
        clippy::disallowed_methods,
        reason = "the one place that asks; without an answer no identity is safe to hand out"
    )]
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("the operating system's random generator");
        u64::from_le_bytes(bytes)
    }
}

/// A generator that yields the same numbers for the same seed (SplitMix64; Steele, Lea and Flood,
/// OOPSLA 2014).
#[derive(Debug)]
pub struct SeededEntropy {
    state: AtomicU64,
}

impl SeededEntropy {
    #[must_use]
    pub fn new(seed: u64) -> SeededEntropy {
        SeededEntropy { state: AtomicU64::new(seed) }
    }
}

impl Entropy for SeededEntropy {
    fn next_u64(&self) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        mix(self.state.fetch_add(GOLDEN, Ordering::SeqCst).wrapping_add(GOLDEN))
    }
}
