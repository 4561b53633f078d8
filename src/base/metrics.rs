//! The names, units and meanings of every metric, in one list; the exporter lives in `node`.

/// Prefix of every metric's name.
pub const PREFIX: &str = "horolog";
