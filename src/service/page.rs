//! Pages of lists that stay whole while the list changes: a cursor is the last key that was seen,
//! and the next page is a range that begins after it. What existed throughout appears exactly once.

use std::str::FromStr;

use crate::base::limits;
use crate::service::error::{FieldError, ServiceError};

/// Most keys or records that one page looks at. With a narrow filter a page may come out short, or
/// empty, and still say where to go on.
pub(in crate::service) const SCAN_MAX: usize = 5_000;

/// Which part of a list is wanted.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// Between 1 and `limits::PAGE_SIZE_MAX`.
    pub limit: usize,
    pub cursor: Option<Cursor>,
}

impl Default for PageRequest {
    fn default() -> PageRequest {
        PageRequest { limit: limits::PAGE_SIZE_DEFAULT, cursor: None }
    }
}

#[derive(Clone, Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page begins; `None` at the end of the list.
    pub next: Option<Cursor>,
}

/// A place in a list. Callers hand it back as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(String);

impl Cursor {
    /// Takes any text; the list that it is handed to finds out whether it is one of its own.
    #[must_use]
    pub fn opaque(text: &str) -> Cursor {
        Cursor(text.to_owned())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The cursor after the item with this key.
    pub(in crate::service) fn after(key: &str) -> Cursor {
        Cursor(key.bytes().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The key inside.
    fn key(&self) -> Option<String> {
        let is_hex =
            self.0.len().is_multiple_of(2) && self.0.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex || self.0.len() > 4 * limits::NAME_BYTES_MAX + 4 {
            return None;
        }
        let bytes =
            (0..self.0.len()).step_by(2).map(|at| u8::from_str_radix(&self.0[at..at + 2], 16));
        String::from_utf8(bytes.collect::<Result<_, _>>().ok()?).ok()
    }
}

impl PageRequest {
    /// The key that the page begins after, read by the list it belongs to.
    ///
    /// # Errors
    /// When the cursor is not one of this list.
    pub(in crate::service) fn after<K>(
        &self,
        read: impl FnOnce(&str) -> Option<K>,
    ) -> Result<Option<K>, ServiceError> {
        let Some(cursor) = &self.cursor else {
            return Ok(None);
        };
        let key = cursor.key().and_then(|key| read(&key));
        if key.is_none() {
            let detail = "this is not a cursor of this list; begin again without one";
            return Err(ServiceError::invalid(vec![FieldError::new("?cursor", detail)]));
        }
        Ok(key)
    }

    /// As [`PageRequest::after`], for keys that read themselves.
    pub(in crate::service) fn after_key<K: FromStr>(&self) -> Result<Option<K>, ServiceError> {
        self.after(|key| key.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(cursor: &str) -> PageRequest {
        PageRequest { limit: 1, cursor: Some(Cursor::opaque(cursor)) }
    }

    #[test]
    fn a_cursor_gives_its_key_back_and_nothing_else_is_one() {
        let cursor = Cursor::after("default/backup");
        let key = page(cursor.as_str()).after(|key| Some(key.to_owned())).unwrap();
        assert_eq!(key.as_deref(), Some("default/backup"));
        let long = "00".repeat(1_000);
        for text in ["x", "0", "zz", "+1", "é", "ff", &long] {
            assert!(page(text).after(|key| Some(key.to_owned())).is_err(), "{text}");
        }
    }
}
