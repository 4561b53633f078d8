//! A small HTTP client for tests: JSON in, status and JSON out, no retries that could hide
//! anything.

use std::time::Duration;

use serde_json::Value;

#[derive(Clone)]
pub struct Http {
    client: reqwest::Client,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// `Null` when the body is empty, text when it is not JSON.
    pub body: Value,
    /// The header `Horolog-Index`.
    pub index: Option<u64>,
}

impl Http {
    pub fn new() -> Http {
        // Another test of the process may have installed it: either way one is there.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .pool_idle_timeout(Duration::from_secs(1))
            .build()
            .unwrap();
        Http { client }
    }

    pub async fn get(&self, url: &str) -> Result<Answer, String> {
        answer(self.client.get(url)).await
    }

    pub async fn post(&self, url: &str, body: &Value) -> Result<Answer, String> {
        answer(self.client.post(url).json(body)).await
    }

    pub async fn put(&self, url: &str, body: &Value) -> Result<Answer, String> {
        answer(self.client.put(url).json(body)).await
    }

    pub async fn put_if_match(&self, url: &str, body: &Value, tag: &str) -> Result<Answer, String> {
        answer(self.client.put(url).header("If-Match", tag).json(body)).await
    }

    pub async fn post_keyed(&self, url: &str, body: &Value, key: &str) -> Result<Answer, String> {
        answer(self.client.post(url).header("Idempotency-Key", key).json(body)).await
    }

    /// The `ETag` of what is there now.
    pub async fn etag(&self, url: &str) -> Result<String, String> {
        let response = self.client.get(url).send().await.map_err(|error| format!("{error:?}"))?;
        let tag = response.headers().get("etag").and_then(|value| value.to_str().ok());
        tag.map(str::to_owned).ok_or_else(|| format!("no ETag, status {}", response.status()))
    }

    pub async fn delete(&self, url: &str) -> Result<Answer, String> {
        answer(self.client.delete(url)).await
    }
}

async fn answer(request: reqwest::RequestBuilder) -> Result<Answer, String> {
    let response = request.send().await.map_err(|error| format!("{error:?}"))?;
    let status = response.status().as_u16();
    let index =
        response.headers().get("horolog-index").and_then(|value| value.to_str().ok()?.parse().ok());
    let text = response.text().await.map_err(|error| format!("{error:?}"))?;
    let body = if text.is_empty() {
        Value::Null
    } else {
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    };
    Ok(Answer { status, body, index })
}
