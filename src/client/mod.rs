//! The typed client of the public API, over the addresses of several nodes.
//!
//! - A node that cannot be reached, or that says 503, is passed over for the next one.
//! - A write carries one `Idempotency-Key` through all its tries, so that a try that was applied
//!   without our hearing of it is answered, not repeated.
//! - A request that may have been applied and was never answered ends as
//!   [`error::ClientError::Unknown`], never as a failure.
//!
//! One file per noun holds the calls; `transport` is the only one that speaks HTTP.

pub mod cluster;
pub mod error;
pub mod events;
pub mod fires;
pub mod jobs;
pub mod transport;
pub mod triggers;
pub mod workers;
