//! From the shapes of the API to the nouns. Dull on purpose: every field is named here once, with
//! its limit and its default, and all that is wrong is said at once.

pub(in crate::api) mod fields;
pub(in crate::api) mod job;
pub(in crate::api) mod trigger;
pub(in crate::api) mod work;

#[cfg(test)]
mod tests;
