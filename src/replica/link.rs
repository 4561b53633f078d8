//! One HTTP/2 connection to a peer, made when it is needed and made again when it broke.
//!
//! HTTP/2 without TLS and without negotiation, on the peer port. A question is the body of a POST,
//! its answer the body of the response; an append stream is one POST whose both bodies stay open.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::{Request, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::replica::codec::{DecodeError, Reader};
use crate::replica::error::ProposeError;
use crate::replica::frames::{ClusterTag, FrameIn, Kind, PROTOCOL, read_error, take_frame};

/// Flow-control windows: a whole batch of entries and a chunk of a snapshot fit.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 8 * 1_024 * 1_024;
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 32 * 1_024 * 1_024;
pub(crate) const HTTP_FRAME_BYTES: u32 = 512 * 1_024;

const PATH: &str = "http://peer/horolog";

pub(crate) type OutBody = UnsyncBoxBody<Bytes, Infallible>;

/// How long a peer may be silent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkTimings {
    pub(crate) connect: Duration,
    /// A connection is probed after this long without a sign of life ...
    pub(crate) probe_after: Duration,
    /// ... and given up when the probe has no answer for this long.
    pub(crate) probe_wait: Duration,
}

/// Why a peer did not answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// The peer has not seen the question.
    #[error("{0}")]
    NotSent(String),
    /// The peer may have seen the question.
    #[error("{0}")]
    Broken(String),
    #[error("no answer in time")]
    Timeout,
    /// The peer refuses to talk, now and until somebody acts.
    #[error("{0}")]
    Refused(String),
    /// The peer answered with an error.
    #[error(transparent)]
    Answered(#[from] ProposeError),
}

impl From<DecodeError> for LinkError {
    fn from(error: DecodeError) -> LinkError {
        LinkError::Broken(format!("a peer sent a frame that cannot be read: {error}"))
    }
}

struct Connection {
    address: String,
    sender: SendRequest<OutBody>,
}

pub(crate) struct Link {
    timings: LinkTimings,
    connection: Mutex<Option<Connection>>,
}

impl Link {
    pub(crate) fn new(timings: LinkTimings) -> Link {
        Link { timings, connection: Mutex::new(None) }
    }

    /// One question, one answer, both in one frame.
    pub(crate) async fn call(
        &self,
        address: &str,
        cluster: ClusterTag,
        question: Bytes,
        within: Duration,
    ) -> Result<FrameIn, LinkError> {
        let answer = async {
            let body = Full::new(question).boxed_unsync();
            let mut frames = self.open(address, body).await?;
            match frames.next().await {
                Some(frame) => checked(frame?, cluster),
                None => Err(LinkError::Broken("the peer closed without an answer".to_owned())),
            }
        };
        timeout(within, answer).await.map_err(|_| LinkError::Timeout)?
    }

    /// Sends a body of frames and returns the frames of the answer as they come.
    pub(crate) async fn open(&self, address: &str, body: OutBody) -> Result<Frames, LinkError> {
        let mut sender = self.sender(address).await?;
        let request = Request::post(Uri::from_static(PATH))
            .body(body)
            .map_err(|error| LinkError::NotSent(error.to_string()))?;
        sender.ready().await.map_err(|error| LinkError::NotSent(broken_text(&error)))?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| LinkError::Broken(broken_text(&error)))?;
        Ok(Frames::new(response.into_body()))
    }

    async fn sender(&self, address: &str) -> Result<SendRequest<OutBody>, LinkError> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref()
            && open.address == address
            && !open.sender.is_closed()
        {
            return Ok(open.sender.clone());
        }
        *connection = None;
        let sender = connect(address, self.timings).await?;
        *connection = Some(Connection { address: address.to_owned(), sender: sender.clone() });
        Ok(sender)
    }
}

async fn connect(address: &str, timings: LinkTimings) -> Result<SendRequest<OutBody>, LinkError> {
    let unreachable =
        |error: String| LinkError::NotSent(format!("peer {address} cannot be reached: {error}"));
    let stream = timeout(timings.connect, TcpStream::connect(address))
        .await
        .map_err(|_| unreachable("it does not answer".to_owned()))?
        .map_err(|error| unreachable(error.to_string()))?;
    stream.set_nodelay(true).map_err(|error| unreachable(error.to_string()))?;
    let handshake = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(HTTP_FRAME_BYTES)
        .keep_alive_interval(timings.probe_after)
        .keep_alive_timeout(timings.probe_wait)
        .handshake(TokioIo::new(stream));
    let (sender, connection) = timeout(timings.connect, handshake)
        .await
        .map_err(|_| unreachable("it does not speak".to_owned()))?
        .map_err(|error| unreachable(error.to_string()))?;
    let peer = address.to_owned();
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(peer, error = broken_text(&error), "a connection to a peer broke");
        }
    });
    Ok(sender)
}

fn broken_text(error: &hyper::Error) -> String {
    use std::error::Error;
    match error.source() {
        Some(source) => format!("the connection to the peer broke: {source}"),
        None => format!("the connection to the peer broke: {error}"),
    }
}

/// A stream of finished frames as the body of a request or a response.
pub(crate) fn stream_body(frames: impl Stream<Item = Bytes> + Send + 'static) -> OutBody {
    StreamBody::new(frames.map(|frame| Ok(Frame::data(frame)))).boxed_unsync()
}

/// Cuts a body into frames.
pub(crate) struct Frames {
    body: Incoming,
    buffer: BytesMut,
    ended: bool,
}

impl Frames {
    pub(crate) fn new(body: Incoming) -> Frames {
        Frames { body, buffer: BytesMut::new(), ended: false }
    }
}

impl Stream for Frames {
    type Item = Result<FrameIn, LinkError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if this.ended {
                return Poll::Ready(None);
            }
            match take_frame(&mut this.buffer) {
                Ok(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                Ok(None) => {}
                Err(error) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        this.buffer.extend_from_slice(&data);
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(LinkError::Broken(broken_text(&error)))));
                }
                Poll::Ready(None) => {
                    this.ended = true;
                    if this.buffer.is_empty() {
                        return Poll::Ready(None);
                    }
                    let error = LinkError::Broken("a body ends inside a frame".to_owned());
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

/// Refuses a frame of another version or cluster, and turns a refusal into its error.
pub(crate) fn checked(frame: FrameIn, cluster: ClusterTag) -> Result<FrameIn, LinkError> {
    if frame.version != PROTOCOL {
        let (theirs, ours) = (frame.version, PROTOCOL);
        let says = format!("the peer speaks version {theirs} of the protocol, this one {ours}");
        return Err(LinkError::Refused(says));
    }
    if frame.kind == Some(Kind::Refused) {
        let mut input = Reader(frame.body);
        return Err(match input.u8("refusal")? {
            0 => LinkError::Answered(read_error(&mut input)?),
            _ => LinkError::Refused(input.text("refusal")?),
        });
    }
    let asks_for_any = cluster == ClusterTag::NONE;
    if frame.cluster != cluster && !asks_for_any {
        return Err(LinkError::Refused("the peer belongs to another cluster".to_owned()));
    }
    Ok(frame)
}
