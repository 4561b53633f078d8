//! Measures the pure core and a cluster of three.
fn main() {}
