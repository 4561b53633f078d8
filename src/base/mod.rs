//! The vocabulary under the domain: time, chance, limits and bounded text.
//!
//! Nothing here knows of jobs, Raft or HTTP, and nothing here does I/O, apart from the two files
//! that ask the operating system for the time (`clock`) and for randomness (`entropy`).

pub mod bounded;
pub mod clock;
pub mod entropy;
pub mod hash;
pub mod limits;
pub mod metrics;
pub mod time;

/// Checks a named invariant and stops the process when it does not hold.
///
/// The one sanctioned way to panic outside tests: a member that goes on with a broken invariant
/// would spread it to its disk, so it stops and says which one was broken.
#[macro_export]
macro_rules! invariant {
    ($holds:expr, $name:literal $(, $arg:expr)* $(,)?) => {
        if !$holds {
            #[allow(clippy::panic, reason = "a broken invariant must not spread to the disk")]
            {
                panic!(concat!("invariant broken: ", $name) $(, $arg)*);
            }
        }
    };
}
