//! One segment file: made at full size and filled with zeros, then written from front to back.
//!
//! Zeros ahead of time keep the file system's journal out of each flush (half the latency), and
//! they show which part of a torn write did not arrive.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::base::entropy::{Entropy, OsEntropy};
use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::files;
use crate::store::format::{self, FormatVersion};
use crate::store::log::codec::{
    self, GROUP_ALIGN, GROUP_HEADER_BYTES, GroupHeader, Reader, Record,
};
use crate::store::log::table::Place;
use crate::store::log::{LogEntry, LogPosition};

/// Groups begin here, so that the sector with the header is never written again.
pub(crate) const HEADER_BYTES: usize = 512;
const SECTOR_BYTES: usize = 512;
const MAGIC: &[u8; 8] = b"HOROLOG\0";
const SUFFIX: &str = ".log";
/// Smallest file that holds anything.
pub(crate) const SEGMENT_BYTES_MIN: usize = 4_096;

/// An open segment file.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) nonce: u64,
    capacity: u64,
    file: File,
}

/// A whole group as it was found in a file.
pub(crate) struct Group {
    pub(crate) sequence: u64,
    /// Each record with its offset in the file and its length.
    pub(crate) records: Vec<(Record, u64, u32)>,
}

/// All whole groups of a file, and what follows them.
pub(crate) struct Contents {
    pub(crate) groups: Vec<Group>,
    /// Where the next group would begin.
    pub(crate) end: u64,
    /// There are torn bytes after `end`.
    pub(crate) is_torn: bool,
}

impl Segment {
    /// Makes an empty segment under its final name, durably.
    pub(crate) fn create(
        folder: &Path,
        number: u64,
        capacity: usize,
        faults: &Faults,
    ) -> Result<Segment, StoreError> {
        let path = folder.join(file_name(number));
        let unfinished = files::with_suffix(&path, files::UNFINISHED);
        let nonce = OsEntropy.next_u64();
        let capacity = capacity.max(SEGMENT_BYTES_MIN).next_multiple_of(SEGMENT_BYTES_MIN);
        let header = header_bytes(number, nonce, capacity as u64);
        let filled = faults.before_write().and_then(|()| fill(&unfinished, &header, capacity));
        let file = filled.and_then(|file| faults.sync_all(&file).map(|()| file));
        let file = file.map_err(|source| {
            // Half a file helps nobody on a full disk; the error that counts is the first one.
            let _ = std::fs::remove_file(&unfinished);
            StoreError::io("prepare", &unfinished, source)
        })?;
        files::publish(&unfinished, &path, faults)?;
        Ok(Segment { number, path, nonce, capacity: capacity as u64, file })
    }

    /// Opens the file and reads its header; returns the whole contents too.
    pub(crate) fn open(folder: &Path, number: u64) -> Result<(Segment, Vec<u8>), StoreError> {
        let path = folder.join(file_name(number));
        let failed = |source| StoreError::io("open", &path, source);
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed)?;
        let bytes = std::fs::read(&path).map_err(failed)?;
        // The header was durable before the file got its name, so a bad one is no tear.
        let damaged = || StoreError::corrupt(&path, 0, "the header of the segment is not whole");
        let (head, found) = parse_header(&bytes).ok_or_else(damaged)?;
        format::known(&path, head.format)?;
        if !found || head.number != number || head.capacity != bytes.len() as u64 {
            return Err(damaged());
        }
        let segment = Segment { number, nonce: head.nonce, capacity: head.capacity, file, path };
        Ok((segment, bytes))
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8], faults: &Faults) -> Result<(), StoreError> {
        let written = faults.before_write().and_then(|()| self.file.write_all_at(bytes, at));
        written.map_err(|source| StoreError::io("write", &self.path, source))
    }

    pub(crate) fn sync(&self, faults: &Faults) -> Result<(), StoreError> {
        faults.sync_data(&self.file).map_err(|source| StoreError::io("flush", &self.path, source))
    }

    /// Puts zeros from `at` to the end, durably: what follows a torn tail must not be taken for a
    /// group later.
    pub(crate) fn clear_from(&self, at: u64, faults: &Faults) -> Result<(), StoreError> {
        let length = usize::try_from(self.capacity.saturating_sub(at)).unwrap_or(0);
        self.write(at, &vec![0; length], faults)?;
        self.sync(faults)
    }

    /// Reads one entry and checks that it is the one that was meant.
    pub(crate) fn read_entry(
        &self,
        place: Place,
        position: LogPosition,
    ) -> Result<LogEntry, StoreError> {
        let mut bytes = vec![0; place.bytes as usize];
        self.file
            .read_exact_at(&mut bytes, place.at)
            .map_err(|source| StoreError::io("read", &self.path, source))?;
        match codec::parse_record(&bytes, self.nonce) {
            Ok((Record::Entry(entry), _)) if entry.position == position => Ok(entry),
            Ok(_) => Err(self.damaged(place.at, format!("entry {position} is not here"))),
            Err(problem) => Err(self.damaged(place.at, problem)),
        }
    }

    /// All whole groups of the file. `sequence` is what the first one must have, when it is known.
    ///
    /// # Errors
    /// Damage: a bad group that is no torn tail.
    pub(crate) fn scan(&self, bytes: &[u8], sequence: Option<u64>) -> Result<Contents, StoreError> {
        let mut groups: Vec<Group> = Vec::new();
        let mut end = HEADER_BYTES;
        let mut expected = sequence;
        loop {
            let rest = bytes.get(end..).unwrap_or_default();
            match self.parse_group(rest, end, expected) {
                Ok((group, group_bytes)) => {
                    expected = Some(group.sequence + 1);
                    groups.push(group);
                    end += group_bytes;
                }
                Err(problem) => {
                    let is_torn = rest.iter().any(|byte| *byte != 0);
                    if is_torn {
                        self.refuse_damage(bytes, end, expected, problem)?;
                    }
                    return Ok(Contents { groups, end: end as u64, is_torn });
                }
            }
        }
    }

    fn parse_group(
        &self,
        rest: &[u8],
        offset: usize,
        expected: Option<u64>,
    ) -> Result<(Group, usize), &'static str> {
        let Some(header) = GroupHeader::parse(rest, self.nonce) else {
            return Err("the header of a group is not whole");
        };
        if expected.is_some_and(|expected| header.sequence != expected) {
            return Err("a group has the wrong number");
        }
        let group_bytes = header.group_bytes();
        if group_bytes > rest.len() || !codec::has_end_mark(rest, &header) {
            return Err("a group is not whole");
        }
        let mut records = Vec::with_capacity(header.records as usize);
        let mut at = GROUP_HEADER_BYTES;
        let body_end = GROUP_HEADER_BYTES + header.body_bytes;
        while at < body_end {
            let body = rest.get(at..body_end).unwrap_or_default();
            let (record, record_bytes) = codec::parse_record(body, self.nonce)?;
            records.push((record, (offset + at) as u64, record_bytes as u32));
            at += record_bytes;
        }
        if records.len() != header.records as usize {
            return Err("a group has the wrong number of records");
        }
        Ok((Group { sequence: header.sequence, records }, group_bytes))
    }

    /// Tells damage from a torn tail; see the essay of `log`.
    fn refuse_damage(
        &self,
        bytes: &[u8],
        at: usize,
        expected: Option<u64>,
        problem: &str,
    ) -> Result<(), StoreError> {
        let rest = bytes.get(at..).unwrap_or_default();
        let follows = (GROUP_ALIGN..rest.len()).step_by(GROUP_ALIGN).find(|offset| {
            let header = rest.get(*offset..).and_then(|tail| GroupHeader::parse(tail, self.nonce));
            header.is_some_and(|header| expected.is_none_or(|number| header.sequence > number))
        });
        if let Some(offset) = follows {
            let problem = format!("{problem}, though the group at byte {} follows", at + offset);
            return Err(self.damaged(at as u64, problem));
        }
        if !has_hole(rest, at, self.nonce) {
            let problem = format!("{problem}, though all of it was written");
            return Err(self.damaged(at as u64, problem));
        }
        Ok(())
    }

    pub(crate) fn damaged(&self, at: u64, problem: impl Into<String>) -> StoreError {
        StoreError::corrupt(&self.path, at, problem)
    }
}

/// The number in a segment's file name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX).filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

fn file_name(number: u64) -> String {
    format!("{number:016x}{SUFFIX}")
}

/// Whether part of the group at the start of `rest` did not arrive: its end is missing, or one of
/// its sectors holds only zeros. `at` is the place of `rest` in the file.
fn has_hole(rest: &[u8], at: usize, nonce: u64) -> bool {
    let Some(header) = GroupHeader::parse(rest, nonce) else {
        // The end of a header is a mark, never zero; a header that straddles two sectors may lack
        // its start.
        let head = rest.get(..GROUP_HEADER_BYTES).unwrap_or(rest);
        let in_first_sector = (SECTOR_BYTES - at % SECTOR_BYTES).min(head.len());
        let start_is_missing = head[..in_first_sector].iter().all(|byte| *byte == 0);
        return start_is_missing || head.ends_with(&[0]);
    };
    let group = rest.get(..header.group_bytes()).unwrap_or(rest);
    if group.len() < header.group_bytes() || !codec::has_end_mark(rest, &header) {
        // A mark whose last byte is missing is a tear; one that is merely different is damage.
        let mark_end = (GROUP_HEADER_BYTES + header.body_bytes + 4).min(group.len());
        return group.get(..mark_end).is_none_or(|marked| marked.ends_with(&[0]));
    }
    let first_sector = at.next_multiple_of(SECTOR_BYTES) - at;
    let mut sectors = group.get(first_sector..).unwrap_or_default().chunks(SECTOR_BYTES);
    sectors.any(|sector| sector.iter().all(|byte| *byte == 0))
}

struct Head {
    format: u32,
    number: u64,
    nonce: u64,
    capacity: u64,
}

fn header_bytes(number: u64, nonce: u64, capacity: u64) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&FormatVersion::CURRENT.number().to_le_bytes());
    header.extend_from_slice(&number.to_le_bytes());
    header.extend_from_slice(&nonce.to_le_bytes());
    header.extend_from_slice(&capacity.to_le_bytes());
    let checksum = crc32fast::hash(&header);
    header.extend_from_slice(&checksum.to_le_bytes());
    header.resize(HEADER_BYTES, 0);
    header
}

/// The header, and whether its checksum matches. The format comes first, so that a newer one can
/// be named.
fn parse_header(bytes: &[u8]) -> Option<(Head, bool)> {
    let mut reader = Reader(bytes.strip_prefix(MAGIC)?);
    let format = reader.u32()?;
    let (number, nonce, capacity) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let checksum = reader.u32()?;
    let covered = MAGIC.len() + 4 + 3 * 8;
    let matches = checksum == crc32fast::hash(bytes.get(..covered)?);
    Some((Head { format, number, nonce, capacity }, matches))
}

fn fill(path: &Path, header: &[u8], capacity: usize) -> io::Result<File> {
    static ZEROS: [u8; 64 * 1_024] = [0; 64 * 1_024];
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    file.write_all(header)?;
    let mut left = capacity.saturating_sub(header.len());
    while left > 0 {
        let step = left.min(ZEROS.len());
        file.write_all(&ZEROS[..step])?;
        left -= step;
    }
    Ok(file)
}
