//! Starts a member: whose folder this is, what it holds, and the tasks around it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use bytes::BytesMut;
use openraft::{Config, SnapshotPolicy};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::clock::SharedClock;
use crate::base::entropy::SharedEntropy;
use crate::machine::command::{Command, Proposal};
use crate::model::id::NodeId;
use crate::replica::apply_adapter::{ApplyAdapter, blocking};
use crate::replica::codec::Reader;
use crate::replica::config::{ReplicaConfig, Start};
use crate::replica::error::StartError;
use crate::replica::frames::{ClusterTag, Kind, begin, finish};
use crate::replica::inner::Inner;
use crate::replica::leadership::{Leadership, run_watch};
use crate::replica::link::{Link, LinkError, LinkTimings};
use crate::replica::log_adapter::{DurableMark, LogAdapter};
use crate::replica::membership::{FIRST_NODE, furthest, run_upkeep};
use crate::replica::network::Network;
use crate::replica::overlay::Overlay;
use crate::replica::peers::Peers;
use crate::replica::propose::{propose, run_batches, run_forwards};
use crate::replica::read::{Round, run_rounds};
use crate::replica::rpc::run_listener;
use crate::replica::types::{PeerNode, Raft};
use crate::store::Store;
use crate::store::identity::Identity;

/// What a member is made of.
pub struct Parts {
    pub store: Store,
    /// Bound already, so that the address is known.
    pub peer_listener: TcpListener,
    pub config: ReplicaConfig,
    pub clock: SharedClock,
    pub entropy: SharedEntropy,
}

const ASK_WITHIN: Duration = Duration::from_secs(6);
const BOOTSTRAP_WITHIN: Duration = Duration::from_secs(30);

pub(crate) async fn start(parts: Parts, how: Start) -> Result<Arc<Inner>, StartError> {
    let config = raft_config(&parts.config)?;
    let timings = timings(&parts.config);
    let identity = identify(&parts, &how, timings).await?;
    let cluster = ClusterTag::parse(&identity.cluster_id).map_err(|_| {
        StartError::Store(format!("{:?} is not the id of a cluster", identity.cluster_id))
    })?;
    let is_empty = parts.store.log.last_position().is_none();
    let is_first = identity.node_id == FIRST_NODE.0;
    let makes_cluster = is_empty && is_first && how == Start::Bootstrap;
    let comes_in = is_empty && !is_first && matches!(how, Start::Join(_));
    if is_empty && !makes_cluster && !comes_in {
        let Identity { cluster_id, node_id } = identity;
        return Err(StartError::NoLog { cluster: cluster_id, node: node_id });
    }
    let address = PeerNode {
        peer: parts.config.addresses.peer.clone(),
        api: parts.config.addresses.api.clone(),
    };
    let peers = Arc::new(Peers::new(cluster, timings));
    let inner = build(parts, identity, peers, config, how).await?;
    if makes_cluster {
        let members = std::collections::BTreeMap::from([(FIRST_NODE.0, address)]);
        inner
            .raft
            .initialize(members)
            .await
            .map_err(|error| StartError::Core(error.to_string()))?;
    }
    if is_first && inner.live.read().machine.state().meta().cluster_id.is_empty() {
        // A crash between the two is made good at the next start, here too.
        bootstrap(&inner).await?;
    }
    Ok(inner)
}

async fn bootstrap(inner: &Inner) -> Result<(), StartError> {
    let command = Command::Bootstrap { cluster_id: inner.cluster_id.clone() };
    let proposed = propose(inner, &Proposal::from(command), BOOTSTRAP_WITHIN).await;
    proposed.map(|_| ()).map_err(|error| StartError::Core(error.to_string()))
}

/// Whose folder it is: as it says itself, or as it will say from now on.
async fn identify(
    parts: &Parts,
    how: &Start,
    timings: LinkTimings,
) -> Result<Identity, StartError> {
    let file = &parts.store.identity;
    let known = file.load().map_err(|error| StartError::Store(error.to_string()))?;
    let identity = match (known, how) {
        (Some(identity), Start::Join(peers)) => {
            check_cluster(&identity, peers, timings).await?;
            return Ok(identity);
        }
        (Some(identity), Start::Bootstrap | Start::Restart) => return Ok(identity),
        (None, Start::Restart) => return Err(StartError::NoIdentity),
        (None, Start::Bootstrap) => {
            Identity { cluster_id: parts.entropy.next_token(), node_id: FIRST_NODE.0 }
        }
        (None, Start::Join(peers)) => allocate(peers, timings, parts.config.join_within).await?,
    };
    file.save(&identity).map_err(|error| StartError::Store(error.to_string()))?;
    Ok(identity)
}

/// Refuses a folder of one cluster that is told to join another. Peers that do not answer say
/// nothing about it.
async fn check_cluster(
    identity: &Identity,
    peers: &[String],
    timings: LinkTimings,
) -> Result<(), StartError> {
    for peer in peers {
        let mut question = begin(Kind::Hello, ClusterTag::NONE);
        put_stranger(&mut question);
        let link = Link::new(timings);
        let answer = link.call(peer, ClusterTag::NONE, finish(question), timings.connect).await;
        let Ok(frame) = answer else {
            continue;
        };
        let mut input = Reader(frame.body);
        let (Ok(_), Ok(other)) = (input.bool("welcome"), input.text("cluster id")) else {
            continue;
        };
        if other != identity.cluster_id {
            let (found, peer) = (identity.cluster_id.clone(), peer.clone());
            return Err(StartError::OtherCluster { found, peer, other });
        }
    }
    Ok(())
}

/// The introduction of somebody who is no member of anything.
fn put_stranger(out: &mut BytesMut) {
    out.extend_from_slice(&[0; 8 + 4 + 4 + 1 + 8]);
}

/// Asks the peers, again and again, for an id that was never used.
async fn allocate(
    peers: &[String],
    timings: LinkTimings,
    within: Duration,
) -> Result<Identity, StartError> {
    let deadline = Instant::now() + within;
    let mut last = "no peer was named".to_owned();
    loop {
        for peer in peers {
            match ask_for_id(peer, timings).await {
                Ok(identity) => return Ok(identity),
                Err(error) => {
                    tracing::info!(peer, %error, "no id yet");
                    last = format!("{peer}: {error}");
                }
            }
        }
        if Instant::now() >= deadline || peers.is_empty() {
            return Err(StartError::JoinRefused { peers: peers.to_vec(), last });
        }
        sleep(timings.probe_wait / 4).await;
    }
}

async fn ask_for_id(peer: &str, timings: LinkTimings) -> Result<Identity, LinkError> {
    let question = begin(Kind::Allocate, ClusterTag::NONE);
    let link = Link::new(timings);
    let frame = link.call(peer, ClusterTag::NONE, finish(question), ASK_WITHIN).await?;
    let mut input = Reader(frame.body);
    let node_id = input.u64("node id")?;
    let cluster_id = input.text("cluster id")?;
    Ok(Identity { cluster_id, node_id })
}

fn timings(config: &ReplicaConfig) -> LinkTimings {
    LinkTimings {
        connect: config.election_min,
        probe_after: config.election_max,
        probe_wait: config.election_max,
    }
}

fn raft_config(config: &ReplicaConfig) -> Result<Arc<Config>, StartError> {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let election_max = ms(config.election_max);
    let settings = Config {
        cluster_name: "horolog".to_owned(),
        heartbeat_interval: ms(config.heartbeat),
        election_timeout_min: ms(config.election_min),
        election_timeout_max: election_max,
        install_snapshot_timeout: 600_000,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(config.snapshot_every),
        max_in_snapshot_log_to_keep: config.log_kept,
        replication_lag_threshold: config.snapshot_every.saturating_add(config.log_kept),
        // Entries leave for the followers while this disk still writes them.
        broadcast_submitted_on_append: Some(true),
        max_payload_entries: 1_024,
        enable_pre_vote: Some(true),
        enable_leader_restore: Some(false),
        allow_log_reversion: Some(false),
        quorum_loss_probe_interval: Some(election_max.saturating_mul(2)),
        ..Config::default()
    };
    let settings = settings.validate().map_err(|error| StartError::Config(error.to_string()))?;
    Ok(Arc::new(settings))
}

async fn build(
    parts: Parts,
    identity: Identity,
    peers: Arc<Peers>,
    raft_config: Arc<Config>,
    how: Start,
) -> Result<Arc<Inner>, StartError> {
    let Parts { store, peer_listener, config, clock, entropy: _ } = parts;
    let durable = DurableMark::default();
    let overlay = Overlay::new(store.records.clone());
    let log = LogAdapter::new(store.log.clone(), store.records.clone(), durable.clone());
    let open = {
        let (overlay, snapshots) = (Arc::clone(&overlay), store.snapshots.clone());
        let peers = Arc::clone(&peers);
        move || ApplyAdapter::open(overlay, snapshots, durable, peers)
    };
    let opened = blocking(open).await.and_then(|adapter| adapter);
    let adapter = opened.map_err(|error| StartError::Store(error.to_string()))?;
    let live = adapter.live();
    let pace = log.pace();
    let network = Network { peers: Arc::clone(&peers) };
    let raft = Raft::new(identity.node_id, raft_config, network, log, adapter)
        .await
        .map_err(|fatal| StartError::Core(fatal.to_string()))?;
    let (proposals, proposed) = mpsc::channel(config.proposals_max);
    let (forwards, forwarded) = mpsc::channel(config.proposals_max);
    let (reads_here, asked_here) = mpsc::channel(config.reads_max);
    let (reads_at_leader, asked_at_leader) = mpsc::channel(config.reads_max);
    let inner = Arc::new(Inner {
        me: NodeId(identity.node_id),
        cluster_id: identity.cluster_id,
        config,
        clock,
        raft,
        live,
        peers,
        records: overlay.records(),
        store,
        pace,
        proposals,
        forwards,
        reads_here,
        reads_at_leader,
        leadership: watch::Sender::new(Leadership::default()),
        recovered: watch::Sender::new(false),
        stopped: watch::Sender::new(None),
        handler: RwLock::new(None),
        stop: CancellationToken::new(),
        running: TaskTracker::new(),
        heard: Mutex::new(Instant::now()),
        takeover: AtomicBool::new(false),
    });
    let seeds = match how {
        Start::Join(peers) => peers,
        Start::Bootstrap | Start::Restart => Vec::new(),
    };
    let running = &inner.running;
    running.spawn(run_batches(Arc::clone(&inner), proposed));
    running.spawn(run_forwards(Arc::clone(&inner), forwarded));
    running.spawn(run_rounds(Arc::clone(&inner), asked_here, Round::Here));
    running.spawn(run_rounds(Arc::clone(&inner), asked_at_leader, Round::AtLeader));
    running.spawn(run_watch(Arc::clone(&inner)));
    running.spawn(run_upkeep(Arc::clone(&inner), seeds));
    running.spawn(run_listener(Arc::clone(&inner), peer_listener));
    running.spawn(run_recovery(Arc::clone(&inner)));
    running.spawn(run_disk_watch(Arc::clone(&inner)));
    Ok(inner)
}

/// Hands leadership over when this node's own disk does not keep up: a leader waits for it with
/// every vote and every purge, and its followers would stay loyal to its heartbeats.
async fn run_disk_watch(inner: Arc<Inner>) {
    loop {
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = sleep(inner.config.election_min / 2) => {}
        }
        let waited = inner.pace.oldest_wait();
        if waited <= inner.config.election_max || !inner.leadership.borrow().leading {
            continue;
        }
        tracing::warn!(node = inner.me.0, ?waited, "the disk is too slow to lead");
        if let Some(heir) = furthest(&inner)
            && inner.raft.trigger().transfer_leader(heir).await.is_err()
        {
            return;
        }
    }
}

/// Says once that everything the log held at the start is applied.
async fn run_recovery(inner: Arc<Inner>) {
    let recovered = tokio::select! {
        biased;
        () = inner.stop.cancelled() => return,
        recovered = inner.raft.wait_for_recovery(None) => recovered,
    };
    if recovered.is_ok() {
        inner.recovered.send_replace(true);
    }
}
