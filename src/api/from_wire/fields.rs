//! Reads the parts of a body and keeps every error, so that the caller learns of all of them at
//! once.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use serde_json::value::RawValue;

use crate::base::bounded::{Name, NameError};
use crate::base::limits;
use crate::base::time::{Span, Timestamp};
use crate::model::job::Payload;
use crate::service::error::{FieldError, ServiceError};

/// The errors found so far. A part that is wrong reads as some valid value: nobody sees it, for
/// [`Fields::finish`] refuses the whole.
#[derive(Default)]
pub(in crate::api) struct Fields {
    errors: Vec<FieldError>,
}

/// Escapes a key for use in a JSON pointer (RFC 6901).
pub(in crate::api) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

impl Fields {
    /// # Errors
    /// When any part was wrong.
    pub(in crate::api) fn finish<T>(self, value: T) -> Result<T, ServiceError> {
        if self.errors.is_empty() { Ok(value) } else { Err(ServiceError::invalid(self.errors)) }
    }

    pub(in crate::api) fn refuse(&mut self, pointer: impl Into<String>, detail: impl Display) {
        self.errors.push(FieldError::new(pointer, detail));
    }

    pub(in crate::api) fn over(
        &mut self,
        pointer: impl Into<String>,
        detail: impl Display,
        limit: usize,
    ) {
        self.errors.push(FieldError::new(pointer, detail).limited(limit as u64));
    }

    pub(in crate::api) fn name(&mut self, pointer: impl Into<String>, text: &str) -> Name {
        match Name::new(text) {
            Ok(name) => name,
            Err(error) => {
                self.errors.push(name_error(pointer, &error));
                Name::default_name()
            }
        }
    }

    pub(in crate::api) fn text(
        &mut self,
        pointer: impl Into<String>,
        text: &str,
        bytes_max: usize,
    ) -> String {
        if text.len() > bytes_max {
            let detail = format!("it has {} bytes, more than {bytes_max}", text.len());
            self.over(pointer, detail, bytes_max);
            return String::new();
        }
        text.to_owned()
    }

    /// A text that is handed to a program, where no NUL can be.
    pub(in crate::api) fn program_text(
        &mut self,
        pointer: impl Into<String>,
        text: &str,
    ) -> String {
        if text.contains('\0') {
            self.refuse(pointer, "it holds a NUL character, which no program can be given");
            return String::new();
        }
        text.to_owned()
    }

    pub(in crate::api) fn time(&mut self, pointer: impl Into<String>, text: &str) -> Timestamp {
        self.parsed(pointer, text)
    }

    pub(in crate::api) fn time_if(
        &mut self,
        pointer: impl Into<String>,
        text: Option<&str>,
    ) -> Option<Timestamp> {
        text.map(|text| self.time(pointer, text))
    }

    pub(in crate::api) fn parsed<T: FromStr<Err: Display> + Default>(
        &mut self,
        pointer: impl Into<String>,
        text: &str,
    ) -> T {
        match text.parse() {
            Ok(value) => value,
            Err(error) => {
                self.refuse(pointer, error);
                T::default()
            }
        }
    }

    /// A length of time between two bounds.
    pub(in crate::api) fn span(
        &mut self,
        pointer: impl Into<String>,
        text: &str,
        min: Span,
        max: Span,
    ) -> Span {
        match text.parse::<Span>() {
            Ok(span) if span < min => {
                self.refuse(pointer, format!("{span} is shorter than {min}, the shortest taken"));
            }
            Ok(span) if span > max => {
                let detail = format!("{span} is longer than {max}, the longest taken");
                let error = FieldError::new(pointer, detail);
                self.errors.push(error.limited(max.as_ms().unsigned_abs() / 1_000));
            }
            Ok(span) => return span,
            Err(error) => self.refuse(pointer, error),
        }
        min
    }

    /// A number between two bounds.
    pub(in crate::api) fn number(
        &mut self,
        pointer: impl Into<String>,
        value: u32,
        min: u32,
        max: u32,
    ) -> u32 {
        if value < min {
            self.refuse(pointer, format!("{value} is less than {min}, the least taken"));
            return min;
        }
        if value > max {
            let detail = format!("{value} is more than {max}, the most taken");
            self.over(pointer, detail, max as usize);
            return max;
        }
        value
    }

    pub(in crate::api) fn payload(
        &mut self,
        pointer: impl Into<String>,
        json: &RawValue,
    ) -> Payload {
        Payload::new(json.get()).unwrap_or_else(|| {
            let limit = limits::PAYLOAD_BYTES_MAX;
            let bytes = json.get().len();
            self.over(pointer, format!("it has {bytes} bytes, more than {limit}"), limit);
            Payload::null()
        })
    }

    /// At most so many items.
    pub(in crate::api) fn count(&mut self, pointer: impl Into<String>, count: usize, max: usize) {
        if count > max {
            self.over(pointer, format!("it has {count} items, more than {max}"), max);
        }
    }

    pub(in crate::api) fn labels(
        &mut self,
        labels: &BTreeMap<String, String>,
    ) -> BTreeMap<Name, String> {
        self.count("/labels", labels.len(), limits::ENTRIES_MAX);
        let mut named = BTreeMap::new();
        for (key, value) in labels.iter().take(limits::ENTRIES_MAX) {
            let pointer = format!("/labels/{}", escape(key));
            let name = self.name(pointer.clone(), key);
            named.insert(name, self.text(pointer, value, limits::NAME_BYTES_MAX));
        }
        named
    }
}

/// Why a name is refused, with the limit when it is one.
pub(in crate::api) fn name_error(pointer: impl Into<String>, error: &NameError) -> FieldError {
    let field = FieldError::new(pointer, error);
    match error {
        NameError::TooLong { .. } => field.limited(limits::NAME_BYTES_MAX as u64),
        NameError::Empty | NameError::Start { .. } | NameError::Character { .. } => field,
    }
}
