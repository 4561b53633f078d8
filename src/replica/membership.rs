//! Who is in the cluster: how nodes come in, move, and leave.
//!
//! **Ids.** The node that makes the cluster is node 1. Every other node gets the index of an
//! `AllocateNode` entry. No such entry can have index 1: index 0 is the first membership and index
//! 1 the first entry of the first leader, both written before anybody can propose. So an id is
//! never used twice, not even after a folder was wiped: a wiped node asks for a new one.
//!
//! **Joining.** A node asks any member for an id, keeps it durably together with the cluster's id,
//! and only then asks to be let in. It comes in as a learner, and asks again until it has caught up
//! and has a vote. Each call does the next step, whoever leads by then; nothing has to be
//! remembered in between.
//!
//! **Moving.** A node that came back under another address tells all members, and the leader writes
//! it down.
//!
//! **Leaving.** A removed node hears no leader any more, asks, is told by the leader, and stops.
//! Its pre-votes disturb nobody meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::{ChangeMembers, ServerState};
use tokio::time::{Instant, sleep, timeout_at};

use crate::machine::command::{Command, Proposal};
use crate::machine::reply::Reply;
use crate::model::id::NodeId;
use crate::replica::codec::{Reader, put_bool, put_bytes};
use crate::replica::error::{MemberError, ProposeError};
use crate::replica::frames::{Kind, finish, put_error, read_error};
use crate::replica::inner::Inner;
use crate::replica::link::Link;
use crate::replica::peers::{Peers, Purpose};
use crate::replica::propose::{call_error, propose};
use crate::replica::rpc::malformed;
use crate::replica::types::{PeerNode, StoredMembers, TypeConfig};

/// The node that makes a cluster.
pub(crate) const FIRST_NODE: NodeId = NodeId(1);
/// A learner this close to the leader's last entry gets a vote.
const PROMOTION_LAG: u64 = 256;
/// How long an allocation may take.
const ALLOCATE_WITHIN: Duration = Duration::from_secs(5);

type Change = ChangeMembers<u64, PeerNode>;

/// What a node knows of itself when it asks.
struct Introduction {
    node: NodeId,
    address: PeerNode,
    /// The index of the membership it knows; none while its log is empty.
    membership_index: Option<u64>,
}

impl Introduction {
    fn of(inner: &Inner) -> Introduction {
        let address = own_address(inner);
        let members = effective_members(inner);
        let membership_index = members.log_id().map(|id| id.index);
        Introduction { node: inner.me, address, membership_index }
    }

    fn put(&self, out: &mut BytesMut) {
        out.put_u64_le(self.node.0);
        put_bytes(out, self.address.peer.as_bytes());
        put_bytes(out, self.address.api.as_bytes());
        put_bool(out, self.membership_index.is_some());
        out.put_u64_le(self.membership_index.unwrap_or(0));
    }

    fn read(body: Bytes) -> Result<Introduction, ProposeError> {
        let mut input = Reader(body);
        let mut read = || {
            let node = NodeId(input.u64("introduction")?);
            let peer = input.text("peer address")?;
            let api = input.text("api address")?;
            let is_known = input.bool("introduction")?;
            let index = input.u64("introduction")?;
            let address = PeerNode { peer, api };
            Ok(Introduction { node, address, membership_index: is_known.then_some(index) })
        };
        read().map_err(malformed)
    }
}

fn own_address(inner: &Inner) -> PeerNode {
    let addresses = &inner.config.addresses;
    PeerNode { peer: addresses.peer.clone(), api: addresses.api.clone() }
}

fn effective_members(inner: &Inner) -> Arc<StoredMembers> {
    Arc::clone(&inner.raft.server_metrics().borrow_watched().membership_config)
}

fn is_voter(members: &StoredMembers, node: u64) -> bool {
    members.voter_ids().any(|id| id == node)
}

/// Keeps this node in its place among the members, until it stops.
pub(crate) async fn run_upkeep(inner: Arc<Inner>, seeds: Vec<String>) {
    let mut was_member = false;
    let mut half_since: Option<Instant> = None;
    let mut server = inner.raft.server_metrics();
    loop {
        let members = effective_members(&inner);
        let place = members.get_node(&inner.me.0).cloned();
        was_member |= place.is_some();
        let is_half = members.get_joint_config().len() > 1;
        half_since = half_since.filter(|_| is_half).or(is_half.then(Instant::now));
        if half_since.is_some_and(|since| since.elapsed() > inner.config.election_max) {
            finish_change(&inner).await;
            half_since = None;
        }
        let is_settled = match place {
            Some(address) if !is_voter(&members, inner.me.0) => {
                announce_if_moved(&inner, &address).await;
                ask_to_join(&inner, &seeds).await;
                false
            }
            Some(address) => {
                let has_moved = announce_if_moved(&inner, &address).await;
                let is_alone = members.nodes().count() == 1;
                if !is_alone && inner.is_leader_silent() {
                    say_hello(&inner).await;
                    false
                } else {
                    !has_moved
                }
            }
            None if !was_member && members.log_id().is_none() => {
                ask_to_join(&inner, &seeds).await;
                false
            }
            None => {
                if inner.is_leader_silent() {
                    say_hello(&inner).await;
                }
                false
            }
        };
        let is_settled = is_settled && !is_half;
        let pause = if is_settled { inner.config.election_max } else { inner.config.heartbeat * 2 };
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = sleep(pause) => {}
            changed = server.changed(), if is_settled => if changed.is_err() {
                return;
            },
        }
    }
}

async fn announce_if_moved(inner: &Arc<Inner>, written: &PeerNode) -> bool {
    let has_moved = *written != own_address(inner);
    if has_moved {
        if inner.leadership.borrow().leading {
            let moved = move_here(inner, inner.me, own_address(inner)).await;
            if let Err(error) = moved {
                tracing::debug!(%error, "the new address is not written down yet");
            }
        } else {
            say_hello(inner).await;
        }
    }
    has_moved
}

/// Tells every other member where this node is, and hears whether it is still one of them.
async fn say_hello(inner: &Inner) {
    let introduction = Introduction::of(inner);
    for other in inner.peers.others(inner.me.0) {
        let mut question = inner.peers.begin(Kind::Hello);
        introduction.put(&mut question);
        let within = inner.config.election_min;
        match inner.peers.call(other, Purpose::Call, question, within).await {
            Ok(frame) => {
                let mut input = Reader(frame.body);
                if input.bool("welcome") == Ok(true) {
                    inner.raft.runtime_config().elect(false);
                    inner.stop_because("this node was removed from its cluster");
                    return;
                }
            }
            Err(error) => tracing::debug!(other, %error, "a member was not told"),
        }
    }
}

/// Asks for the next step of coming in: at the members it knows, or at the addresses it was given.
async fn ask_to_join(inner: &Inner, seeds: &[String]) {
    let mut addresses = seeds.to_vec();
    let others = inner.peers.others(inner.me.0);
    addresses.extend(others.iter().filter_map(|id| inner.peers.address(*id)).map(|node| node.peer));
    for address in addresses {
        let mut question = inner.peers.begin(Kind::Join);
        Introduction::of(inner).put(&mut question);
        match call_address(&inner.peers, &address, question).await {
            Ok(_) => return,
            Err(error) => tracing::info!(address, %error, "not let in yet"),
        }
    }
}

async fn call_address(
    peers: &Peers,
    address: &str,
    question: BytesMut,
) -> Result<Bytes, ProposeError> {
    let link = Link::new(peers.timings());
    let answer = link.call(address, peers.cluster(), finish(question), ALLOCATE_WITHIN).await;
    Ok(answer.map_err(call_error)?.body)
}

/// A new node asks for an id.
pub(crate) async fn handle_allocate(inner: &Inner) -> Result<BytesMut, ProposeError> {
    let proposal = Proposal::from(Command::AllocateNode);
    let proposed = propose(inner, &proposal, ALLOCATE_WITHIN).await?;
    let Reply::Node(node) = proposed.reply else {
        let reason = format!("an allocation was answered with {:?}", proposed.reply);
        return Err(ProposeError::Invalid { reason });
    };
    let mut out = inner.peers.begin(Kind::Allocated);
    out.put_u64_le(node.0);
    put_bytes(&mut out, inner.cluster_id.as_bytes());
    Ok(out)
}

/// A node asks for the next step of coming in.
pub(crate) async fn handle_join(inner: &Arc<Inner>, body: Bytes) -> Result<BytesMut, ProposeError> {
    let introduction = Introduction::read(body.clone())?;
    inner.peers.announced(introduction.node, introduction.address.clone());
    if !inner.leadership.borrow().leading {
        ask_leader(inner, Kind::Join, &body).await?;
        return Ok(inner.peers.begin(Kind::JoinProgress));
    }
    let result = join_here(inner, introduction).await;
    if let Err(error) = &result {
        tracing::info!(%error, "a node is not a voting member yet");
    }
    Ok(inner.peers.begin(Kind::JoinProgress))
}

async fn join_here(inner: &Arc<Inner>, node: Introduction) -> Result<(), MemberError> {
    let members = effective_members(inner);
    let id = node.node.0;
    match members.get_node(&id) {
        None => {
            let added = inner.raft.add_learner(id, node.address, false).await;
            added.map(|_| ()).map_err(|error| change_error(inner, error))
        }
        Some(address) if *address != node.address => {
            move_here(inner, node.node, node.address).await
        }
        Some(_) if is_voter(&members, id) => Ok(()),
        Some(_) => {
            let metrics = inner.raft.metrics().borrow_watched().clone();
            let last = metrics.last_log_index.unwrap_or(0);
            let matched = metrics.replication.as_ref().and_then(|all| *all.get(&id)?);
            let lag = last.saturating_sub(matched.map_or(0, |at| at.index));
            if matched.is_none() || lag > PROMOTION_LAG {
                return Err(MemberError::Lagging { node: node.node, lag });
            }
            change(inner, Change::AddVoterIds(BTreeSet::from([id])), true).await
        }
    }
}

async fn move_here(inner: &Arc<Inner>, node: NodeId, address: PeerNode) -> Result<(), MemberError> {
    change(inner, Change::SetNodes(BTreeMap::from([(node.0, address)])), true).await
}

/// Makes a change, both of its steps, even when whoever asked for it hangs up.
async fn change(inner: &Arc<Inner>, change: Change, retain: bool) -> Result<(), MemberError> {
    let raft = inner.raft.clone();
    let work = inner.running.spawn(async move { raft.change_membership(change, retain).await });
    match work.await {
        Ok(changed) => changed.map(|_| ()).map_err(|error| change_error(inner, error)),
        Err(_) => Err(inner.stopped_error().into()),
    }
}

/// Makes the second step of a change whose first step was made by a leader that is gone.
async fn finish_change(inner: &Arc<Inner>) {
    if !inner.leadership.borrow().leading {
        return;
    }
    // Who is on the way out is removed, and who is on the way in is in: nobody becomes a learner.
    let nothing = Change::AddVoterIds(BTreeSet::new());
    if let Err(error) = change(inner, nothing, false).await {
        tracing::debug!(%error, "a change of the members is not finished yet");
    }
}

fn change_error(
    inner: &Inner,
    error: RaftError<TypeConfig, ClientWriteError<TypeConfig>>,
) -> MemberError {
    let error = match error {
        RaftError::Fatal(_) => return inner.stopped_error().into(),
        RaftError::APIError(error) => error,
    };
    match error {
        ClientWriteError::ForwardToLeader(forward) => {
            let leader = forward.leader_id.map(NodeId);
            ProposeError::NotLeader { term: 0, leader }.into()
        }
        ClientWriteError::ChangeMembershipError(ChangeMembershipError::InProgress(_)) => {
            MemberError::Busy
        }
        ClientWriteError::ChangeMembershipError(other) => {
            ProposeError::Invalid { reason: other.to_string() }.into()
        }
        other => ProposeError::Unknown { reason: other.to_string() }.into(),
    }
}

/// A member says where it is. The answer says whether it was removed; only the leader may say so.
pub(crate) async fn handle_hello(
    inner: &Arc<Inner>,
    body: Bytes,
) -> Result<BytesMut, ProposeError> {
    let introduction = Introduction::read(body)?;
    let members = effective_members(inner);
    let leading = inner.leadership.borrow().leading;
    let mut is_removed = false;
    match members.get_node(&introduction.node.0) {
        Some(address) => {
            inner.peers.announced(introduction.node, introduction.address.clone());
            if leading && *address != introduction.address {
                let moved = move_here(inner, introduction.node, introduction.address).await;
                if let Err(error) = moved {
                    tracing::info!(%error, "a new address is not written down yet");
                }
            }
        }
        None => {
            // A node whose log ends before this membership, or at it, and is not in it, was one.
            let known = members.log_id().map(|id| id.index);
            is_removed = leading
                && introduction.membership_index.is_some()
                && introduction.membership_index <= known;
        }
    }
    let mut out = inner.peers.begin(Kind::Welcome);
    put_bool(&mut out, is_removed);
    put_bytes(&mut out, inner.cluster_id.as_bytes());
    Ok(out)
}

/// Sends a question on to the leader, in one hop, and returns the body of the answer.
async fn ask_leader(inner: &Inner, kind: Kind, body: &[u8]) -> Result<Bytes, ProposeError> {
    let leader = inner.leader_elsewhere()?;
    let mut question = inner.peers.begin(kind);
    question.put_slice(body);
    let answer = inner.peers.call(leader.0, Purpose::Call, question, ALLOCATE_WITHIN).await;
    Ok(answer.map_err(call_error)?.body)
}

/// See `Replica::remove_member`.
pub(crate) async fn remove(
    inner: &Arc<Inner>,
    node: NodeId,
    within: Duration,
) -> Result<(), MemberError> {
    let mut body = BytesMut::new();
    body.put_u64_le(node.0);
    at_leader(inner, Kind::RemoveMember, body.freeze(), within).await
}

/// See `Replica::transfer_leadership`.
pub(crate) async fn transfer(
    inner: &Arc<Inner>,
    to: Option<NodeId>,
    within: Duration,
) -> Result<(), MemberError> {
    let mut body = BytesMut::new();
    body.put_u64_le(to.map_or(0, |node| node.0));
    at_leader(inner, Kind::MoveLeader, body.freeze(), within).await
}

async fn at_leader(
    inner: &Arc<Inner>,
    kind: Kind,
    body: Bytes,
    within: Duration,
) -> Result<(), MemberError> {
    let deadline = Instant::now() + within;
    loop {
        let leader = inner.leader_until(deadline).await?;
        let work = async {
            if leader != inner.me {
                return read_result(ask_leader(inner, kind, &body).await?);
            }
            if kind == Kind::RemoveMember {
                remove_here(inner, body.clone()).await
            } else {
                move_leader_here(inner, body.clone()).await
            }
        };
        let result = timeout_at(deadline, work).await.unwrap_or(Err(ProposeError::Timeout.into()));
        match result {
            Err(MemberError::Propose(error))
                if error.is_retryable() && Instant::now() < deadline =>
            {
                inner.leadership_moves(deadline).await;
            }
            Err(MemberError::Busy) if Instant::now() < deadline => {
                sleep(inner.config.heartbeat).await;
            }
            other => return other,
        }
    }
}

pub(crate) async fn handle_remove(
    inner: &Arc<Inner>,
    body: Bytes,
) -> Result<BytesMut, ProposeError> {
    let result = remove_here(inner, body).await;
    Ok(put_result(inner, result))
}

pub(crate) async fn handle_move(inner: &Arc<Inner>, body: Bytes) -> Result<BytesMut, ProposeError> {
    let result = move_leader_here(inner, body).await;
    Ok(put_result(inner, result))
}

async fn remove_here(inner: &Arc<Inner>, body: Bytes) -> Result<(), MemberError> {
    let id = Reader(body).u64("node").map_err(malformed)?;
    let members = effective_members(inner);
    let node = NodeId(id);
    if members.get_node(&id).is_none() {
        return Err(MemberError::Unknown(node));
    }
    let nodes = BTreeSet::from([id]);
    if !is_voter(&members, id) {
        return change(inner, Change::RemoveNodes(nodes), false).await;
    }
    if members.voter_ids().count() == 1 {
        return Err(MemberError::LastVoter(node));
    }
    change(inner, Change::RemoveVoters(nodes), false).await
}

async fn move_leader_here(inner: &Arc<Inner>, body: Bytes) -> Result<(), MemberError> {
    let to = Reader(body).u64("node").map_err(malformed)?;
    let target = match to {
        0 => furthest(inner).ok_or(MemberError::LastVoter(inner.me))?,
        id if is_voter(&effective_members(inner), id) => id,
        id => return Err(MemberError::Unknown(NodeId(id))),
    };
    if target == inner.me.0 {
        return Ok(());
    }
    inner.raft.trigger().transfer_leader(target).await.map_err(|_| inner.stopped_error())?;
    let mut leadership = inner.leadership.subscribe();
    let me = Some(inner.me);
    let moved = leadership.wait_for(|now| now.leader.is_some() && now.leader != me);
    let deadline = Instant::now() + inner.config.election_max * 2;
    match timeout_at(deadline, moved).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err(inner.stopped_error().into()),
        Err(_) => Err(ProposeError::Timeout.into()),
    }
}

/// The other voter whose log is furthest, while this node leads.
pub(crate) fn furthest(inner: &Inner) -> Option<u64> {
    let metrics = inner.raft.metrics().borrow_watched().clone();
    if metrics.state != ServerState::Leader {
        return None;
    }
    let replication = metrics.replication?;
    let voters = metrics.membership_config.voter_ids().filter(|id| *id != inner.me.0);
    voters.max_by_key(|id| replication.get(id).copied().flatten())
}

fn put_result(inner: &Inner, result: Result<(), MemberError>) -> BytesMut {
    let mut out = inner.peers.begin(Kind::Done);
    match result {
        Ok(()) => out.put_u8(0),
        Err(MemberError::Unknown(node)) => {
            out.put_u8(1);
            out.put_u64_le(node.0);
        }
        Err(MemberError::LastVoter(node)) => {
            out.put_u8(2);
            out.put_u64_le(node.0);
        }
        Err(MemberError::Busy) => out.put_u8(3),
        Err(MemberError::Lagging { node, lag }) => {
            out.put_u8(4);
            out.put_u64_le(node.0);
            out.put_u64_le(lag);
        }
        Err(MemberError::Propose(error)) => {
            out.put_u8(5);
            put_error(&mut out, &error);
        }
    }
    out
}

/// Reads what [`put_result`] wrote.
fn read_result(body: Bytes) -> Result<(), MemberError> {
    let mut input = Reader(body);
    let mut read = || {
        Ok(match input.u8("result")? {
            0 => Ok(()),
            1 => Err(MemberError::Unknown(NodeId(input.u64("result")?))),
            2 => Err(MemberError::LastVoter(NodeId(input.u64("result")?))),
            3 => Err(MemberError::Busy),
            4 => {
                let node = NodeId(input.u64("result")?);
                Err(MemberError::Lagging { node, lag: input.u64("result")? })
            }
            _ => Err(MemberError::Propose(read_error(&mut input)?)),
        })
    };
    read().map_err(malformed)?
}
