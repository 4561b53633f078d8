//! Requests over several nodes: which node, how often, how long, and what counts as an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::base::entropy::{Entropy, OsEntropy};
use crate::client::error::{ClientError, Tried};
use crate::wire::problem::Problem;

/// How long connecting to one node may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one try waits for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long all tries of one request may take together.
const RETRY_FOR: Duration = Duration::from_secs(20);
/// The pause after all nodes were tried, doubled each time.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A client of one tenant. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    nodes: Arc<[Url]>,
    /// The node that answered last; where the next request begins.
    preferred: Arc<AtomicUsize>,
    tenant: Arc<str>,
    /// For requests that do not bring their own.
    patience: Patience,
}

/// How long to try.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the answer of one try.
    pub answer: Duration,
    /// For all tries together. Zero: each node at most once, and no try after one that may have
    /// been applied.
    pub retry_for: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { answer: ANSWER_TIMEOUT, retry_for: RETRY_FOR }
    }
}

/// A request before it meets a node.
#[derive(Clone, Debug)]
pub struct Request {
    method: Method,
    segments: Vec<String>,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<Bytes>,
    patience: Option<Patience>,
}

/// What a node answered.
#[derive(Debug)]
pub struct Response {
    pub node: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Client {
    /// A client of the nodes at these addresses, in the order in which they are tried.
    ///
    /// # Errors
    /// [`ClientError::Address`] for the first address that is none, or when there is none.
    pub fn new(addresses: &[String], tenant: &str) -> Result<Client, ClientError> {
        let nodes = addresses.iter().map(|text| node_url(text)).collect::<Result<Vec<_>, _>>()?;
        if nodes.is_empty() {
            let why = "no address was given".to_owned();
            return Err(ClientError::Address { text: String::new(), why });
        }
        use_ring();
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("horolog/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ClientError::Address {
                text: addresses.join(","),
                why: chain(&error),
            })?;
        let preferred = Arc::new(AtomicUsize::new(0));
        let (nodes, tenant) = (nodes.into(), Arc::from(tenant));
        Ok(Client { http, nodes, preferred, tenant, patience: Patience::default() })
    }

    /// The same client with another patience.
    #[must_use]
    pub fn with_patience(mut self, patience: Patience) -> Client {
        self.patience = patience;
        self
    }

    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// The addresses in use.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        self.nodes.iter().map(node_name).collect()
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, ClientError> {
        let response = self.send(request).await?;
        response.read()
    }

    /// Sends a request until a node gives a verdict, or patience ends.
    ///
    /// # Errors
    /// [`ClientError`]; a refusal by status is one too.
    pub async fn send(&self, mut request: Request) -> Result<Response, ClientError> {
        request.add_idempotency_key();
        let patience = request.patience.unwrap_or(self.patience);
        let give_up_at = Instant::now() + patience.retry_for;
        let mut tried = Tried::default();
        let mut maybe_applied = false;
        let mut pause = PAUSE_FIRST;
        loop {
            let mut wait = pause;
            let first = self.preferred.load(Ordering::Relaxed);
            let mut latest_refusal = None;
            for i in 0..self.nodes.len() {
                let at = (first + i) % self.nodes.len();
                match self.try_once(&self.nodes[at], &request, patience.answer).await {
                    Try::Answered(response) => {
                        self.preferred.store(at, Ordering::Relaxed);
                        return Ok(response);
                    }
                    Try::Refused(error) => return Err(error),
                    Try::Passed { why, retry_after, refusal } => {
                        tried.note(&node_name(&self.nodes[at]), why);
                        wait = wait.max(retry_after.unwrap_or_default());
                        latest_refusal = refusal.or(latest_refusal);
                    }
                    Try::Lost { why } => {
                        tried.note(&node_name(&self.nodes[at]), why);
                        self.preferred.store((at + 1) % self.nodes.len(), Ordering::Relaxed);
                        maybe_applied = maybe_applied || !request.is_safe();
                        if patience.retry_for.is_zero() && maybe_applied {
                            return Err(ClientError::Unknown { what: request.name(), tried });
                        }
                    }
                }
            }
            if Instant::now() + wait >= give_up_at {
                return Err(match latest_refusal {
                    _ if maybe_applied => ClientError::Unknown { what: request.name(), tried },
                    Some(refusal) => refusal,
                    None => ClientError::Unreachable { tried },
                });
            }
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Opens an answer that is read as it comes; tried once on each node.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn open(&self, request: &Request) -> Result<reqwest::Response, ClientError> {
        let mut tried = Tried::default();
        let first = self.preferred.load(Ordering::Relaxed);
        for i in 0..self.nodes.len() {
            let node = &self.nodes[(first + i) % self.nodes.len()];
            let built = request.build(&self.http, node);
            match tokio::time::timeout(self.patience.answer, built.send()).await {
                Err(_) => tried.note(&node_name(node), "no answer in time".to_owned()),
                Ok(Err(error)) => tried.note(&node_name(node), chain(&error)),
                Ok(Ok(response)) if response.status().is_success() => return Ok(response),
                Ok(Ok(response)) => {
                    let status = response.status();
                    let body = response.bytes().await.unwrap_or_default();
                    if status.is_server_error() {
                        tried.note(&node_name(node), status.to_string());
                    } else {
                        return Err(refusal(&node_name(node), status, &body));
                    }
                }
            }
        }
        Err(ClientError::Unreachable { tried })
    }

    async fn try_once(&self, node: &Url, request: &Request, within: Duration) -> Try {
        let built = request.build(&self.http, node).timeout(within);
        let response = match built.send().await {
            Ok(response) => response,
            // Only a connection that never stood proves that the node saw nothing.
            Err(error) if error.is_connect() => return Try::passed(chain(&error)),
            Err(error) => return Try::Lost { why: chain(&error) },
        };
        let status = response.status();
        let headers = response.headers().clone();
        let body = match response.bytes().await {
            Ok(body) => body,
            Err(error) => return Try::Lost { why: chain(&error) },
        };
        let node = node_name(node);
        if status.is_success() {
            return Try::Answered(Response { node, status: status.as_u16(), headers, body });
        }
        judge(&node, status, &headers, &body)
    }
}

/// What came of one try on one node.
enum Try {
    Answered(Response),
    /// A verdict against the request.
    Refused(ClientError),
    /// The node did nothing; another may.
    Passed {
        why: String,
        retry_after: Option<Duration>,
        refusal: Option<ClientError>,
    },
    /// The node may have done it.
    Lost {
        why: String,
    },
}

impl Try {
    fn passed(why: String) -> Try {
        Try::Passed { why, retry_after: None, refusal: None }
    }
}

/// Tells a verdict from a node that cannot give one now.
fn judge(node: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Try {
    let error = refusal(node, status, body);
    let outcome_unknown = error.problem().is_some_and(|problem| problem.outcome_unknown);
    let why = error.to_string();
    match status.as_u16() {
        _ if outcome_unknown => Try::Lost { why },
        429 | 503 => Try::Passed { why, retry_after: retry_after(headers), refusal: Some(error) },
        // A proxy between us and a node speaks so when the node did not answer it.
        502 | 504 => Try::Lost { why },
        _ => Try::Refused(error),
    }
}

fn refusal(node: &str, status: StatusCode, body: &[u8]) -> ClientError {
    let problem = serde_json::from_slice(body).unwrap_or_else(|_| Problem {
        title: status.canonical_reason().unwrap_or("refused").to_owned(),
        status: status.as_u16(),
        detail: String::from_utf8_lossy(&body[..body.len().min(300)]).trim().to_owned(),
        code: "unexpected".to_owned(),
        ..Problem::default()
    });
    ClientError::Refused { node: node.to_owned(), problem: Box::new(problem) }
}

/// `Retry-After` in seconds; the form with a date is passed over, no node sends it.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

impl Request {
    #[must_use]
    pub fn new(method: Method, segments: &[&str]) -> Request {
        Request {
            method,
            segments: segments.iter().map(|segment| (*segment).to_owned()).collect(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: None,
            patience: None,
        }
    }

    #[must_use]
    pub fn get(segments: &[&str]) -> Request {
        Request::new(Method::GET, segments)
    }

    #[must_use]
    pub fn post(segments: &[&str]) -> Request {
        Request::new(Method::POST, segments)
    }

    #[must_use]
    pub fn query(mut self, name: &str, value: Option<impl ToString>) -> Request {
        if let Some(value) = value {
            self.query.push((name.to_owned(), value.to_string()));
        }
        self
    }

    /// A value that no header can carry is left out; the node then says what it misses.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Request {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    #[must_use]
    pub fn json(mut self, body: &impl Serialize) -> Request {
        // Our own shapes always serialize: they have no maps with keys other than text.
        self.body = Some(Bytes::from(serde_json::to_vec(body).unwrap_or_default()));
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self
    }

    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Request {
        self.patience = Some(patience);
        self
    }

    fn is_safe(&self) -> bool {
        self.method == Method::GET
    }

    fn name(&self) -> String {
        format!("{} /{}", self.method, self.segments.join("/"))
    }

    fn add_idempotency_key(&mut self) {
        if self.is_safe() || self.headers.contains_key("idempotency-key") {
            return;
        }
        if let Ok(key) = HeaderValue::from_str(&OsEntropy.next_token()) {
            self.headers.insert("idempotency-key", key);
        }
    }

    fn build(&self, http: &reqwest::Client, node: &Url) -> reqwest::RequestBuilder {
        let mut url = node.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&self.segments);
        }
        let mut builder = http.request(self.method.clone(), url).headers(self.headers.clone());
        if !self.query.is_empty() {
            builder = builder.query(&self.query);
        }
        match &self.body {
            Some(body) => builder.body(body.clone()),
            None => builder,
        }
    }
}

impl Response {
    /// # Errors
    /// [`ClientError::Unreadable`] when the body is not of this shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(|error| ClientError::Unreadable {
            node: self.node.clone(),
            detail: error.to_string(),
        })
    }

    /// A header as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn node_url(text: &str) -> Result<Url, ClientError> {
    let text = text.trim();
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let wrong = |why: String| ClientError::Address { text: text.to_owned(), why };
    let url = Url::parse(&with_scheme).map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(format!("{} is neither http nor https", url.scheme())));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("an address has neither query nor fragment".to_owned()));
    }
    Ok(url)
}

fn node_name(node: &Url) -> String {
    node.as_str().trim_end_matches('/').to_owned()
}

/// An error with all its sources: the outermost alone says only that sending failed.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

/// The process's cryptography. A second call finds it installed, which is fine.
pub fn use_ring() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        for good in ["127.0.0.1:7601", "http://a:1/", "https://[::1]:7601", " b:2 "] {
            assert!(Client::new(&[good.to_owned()], "default").is_ok(), "{good}");
        }
        for bad in ["", "ftp://a", "http://a?x", "http://", "a b"] {
            assert!(Client::new(&[bad.to_owned()], "default").is_err(), "{bad}");
        }
        assert!(Client::new(&[], "default").is_err());
    }

    #[test]
    fn names_cannot_leave_their_segment_of_the_path() {
        use_ring();
        let request = Request::get(&["v1", "a/b", "..", "c d?x#y", "n:fire"]);
        let built = request.build(&reqwest::Client::new(), &node_url("h:1").unwrap());
        let url = built.build().unwrap().url().to_string();
        assert_eq!(url, "http://h:1/v1/a%2Fb/c%20d%3Fx%23y/n:fire");
    }
}
