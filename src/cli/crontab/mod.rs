//! Reading a crontab, line by line: what each line says, what Horolog makes of it, and what it
//! refuses.
//!
//! Pure text work: no file is opened and no server is asked here. Reading never gives up on a
//! file; a line that cannot be taken becomes a refused line of the report, and the next goes on.

pub mod command;
pub mod environment;
pub mod job;
pub mod naming;
pub mod read;
pub mod report;
