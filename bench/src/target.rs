//! What each figure should reach.

/// A bound on the median of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtLeast(bound) => value >= bound,
            Target::AtMost(bound) => value <= bound,
        }
    }
}

/// The target of a metric, when it has one.
pub fn target(bench: &str, metric: &str) -> Option<Target> {
    let row = TARGETS.iter().find(|(of, name, _)| *of == bench && *name == metric);
    row.map(|(_, _, target)| *target)
}

const TARGETS: &[(&str, &str, Target)] = &[
    ("commit-1", "throughput", Target::AtLeast(1_000.0)),
    ("commit-256", "throughput", Target::AtLeast(8_000.0)),
    ("submit-one", "throughput", Target::AtLeast(6_000.0)),
    ("drain-20k", "throughput", Target::AtLeast(10_000.0)),
    ("drain-20k", "missed", Target::AtMost(0.0)),
    ("drain-20k", "doubled", Target::AtMost(0.0)),
    ("late-1k", "lateness_p99", Target::AtMost(15.0)),
    ("late-1k", "early", Target::AtMost(0.0)),
    ("late-5k", "early", Target::AtMost(0.0)),
    ("recur-10k", "missed", Target::AtMost(0.0)),
    ("recur-10k", "doubled", Target::AtMost(0.0)),
    ("recur-10k", "lateness_p99", Target::AtMost(25.0)),
    ("recur-10k", "early", Target::AtMost(0.0)),
    ("leader-kill", "next_write_p50", Target::AtMost(1_500.0)),
    ("leader-kill", "next_fire_p50", Target::AtMost(1_500.0)),
    ("leader-kill", "missed", Target::AtMost(0.0)),
    ("leader-kill", "doubled", Target::AtMost(0.0)),
    ("footprint", "loaded_memory", Target::AtMost(250.0)),
    ("footprint", "loaded_start", Target::AtMost(3.0)),
    ("footprint", "list_page_p99", Target::AtMost(10.0)),
];
