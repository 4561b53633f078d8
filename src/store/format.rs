//! Versions of the data folder, each with its date and reason, and the file that names the one in
//! use.

use std::path::Path;

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::files;

/// The file in the data folder that holds the version.
pub const FORMAT_FILE: &str = "FORMAT";

const TITLE: &str = "horolog data folder, format ";

/// Every format that was ever written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum FormatVersion {
    /// 2026-11-30: the first one. Log in preallocated segments, records in sled, snapshots with a
    /// trailer.
    V1 = 1,
}

impl FormatVersion {
    /// What this version writes.
    pub const CURRENT: FormatVersion = FormatVersion::V1;

    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The format with this number, or none when this version does not know it.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<FormatVersion> {
        match number {
            1 => Some(FormatVersion::V1),
            _ => None,
        }
    }

    /// Reads the version of `folder`, or writes the current one into a fresh folder. Nothing else
    /// may be opened before.
    ///
    /// # Errors
    /// A newer format, an unreadable file, or data without a format file.
    pub fn check_or_create(folder: &Path, faults: &Faults) -> Result<FormatVersion, StoreError> {
        let path = folder.join(FORMAT_FILE);
        let Some(bytes) = files::read_if_there(&path)? else {
            // The format is written before anything else, so data without one was not made by a
            // crash.
            if folder.join("log").exists() || folder.join("records").exists() {
                return Err(StoreError::corrupt(&path, 0, "the file is missing beside its data"));
            }
            let text = format!("{TITLE}{}\n", FormatVersion::CURRENT.number());
            files::replace(&path, text.as_bytes(), faults)?;
            return Ok(FormatVersion::CURRENT);
        };
        let number = std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.strip_prefix(TITLE))
            .and_then(|rest| rest.trim_end().parse::<u32>().ok());
        let Some(number) = number else {
            return Err(StoreError::corrupt(&path, 0, "it does not name a format"));
        };
        known(&path, number)
    }
}

/// Refuses a format this version does not know, naming the file it was found in.
pub(crate) fn known(path: &Path, number: u32) -> Result<FormatVersion, StoreError> {
    FormatVersion::from_number(number).ok_or_else(|| StoreError::NewerFormat {
        path: path.to_path_buf(),
        found: number,
        known: FormatVersion::CURRENT.number(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_folder_gets_the_current_format_and_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let version = FormatVersion::check_or_create(folder.path(), &Faults::default());
            assert_eq!(version.unwrap(), FormatVersion::CURRENT);
        }
    }

    #[test]
    fn a_newer_damaged_or_missing_format_is_refused() {
        let cases = [
            (Some("horolog data folder, format 2\n"), "start the newer version"),
            (Some("horolog data folder, format \n"), "does not name a format"),
            (Some("something else"), "does not name a format"),
            (None, "missing beside its data"),
        ];
        for (text, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("log")).unwrap();
            if let Some(text) = text {
                std::fs::write(folder.path().join(FORMAT_FILE), text).unwrap();
            }
            let refused = FormatVersion::check_or_create(folder.path(), &Faults::default());
            let message = refused.unwrap_err().to_string();
            assert!(message.contains(expected), "{text:?}: {message}");
        }
    }
}
