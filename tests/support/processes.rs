//! A cluster of real processes: the shipped binary, real sockets, real files, one folder for each
//! node.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::http::Http;
use crate::support::poll;

const READY_WITHIN: Duration = Duration::from_secs(30);

/// One node's place: its folder and ports stay the same over restarts, unless a test moves it.
pub struct Node {
    pub folder: PathBuf,
    pub api_port: u16,
    pub peer_port: u16,
    log: PathBuf,
    child: Option<Child>,
}

/// Nodes of one cluster. Every process still running is killed when this is dropped.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub http: Http,
    home: TempDir,
}

impl Cluster {
    /// Starts `size` nodes and waits until all of them are voting members that answer.
    pub async fn start(size: usize) -> Cluster {
        let mut cluster = Cluster::empty();
        cluster.add_and_start(&["--bootstrap".to_owned()]);
        cluster.wait_ready(0).await;
        let join = cluster.join_flag();
        for _ in 1..size {
            let position = cluster.add_and_start(&join);
            cluster.wait_ready(position).await;
        }
        cluster.wait_voters(size).await;
        cluster
    }

    pub fn empty() -> Cluster {
        let home = tempfile::tempdir().unwrap();
        Cluster { nodes: Vec::new(), http: Http::new(), home }
    }

    /// The flags with which a further node joins.
    pub fn join_flag(&self) -> Vec<String> {
        let peers: Vec<String> =
            self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.peer_port)).collect();
        vec!["--join".to_owned(), peers.join(",")]
    }

    /// Makes a place for a node and starts it there; answers with its position.
    pub fn add_and_start(&mut self, flags: &[String]) -> usize {
        let folder = self.home.path().join(format!("node-{}", self.nodes.len()));
        self.add_in_folder(&folder, flags)
    }

    /// The same in a folder that the test names.
    pub fn add_in_folder(&mut self, folder: &Path, flags: &[String]) -> usize {
        let position = self.nodes.len();
        let folder = folder.to_owned();
        let log = self.home.path().join(format!("node-{position}.log"));
        let (api_port, peer_port) = (free_port(), free_port());
        self.nodes.push(Node { folder, api_port, peer_port, log, child: None });
        self.start_node(position, flags);
        position
    }

    /// Starts a node that is not running.
    pub fn start_node(&mut self, position: usize, flags: &[String]) {
        let node = &mut self.nodes[position];
        assert!(node.child.is_none(), "node {position} is running");
        let log = File::options().create(true).append(true).open(&node.log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_horolog"))
            .arg("serve")
            .args(["--data".as_ref(), node.folder.as_os_str()])
            .args(["--listen", &format!("127.0.0.1:{}", node.api_port)])
            .args(["--peer-listen", &format!("127.0.0.1:{}", node.peer_port)])
            .args(flags)
            .env("HOROLOG_LOG", "horolog=info")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        node.child = Some(child);
    }

    /// Gives a node that is not running other ports.
    pub fn move_node(&mut self, position: usize) {
        let node = &mut self.nodes[position];
        assert!(node.child.is_none());
        (node.api_port, node.peer_port) = (free_port(), free_port());
    }

    pub fn base(&self, position: usize) -> String {
        format!("http://127.0.0.1:{}", self.nodes[position].api_port)
    }

    pub async fn wait_ready(&self, position: usize) {
        let url = format!("{}/readyz", self.base(position));
        let claim = format!("node {position} is ready\n{}", self.log_tail(position));
        poll::reached(&claim, READY_WITHIN, || async {
            match self.http.get(&url).await {
                Ok(answer) if answer.status == 200 => Ok(()),
                Ok(answer) => Err(format!("{} {}", answer.status, answer.body)),
                Err(error) => Err(error),
            }
        })
        .await;
    }

    async fn wait_voters(&self, size: usize) {
        poll::reached("all nodes are voters", READY_WITHIN, || async {
            let status = self.status(0).await?;
            let members = status["members"].as_array().cloned().unwrap_or_default();
            let voters = members.iter().filter(|member| member["role"] == "voter").count();
            if voters == size { Ok(()) } else { Err(status.to_string()) }
        })
        .await;
    }

    pub async fn status(&self, position: usize) -> Result<Value, String> {
        let answer = self.http.get(&format!("{}/v1/cluster", self.base(position))).await?;
        if answer.status == 200 { Ok(answer.body) } else { Err(answer.body.to_string()) }
    }

    /// The position of the node that leads, as a running node sees it.
    pub async fn leader(&self) -> usize {
        poll::reached("some node leads", READY_WITHIN, || async {
            for position in self.running() {
                let Ok(status) = self.status(position).await else {
                    continue;
                };
                let leader = status["leader"].as_u64();
                if leader.is_some() && leader == status["node"].as_u64() {
                    return Ok(position);
                }
            }
            Err("none says that it leads".to_owned())
        })
        .await
    }

    pub fn running(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&position| self.nodes[position].child.is_some()).collect()
    }

    pub fn pid(&self, position: usize) -> Pid {
        let child = self.nodes[position].child.as_ref().unwrap();
        Pid::from_child(child)
    }

    /// `kill -9`.
    pub fn kill(&mut self, position: usize) {
        let mut child = self.nodes[position].child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn pause(&self, position: usize) {
        kill_process(self.pid(position), Signal::STOP).unwrap();
    }

    pub fn resume(&self, position: usize) {
        kill_process(self.pid(position), Signal::CONT).unwrap();
    }

    /// Asks a node to stop and waits for its exit code.
    pub async fn stop(&mut self, position: usize) -> Option<i32> {
        kill_process(self.pid(position), Signal::TERM).unwrap();
        self.wait_exit(position).await
    }

    /// Waits until a node has ended by itself.
    pub async fn wait_exit(&mut self, position: usize) -> Option<i32> {
        let child = std::cell::RefCell::new(self.nodes[position].child.take().unwrap());
        let look = || async {
            let ended = child.borrow_mut().try_wait().map_err(|error| error.to_string())?;
            ended.ok_or_else(|| "it still runs".to_owned())
        };
        poll::reached("the node ends", READY_WITHIN, look).await.code()
    }

    /// Removes all data of a node that is not running.
    pub fn wipe(&self, position: usize) {
        assert!(self.nodes[position].child.is_none());
        std::fs::remove_dir_all(&self.nodes[position].folder).unwrap();
    }

    pub fn log_tail(&self, position: usize) -> String {
        let text = std::fs::read_to_string(&self.nodes[position].log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for position in self.running() {
            self.kill(position);
        }
        if std::thread::panicking() {
            for position in 0..self.nodes.len() {
                eprintln!("--- log of node {position}\n{}", self.log_tail(position));
            }
        }
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
