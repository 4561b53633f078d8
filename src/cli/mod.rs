//! The commands a person types, and what they print.

pub mod crontab;
