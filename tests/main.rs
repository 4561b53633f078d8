//! The integration tests, one binary; modules in reading order.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that panics has failed, which is what it is for"
)]
#![allow(unreachable_pub, reason = "nothing outside a test binary reaches into it")]

mod api;
mod cli;
mod cluster;
mod cluster_in_process;
mod compat;
mod machine;
mod power_cut;
mod recurrence;
mod scenario;
mod support;
mod tidy;
