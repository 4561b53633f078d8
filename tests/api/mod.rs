//! The HTTP API of one node, over a real socket: routes by class, what is refused, and each noun's
//! contract.

mod bad_input;
mod fires;
mod jobs;
mod node;
mod routes;
mod watch;
mod work;
