//! A cluster inside the test: real stores in temporary folders, real sockets on loopback.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use horolog::base::bounded::Name;
use horolog::base::clock::SystemClock;
use horolog::base::entropy::OsEntropy;
use horolog::machine::command::{Command, Precondition, Proposal, PutTenant};
use horolog::model::id::NodeId;
use horolog::replica::config::{Addresses, ReplicaConfig, Start};
use horolog::replica::error::StartError;
use horolog::replica::start::Parts;
use horolog::replica::{Replica, View};
use horolog::store::fault::Faults;
use horolog::store::{Store, StoreOptions};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::support::poll::{some, until};

pub struct Member {
    pub replica: Replica,
    pub folder: Arc<TempDir>,
    pub peer: String,
}

pub fn config(peer: &str) -> ReplicaConfig {
    let api = format!("api-of-{peer}");
    ReplicaConfig {
        heartbeat: Duration::from_millis(100),
        election_min: Duration::from_millis(300),
        election_max: Duration::from_millis(600),
        snapshot_every: 100,
        log_kept: 50,
        ..ReplicaConfig::new(Addresses { peer: peer.to_owned(), api })
    }
}

pub async fn try_start(
    folder: &Arc<TempDir>,
    address: &str,
    how: Start,
) -> Result<Member, StartError> {
    try_start_on(folder, address, how, Faults::default()).await
}

/// On a disk that fails when it is told to.
pub async fn try_start_on(
    folder: &Arc<TempDir>,
    address: &str,
    how: Start,
    faults: Faults,
) -> Result<Member, StartError> {
    let peer_listener = bind(address).await;
    let peer = peer_listener.local_addr().unwrap().to_string();
    let parts = Parts {
        store: open(folder.path(), faults).await,
        peer_listener,
        config: config(&peer),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(OsEntropy),
    };
    let replica = Replica::start(parts, how).await?;
    Ok(Member { replica, folder: Arc::clone(folder), peer })
}

pub async fn start(how: Start) -> Member {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    try_start(&folder, "127.0.0.1:0", how).await.unwrap()
}

async fn bind(address: &str) -> TcpListener {
    some("the port is free", || async { TcpListener::bind(address).await.ok() }).await
}

async fn open(folder: &Path, faults: Faults) -> Store {
    let options = StoreOptions { faults, ..StoreOptions::default() };
    some("the folder is free", || async { Store::open(folder, options.clone()).ok() }).await
}

impl Member {
    pub fn id(&self) -> NodeId {
        self.replica.status().node
    }

    /// Stops it and gives back what is needed to start it again.
    pub async fn stop(self) -> (Arc<TempDir>, String) {
        self.replica.shutdown().await;
        (self.folder, self.peer)
    }
}

/// A cluster of that many voting members, the first of which made it.
pub async fn cluster(members: usize) -> Vec<Member> {
    let first = start(Start::Bootstrap).await;
    let mut all = vec![first];
    while all.len() < members {
        let member = start(Start::Join(vec![all[0].peer.clone()])).await;
        let id = member.id();
        all.push(member);
        let first = &all[0];
        until("the new member votes", || async {
            first.replica.status().members.iter().any(|member| member.node == id && member.is_voter)
        })
        .await;
    }
    all
}

/// The place of the member that leads, once all agree.
pub async fn leader(members: &[Member]) -> usize {
    some("all agree on a leader", || async { agreed_leader(members) }).await
}

fn agreed_leader(members: &[Member]) -> Option<usize> {
    let leads = |member: &Member| member.replica.leadership().borrow().leading;
    let place = members.iter().position(leads)?;
    let id = Some(members[place].id());
    let agree = members.iter().all(|member| member.replica.leadership().borrow().leader == id);
    agree.then_some(place)
}

pub fn tenant(name: &str) -> Proposal {
    describe(name, "")
}

pub fn describe(name: &str, description: &str) -> Proposal {
    Proposal::from(Command::PutTenant(PutTenant {
        tenant: Name::new(name).unwrap(),
        description: description.to_owned(),
        precondition: Precondition::Always,
    }))
}

pub fn has_tenant(view: &View, name: &str) -> bool {
    view.state.tenants().contains_key(&Name::new(name).unwrap())
}
