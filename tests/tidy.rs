//! The house's rules as assertions: a rule in prose drifts, a rule that fails the build does not.
//!
//! One file per family of rules. Each rule is a function from a source file to its findings, and
//! stands beside a test that shows it failing on a bad snippet: a rule that cannot fail is no rule.
//! A finding reads `file:line: what is wrong, what would be right`.

mod arrows;
mod confined;
mod manners;
mod matches;
mod papers;
mod shape;
mod source;
mod supply;
mod words;
