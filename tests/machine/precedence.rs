//! The refusals of every command, in the order in which they are looked for.
