//! What a member is told when it starts: its addresses, its timings, and how it comes in.

use std::time::Duration;

/// Where others reach this member, as `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The peer listener.
    pub peer: String,
    /// The public listener, for callers that are sent on.
    pub api: String,
}

/// How a member comes into its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Makes a new cluster of one, unless the folder holds a member already.
    Bootstrap,
    /// Asks these peer addresses, in turn, to be let in, unless the folder holds a member already.
    Join(Vec<String>),
    /// Goes on with what the folder holds.
    Restart,
}

/// Timings and bounds. The defaults suit members in one network.
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    pub addresses: Addresses,
    /// How often a leader shows that it lives.
    pub heartbeat: Duration,
    /// A follower that hears nothing for the larger of the two, and then for a time between them,
    /// stands for election.
    pub election_min: Duration,
    pub election_max: Duration,
    /// A snapshot is made after this many entries.
    pub snapshot_every: u64,
    /// Entries kept behind a snapshot, for members that lag. More than are written while a
    /// snapshot is sent, or the member needs the next one at once.
    pub log_kept: u64,
    /// Proposals that may wait on one member; above it they are refused as overload.
    pub proposals_max: usize,
    /// Linearizable reads that may wait on one member for the next round.
    pub reads_max: usize,
    /// How long a new node tries to be let in before it gives up.
    pub join_within: Duration,
}

impl ReplicaConfig {
    #[must_use]
    pub fn new(addresses: Addresses) -> ReplicaConfig {
        ReplicaConfig {
            addresses,
            heartbeat: Duration::from_millis(100),
            election_min: Duration::from_millis(500),
            election_max: Duration::from_millis(1_000),
            snapshot_every: 50_000,
            log_kept: 50_000,
            proposals_max: 8_192,
            reads_max: 16_384,
            join_within: Duration::from_secs(60),
        }
    }
}
