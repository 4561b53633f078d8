//! `horolog dev` as a person uses it: three real nodes, a worker, jobs that run, and a clean end.

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::cli::support::until;

/// Six free ports as `dev` wants them. Another process may take one meanwhile; then the test says
/// so.
fn free_ports() -> u16 {
    for from in (20_000..50_000).step_by(211) {
        let from = from + u16::try_from(std::process::id() % 100).unwrap();
        let mut ports = (from..from + 3).chain(from + 100..from + 103);
        if ports.all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return from;
        }
    }
    panic!("no free ports");
}

struct Dev {
    child: Child,
    output: std::path::PathBuf,
    nodes: Vec<i32>,
}

impl Dev {
    /// Starts it, and waits until a job has run.
    async fn start(folder: &Path, from: u16) -> Dev {
        let output = folder.join("output");
        let file = File::create(&output).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_horolog"))
            .args(["dev", "--ports-from", &from.to_string(), "--data"])
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        let nodes = Vec::new();
        let mut dev = Dev { child, output, nodes };
        dev.shows("examples/date  succeeded").await;
        dev.nodes = children_of(dev.child.id());
        assert_eq!(dev.nodes.len(), 3, "{}", dev.said());
        dev
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap()
    }

    async fn shows(&mut self, part: &str) {
        let mut looks = 0;
        until(part, || {
            looks += 1;
            let ended = looks % 50 == 0 && self.child.try_wait().unwrap().is_some();
            assert!(!ended, "it ended early: {}", self.said());
            self.said().contains(part).then_some(())
        })
        .await;
    }

    async fn is_gone(&mut self) {
        until("dev is gone", || self.child.try_wait().unwrap()).await;
        for node in self.nodes.clone() {
            let pid = Pid::from_raw(node).unwrap();
            until("its nodes are gone", || test_kill_process(pid).is_err().then_some(())).await;
        }
    }
}

fn children_of(parent: u32) -> Vec<i32> {
    let list = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = list.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let after_name = stat.rsplit(") ").next().unwrap_or_default();
        let is_node = std::fs::read_to_string(format!("/proc/{id}/cmdline"))
            .is_ok_and(|words| words.contains("serve"));
        is_node && after_name.split(' ').nth(1) == Some(&parent.to_string())
    })
    .collect()
}

#[tokio::test]
async fn dev_brings_a_cluster_up_and_takes_it_down_whole() {
    let folder = tempfile::tempdir().unwrap();
    let from = free_ports();
    let mut dev = Dev::start(folder.path(), from).await;
    // Its ports are taken now, and a second one says so and starts nothing.
    let second = Command::new(env!("CARGO_BIN_EXE_horolog"))
        .args(["dev", "--ports-from", &from.to_string()])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains(&format!("port {from} of 127.0.0.1 cannot be used")), "{said}");
    let pid = Pid::from_raw(i32::try_from(dev.child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    dev.is_gone().await;
    assert_eq!(dev.child.wait().unwrap().code(), Some(0), "{}", dev.said());
    // The data is kept, and a killed one takes its nodes with it all the same.
    let mut again = Dev::start(folder.path(), from).await;
    again.child.kill().unwrap();
    again.is_gone().await;
}
