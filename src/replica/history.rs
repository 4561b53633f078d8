//! Ended fires and their attempts: cold records, read from the disk of this member.

use crate::model::fire::{AttemptReport, Fire};
use crate::model::id::{FireId, JobId, RunId, Seq};

/// Why a cold record could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the history of this member cannot be read: {0}")]
pub struct HistoryError(pub String);

/// Reads of the cold records. To see a fire that ends meanwhile, look at the view first and here
/// second: a fire leaves the view after its record is here.
#[derive(Clone, Debug)]
pub struct History {}

impl History {
    /// An ended fire.
    ///
    /// # Errors
    /// When the disk fails or a record is damaged.
    pub fn fire(&self, _id: FireId) -> Result<Option<Fire>, HistoryError> {
        Ok(None)
    }

    /// What an attempt left behind.
    ///
    /// # Errors
    /// As [`History::fire`].
    pub fn attempt(&self, _run: RunId) -> Result<Option<AttemptReport>, HistoryError> {
        Ok(None)
    }

    /// The ended fires of a job, newest first, at most `limit` of them, those before `before`.
    ///
    /// # Errors
    /// As [`History::fire`].
    pub fn of_job(
        &self,
        _job: JobId,
        _before: Option<Seq>,
        _limit: usize,
    ) -> Result<Vec<Fire>, HistoryError> {
        Ok(Vec::new())
    }

    /// The ended fires of all jobs, newest first, at most `limit` of them, those before `before`.
    ///
    /// # Errors
    /// As [`History::fire`].
    pub fn recent(&self, _before: Option<Seq>, _limit: usize) -> Result<Vec<Fire>, HistoryError> {
        Ok(Vec::new())
    }
}
