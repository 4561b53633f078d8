//! This machine: what its figures are worth, in one line, and where its real disk is.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::statfs;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::load::micros;
use crate::stats::Samples;

/// `statfs` says this of a file system in memory.
const TMPFS: u64 = 0x0102_1994;
const BLOCK: [u8; 4_096] = [0x5A; 4_096];
const PREPARED_BYTES: usize = 64 * 1_024 * 1_024;

/// Processors, memory, kernel and file system.
pub fn describe(folder: &Path) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = value_in("/proc/cpuinfo", "model name").unwrap_or_default();
    let memory_kib = value_in("/proc/meminfo", "MemTotal").unwrap_or_default();
    let memory_kib = memory_kib.split(' ').next().and_then(|kib| kib.parse::<u64>().ok());
    let memory_gib = memory_kib.unwrap_or_default() / 1_024 / 1_024;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim();
    let disk = mount_of(folder).unwrap_or_default();
    format!("{cores} cores ({cpu}), {memory_gib} GiB, Linux {kernel}, {disk}")
}

/// Refuses a folder in memory: a sync there costs nothing and proves nothing.
///
/// # Errors
/// When the folder is in memory or cannot be looked at.
pub fn require_disk(folder: &Path) -> Result<()> {
    let kind = statfs(folder).map_err(|e| Error::Wrong(format!("{}: {e}", folder.display())))?;
    if kind.f_type as u64 == TMPFS {
        let says = format!("{} is in memory, choose a folder on a disk", folder.display());
        return Err(Error::Wrong(says));
    }
    Ok(())
}

/// Where a block goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the end: the file system must also write down that the file grew.
    Appended,
    /// Into a file that was filled before.
    Prepared,
}

/// Writes of 4 KiB, each followed by `fdatasync`, one after the other: what no single caller of a
/// durable store can beat. Microseconds of each.
///
/// # Errors
/// When the file cannot be written.
pub fn sync_floor(folder: &Path, place: Place, span: Duration) -> Result<Samples> {
    let path = folder.join(format!("floor-{}", std::process::id()));
    let mut file = File::create(&path).map_err(Error::at(&path))?;
    if place == Place::Prepared {
        let zeros = vec![0; PREPARED_BYTES];
        file.write_all(&zeros).map_err(Error::at(&path))?;
        file.sync_all().map_err(Error::at(&path))?;
    }
    let begin = Instant::now();
    let mut sync_us = Vec::new();
    let mut offset = 0;
    while begin.elapsed() < span {
        let from = Instant::now();
        file.write_all_at(&BLOCK, offset as u64).map_err(Error::at(&path))?;
        file.sync_data().map_err(Error::at(&path))?;
        sync_us.push(micros(from.elapsed()));
        offset += BLOCK.len();
        if place == Place::Prepared {
            offset %= PREPARED_BYTES;
        }
    }
    fs::remove_file(&path).map_err(Error::at(&path))?;
    Ok(Samples::new(sync_us))
}

fn value_in(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    let (_, value) = line.split_once(':')?;
    Some(value.trim().to_owned())
}

/// File system and device of the deepest mount that holds the folder.
fn mount_of(folder: &Path) -> Option<String> {
    let folder = fs::canonicalize(folder).ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mut deepest: Option<(usize, String)> = None;
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(device), Some(point), Some(kind)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let depth = PathBuf::from(point).components().count();
        let is_deeper = deepest.as_ref().is_none_or(|(known, _)| depth >= *known);
        if folder.starts_with(point) && is_deeper {
            deepest = Some((depth, format!("{kind} on {device}")));
        }
    }
    deepest.map(|(_, text)| text)
}
