//! Runs the `http` executor: calls a URL, and reads the outcome from the answer.
//!
//! - `2xx`: succeeded. `429` and `503`: failed, with their `Retry-After` honoured. Other `4xx`:
//!   failed, not tried again. `3xx`: failed likewise, for a redirect could lead anywhere.
//!   Everything else: failed, tried again.
//! - Nothing is followed, and at most `limits::OUTPUT_BYTES_MAX` bytes of the body are kept.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url};

use crate::base::limits::OUTPUT_BYTES_MAX;
use crate::base::time::Span;
use crate::client::transport::{chain, use_ring};
use crate::wire::job::{Executor, HttpExecutor, HttpMethod};
use crate::worker::environment::fields;
use crate::worker::handler::{Ending, Failure, Handler, Report, Run, Stop};
use crate::worker::output_tail::Output;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest `Retry-After` that is believed.
const RETRY_AFTER_MAX: Span = Span::from_days(1);

/// Calls URLs.
#[derive(Clone, Debug)]
pub struct HttpHandler {
    http: reqwest::Client,
}

impl HttpHandler {
    /// # Errors
    /// When the system's certificates cannot be read.
    pub fn new() -> Result<HttpHandler, reqwest::Error> {
        use_ring();
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("horolog-worker/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(HttpHandler { http })
    }
}

impl Handler for HttpHandler {
    fn run(&self, run: Arc<Run>, mut stop: Stop) -> BoxFuture<'static, Report> {
        let http = self.http.clone();
        Box::pin(async move {
            let Executor::Http(spec) = &run.grant.executor else {
                return Report::failed(Failure::permanent("executor", "this is not a call"));
            };
            // A stop drops the request, which closes its connection.
            tokio::select! {
                biased;
                _ = stop.stopped() => {
                    Report { ending: Ending::Stopped, output: None, exit_code: None }
                }
                report = call(&http, spec, &run) => report,
            }
        })
    }
}

async fn call(http: &reqwest::Client, spec: &HttpExecutor, run: &Run) -> Report {
    let request = match build(http, spec, run) {
        Ok(request) => request,
        Err(failure) => return Report::failed(failure),
    };
    let mut response = match request.send().await {
        Ok(response) => response,
        Err(error) => return Report::failed(no_answer(&error)),
    };
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let (output, cut_short) = read_body(&mut response).await;
    if let Some(error) = cut_short {
        return Report { output: Some(output), ..Report::failed(no_answer(&error)) };
    }
    Report { ending: judge(status, retry_after), output: Some(output), exit_code: None }
}

fn build(
    http: &reqwest::Client,
    spec: &HttpExecutor,
    run: &Run,
) -> Result<reqwest::RequestBuilder, Failure> {
    let wrong = |message: String| Failure::permanent("request", message);
    let url = Url::parse(&spec.url)
        .map_err(|error| wrong(format!("{:?} is not a URL: {error}", spec.url)))?;
    let method = method_of(spec.method);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in &spec.headers {
        let (name, value) = (name.parse::<HeaderName>().ok(), HeaderValue::from_str(value).ok());
        let (Some(name), Some(value)) = (name, value) else {
            return Err(wrong(format!("{:?} is not a header", spec.headers)));
        };
        headers.insert(name, value);
    }
    // After the job's own, which must not be able to forge them.
    for (name, value) in fields(run) {
        let header = format!("horolog-{}", name.to_lowercase());
        let value = HeaderValue::from_str(&value).map_err(|error| wrong(error.to_string()))?;
        if name == "Idempotency-Key" {
            headers.insert("idempotency-key", value.clone());
        }
        let name: HeaderName = header.parse().map_err(|_| wrong(format!("{header:?}")))?;
        headers.insert(name, value);
    }
    let mut request = http.request(method, url).headers(headers);
    if !matches!(spec.method, HttpMethod::Get) {
        request = request.body(run.grant.payload.get().to_owned());
    }
    if let Some(time_left) = run.time_left {
        request = request.timeout(time_left);
    }
    Ok(request)
}

fn method_of(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Delete => Method::DELETE,
    }
}

/// The call may have been carried out all the same: the next attempt sends the same idempotency
/// key.
fn no_answer(error: &reqwest::Error) -> Failure {
    let kind = if error.is_timeout() { "timeout" } else { "no_answer" };
    Failure::retryable(kind, chain(error))
}

/// The beginning of the body, and what cut it short. The rest is not read.
async fn read_body(response: &mut reqwest::Response) -> (Output, Option<reqwest::Error>) {
    let mut bytes = Vec::new();
    let mut cut_short = None;
    while bytes.len() <= OUTPUT_BYTES_MAX {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = OUTPUT_BYTES_MAX + 1 - bytes.len();
                bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            Ok(None) => break,
            Err(error) => {
                cut_short = Some(error);
                break;
            }
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let end = text.floor_char_boundary(OUTPUT_BYTES_MAX);
    let output = Output { text: text[..end].to_owned(), truncated: text.len() > OUTPUT_BYTES_MAX };
    (output, cut_short)
}

fn judge(status: StatusCode, retry_after: Option<Span>) -> Ending {
    if status.is_success() {
        return Ending::Succeeded(None);
    }
    let kind = format!("http_{}", status.as_u16());
    let message = format!("it answered {status}");
    Ending::Failed(match status.as_u16() {
        429 | 503 => Failure { retry_after, ..Failure::retryable(&kind, message) },
        300..400 => Failure::permanent(&kind, format!("{message}; redirects are not followed")),
        400..500 => Failure::permanent(&kind, message),
        _ => Failure::retryable(&kind, message),
    })
}

/// `Retry-After` in seconds. The form with a date needs a clock that agrees with theirs, and is
/// passed over.
fn retry_after(headers: &HeaderMap) -> Option<Span> {
    let seconds: i64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Span::from_secs(seconds).min(RETRY_AFTER_MAX))
}
