//! What a call may end with, apart from an answer.

use std::fmt;

use crate::wire::problem::Problem;

/// Why a call has no answer, or has a refusal for one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// An address is no address; nothing was sent.
    #[error("{text:?} is not the address of a node, which looks like http://127.0.0.1:7601: {why}")]
    Address { text: String, why: String },
    /// No node took the request; nothing was changed.
    #[error("no node of the cluster can be reached: {tried}")]
    Unreachable { tried: Tried },
    /// A request went out and its answer did not come back: it may have been applied, now or later.
    #[error(
        "{what}: no answer came, so the outcome is unknown; look before you try again ({tried})"
    )]
    Unknown { what: String, tried: Tried },
    /// A node refused; nothing was changed.
    #[error("{}", ProblemText(.problem))]
    Refused { node: String, problem: Box<Problem> },
    /// A node answered, but not in the shapes of this version.
    #[error("{node} gave an answer that this version cannot read: {detail}")]
    Unreadable { node: String, detail: String },
}

impl ClientError {
    /// True when the request may have been applied without an answer.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        match self {
            ClientError::Unknown { .. } => true,
            ClientError::Address { .. }
            | ClientError::Unreachable { .. }
            | ClientError::Refused { .. }
            | ClientError::Unreadable { .. } => false,
        }
    }

    /// True when no node gave a verdict: the cluster is away, slow or overloaded.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self {
            ClientError::Unknown { .. } | ClientError::Unreachable { .. } => true,
            ClientError::Refused { problem, .. } => matches!(problem.status, 429 | 500..),
            ClientError::Address { .. } | ClientError::Unreadable { .. } => false,
        }
    }

    /// The refusal's stable code.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.problem().map(|problem| problem.code.as_str())
    }

    /// The refusal's HTTP status.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.problem().map(|problem| problem.status)
    }

    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            ClientError::Refused { problem, .. } => Some(problem),
            ClientError::Address { .. }
            | ClientError::Unreachable { .. }
            | ClientError::Unknown { .. }
            | ClientError::Unreadable { .. } => None,
        }
    }
}

/// Which nodes were tried, and what came of the latest try of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried(pub Vec<(String, String)>);

impl Tried {
    pub fn note(&mut self, node: &str, what: String) {
        match self.0.iter_mut().find(|(known, _)| known == node) {
            Some((_, latest)) => *latest = what,
            None => self.0.push((node.to_owned(), what)),
        }
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (node, what)) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{node}: {what}")?;
        }
        Ok(())
    }
}

/// A problem for people: what is wrong, then each field on a line of its own.
struct ProblemText<'a>(&'a Problem);

impl fmt::Display for ProblemText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.0;
        let says = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
        write!(f, "{says} ({} {})", problem.status, problem.code)?;
        for field in &problem.errors {
            write!(f, "\n  {}: {}", field.pointer, field.detail)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::problem::FieldProblem;

    #[test]
    fn a_refusal_prints_every_field_with_its_place() {
        let problem = Problem {
            title: "Invalid".to_owned(),
            status: 422,
            detail: "the job is not valid".to_owned(),
            code: "invalid".to_owned(),
            errors: vec![FieldProblem {
                pointer: "/retry/attempts".to_owned(),
                detail: "at most 1000".to_owned(),
                limit: Some(1_000),
            }],
            ..Problem::default()
        };
        let error = ClientError::Refused { node: "a".to_owned(), problem: Box::new(problem) };
        assert_eq!(
            error.to_string(),
            "the job is not valid (422 invalid)\n  /retry/attempts: at most 1000"
        );
    }

    #[test]
    fn each_node_is_named_once_with_its_latest_result() {
        let mut tried = Tried::default();
        tried.note("a", "refused".to_owned());
        tried.note("b", "refused".to_owned());
        tried.note("a", "503".to_owned());
        assert_eq!(tried.to_string(), "a: 503; b: refused");
    }
}
