//! What the integration tests share.

pub mod http;
pub mod poll;
pub mod processes;
