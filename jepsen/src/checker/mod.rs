//! One checker a promise, each with a history that it must refuse.

mod occurrences;
mod tokens;

use std::fmt;

use crate::history::JobHistory;

/// What the evidence shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    True {
        jobs: usize,
        records: usize,
    },
    False {
        broken: Vec<String>,
    },
    /// Nothing was seen that could have been wrong, or it could not be read.
    Unknown {
        why: String,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::True { jobs, records } => {
                write!(f, "true: {records} records of {jobs} jobs keep P1, P2 and P4")
            }
            Verdict::False { broken } => {
                write!(f, "false: {} broken promises", broken.len())?;
                broken.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
            Verdict::Unknown { why } => write!(f, "unknown: {why}"),
        }
    }
}

/// Runs every checker over every job.
pub(crate) fn judge(jobs: &[JobHistory]) -> Verdict {
    let records = jobs.iter().map(|job| job.records.len()).sum();
    if records == 0 {
        return Verdict::Unknown { why: "no fire is on record, so nothing was shown".to_owned() };
    }
    let broken: Vec<String> = jobs
        .iter()
        .flat_map(|job| occurrences::check(job).into_iter().chain(tokens::check(job)))
        .collect();
    if broken.is_empty() {
        Verdict::True { jobs: jobs.len(), records }
    } else {
        Verdict::False { broken }
    }
}
