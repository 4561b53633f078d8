//! Horolog: a replicated job scheduler that needs nothing beside itself.
//!
//! The map, from the bottom up; imports go only downward, and `tests/tidy.rs` holds the table.
//!
//! - `base`: time, chance, limits, bounded text
//! - `model`: the nouns
//! - `recurrence`: when, as arithmetic
//! - `machine`: the replicated state machine
//! - `planner`: what a leader should propose now
//! - `store`: the disk
//! - `replica`: one member of the Raft group
//! - `leader`: loops that live only while leading
//! - `service`: use cases
//! - `wire`, `client`, `worker`: the public shapes, and both of their users
//! - `api`: axum at the edge
//! - `node`: wiring
//! - `cli`: the command line

pub mod api;
pub mod base;
pub mod cli;
pub mod client;
pub mod leader;
pub mod machine;
pub mod model;
pub mod node;
pub mod planner;
pub mod recurrence;
pub mod replica;
pub mod service;
pub mod store;
pub mod wire;
pub mod worker;
