//! The node processes: started, watched, and stopped without exception.

use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::cli::error::CliError;
use crate::cli::output::Output;

pub const NODES: usize = 3;
/// Peer ports lie this far above API ports.
const PEER_PORT_OFFSET: u16 = 100;
const STOP_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How much of a node's log is shown when it ends early.
const LOG_LINES: usize = 8;

/// Refuses early, and by name, what would fail late and in three logs.
///
/// # Errors
/// [`CliError::Failed`] names the first port that is taken.
pub fn check_ports(from: u16) -> Result<(), CliError> {
    for at in 0..NODES {
        for port in [api_port(from, at), peer_port(from, at)] {
            if let Err(error) = TcpListener::bind(("127.0.0.1", port)) {
                let says = format!(
                    "port {port} of 127.0.0.1 cannot be used ({error}); choose others with \
                     --ports-from, such as --ports-from {}",
                    if from < 60_000 { from + 1_000 } else { 7_601 }
                );
                return Err(CliError::Failed(says));
            }
        }
    }
    Ok(())
}

fn api_port(from: u16, at: usize) -> u16 {
    from.saturating_add(u16::try_from(at).unwrap_or(u16::MAX))
}

fn peer_port(from: u16, at: usize) -> u16 {
    api_port(from, at).saturating_add(PEER_PORT_OFFSET)
}

/// The children. Dropping this kills what is left of them.
pub struct Nodes {
    folder: PathBuf,
    program: PathBuf,
    ports_from: u16,
    had_data: bool,
    children: Vec<Option<Child>>,
}

impl Nodes {
    /// # Errors
    /// [`CliError::Failed`] when this program cannot find itself.
    pub fn new(folder: &Path, ports_from: u16) -> Result<Nodes, CliError> {
        let program = std::env::current_exe()
            .map_err(|error| CliError::Failed(format!("cannot find this program: {error}")))?;
        Ok(Nodes {
            had_data: folder.join("node-1").exists(),
            folder: folder.to_owned(),
            program,
            ports_from,
            children: (0..NODES).map(|_| None).collect(),
        })
    }

    /// Whether the folder held a cluster already.
    #[must_use]
    pub fn had_data(&self) -> bool {
        self.had_data
    }

    #[must_use]
    pub fn folder(&self) -> String {
        self.folder.display().to_string()
    }

    #[must_use]
    pub fn api_addresses(&self) -> Vec<String> {
        let ports = (0..NODES).map(|at| api_port(self.ports_from, at));
        ports.map(|port| format!("http://127.0.0.1:{port}")).collect()
    }

    /// Starts one node: the first makes the cluster, the others join it.
    ///
    /// # Errors
    /// [`CliError::Failed`] when the process cannot be started.
    pub fn start(&mut self, at: usize) -> Result<(), CliError> {
        let failed = |error: std::io::Error| {
            CliError::Failed(format!("cannot start node {}: {error}", at + 1))
        };
        let log = self.open_log(at).map_err(failed)?;
        let mut command = Command::new(&self.program);
        command
            .arg("serve")
            .arg("--data")
            .arg(self.folder.join(format!("node-{}", at + 1)))
            .args(["--listen", &format!("127.0.0.1:{}", api_port(self.ports_from, at))])
            .args(["--peer-listen", &format!("127.0.0.1:{}", peer_port(self.ports_from, at))])
            .arg("--stop-with-parent")
            .stdin(Stdio::piped())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            // Ctrl-C is for us: the worker goes before the nodes.
            .process_group(0)
            .kill_on_drop(true);
        if at == 0 {
            command.arg("--bootstrap");
        } else {
            command.args(["--join", &format!("127.0.0.1:{}", peer_port(self.ports_from, 0))]);
        }
        let child = command.spawn().map_err(failed)?;
        self.children[at] = Some(child);
        Ok(())
    }

    /// Why a node ended that should not have, if one did.
    pub fn ended_early(&mut self) -> Option<String> {
        for at in 0..NODES {
            let child = self.children[at].as_mut()?;
            if let Ok(Some(status)) = child.try_wait() {
                let log = self.log_tail(at);
                return Some(format!("node {} has ended ({status}):\n{log}", at + 1));
            }
        }
        None
    }

    #[must_use]
    pub fn why_not_ready(&self, at: usize) -> String {
        format!("node {} is not ready after a minute:\n{}", at + 1, self.log_tail(at))
    }

    /// Says when a node ends, and fails when none is left. Somebody may be trying what happens.
    ///
    /// # Errors
    /// [`CliError::Failed`] when no node is left.
    pub async fn report_ends(&mut self, output: &Output) -> Result<(), CliError> {
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            look.tick().await;
            for at in 0..NODES {
                let Some(child) = &mut self.children[at] else { continue };
                let Ok(Some(status)) = child.try_wait() else { continue };
                self.children[at] = None;
                let log = self.log_path(at);
                output.message(&format!(
                    "node {} has ended ({status}), see {}",
                    at + 1,
                    log.display()
                ));
            }
            if self.children.iter().all(Option::is_none) {
                return Err(CliError::Failed("no node is left".to_owned()));
            }
        }
    }

    /// Asks all to stop, waits, and kills those that do not.
    pub async fn stop(&mut self) {
        for child in self.children.iter().flatten() {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            if let Some(pid) = id.and_then(Pid::from_raw) {
                // One that is gone is what we want.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        let all = async {
            for child in self.children.iter_mut().flatten() {
                let _ = child.wait().await;
            }
        };
        let _ = tokio::time::timeout(STOP_WITHIN, all).await;
        for child in self.children.iter_mut().flatten() {
            // Does nothing to those that have ended; waits for the others.
            let _ = child.kill().await;
        }
        self.children.iter_mut().for_each(|child| *child = None);
    }

    fn log_path(&self, at: usize) -> PathBuf {
        self.folder.join(format!("node-{}.log", at + 1))
    }

    fn open_log(&self, at: usize) -> std::io::Result<File> {
        OpenOptions::new().create(true).append(true).open(self.log_path(at))
    }

    fn log_tail(&self, at: usize) -> String {
        let text = std::fs::read_to_string(self.log_path(at)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let start = lines.len().saturating_sub(LOG_LINES);
        lines[start..].join("\n")
    }
}
