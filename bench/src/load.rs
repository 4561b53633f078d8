//! HTTP, as little of it as measuring needs: connections, calls, and callers in a closed loop.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::error::{Error, Result};

/// A connection that is kept open. With HTTP/2 its clones share it, each with one call at a time.
#[derive(Debug)]
pub enum Connection {
    One { sender: http1::SendRequest<Full<Bytes>>, addr: SocketAddr },
    Two { sender: http2::SendRequest<Full<Bytes>>, addr: SocketAddr },
}

/// One request; `path` begins with a slash.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    pub path: String,
    pub body: Bytes,
}

#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub body: Bytes,
}

impl Call {
    pub fn get(path: impl Into<String>) -> Call {
        Call { method: Method::GET, path: path.into(), body: Bytes::new() }
    }

    pub fn put(path: impl Into<String>, body: impl Into<Bytes>) -> Call {
        Call { method: Method::PUT, path: path.into(), body: body.into() }
    }

    pub fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Call {
        Call { method: Method::POST, path: path.into(), body: body.into() }
    }
}

impl Reply {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The answer means: not now, ask again.
    fn is_busy(&self) -> bool {
        matches!(self.status, 429 | 503 | 504)
    }

    /// # Errors
    /// [`Error::Refused`] unless the status is a success.
    pub fn accepted(self, call: &str) -> Result<Reply> {
        if self.is_success() {
            return Ok(self);
        }
        let body = String::from_utf8_lossy(&self.body).into_owned();
        Err(Error::Refused { call: call.to_owned(), status: self.status, body })
    }
}

impl Connection {
    /// HTTP/1.1, kept alive: one call at a time.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn one(addr: SocketAddr) -> Result<Connection> {
        let io = TokioIo::new(open(addr).await?);
        let (sender, driver) = http1::handshake(io).await.map_err(Error::http("handshake"))?;
        tokio::spawn(driver);
        Ok(Connection::One { sender, addr })
    }

    /// HTTP/2 without TLS, known in advance: many calls at a time through clones.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn two(addr: SocketAddr) -> Result<Connection> {
        let io = TokioIo::new(open(addr).await?);
        let executor = TokioExecutor::new();
        let shaken = http2::handshake(executor, io).await;
        let (sender, driver) = shaken.map_err(Error::http("handshake"))?;
        tokio::spawn(driver);
        Ok(Connection::Two { sender, addr })
    }

    /// Another caller of the same HTTP/2 connection; `None` with HTTP/1.1.
    pub fn share(&self) -> Option<Connection> {
        match self {
            Connection::One { .. } => None,
            Connection::Two { sender, addr } => {
                Some(Connection::Two { sender: sender.clone(), addr: *addr })
            }
        }
    }

    /// # Errors
    /// When the path is none.
    pub fn uri(&self, path: &str) -> Result<Uri> {
        let text = match self {
            Connection::One { .. } => path.to_owned(),
            Connection::Two { addr, .. } => format!("http://{addr}{path}"),
        };
        let uri = text.parse::<Uri>();
        uri.map_err(|e| Error::Wrong(format!("{text:?} is no address of a resource: {e}")))
    }

    /// # Errors
    /// When the connection breaks; what became of the call is then unknown.
    pub async fn send(&mut self, call: &Call) -> Result<Reply> {
        let uri = self.uri(&call.path)?;
        self.send_to(call.method.clone(), uri, call.body.clone()).await
    }

    /// As [`Connection::send`], with an address made once by [`Connection::uri`].
    ///
    /// # Errors
    /// When the connection breaks; what became of the call is then unknown.
    pub async fn send_to(&mut self, method: Method, uri: Uri, body: Bytes) -> Result<Reply> {
        let mut request = Request::builder().method(method).uri(uri);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Connection::One { addr, .. } = self {
            request = request.header(HOST, addr.to_string());
        }
        let built = request.body(Full::new(body));
        let request = built.map_err(|source| Error::Request { what: "request", source })?;
        let response = match self {
            Connection::One { sender, .. } => {
                sender.ready().await.map_err(Error::http("connection"))?;
                sender.send_request(request).await
            }
            Connection::Two { sender, .. } => {
                sender.ready().await.map_err(Error::http("connection"))?;
                sender.send_request(request).await
            }
        };
        let response = response.map_err(Error::http("call"))?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(Error::http("answer"))?;
        Ok(Reply { status, body: body.to_bytes() })
    }
}

async fn open(addr: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(addr).await.map_err(Error::io(format!("connect to {addr}")))?;
    stream.set_nodelay(true).map_err(Error::io("TCP_NODELAY"))?;
    Ok(stream)
}

/// One call on a connection of its own.
///
/// # Errors
/// When nobody listens, when the connection breaks, or after `within`.
pub async fn call_once(addr: SocketAddr, call: &Call, within: Duration) -> Result<Reply> {
    let whole = async { Connection::one(addr).await?.send(call).await };
    let reply = timeout(within, whole).await;
    reply.map_err(|_| Error::TooLong(format!("{} {}", call.method, call.path)))?
}

/// Makes `count` calls, `callers` at a time over at most 8 HTTP/2 connections. A node that is busy
/// is asked again.
///
/// # Errors
/// The first call that fails or is refused.
pub async fn make_all<F>(addr: SocketAddr, callers: usize, count: usize, make: F) -> Result<()>
where
    F: Fn(usize) -> Result<Call> + Clone + Send + 'static,
{
    let connections = connect_shared(addr, callers).await?;
    let mut running = JoinSet::new();
    for (first, mut connection) in connections.into_iter().enumerate() {
        let make = make.clone();
        running.spawn(async move {
            for i in (first..count).step_by(callers) {
                until_accepted(&mut connection, &make(i)?).await?;
            }
            Ok(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.map_err(|e| Error::Wrong(format!("a caller ended early: {e}")))??;
    }
    Ok(())
}

/// As many callers as wanted, over at most 8 HTTP/2 connections.
///
/// # Errors
/// When nobody listens there.
pub async fn connect_shared(addr: SocketAddr, callers: usize) -> Result<Vec<Connection>> {
    let mut roots = Vec::new();
    for _ in 0..callers.min(CONNECTIONS_MAX) {
        roots.push(Connection::two(addr).await?);
    }
    let shared = (0..callers).filter_map(|i| roots[i % roots.len()].share());
    Ok(shared.collect())
}

const CONNECTIONS_MAX: usize = 8;
const BUSY_TRIES: usize = 100;

async fn until_accepted(connection: &mut Connection, call: &Call) -> Result<Reply> {
    for _ in 0..BUSY_TRIES {
        let reply = connection.send(call).await?;
        if !reply.is_busy() {
            return reply.accepted(&format!("{} {}", call.method, call.path));
        }
        sleep(Duration::from_millis(50)).await;
    }
    Err(Error::TooLong(format!("{} {}", call.method, call.path)))
}

/// Makes the same call again and again, its body changed each time by a counter.
pub struct Caller {
    pub connection: Connection,
    pub method: Method,
    pub path: String,
    pub body: Template,
}

/// A body with a place of fixed width for a number.
#[derive(Clone)]
pub struct Template {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Template {
    /// `text` holds [`Template::MARK`] once.
    ///
    /// # Errors
    /// When it does not.
    pub fn new(text: &str) -> Result<Template> {
        let parts = text.split_once(Template::MARK);
        let parts = parts.ok_or_else(|| Error::Wrong("a template without its mark".to_owned()))?;
        Ok(Template { before: parts.0.into(), after: parts.1.into() })
    }

    /// Replaced by a number of the same width.
    pub const MARK: &str = "##########";

    pub fn with(&self, number: u64) -> Bytes {
        let width = Template::MARK.len();
        let mut body = Vec::with_capacity(self.before.len() + width + self.after.len());
        body.extend_from_slice(&self.before);
        body.extend_from_slice(format!("{number:0width$}").as_bytes());
        body.extend_from_slice(&self.after);
        body.into()
    }
}

/// What a closed loop measured.
pub struct Measured {
    /// Time of each call that succeeded, in microseconds.
    pub call_us: Vec<i64>,
    /// Calls that were refused because the node was busy.
    pub busy: usize,
}

/// Lets every caller call, next after reply: first for the warm-up, then for the window, at whose
/// begin `on_begin` runs beside them.
///
/// # Errors
/// The first call that fails, or is refused for another reason than that the node is busy.
pub async fn closed_loop(
    callers: Vec<Caller>,
    warm_up: Duration,
    window: Duration,
    on_begin: impl Future<Output = Result<()>>,
) -> Result<Measured> {
    let begin = Instant::now() + warm_up;
    let end = begin + window;
    let mut running = JoinSet::new();
    for (i, caller) in callers.into_iter().enumerate() {
        running.spawn(call_until(caller, i as u64 * NUMBERS_PER_CALLER, begin, end));
    }
    tokio::time::sleep_until(begin).await;
    on_begin.await?;
    let mut measured = Measured { call_us: Vec::new(), busy: 0 };
    while let Some(ended) = running.join_next().await {
        let ended = ended.map_err(|e| Error::Wrong(format!("a caller ended early: {e}")))??;
        measured.call_us.extend(ended.call_us);
        measured.busy += ended.busy;
    }
    Ok(measured)
}

/// Callers never send the same number.
const NUMBERS_PER_CALLER: u64 = 10_000_000;

struct Ended {
    call_us: Vec<i64>,
    busy: usize,
}

async fn call_until(
    mut caller: Caller,
    mut number: u64,
    begin: Instant,
    end: Instant,
) -> Result<Ended> {
    let uri = caller.connection.uri(&caller.path)?;
    let mut ended = Ended { call_us: Vec::new(), busy: 0 };
    loop {
        let sent_at = Instant::now();
        if sent_at >= end {
            return Ok(ended);
        }
        let body = caller.body.with(number);
        number += 1;
        let reply = caller.connection.send_to(caller.method.clone(), uri.clone(), body).await?;
        let replied_at = Instant::now();
        if reply.is_busy() {
            ended.busy += 1;
            sleep(Duration::from_millis(1)).await;
            continue;
        }
        reply.accepted(&caller.path)?;
        if replied_at >= begin && replied_at < end {
            ended.call_us.push(micros(replied_at - sent_at));
        }
    }
}

pub fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
