//! The command line, the client and the worker, from outside.

mod client;
mod fake_cluster;
mod http_handler;
mod puller;
mod support;
