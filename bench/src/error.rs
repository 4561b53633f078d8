//! What can go wrong while measuring; a run with an error has no figures.

use std::io;
use std::path::Path;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error("{what}: {source}")]
    Http { what: &'static str, source: hyper::Error },
    #[error("{what}: {source}")]
    Request { what: &'static str, source: hyper::http::Error },
    #[error("{what}: {source}")]
    Json { what: &'static str, source: serde_json::Error },
    #[error("{call} was answered with {status}: {body}")]
    Refused { call: String, status: u16, body: String },
    #[error("{0} took too long")]
    TooLong(String),
    #[error("{0}")]
    Wrong(String),
}

impl Error {
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }

    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
        Error::io(path.display().to_string())
    }

    pub fn http(what: &'static str) -> impl FnOnce(hyper::Error) -> Error {
        move |source| Error::Http { what, source }
    }

    pub fn json(what: &'static str) -> impl FnOnce(serde_json::Error) -> Error {
        move |source| Error::Json { what, source }
    }
}
