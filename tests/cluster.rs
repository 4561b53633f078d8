//! Clusters of real processes under real faults: what is promised after a leader was killed, paused
//! or cut short, after all nodes were killed at once, and after one lost its folder.
//! `docs/guarantees.md` names the promises.

mod firing;
mod membership;
mod refusals;
mod registers;
mod takeover;
