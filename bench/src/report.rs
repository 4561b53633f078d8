//! Figures, and how they are shown: a table for people, lines of JSON for programs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::stats::{Samples, Spread};
use crate::target::{Target, target};
use crate::usage::Used;

/// One value of one run.
#[derive(Clone, Debug)]
pub struct Figure {
    pub metric: String,
    pub value: f64,
    pub unit: &'static str,
}

/// Everything one run measured, in the order it is shown.
#[derive(Clone, Debug, Default)]
pub struct Run {
    figures: Vec<Figure>,
}

/// What all figures of one report have in common.
#[derive(Clone, Debug)]
pub struct Setting {
    pub nodes: usize,
    pub machine: String,
}

/// How the nodes make a commit durable before they answer.
const SYNC: &str = "fdatasync";
/// What they keep it in.
const STORE: &str = "log: preallocated segments, one sync a group; records: sled 0.34.7";
/// More than this used by the rest of the machine makes a run noisy.
const OTHER_CORES_MAX: f64 = 0.2;
const OTHER_CORES: &str = "other_cores";

impl Run {
    pub fn add(&mut self, metric: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push(Figure { metric: metric.into(), value, unit });
    }

    /// Percentiles of samples in microseconds, shown in milliseconds.
    pub fn add_samples(&mut self, name: &str, samples: &Samples) {
        let prefix = if name.is_empty() { String::new() } else { format!("{name}_") };
        let ms = |us: i64| us as f64 / 1_000.0;
        for (suffix, permille) in [("p50", 500), ("p99", 990), ("p999", 999)] {
            self.add(format!("{prefix}{suffix}"), ms(samples.permille(permille)), "ms");
        }
        self.add(format!("{prefix}max"), ms(samples.max()), "ms");
    }

    /// What the run cost, for each of its `count` operations.
    pub fn add_used(&mut self, used: &Used, count: usize) {
        let each = |total: u64| total as f64 / count.max(1) as f64;
        self.add("node_cores", used.node_cores.iter().sum(), "cores");
        self.add("node_cores_max", used.node_cores.iter().copied().fold(0.0, f64::max), "cores");
        self.add("load_cores", used.load_cores, "cores");
        self.add(OTHER_CORES, used.other_cores, "cores");
        self.add("node_cpu", used.node_cores.iter().sum::<f64>() * used.span.as_secs_f64(), "s");
        self.add("load_cpu", used.load_cores * used.span.as_secs_f64(), "s");
        self.add("disk_each", each(used.written_bytes) / 1_000.0, "KB");
        self.add("syncs_each", each(used.log_syncs), "");
    }
}

/// Shows the runs of one bench.
///
/// # Errors
/// When standard output is closed.
pub fn show(bench: &str, setting: &Setting, runs: &[Run], as_json: bool) -> Result<()> {
    let lines = match as_json {
        true => json_lines(bench, setting, runs)?,
        false => table_lines(bench, setting, runs),
    };
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}").map_err(Error::io("standard output"))?;
    }
    Ok(())
}

/// Tells a person how far it is, beside the figures.
pub fn progress(text: &str) {
    // Nobody may be looking.
    let _ = writeln!(io::stderr(), "{text}");
}

#[derive(Serialize)]
struct Line<'a> {
    bench: &'a str,
    metric: &'a str,
    value: f64,
    unit: &'a str,
    nodes: usize,
    sync: &'a str,
    min: f64,
    max: f64,
    runs: usize,
    noisy: bool,
    machine: &'a str,
    store: &'a str,
}

fn json_lines(bench: &str, setting: &Setting, runs: &[Run]) -> Result<Vec<String>> {
    let noisy = is_noisy(runs);
    let mut lines = Vec::new();
    for (figure, spread) in merged(runs) {
        let line = Line {
            bench,
            metric: &figure.metric,
            value: spread.median,
            unit: figure.unit,
            nodes: setting.nodes,
            sync: SYNC,
            min: spread.min,
            max: spread.max,
            runs: runs.len(),
            noisy,
            machine: &setting.machine,
            store: STORE,
        };
        lines.push(serde_json::to_string(&line).map_err(Error::json("figure"))?);
    }
    Ok(lines)
}

fn table_lines(bench: &str, setting: &Setting, runs: &[Run]) -> Vec<String> {
    let noise = if is_noisy(runs) { "; NOISY: the machine had other work" } else { "" };
    let head = format!("{bench}: {} nodes, {SYNC}, {} runs{noise}", setting.nodes, runs.len());
    let mut lines = vec![
        String::new(),
        head,
        format!("  machine: {}", setting.machine),
        format!("  store: {STORE}"),
    ];
    for (figure, spread) in merged(runs) {
        let median = number(spread.median);
        let range = match runs.len() {
            1 => String::new(),
            _ => format!("({} - {})", number(spread.min), number(spread.max)),
        };
        let verdict = target(bench, &figure.metric).map(|target| judge(target, spread.median));
        let verdict = verdict.unwrap_or_default();
        let line =
            format!("  {:<18} {median:>12} {:<6} {range:<26}{verdict}", figure.metric, figure.unit);
        lines.push(line.trim_end().to_owned());
    }
    lines
}

fn judge(target: Target, value: f64) -> String {
    let (sign, bound) = match target {
        Target::AtLeast(bound) => (">=", bound),
        Target::AtMost(bound) => ("<=", bound),
    };
    let word = if target.is_met(value) { "met" } else { "MISSED" };
    format!("target {sign} {} {word}", number(bound))
}

/// Thousands apart, and as many decimals as say something.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 1_000.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// Each metric of the first run, with its values in all runs that have it.
fn merged(runs: &[Run]) -> Vec<(&Figure, Spread)> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for figure in runs.iter().flat_map(|run| &run.figures) {
        values.entry(&figure.metric).or_default().push(figure.value);
    }
    let first = runs.first().map(|run| run.figures.as_slice()).unwrap_or_default();
    let spread = |figure: &Figure| values.get(figure.metric.as_str()).map(|all| Spread::of(all));
    first.iter().filter_map(|figure| Some((figure, spread(figure)?))).collect()
}

fn is_noisy(runs: &[Run]) -> bool {
    let figures = runs.iter().flat_map(|run| &run.figures);
    figures.into_iter().any(|f| f.metric == OTHER_CORES && f.value > OTHER_CORES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_thousands_apart() {
        let cases = [
            (0.0, "0.00"),
            (0.1234, "0.12"),
            (12.34, "12.3"),
            (999.94, "999.9"),
            (1_000.4, "1,000"),
            (1_234_567.0, "1,234,567"),
            (-1_234.0, "-1,234"),
            (-123.0, "-123.0"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn a_line_of_json_holds_the_median_of_the_runs() {
        let mut runs = vec![Run::default(), Run::default(), Run::default()];
        for (run, value) in runs.iter_mut().zip([3.0, 1.0, 2.0]) {
            run.add("throughput", value, "/s");
        }
        let setting = Setting { nodes: 3, machine: "m".to_owned() };
        let lines = json_lines("commit-1", &setting, &runs).unwrap();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with(
            "{\"bench\":\"commit-1\",\"metric\":\"throughput\",\"value\":2.0,\"unit\":\"/s\",\
             \"nodes\":3,\"sync\":\"fdatasync\""
        ));
    }

    #[test]
    fn a_run_beside_other_work_is_called_noisy() {
        let mut run = Run::default();
        run.add(OTHER_CORES, 0.5, "cores");
        assert!(is_noisy(&[run]));
        assert!(!is_noisy(&[Run::default()]));
    }
}
