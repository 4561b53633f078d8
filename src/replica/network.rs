//! openraft's network: what this member sends to others.
//!
//! Appends are pipelined: one long-lived stream carries them, and answers come back in order. A
//! stream that has sent something and gets no answer for an election time-out is given up; one
//! that has nothing to wait for may be idle for ever. Heartbeats, snapshots and votes have
//! connections of their own.

use std::fs::File;
use std::future::Future;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, unfold};
use futures_util::{Stream, StreamExt};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{Backoff, RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};

use crate::replica::codec::{Reader, put_bytes, put_vote, read_vote};
use crate::replica::frames::{
    FrameIn, Kind, finish, put_append, put_transfer, put_vote_request, read_appended,
    read_transfer_answer, read_vote_answer,
};
use crate::replica::link::{Frames, LinkError, checked, stream_body};
use crate::replica::peers::{Peers, Purpose};
use crate::replica::snapshot_adapter::SnapshotOfUs;
use crate::replica::types::{PeerNode, TypeConfig, Vote};
use crate::store::snapshot_file::SnapshotFile;

/// Bytes of a snapshot in one frame.
const CHUNK_BYTES: usize = 256 * 1_024;
/// The receiver's time to check and install a snapshot after its last byte, at least.
const INSTALL_WAIT: Duration = Duration::from_secs(120);

type AppendResults<'s> = BoxStream<'s, Result<StreamAppendResult<TypeConfig>, Rpc>>;
type Rpc = RPCError<TypeConfig>;

/// Makes a client for each member.
pub(crate) struct Network {
    pub(crate) peers: Arc<Peers>,
}

/// Sends to one member for one purpose.
pub(crate) struct PeerClient {
    peers: Arc<Peers>,
    target: u64,
    purpose: Purpose,
}

impl Network {
    fn client(&self, target: u64, node: &PeerNode, purpose: Purpose) -> PeerClient {
        self.peers.learn_one(target, node);
        PeerClient { peers: Arc::clone(&self.peers), target, purpose }
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = PeerClient;

    async fn new_client(&mut self, target: u64, node: &PeerNode) -> PeerClient {
        self.client(target, node, Purpose::Append)
    }

    async fn new_heartbeat_client(&mut self, target: u64, node: &PeerNode) -> PeerClient {
        self.client(target, node, Purpose::Heartbeat)
    }

    async fn new_snapshot_client(&mut self, target: u64, node: &PeerNode) -> PeerClient {
        self.client(target, node, Purpose::Snapshot)
    }
}

impl PeerClient {
    async fn call(&self, question: BytesMut, within: Duration) -> Result<FrameIn, Rpc> {
        let purpose = match self.purpose {
            Purpose::Append | Purpose::Vote => Purpose::Vote,
            other @ (Purpose::Heartbeat | Purpose::Snapshot | Purpose::Call) => other,
        };
        self.peers.call(self.target, purpose, question, within).await.map_err(rpc_error)
    }

    fn address(&self) -> Result<String, LinkError> {
        match self.peers.address(self.target) {
            Some(node) => Ok(node.peer),
            None => {
                let problem = format!("the address of member {} is not known", self.target);
                Err(LinkError::NotSent(problem))
            }
        }
    }

    /// None when there is nothing to send.
    ///
    /// The first request is taken before anything is connected: openraft waits inside of that while
    /// it backs off from a member that cannot be reached.
    async fn open_append<S>(
        &self,
        mut input: S,
        within: Duration,
    ) -> Result<Option<AppendStream>, LinkError>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + Unpin + 'static,
    {
        let Some(first) = input.next().await else {
            return Ok(None);
        };
        let sent = Arc::new(AtomicU64::new(0));
        let (peers, counter) = (Arc::clone(&self.peers), Arc::clone(&sent));
        let frames = stream::iter([first]).chain(input).map(move |request| {
            let mut out = peers.begin(Kind::Append);
            put_append(&mut out, request);
            counter.fetch_add(1, Ordering::SeqCst);
            finish(out)
        });
        let link = self.peers.link(self.target, self.purpose);
        let address = self.address()?;
        let open = link.open(&address, stream_body(frames));
        // A slow disk on the other side is no reason to give up: the wait is for the connection.
        let within = within.max(self.peers.timings().connect);
        let frames = tokio::time::timeout(within, open).await.map_err(|_| LinkError::Timeout)??;
        Ok(Some(AppendStream { frames, sent, answered: 0, is_over: false }))
    }
}

/// The answers of one append stream.
struct AppendStream {
    frames: Frames,
    sent: Arc<AtomicU64>,
    answered: u64,
    is_over: bool,
}

impl AppendStream {
    /// The next answer; waits at most `stall` for one that is due.
    async fn next(&mut self, peers: &Peers, stall: Duration) -> Option<Result<FrameIn, LinkError>> {
        loop {
            let answered_before = self.answered;
            let due_before = self.sent.load(Ordering::SeqCst) > self.answered;
            match tokio::time::timeout(stall, self.frames.next()).await {
                Ok(Some(frame)) => {
                    self.answered += 1;
                    return Some(frame.and_then(|frame| checked(frame, peers.cluster())));
                }
                Ok(None) => return None,
                Err(_) if due_before && answered_before == self.answered => {
                    return Some(Err(LinkError::Timeout));
                }
                Err(_) => {}
            }
        }
    }
}

impl RaftNetworkV2<TypeConfig> for PeerClient {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, Rpc> {
        let input = stream::once(async { rpc }).boxed();
        let mut answers = RaftNetworkV2::stream_append(self, input, option).await?;
        match answers.next().await {
            Some(answer) => answer.map(AppendEntriesResponse::from),
            None => Err(rpc_error(LinkError::Broken("the peer closed".to_owned()))),
        }
    }

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<AppendResults<'s>, Rpc>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + Unpin + 'static,
    {
        Box::pin(async move {
            let opened = self.open_append(input, option.soft_ttl()).await.map_err(rpc_error)?;
            let Some(opened) = opened else {
                return Ok(stream::empty().boxed());
            };
            let peers = Arc::clone(&self.peers);
            let stall = peers.timings().probe_wait.max(option.soft_ttl());
            let answers = unfold((opened, peers), move |(mut open, peers)| async move {
                if open.is_over {
                    return None;
                }
                let frame = open.next(&peers, stall).await?;
                let answer = frame.and_then(|frame| match frame.kind {
                    Some(Kind::Appended) => Ok(read_appended(frame.body)?),
                    other => Err(unexpected(other)),
                });
                open.is_over = !matches!(answer, Ok(Ok(_)));
                Some((answer.map_err(rpc_error), (open, peers)))
            });
            Ok(answers.boxed())
        })
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Rpc> {
        let mut question = self.peers.begin(Kind::Vote);
        put_vote_request(&mut question, &rpc);
        let answer = self.call(question, option.soft_ttl()).await?;
        expect(answer, Kind::Voted, read_vote_answer)
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Rpc> {
        let mut question = self.peers.begin(Kind::PreVote);
        put_vote_request(&mut question, &rpc);
        let answer = self.call(question, option.soft_ttl()).await?;
        expect(answer, Kind::Voted, read_vote_answer)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: SnapshotOfUs,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let sending = self.send_snapshot(vote, snapshot.snapshot, option.soft_ttl());
        tokio::pin!(cancel);
        tokio::select! {
            biased;
            closed = &mut cancel => Err(StreamingError::Closed(closed)),
            sent = sending => sent.map_err(|error| StreamingError::from(rpc_error(error))),
        }
    }

    async fn transfer_leader(
        &mut self,
        req: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, Rpc> {
        let mut question = self.peers.begin(Kind::TransferLeader);
        put_transfer(&mut question, &req);
        let answer = self.call(question, option.soft_ttl()).await?;
        expect(answer, Kind::TransferAnswer, read_transfer_answer)
    }

    /// A member that cannot be reached is tried again soon, then at a steady pace: it may be back
    /// within a second, and a try costs little.
    fn backoff(&self) -> Option<Backoff> {
        let delays = [20, 50, 100, 200].into_iter().chain(std::iter::repeat(400));
        Some(Backoff::new(delays.map(Duration::from_millis)))
    }
}

impl PeerClient {
    async fn send_snapshot(
        &self,
        vote: Vote,
        file: SnapshotFile,
        within: Duration,
    ) -> Result<SnapshotResponse<TypeConfig>, LinkError> {
        let address = self.address()?;
        let link = self.peers.link(self.target, Purpose::Snapshot);
        let mut first = self.peers.begin(Kind::SnapshotBegin);
        put_vote(&mut first, &vote);
        first.put_u64_le(file.bytes);
        first.put_u32_le(file.checksum);
        put_bytes(&mut first, &file.meta);
        let chunks = snapshot_chunks(Arc::clone(&self.peers), &file)?;
        let frames = stream::iter([finish(first)]).chain(chunks);
        let sending = async {
            let mut answers = link.open(&address, stream_body(frames)).await?;
            match answers.next().await {
                Some(frame) => checked(frame?, self.peers.cluster()),
                None => Err(LinkError::Broken("the peer closed".to_owned())),
            }
        };
        let within = within.max(INSTALL_WAIT);
        let answer =
            tokio::time::timeout(within, sending).await.map_err(|_| LinkError::Timeout)??;
        if answer.kind != Some(Kind::SnapshotInstalled) {
            return Err(unexpected(answer.kind));
        }
        let mut input = Reader(answer.body);
        let vote = read_vote(&mut input)?;
        Ok(SnapshotResponse::new(vote))
    }
}

/// The file in frames. A file that cannot be read ends the stream early, and the receiver, which
/// counts, refuses it.
fn snapshot_chunks(
    peers: Arc<Peers>,
    file: &SnapshotFile,
) -> Result<impl Stream<Item = Bytes> + Send + 'static, LinkError> {
    let opened = File::open(&file.path)
        .map_err(|error| LinkError::NotSent(format!("{}: {error}", file.path.display())))?;
    Ok(unfold((opened, 0_u64, peers), |(mut opened, offset, peers)| async move {
        let mut chunk = vec![0; CHUNK_BYTES];
        let length = match opened.read(&mut chunk) {
            Ok(0) => return None,
            Ok(length) => length,
            Err(error) => {
                tracing::error!(%error, "a snapshot cannot be read");
                return None;
            }
        };
        let mut out = peers.begin(Kind::SnapshotChunk);
        out.put_u64_le(offset);
        put_bytes(&mut out, chunk.get(..length)?);
        Some((finish(out), (opened, offset + length as u64, peers)))
    }))
}

fn unexpected(kind: Option<Kind>) -> LinkError {
    LinkError::Broken(format!("the peer answered with an unexpected frame: {kind:?}"))
}

fn expect<T>(
    answer: FrameIn,
    kind: Kind,
    read: impl FnOnce(Bytes) -> Result<T, crate::replica::codec::DecodeError>,
) -> Result<T, Rpc> {
    if answer.kind != Some(kind) {
        return Err(rpc_error(unexpected(answer.kind)));
    }
    read(answer.body).map_err(|error| rpc_error(error.into()))
}

fn rpc_error(error: LinkError) -> Rpc {
    match error {
        LinkError::NotSent(_) | LinkError::Refused(_) | LinkError::Answered(_) => {
            RPCError::Unreachable(Unreachable::new(&error))
        }
        LinkError::Broken(_) | LinkError::Timeout => RPCError::Network(NetworkError::new(&error)),
    }
}
