//! The state machine against its four properties, its refusals and the cases from the field.

pub mod field_cases;
pub mod harness;
pub mod loading;
pub mod precedence;
pub mod properties;
pub mod random;
pub mod records;
