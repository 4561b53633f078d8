//! The peer port: what other members ask of this one.
//!
//! Every request is a POST whose body begins with a frame. The frame's version and cluster are
//! checked before anything else; what a node may ask before it has a cluster is named in
//! [`open_to_all`].

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use openraft::raft::AppendEntriesRequest;
use tokio::net::{TcpListener, TcpStream};

use crate::replica::codec::{DecodeError, Reader, put_bytes, put_vote, read_vote};
use crate::replica::error::ProposeError;
use crate::replica::frames::{
    ClusterTag, FrameIn, Kind, PROTOCOL, finish, put_appended, put_error, put_transfer_answer,
    put_vote_answer, read_append, read_transfer, read_vote_request,
};
use crate::replica::inner::Inner;
use crate::replica::leader_call::handle_leader_call;
use crate::replica::link::{
    CONNECTION_WINDOW_BYTES, Frames, HTTP_FRAME_BYTES, LinkError, OutBody, STREAM_WINDOW_BYTES,
    stream_body,
};
use crate::replica::membership;
use crate::replica::propose::handle_forwarded;
use crate::replica::read::handle_read_index;
use crate::replica::receive::receive_snapshot;
use crate::replica::takeover;
use crate::replica::types::TypeConfig;

/// Requests one connection may have open at once.
const STREAMS_MAX: u32 = 4_096;

/// Takes connections until the node stops.
pub(crate) async fn run_listener(inner: Arc<Inner>, listener: TcpListener) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let shared = Arc::clone(&inner);
                inner.running.spawn(serve_connection(shared, stream));
            }
            Err(error) => {
                // Too many open files pass; a listener that is gone would spin, hence the pause.
                tracing::warn!(%error, "a peer's connection was not accepted");
                tokio::time::sleep(inner.config.heartbeat).await;
            }
        }
    }
}

async fn serve_connection(inner: Arc<Inner>, stream: TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a peer's connection is gone already");
        return;
    }
    let leader = Arc::new(AtomicU64::new(0));
    let (shared, seen) = (Arc::clone(&inner), Arc::clone(&leader));
    let service = service_fn(move |request: Request<Incoming>| {
        let (inner, seen) = (Arc::clone(&shared), Arc::clone(&seen));
        async move {
            let body = answer(inner, Frames::new(request.into_body()), seen).await;
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    let timings = inner.peers.timings();
    let connection = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(HTTP_FRAME_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(timings.probe_after)
        .keep_alive_timeout(timings.probe_wait)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        biased;
        () = inner.stop.cancelled() => return,
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "a peer's connection broke");
        },
    }
    let leader = leader.load(Ordering::SeqCst);
    if leader != 0 {
        takeover::connection_ended(&inner, leader).await;
    }
}

async fn answer(inner: Arc<Inner>, mut frames: Frames, leader: Arc<AtomicU64>) -> OutBody {
    let frame = match frames.next().await {
        Some(Ok(frame)) => frame,
        Some(Err(error)) => return refuse(&inner, &error.to_string()),
        None => return refuse(&inner, "an empty request"),
    };
    if frame.version != PROTOCOL {
        let (theirs, ours) = (frame.version, PROTOCOL);
        let says = format!("the peer speaks version {theirs} of the protocol, this one {ours}");
        return refuse(&inner, &says);
    }
    let Some(kind) = frame.kind else {
        return refuse(&inner, "a request of a kind that is not known here: upgrade this node");
    };
    let is_ours = frame.cluster == inner.peers.cluster();
    let is_nobodys = frame.cluster == ClusterTag::NONE && open_to_all(kind);
    if !is_ours && !is_nobodys {
        return refuse(&inner, "this node belongs to another cluster");
    }
    match kind {
        Kind::Append => append_stream(&inner, frame, frames, &leader),
        Kind::SnapshotBegin => match receive_snapshot(&inner, frame.body, frames).await {
            Ok(vote) => {
                let mut out = inner.peers.begin(Kind::SnapshotInstalled);
                put_vote(&mut out, &vote);
                whole(out)
            }
            Err(error) => refuse(&inner, &error.to_string()),
        },
        other => match unary(&inner, other, frame.body).await {
            Ok(out) => whole(out),
            Err(error) => {
                let mut out = inner.peers.begin(Kind::Refused);
                out.extend_from_slice(&[0]);
                put_error(&mut out, &error);
                whole(out)
            }
        },
    }
}

/// What a node may ask that does not know its cluster yet.
fn open_to_all(kind: Kind) -> bool {
    matches!(kind, Kind::Allocate | Kind::Hello)
}

async fn unary(inner: &Arc<Inner>, kind: Kind, body: Bytes) -> Result<BytesMut, ProposeError> {
    match kind {
        Kind::Vote | Kind::PreVote => vote(inner, kind, body).await,
        Kind::TransferLeader => transfer(inner, body).await,
        Kind::Propose => handle_forwarded(inner, body).await,
        Kind::ReadIndex => handle_read_index(inner).await,
        Kind::LeaderCall => handle_leader_call(inner, body).await,
        Kind::Allocate => membership::handle_allocate(inner).await,
        Kind::Join => membership::handle_join(inner, body).await,
        Kind::Hello => membership::handle_hello(inner, body).await,
        Kind::RemoveMember => membership::handle_remove(inner, body).await,
        Kind::MoveLeader => membership::handle_move(inner, body).await,
        Kind::Append
        | Kind::Appended
        | Kind::Voted
        | Kind::TransferAnswer
        | Kind::SnapshotBegin
        | Kind::SnapshotChunk
        | Kind::SnapshotInstalled
        | Kind::Proposed
        | Kind::ReadAt
        | Kind::LeaderAnswer
        | Kind::Allocated
        | Kind::JoinProgress
        | Kind::Welcome
        | Kind::Done
        | Kind::Refused => Err(ProposeError::Invalid {
            reason: format!("a request does not begin with a frame of kind {kind:?}"),
        }),
    }
}

async fn vote(inner: &Inner, kind: Kind, body: Bytes) -> Result<BytesMut, ProposeError> {
    let request = read_vote_request(body).map_err(malformed)?;
    let answer = if kind == Kind::PreVote {
        inner.raft.pre_vote(request).await
    } else {
        inner.raft.vote(request).await
    };
    let answer = answer.map_err(|_| inner.stopped_error())?;
    let mut out = inner.peers.begin(Kind::Voted);
    put_vote_answer(&mut out, &answer);
    Ok(out)
}

async fn transfer(inner: &Inner, body: Bytes) -> Result<BytesMut, ProposeError> {
    let request = read_transfer(body).map_err(malformed)?;
    let answer = inner.raft.handle_transfer_leader(request).await;
    let answer = answer.map_err(|_| inner.stopped_error())?;
    let mut out = inner.peers.begin(Kind::TransferAnswer);
    put_transfer_answer(&mut out, &answer);
    Ok(out)
}

/// Entries come in and answers go out until either side ends.
fn append_stream(
    inner: &Arc<Inner>,
    first: FrameIn,
    frames: Frames,
    leader: &AtomicU64,
) -> OutBody {
    if let Ok(vote) = read_vote(&mut Reader(first.body.clone())) {
        leader.store(vote.leader_id.voted_for, Ordering::SeqCst);
    }
    let requests = append_requests(Arc::clone(inner), first, frames);
    let shared = Arc::clone(inner);
    let answers = inner.raft.stream_append(requests).map(move |result| match result {
        Ok(result) => {
            let mut out = shared.peers.begin(Kind::Appended);
            put_appended(&mut out, &result);
            finish(out)
        }
        Err(fatal) => refusal(&shared, &fatal.to_string()),
    });
    stream_body(answers)
}

fn append_requests(
    inner: Arc<Inner>,
    first: FrameIn,
    frames: Frames,
) -> impl Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + 'static {
    let all = stream::iter([Ok(first)]).chain(frames);
    all.map(move |frame: Result<FrameIn, LinkError>| {
        let frame = frame?;
        if frame.kind != Some(Kind::Append) || frame.cluster != inner.peers.cluster() {
            return Err(LinkError::Broken("not an append frame".to_owned()));
        }
        inner.heard_from_leader();
        Ok(read_append(frame.body)?)
    })
    .take_while(|request| {
        if let Err(error) = request {
            tracing::debug!(%error, "an append stream ends");
        }
        std::future::ready(request.is_ok())
    })
    .filter_map(|request| std::future::ready(request.ok()))
}

pub(crate) fn malformed(error: DecodeError) -> ProposeError {
    ProposeError::Invalid { reason: error.to_string() }
}

fn whole(out: BytesMut) -> OutBody {
    Full::new(finish(out)).boxed_unsync()
}

fn refuse(inner: &Inner, text: &str) -> OutBody {
    tracing::warn!(node = inner.me.0, text, "a peer was refused");
    Full::new(refusal(inner, text)).boxed_unsync()
}

fn refusal(inner: &Inner, text: &str) -> Bytes {
    let mut out = inner.peers.begin(Kind::Refused);
    out.extend_from_slice(&[1]);
    put_bytes(&mut out, text.as_bytes());
    finish(out)
}
