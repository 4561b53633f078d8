//! The pull side: takes work from the cluster, runs it, keeps its leases, and answers for it.
//!
//! The same library stands behind `horolog worker` and behind workers written in Rust: give a
//! [`puller::Puller`] a client and one [`handler::Handler`] for each kind of executor it serves.
//!
//! | file | says |
//! | --- | --- |
//! | `handler` | what a run is, how it is stopped, how it ends |
//! | `puller` | the life of a worker: register, take work, drain |
//! | `session` | who the cluster knows us as; registering again |
//! | `book` | the runs that are held, and their leases |
//! | `leases` | extending, in batches |
//! | `outbox` | answering, in batches, until acknowledged |
//! | `command_handler`, `http_handler` | what `horolog worker` runs |
//! | `manual` | a worker driven by hand, for tests |

pub mod book;
pub mod command_handler;
pub mod environment;
pub mod handler;
pub mod http_handler;
pub mod leases;
pub mod manual;
pub mod outbox;
pub mod output_tail;
pub mod process_group;
pub mod puller;
pub mod session;
pub mod user;
