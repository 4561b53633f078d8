//! How a command may fail, and the exit code of each way.

use crate::client::error::ClientError;

/// It was tried, and failed.
pub const FAILED: u8 = 1;
/// It was not tried: the words or the input are wrong.
pub const USAGE: u8 = 2;
/// No node answered.
pub const UNREACHABLE: u8 = 3;

#[derive(Clone, Debug, thiserror::Error)]
pub enum CliError {
    #[error("{0}")]
    Failed(String),
    /// The command said itself what there is to say; only the exit code is left.
    #[error("failed with exit code {0}")]
    Said(u8),
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Whoever read our output has stopped reading.
    #[error("nobody reads the output")]
    Closed,
}

impl CliError {
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            CliError::Failed(_) => FAILED,
            CliError::Said(code) => *code,
            CliError::Usage(_) => USAGE,
            CliError::Client(error) => code_of(error),
            CliError::Closed => 0,
        }
    }

    /// What is still to be said on standard error.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match self {
            CliError::Failed(_) | CliError::Usage(_) | CliError::Client(_) => {
                Some(self.to_string())
            }
            CliError::Said(_) | CliError::Closed => None,
        }
    }
}

fn code_of(error: &ClientError) -> u8 {
    match error {
        ClientError::Address { .. } => USAGE,
        ClientError::Unreachable { .. } | ClientError::Unknown { .. } => UNREACHABLE,
        ClientError::Unreadable { .. } => FAILED,
        ClientError::Refused { problem, .. } => match problem.status {
            400 | 413 | 415 | 422 => USAGE,
            429 | 503 => UNREACHABLE,
            _ => FAILED,
        },
    }
}
