//! The settings of a node: each key once, with its default, its unit and what it means. `cli` fills
//! them from flags and the environment.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::base::limits;

/// Everything a node is told when it starts.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The folder that holds all its data; made when missing. One process at a time uses it.
    pub data: PathBuf,
    /// Where workers, people and tools reach it. There is no authentication in this version, so the
    /// default is the machine itself.
    pub listen: SocketAddr,
    /// Where the other members reach it.
    pub peer_listen: SocketAddr,
    /// `host:port` under which others find `listen`, when that is not its own text.
    pub advertise_api: Option<String>,
    /// `host:port` under which others find `peer_listen`, when that is not its own text.
    pub advertise_peer: Option<String>,
    pub start: StartMode,
    /// How often a leader shows that it lives.
    pub heartbeat: Duration,
    /// A follower stands for election when it has heard nothing for a time between these two.
    pub election_min: Duration,
    pub election_max: Duration,
    /// Log entries between two snapshots.
    pub snapshot_every: u64,
    /// How long calls that are under way may still take once the node was asked to stop.
    pub shutdown_grace: Duration,
}

/// How a node finds its cluster. A folder that holds a member already goes on with it in every
/// mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// It makes a new cluster of one.
    Bootstrap,
    /// It asks these peer addresses, in turn, to be let in.
    Join(Vec<String>),
    /// It goes on with what the folder holds.
    Restart,
}

impl NodeConfig {
    pub const LISTEN_DEFAULT: &str = "127.0.0.1:7601";
    pub const PEER_LISTEN_DEFAULT: &str = "127.0.0.1:7701";

    #[must_use]
    pub fn new(data: PathBuf, listen: SocketAddr, peer_listen: SocketAddr) -> NodeConfig {
        NodeConfig {
            data,
            listen,
            peer_listen,
            advertise_api: None,
            advertise_peer: None,
            start: StartMode::Restart,
            heartbeat: Duration::from_millis(100),
            election_min: Duration::from_millis(500),
            election_max: Duration::from_millis(1_000),
            snapshot_every: 50_000,
            shutdown_grace: limits::SHUTDOWN_GRACE.to_std(),
        }
    }
}
