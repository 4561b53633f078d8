//! The command line, the client and the worker, from outside.

mod client;
mod crontab;
mod dev;
mod fake_cluster;
mod http_handler;
mod program;
mod puller;
mod support;
