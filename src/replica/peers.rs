//! Where the members are, and connections to them.
//!
//! An address comes from the membership in the log. A member that came back under another address
//! announces it; until the log says so too, the announced one is used, for the entry that records
//! it may need that member's vote.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::BytesMut;

use crate::model::id::NodeId;
use crate::replica::frames::{ClusterTag, FrameIn, Kind, begin, finish};
use crate::replica::link::{Link, LinkError, LinkTimings};
use crate::replica::types::{Members, PeerNode};

/// What a connection is for. Each purpose has its own, so that none waits behind another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Append,
    Heartbeat,
    Snapshot,
    Vote,
    Call,
}

#[derive(Debug, Default)]
struct Book {
    /// As the log says.
    known: BTreeMap<u64, PeerNode>,
    /// As members said of themselves since.
    announced: BTreeMap<u64, PeerNode>,
}

/// The address book, and one connection for each peer and purpose.
pub(crate) struct Peers {
    cluster: ClusterTag,
    timings: LinkTimings,
    book: RwLock<Book>,
    links: RwLock<BTreeMap<(u64, Purpose), Arc<Link>>>,
}

impl Peers {
    pub(crate) fn new(cluster: ClusterTag, timings: LinkTimings) -> Peers {
        Peers { cluster, timings, book: RwLock::default(), links: RwLock::default() }
    }

    pub(crate) fn cluster(&self) -> ClusterTag {
        self.cluster
    }

    pub(crate) fn timings(&self) -> LinkTimings {
        self.timings
    }

    /// Takes the addresses of a membership.
    pub(crate) fn learn(&self, members: &Members) {
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        let known: BTreeMap<u64, PeerNode> =
            members.nodes().map(|(id, node)| (*id, node.clone())).collect();
        for (id, node) in &known {
            if book.known.get(id) != Some(node) {
                book.announced.remove(id);
            }
        }
        book.known = known;
    }

    /// Takes the address of one member, unless it is known.
    pub(crate) fn learn_one(&self, node: u64, address: &PeerNode) {
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        if book.known.get(&node) != Some(address) {
            book.announced.remove(&node);
            book.known.insert(node, address.clone());
        }
    }

    /// Takes what a member says of itself.
    pub(crate) fn announced(&self, node: NodeId, address: PeerNode) {
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        if book.known.get(&node.0) == Some(&address) {
            book.announced.remove(&node.0);
        } else {
            book.announced.insert(node.0, address);
        }
    }

    pub(crate) fn address(&self, node: u64) -> Option<PeerNode> {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        book.announced.get(&node).or_else(|| book.known.get(&node)).cloned()
    }

    /// All other members.
    pub(crate) fn others(&self, me: u64) -> Vec<u64> {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        book.known.keys().copied().filter(|id| *id != me).collect()
    }

    /// The shared connection to a member.
    pub(crate) fn link(&self, node: u64, purpose: Purpose) -> Arc<Link> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = links.get(&(node, purpose)) {
            return Arc::clone(link);
        }
        drop(links);
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        let link =
            links.entry((node, purpose)).or_insert_with(|| Arc::new(Link::new(self.timings)));
        Arc::clone(link)
    }

    /// Begins a frame of this cluster.
    pub(crate) fn begin(&self, kind: Kind) -> BytesMut {
        begin(kind, self.cluster)
    }

    /// One question, one answer.
    pub(crate) async fn call(
        &self,
        node: u64,
        purpose: Purpose,
        question: BytesMut,
        within: Duration,
    ) -> Result<FrameIn, LinkError> {
        let Some(address) = self.address(node) else {
            return Err(LinkError::NotSent(format!("the address of member {node} is not known")));
        };
        let link = self.link(node, purpose);
        link.call(&address.peer, self.cluster, finish(question), within).await
    }
}
