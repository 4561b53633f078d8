//! Real processes with real faults: chooses a workload and a nemesis, and gives the verdict.
fn main() {}
