//! Whole clusters in this process: what the replica promises, on real disks and sockets.

mod disk;
mod membership;
mod reading_and_writing;
mod speed;
mod support;
