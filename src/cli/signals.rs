//! Being told to stop by the system.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::error::CliError;

/// `SIGINT` and `SIGTERM`, listened to from the moment this is made.
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// # Errors
    /// [`CliError::Failed`] when the system does not let us listen.
    pub fn listen() -> Result<StopSignals, CliError> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| CliError::Failed(format!("cannot listen to signals: {error}")))
        };
        Ok(StopSignals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Ends with the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
