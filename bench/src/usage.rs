//! What the nodes and this program cost, as `/proc` and `/metrics` count it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::error::{Error, Result};

/// Linux counts processor time in hundredths of a second for programs, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// Counters at one moment.
#[derive(Clone, Debug)]
pub struct Usage {
    at: Instant,
    nodes_s: Vec<f64>,
    load_s: f64,
    machine_s: f64,
    written_bytes: u64,
    log_syncs: u64,
}

/// What was used between two moments.
#[derive(Clone, Debug)]
pub struct Used {
    pub span: Duration,
    /// Of each node, in cores.
    pub node_cores: Vec<f64>,
    pub load_cores: f64,
    /// Of everything else on this machine.
    pub other_cores: f64,
    /// By all nodes together.
    pub written_bytes: u64,
    /// By all nodes together; 0 when the nodes do not count them.
    pub log_syncs: u64,
}

impl Usage {
    /// The counters of this moment. The syncs are left out, since to read them costs the nodes a
    /// call.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn now(cluster: &Cluster) -> Result<Usage> {
        let mut usage = Usage {
            at: Instant::now(),
            nodes_s: Vec::new(),
            load_s: processor_s(std::process::id())?,
            machine_s: machine_s()?,
            written_bytes: 0,
            log_syncs: 0,
        };
        for node in &cluster.nodes {
            let Some(pid) = node.pid() else { continue };
            usage.nodes_s.push(processor_s(pid)?);
            usage.written_bytes += field_of(&format!("/proc/{pid}/io"), "write_bytes:")?;
        }
        Ok(usage)
    }

    pub fn until(&self, later: &Usage) -> Used {
        let span = later.at - self.at;
        let cores = |seconds: f64| seconds / span.as_secs_f64();
        let nodes = self.nodes_s.iter().zip(&later.nodes_s);
        let node_cores: Vec<f64> = nodes.map(|(from, to)| cores(to - from)).collect();
        let load_cores = cores(later.load_s - self.load_s);
        let ours: f64 = node_cores.iter().sum::<f64>() + load_cores;
        let other_cores = (cores(later.machine_s - self.machine_s) - ours).max(0.0);
        Used {
            span,
            node_cores,
            load_cores,
            other_cores,
            written_bytes: later.written_bytes.saturating_sub(self.written_bytes),
            log_syncs: later.log_syncs.saturating_sub(self.log_syncs),
        }
    }

    /// Adds the syncs that the nodes have counted so far.
    ///
    /// # Errors
    /// When a node does not answer.
    pub async fn with_syncs(mut self, cluster: &Cluster) -> Result<Usage> {
        for i in cluster.running() {
            let metrics = cluster.get(i, "/metrics").await?;
            let text = String::from_utf8_lossy(&metrics.body).into_owned();
            self.log_syncs += counter_in(&text, "horolog_log_syncs");
        }
        Ok(self)
    }
}

/// Proportional set size of one process, in megabytes of 10^6 bytes: shared pages by their share.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn memory_mb(pid: u32) -> Result<f64> {
    let kib = field_of(&format!("/proc/{pid}/smaps_rollup"), "Pss:")?;
    Ok(kib as f64 * 1_024.0 / 1e6)
}

/// Bytes of all files below a folder.
///
/// # Errors
/// When it cannot be read.
pub fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(Error::at(folder))? {
        let entry = entry.map_err(Error::at(folder))?;
        let kind = entry.file_type().map_err(Error::at(folder))?;
        bytes += match kind.is_dir() {
            true => folder_bytes(&entry.path())?,
            // A file that a node removes meanwhile holds nothing any more.
            false => entry.metadata().map_or(0, |metadata| metadata.len()),
        };
    }
    Ok(bytes)
}

/// The sum of a counter over its labels, with or without the suffix of counters.
fn counter_in(metrics: &str, name: &str) -> u64 {
    let mut sum = 0;
    for line in metrics.lines() {
        let Some(rest) = line.strip_prefix(name) else { continue };
        let rest = rest.strip_prefix("_total").unwrap_or(rest);
        let is_whole_name = rest.starts_with([' ', '{']);
        let value = rest.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        if is_whole_name {
            sum += value.unwrap_or_default() as u64;
        }
    }
    sum
}

/// User and system time of a process.
fn processor_s(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = read(&path)?;
    // The name of the program stands in brackets, and may hold anything.
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |i: usize| after_name.split_whitespace().nth(i)?.parse::<f64>().ok();
    match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => Ok((user + system) / TICKS_PER_SECOND),
        _ => Err(Error::Wrong(format!("{path} has no times: {text}"))),
    }
}

/// Time that any processor of the machine was busy.
fn machine_s() -> Result<f64> {
    let text = read("/proc/stat")?;
    let first = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = first.split_whitespace().skip(1).filter_map(|t| t.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let busy: f64 = [0, 1, 2, 5, 6].iter().filter_map(|&i| ticks.get(i)).sum();
    Ok(busy / TICKS_PER_SECOND)
}

fn field_of(path: &str, field: &str) -> Result<u64> {
    let text = read(path)?;
    let rest = text.lines().find_map(|line| line.strip_prefix(field));
    let value = rest.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| Error::Wrong(format!("{path} has no {field}")))
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_summed_over_its_labels_and_told_from_longer_names() {
        let text = "# TYPE horolog_log_syncs counter\nhorolog_log_syncs_total 7\n\
            horolog_log_syncs_total{file=\"a\"} 3\nhorolog_log_syncs_seconds 99\n";
        assert_eq!(counter_in(text, "horolog_log_syncs"), 10);
    }

    #[test]
    fn this_process_has_times_and_memory() {
        let pid = std::process::id();
        assert!(processor_s(pid).is_ok());
        assert!(machine_s().unwrap() > 0.0);
        assert!(memory_mb(pid).unwrap() > 0.1);
    }
}
