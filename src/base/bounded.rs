//! Text that cannot exceed its limit, and names that every route, file and log line can carry as
//! they are.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::limits::NAME_BYTES_MAX;

/// A name of a tenant, group, job, trigger, pool, worker or label: ASCII letters, digits, `.`, `_`
/// and `-`, beginning with a letter or digit, 1 to [`NAME_BYTES_MAX`] bytes. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Name(Arc<str>);

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name must not be empty")]
    Empty,
    #[error("a name has at most {NAME_BYTES_MAX} bytes, this one has {bytes}")]
    TooLong { bytes: usize },
    #[error("a name begins with an ASCII letter or digit, not with {found:?}")]
    Start { found: char },
    #[error("a name holds only ASCII letters, digits, '.', '_' and '-', not {found:?}")]
    Character { found: char },
}

impl Name {
    /// # Errors
    /// [`NameError`] says which rule the text breaks and what would be right.
    pub fn new(text: &str) -> Result<Name, NameError> {
        let Some(first) = text.chars().next() else {
            return Err(NameError::Empty);
        };
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong { bytes: text.len() });
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if let Some(found) = text.chars().find(|&c| !allowed(c)) {
            return Err(NameError::Character { found });
        }
        if !first.is_ascii_alphanumeric() {
            return Err(NameError::Start { found: first });
        }
        Ok(Name(Arc::from(text)))
    }

    /// The name `default`: the tenant, group, pool and trigger that need not be spelled out.
    #[must_use]
    pub fn default_name() -> Name {
        Name(Arc::from("default"))
    }

    /// A bound below every name, for the start of a range. Not a valid name itself.
    #[must_use]
    pub fn first() -> Name {
        Name(Arc::from(""))
    }

    /// A bound above every name, for the end of a range. Not a valid name itself.
    #[must_use]
    pub fn last() -> Name {
        Name(Arc::from("~"))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Cuts a text to at most `bytes_max` bytes at a character's border, for messages kept in records.
#[must_use]
pub fn clip(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_route_could_not_carry_are_refused() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        let refused =
            ["", "/users/x", "a b", "夜间对账", "a:b", "..", ".a", "-a", "a\0", "é", "a%2f", &long];
        for text in refused {
            assert!(Name::new(text).is_err(), "{text:?}");
        }
        for text in ["a", "a.b", "nightly-report_2", "0", &"a".repeat(NAME_BYTES_MAX)] {
            assert_eq!(Name::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn clipping_never_splits_a_character() {
        assert_eq!(clip("aé", 2), "a");
        assert_eq!(clip("abc", 10), "abc");
    }
}
