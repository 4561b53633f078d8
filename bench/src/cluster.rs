//! Real nodes: started from the release binary on free loopback ports, killed by their id.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use horolog::wire::cluster::{Cluster as ClusterStatus, Member, MemberRole};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::error::{Error, Result};
use crate::load::{Call, Reply, call_once};

/// Where the program and its data are, and how many nodes there shall be.
#[derive(Clone, Debug)]
pub struct Plan {
    pub program: PathBuf,
    /// On a real disk; every cluster makes its own folder below.
    pub folder: PathBuf,
    pub nodes: usize,
    /// Leave the folder behind, to look at the logs of the nodes.
    pub keep: bool,
}

/// Nodes that run, and their folder, which goes away with them.
pub struct Cluster {
    pub nodes: Vec<Node>,
    program: PathBuf,
    folder: PathBuf,
    keep: bool,
}

/// One node. Its process is killed when this is dropped.
pub struct Node {
    pub api: SocketAddr,
    pub folder: PathBuf,
    peer: SocketAddr,
    log: PathBuf,
    child: Option<Child>,
}

/// What the cluster needs at most to start, to elect, to catch up.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// A member this close behind the leader has caught up.
const BEHIND_MAX: u64 = 64;

impl Cluster {
    /// Starts the nodes and waits until all of them vote.
    ///
    /// # Errors
    /// When a node does not come up.
    pub async fn start(plan: &Plan, name: &str) -> Result<Cluster> {
        let folder = plan.folder.join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(Error::at(&folder))?;
        let addrs = free_addrs(plan.nodes * 2)?;
        let nodes = addrs.chunks(2).enumerate().map(|(i, pair)| Node {
            api: pair[0],
            peer: pair[1],
            folder: folder.join(format!("node-{i}")),
            log: folder.join(format!("node-{i}.log")),
            child: None,
        });
        let mut cluster = Cluster {
            nodes: nodes.collect(),
            program: plan.program.clone(),
            folder: folder.clone(),
            keep: plan.keep,
        };
        let first_peer = cluster.nodes[0].peer.to_string();
        for i in 0..plan.nodes {
            let role: &[&str] = if i == 0 { &["--bootstrap"] } else { &["--join", &first_peer] };
            cluster.spawn(i, role)?;
            cluster.wait_ready(i).await?;
        }
        cluster.wait_voters().await?;
        Ok(cluster)
    }

    /// Starts a node again that was killed or stopped.
    ///
    /// # Errors
    /// When its process cannot be started.
    pub fn restart(&mut self, i: usize) -> Result<()> {
        self.spawn(i, &[])
    }

    fn spawn(&mut self, i: usize, role: &[&str]) -> Result<()> {
        let program = self.program.clone();
        let node = &mut self.nodes[i];
        let log = File::options().create(true).append(true).open(&node.log);
        let log = log.map_err(Error::at(&node.log))?;
        let errors = log.try_clone().map_err(Error::at(&node.log))?;
        let child = Command::new(&program)
            .arg("serve")
            .arg("--data")
            .arg(&node.folder)
            .args(["--listen", &node.api.to_string(), "--peer-listen", &node.peer.to_string()])
            .args(role)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::at(&program))?;
        node.child = Some(child);
        Ok(())
    }

    /// `kill -9`, and waits until the process is gone.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub async fn kill(&mut self, i: usize) -> Result<()> {
        let child = self.nodes[i].child.take();
        let mut child = child.ok_or_else(|| Error::Wrong(format!("node {i} does not run")))?;
        child.kill().await.map_err(Error::io(format!("kill node {i}")))
    }

    /// SIGTERM, and waits until the process has ended by itself.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn stop(&mut self, i: usize) -> Result<()> {
        let child = self.nodes[i].child.take();
        let mut child = child.ok_or_else(|| Error::Wrong(format!("node {i} does not run")))?;
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pid = pid.ok_or_else(|| Error::Wrong(format!("node {i} has ended")))?;
        let stop = kill_process(pid, Signal::TERM);
        stop.map_err(|e| Error::Wrong(format!("stop node {i}: {e}")))?;
        let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
        let ended = ended.map_err(|_| Error::TooLong(format!("the end of node {i}")))?;
        ended.map_err(Error::io(format!("node {i}")))?;
        Ok(())
    }

    /// # Errors
    /// When it is not ready in time, or has ended.
    pub async fn wait_ready(&mut self, i: usize) -> Result<()> {
        let limit = Instant::now() + PATIENCE;
        let ready = Call::get("/readyz");
        while Instant::now() < limit {
            let node = &mut self.nodes[i];
            if let Some(child) = node.child.as_mut()
                && let Some(status) = child.try_wait().map_err(Error::io("a node"))?
            {
                let log = fs::read_to_string(&node.log).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(5).collect();
                return Err(Error::Wrong(format!("node {i} ended, {status}: {}", tail.join("\n"))));
            }
            let reply = call_once(node.api, &ready, CALL_LIMIT).await;
            if reply.is_ok_and(|reply| reply.is_success()) {
                return Ok(());
            }
            sleep(LOOK_AGAIN).await;
        }
        Err(Error::TooLong(format!("the start of node {i}")))
    }

    /// Waits until every node votes and has caught up with the leader.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn wait_voters(&self) -> Result<()> {
        let limit = Instant::now() + PATIENCE;
        while Instant::now() < limit {
            if let Ok(leader) = self.leader().await
                && let Ok(status) = self.status(leader).await
                && self.all_caught_up(&status)
            {
                return Ok(());
            }
            sleep(LOOK_AGAIN).await;
        }
        Err(Error::TooLong("the way of every node to a caught-up voter".to_owned()))
    }

    fn all_caught_up(&self, leader: &ClusterStatus) -> bool {
        let committed = leader.committed_index;
        let is_up = |member: &Member| {
            let behind = committed.saturating_sub(member.matched_index.unwrap_or_default());
            matches!(member.role, MemberRole::Voter) && behind <= BEHIND_MAX
        };
        let up = leader.members.iter().filter(|member| member.leader || is_up(member));
        up.count() == self.nodes.len()
    }

    /// Which node leads, as the first node says that leads itself or knows of a leader.
    ///
    /// # Errors
    /// When nobody knows.
    pub async fn leader(&self) -> Result<usize> {
        for i in self.running() {
            let Ok(status) = self.status(i).await else { continue };
            let leads = |member: &&Member| Some(member.node) == status.leader;
            let Some(member) = status.members.iter().find(leads) else { continue };
            let at = |node: &Node| node.api.to_string() == member.api_addr;
            let known = self.nodes.iter().position(at);
            if let Some(leader) = known.filter(|&leader| self.nodes[leader].child.is_some()) {
                return Ok(leader);
            }
        }
        Err(Error::Wrong("no node knows of a leader".to_owned()))
    }

    /// # Errors
    /// When nobody knows of a leader.
    pub async fn leader_api(&self) -> Result<SocketAddr> {
        Ok(self.nodes[self.leader().await?].api)
    }

    /// # Errors
    /// When the node does not answer.
    pub async fn status(&self, i: usize) -> Result<ClusterStatus> {
        self.read(i, "/v1/cluster").await
    }

    /// # Errors
    /// When the node refuses, or answers with something else.
    pub async fn read<T: DeserializeOwned>(&self, i: usize, path: &str) -> Result<T> {
        let reply = self.get(i, path).await?;
        serde_json::from_slice(&reply.body).map_err(Error::json("answer"))
    }

    /// # Errors
    /// When the node refuses or does not answer.
    pub async fn get(&self, i: usize, path: &str) -> Result<Reply> {
        call_once(self.nodes[i].api, &Call::get(path), CALL_LIMIT).await?.accepted(path)
    }

    pub fn apis(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.api).collect()
    }

    pub fn running(&self) -> Vec<usize> {
        let is_running = |&i: &usize| self.nodes[i].child.is_some();
        (0..self.nodes.len()).filter(is_running).collect()
    }
}

impl Node {
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(child) = node.child.as_mut() {
                // It may have ended already; then there is nothing to kill.
                let _ = child.start_kill();
            }
        }
        if !self.keep {
            remove(&self.folder);
        }
    }
}

/// A process that was just killed may still hold a file for a moment; what is left then is left.
fn remove(folder: &Path) {
    if fs::remove_dir_all(folder).is_err() {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Ports that nobody listened on a moment ago.
fn free_addrs(count: usize) -> Result<Vec<SocketAddr>> {
    let mut held = Vec::new();
    for _ in 0..count {
        let any = (Ipv4Addr::LOCALHOST, 0);
        held.push(TcpListener::bind(any).map_err(Error::io("a free port"))?);
    }
    let addrs = held.iter().map(TcpListener::local_addr).collect::<std::io::Result<_>>();
    addrs.map_err(Error::io("a free port"))
}
