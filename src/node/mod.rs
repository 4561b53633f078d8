//! A node: everything built in order, run, and stopped in reverse.
//!
//! The order is what keeps promises. The folder is opened before anything else, so that a damaged
//! one stops the node while it has said nothing. Both ports are taken before the cluster hears of
//! the node. Nothing is served before the recovered log is applied. On the way down, the public
//! listener stops first, then leadership is handed over, then the records are made durable.

pub mod config;
pub mod metrics;
pub mod observe;
pub mod serve;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::base::clock::SystemClock;
use crate::base::entropy::OsEntropy;
use crate::leader;
use crate::node::config::{NodeConfig, StartMode};
use crate::replica::Replica;
use crate::replica::config::{Addresses, ReplicaConfig, Start};
use crate::replica::error::StartError;
use crate::replica::start::Parts;
use crate::service::Service;
use crate::store::error::StoreError;
use crate::store::{Store, StoreOptions};

/// Why a node did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot listen on {address} for {purpose}: {source}")]
    Listen { address: SocketAddr, purpose: &'static str, source: std::io::Error },
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the node has stopped: {reason}")]
    Stopped { reason: String },
}

/// Runs a node until `shutdown` ends, or until it has to stop by itself.
///
/// # Errors
/// [`NodeError`] says why it did not start or had to stop, and what to do.
pub async fn run(
    config: NodeConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), NodeError> {
    let store = open_store(&config).await?;
    let public = listen(config.listen, "the public API").await?;
    let peers = listen(config.peer_listen, "the other nodes").await?;
    let clock = Arc::new(SystemClock);
    let parts = Parts {
        store,
        peer_listener: peers,
        config: replica_config(&config),
        clock: clock.clone(),
        entropy: Arc::new(OsEntropy),
    };
    let start = match &config.start {
        StartMode::Bootstrap => Start::Bootstrap,
        StartMode::Join(peers) => Start::Join(peers.clone()),
        StartMode::Restart => Start::Restart,
    };
    tokio::pin!(shutdown);
    let replica = tokio::select! {
        started = Replica::start(parts, start) => started?,
        () = &mut shutdown => return Ok(()),
    };

    let leading = tokio::spawn(leader::run(replica.clone(), clock.clone()));
    let service = Service::new(replica.clone(), clock);
    let working = tokio::spawn({
        let service = service.clone();
        async move { service.run().await }
    });
    let registry = metrics::start(&replica);
    let closing = CancellationToken::new();
    let serving = tokio::spawn(serve::public(public, service.clone(), registry, closing.clone()));
    info!(
        node = %replica.status().node,
        cluster = replica.status().cluster_id,
        api = %config.listen,
        peers = %config.peer_listen,
        "started"
    );

    let mut stopped = replica.stopped();
    let outcome = tokio::select! {
        () = &mut shutdown => Ok(()),
        reason = stopped.wait_for(Option::is_some) => Err(NodeError::Stopped {
            reason: match reason {
                Ok(reason) => reason.clone().unwrap_or_default(),
                Err(_) => "its consensus core is gone".to_owned(),
            },
        }),
    };
    match &outcome {
        Ok(()) => info!("stopping"),
        Err(reason) => error!(%reason, "stopping"),
    }

    closing.cancel();
    if tokio::time::timeout(config.shutdown_grace, serving).await.is_err() {
        info!("calls that were still under way are cut off");
    }
    replica.shutdown().await;
    leading.abort();
    working.abort();
    outcome
}

/// Opening reads and checks the whole folder, so it happens on a thread that may block.
async fn open_store(config: &NodeConfig) -> Result<Store, NodeError> {
    let folder = config.data.clone();
    let opened =
        tokio::task::spawn_blocking(move || Store::open(&folder, StoreOptions::default())).await;
    match opened {
        Ok(opened) => Ok(opened?),
        Err(panicked) => Err(NodeError::Stopped { reason: panicked.to_string() }),
    }
}

async fn listen(address: SocketAddr, purpose: &'static str) -> Result<TcpListener, NodeError> {
    TcpListener::bind(address).await.map_err(|source| NodeError::Listen {
        address,
        purpose,
        source,
    })
}

fn replica_config(config: &NodeConfig) -> ReplicaConfig {
    let or_own =
        |given: &Option<String>, own: SocketAddr| given.clone().unwrap_or_else(|| own.to_string());
    let addresses = Addresses {
        peer: or_own(&config.advertise_peer, config.peer_listen),
        api: or_own(&config.advertise_api, config.listen),
    };
    ReplicaConfig {
        heartbeat: config.heartbeat,
        election_min: config.election_min,
        election_max: config.election_max,
        snapshot_every: config.snapshot_every,
        log_kept: config.snapshot_every,
        ..ReplicaConfig::new(addresses)
    }
}
