//! Ended fires and their attempts: cold records, read from the disk of this member.

use crate::model::fire::{AttemptReport, Fire};
use crate::model::id::{FireId, JobId, RunId, Seq};
use crate::store::entities::{history_attempt, history_fire, history_of_job, history_recent};
use crate::store::error::StoreError;
use crate::store::records::Records;

/// Why a cold record could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the history of this member cannot be read: {0}")]
pub struct HistoryError(pub String);

impl From<StoreError> for HistoryError {
    fn from(error: StoreError) -> HistoryError {
        HistoryError(error.to_string())
    }
}

/// Reads of the cold records. To see a fire that ends meanwhile, look at the view first and here
/// second: a fire leaves the view after its record is here.
#[derive(Clone)]
pub struct History {
    records: Records,
}

impl History {
    pub(in crate::replica) fn new(records: Records) -> History {
        History { records }
    }

    /// An ended fire.
    ///
    /// # Errors
    /// When the disk fails or a record is damaged.
    pub fn fire(&self, id: FireId) -> Result<Option<Fire>, HistoryError> {
        Ok(history_fire(&self.records, id)?)
    }

    /// What an attempt left behind.
    ///
    /// # Errors
    /// As [`History::fire`].
    pub fn attempt(&self, run: RunId) -> Result<Option<AttemptReport>, HistoryError> {
        Ok(history_attempt(&self.records, run)?)
    }

    /// The ended fires of a job, newest first, at most `limit` of them, those before `before`.
    ///
    /// # Errors
    /// As [`History::fire`].
    pub fn of_job(
        &self,
        job: JobId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<Fire>, HistoryError> {
        Ok(history_of_job(&self.records, job, before, limit)?)
    }

    /// The ended fires of all jobs, newest first, at most `limit` of them, those before `before`.
    ///
    /// # Errors
    /// As [`History::fire`].
    pub fn recent(&self, before: Option<Seq>, limit: usize) -> Result<Vec<Fire>, HistoryError> {
        Ok(history_recent(&self.records, before, limit)?)
    }
}
