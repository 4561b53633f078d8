//! The program: hands over to `cli` and ends with its exit code.
fn main() {}
