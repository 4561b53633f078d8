//! Whose folder this is: the cluster's id and the node's, written once the node has joined.
//!
//! A node id is never used twice, so a folder that belongs to another node or cluster must be
//! noticed before anything is read from it. Comparing is the caller's business.

use std::path::{Path, PathBuf};

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::files;
use crate::store::poison::Poison;

const FILE: &str = "IDENTITY";
const TITLE: &str = "horolog identity 1";

/// Which member of which cluster a folder belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// One line of text, not empty.
    pub cluster_id: String,
    pub node_id: u64,
}

/// The file that holds the [`Identity`].
#[derive(Clone, Debug)]
pub struct IdentityFile {
    path: PathBuf,
    faults: Faults,
    poison: Poison,
}

impl IdentityFile {
    pub(crate) fn new(folder: &Path, faults: Faults, poison: Poison) -> IdentityFile {
        IdentityFile { path: folder.join(FILE), faults, poison }
    }

    /// The identity, or none in a folder that has not joined a cluster yet.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn load(&self) -> Result<Option<Identity>, StoreError> {
        let Some(bytes) = files::read_if_there(&self.path)? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes);
        let Some(identity) = parse(&text) else {
            return Err(StoreError::corrupt(&self.path, 0, "it does not hold an identity"));
        };
        Ok(Some(identity))
    }

    /// Writes the identity, durably and as a whole.
    ///
    /// # Errors
    /// A cluster id that is empty or not one line, or the disk.
    pub fn save(&self, identity: &Identity) -> Result<(), StoreError> {
        self.poison.check()?;
        let id = &identity.cluster_id;
        if id.is_empty() || id.contains(['\n', '\r']) {
            return Err(StoreError::misuse("a cluster id is one line of text, not empty"));
        }
        let text = render(identity);
        self.poison.watch(files::replace(&self.path, text.as_bytes(), &self.faults))
    }
}

fn render(identity: &Identity) -> String {
    let body = format!("{TITLE}\n{}\n{}\n", identity.cluster_id, identity.node_id);
    let checksum = crc32fast::hash(body.as_bytes());
    format!("{body}{checksum:08x}\n")
}

fn parse(text: &str) -> Option<Identity> {
    let mut lines = text.lines();
    let (title, cluster_id, node_id) = (lines.next()?, lines.next()?, lines.next()?);
    let identity =
        Identity { cluster_id: cluster_id.to_owned(), node_id: node_id.parse::<u64>().ok()? };
    (title == TITLE && render(&identity) == text).then_some(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path) -> IdentityFile {
        IdentityFile::new(folder, Faults::default(), Poison::default())
    }

    #[test]
    fn an_identity_is_kept_and_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(file(folder.path()).load().unwrap(), None);
        for node_id in [3, 4] {
            let identity = Identity { cluster_id: "c0ffee".to_owned(), node_id };
            file(folder.path()).save(&identity).unwrap();
            assert_eq!(file(folder.path()).load().unwrap(), Some(identity));
        }
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity { cluster_id: "c0ffee".to_owned(), node_id: 12 };
        file(folder.path()).save(&identity).unwrap();
        let path = folder.path().join(FILE);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(file(folder.path()).load().is_err(), "byte {at}");
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(file(folder.path()).load().is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_cluster_id_of_two_lines_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity { cluster_id: "a\nb".to_owned(), node_id: 1 };
        assert!(file(folder.path()).save(&identity).is_err());
    }
}
