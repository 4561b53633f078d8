//! The JSON shapes of the public API, one file per noun. No behaviour, and nothing of the inside:
//! the server, the client and every other user of the API share these and nothing else.
//!
//! - Instants are RFC 3339 in UTC, lengths of time are texts such as `90s` or `PT15M`, tokens and
//!   indexes are whole numbers below 2^64.
//! - What a caller sends refuses unknown fields by name. What a caller receives may gain fields, so
//!   a reader passes over those it does not know.
//! - A field that is `None` is left out.

pub mod cluster;
pub mod fire;
pub mod job;
pub mod page;
pub mod problem;
pub mod tenant;
pub mod trigger;
pub mod worker;

#[cfg(test)]
mod tests;
