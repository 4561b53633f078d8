//! Files and folders that survive a loss of power: write beside, flush, rename, flush the folder.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::store::error::StoreError;
use crate::store::fault::Faults;

/// Suffix of a file that is not whole yet; one that is found at start is removed.
pub(crate) const UNFINISHED: &str = ".tmp";

/// Makes the names inside `folder` durable.
pub(crate) fn sync_folder(folder: &Path, faults: &Faults) -> Result<(), StoreError> {
    let flushed = File::open(folder).and_then(|handle| faults.sync_all(&handle));
    flushed.map_err(|source| StoreError::io("flush the folder", folder, source))
}

/// Creates `folder` and makes its own name durable; nothing happens when it is there.
pub(crate) fn create_folder(folder: &Path, faults: &Faults) -> Result<(), StoreError> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)
        .map_err(|source| StoreError::io("create the folder", folder, source))?;
    match folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => sync_folder(parent, faults),
        None => Ok(()),
    }
}

/// Replaces `path` by `bytes`: after a crash it holds the old bytes or the new ones, whole.
pub(crate) fn replace(path: &Path, bytes: &[u8], faults: &Faults) -> Result<(), StoreError> {
    let unfinished = with_suffix(path, UNFINISHED);
    let written = faults.before_write().and_then(|()| {
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        faults.sync_all(&file)
    });
    written.map_err(|source| StoreError::io("write", &unfinished, source))?;
    publish(&unfinished, path, faults)
}

/// Gives a finished and flushed file its final name, durably.
pub(crate) fn publish(from: &Path, to: &Path, faults: &Faults) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(|source| StoreError::io("rename", from, source))?;
    match to.parent() {
        Some(parent) => sync_folder(parent, faults),
        None => Ok(()),
    }
}

/// The whole file, or none when it does not exist.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::io("read", path, source)),
    }
}

/// The names in `folder`, sorted.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let failed = |source| StoreError::io("list", folder, source);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Removes files that a crash left unfinished in `folder`.
pub(crate) fn remove_unfinished(folder: &Path) -> Result<(), StoreError> {
    for name in names(folder)? {
        if name.ends_with(UNFINISHED) {
            let path = folder.join(name);
            fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, source))?;
        }
    }
    Ok(())
}

/// Bytes of all files below `folder`; what cannot be read counts as nothing.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let mut bytes = 0;
    for entry in entries.flatten() {
        match entry.metadata() {
            Ok(about) if about.is_dir() => bytes += folder_bytes(&entry.path()),
            Ok(about) => bytes += about.len(),
            Err(_) => {}
        }
    }
    bytes
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
