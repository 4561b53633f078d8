//! Snapshots: whole states in one file each, made of frames, with counts and a checksum at the end.
//!
//! ```text
//! file    magic 8 | format 4 | meta bytes 4 | meta | checksum 4 of all before | frames | trailer
//! frame   tag 1 (not 255) | bytes 4 | bytes
//! trailer 255 | frames 8 | bytes of the whole file 8 | checksum 4 of all before
//! ```
//!
//! A snapshot gets its name when it is whole and durable. The names begin with a growing number;
//! the last two are kept. One that arrives from another member is verified in full before it gets
//! a name.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::files;
use crate::store::format::{self, FormatVersion};
use crate::store::log::codec::Reader;
use crate::store::poison::Poison;

/// Largest frame, in bytes.
pub const FRAME_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// Largest description, in bytes.
pub const META_BYTES_MAX: usize = 1_024 * 1_024;

const MAGIC: &[u8; 8] = b"HOROSNAP";
const TRAILER_TAG: u8 = 255;
const TRAILER_BYTES: usize = 21;
const KEPT: usize = 2;
const SUFFIX: &str = ".snap";
const BUFFER_BYTES: usize = 128 * 1_024;

/// A finished snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// What its maker said of it; opaque to the store.
    pub meta: Bytes,
    pub path: PathBuf,
    /// Length of the file.
    pub bytes: u64,
    /// The checksum in the trailer, over everything before it.
    pub checksum: u32,
}

/// The folder of snapshots. A shared handle.
#[derive(Clone)]
pub struct Snapshots {
    shared: Arc<Shared>,
}

struct Shared {
    folder: PathBuf,
    faults: Faults,
    poison: Poison,
    /// Finished ones, oldest first, with their numbers.
    finished: Mutex<Vec<(u64, SnapshotFile)>>,
}

impl Snapshots {
    pub(crate) fn open(
        folder: &Path,
        faults: Faults,
        poison: Poison,
    ) -> Result<Snapshots, StoreError> {
        files::create_folder(folder, &faults)?;
        files::remove_unfinished(folder)?;
        let mut finished = Vec::new();
        for name in files::names(folder)? {
            let Some(number) = number_of(&name) else {
                continue;
            };
            let reader = SnapshotReader::open(&folder.join(name))?;
            finished.push((number, reader.file));
        }
        let finished = Mutex::new(finished);
        let shared = Shared { folder: folder.to_path_buf(), faults, poison, finished };
        Ok(Snapshots { shared: Arc::new(shared) })
    }

    /// Starts a snapshot. `name` becomes part of the file's name: letters, digits, `.`, `_` and
    /// `-`. It is removed when the writer is dropped unfinished.
    ///
    /// # Errors
    /// A wrong name, a description above [`META_BYTES_MAX`], or the disk.
    pub fn begin(&self, name: &str, meta: Bytes) -> Result<SnapshotWriter, StoreError> {
        if meta.len() > META_BYTES_MAX {
            let (bytes, bytes_max) = (meta.len(), META_BYTES_MAX);
            let what = "the description of a snapshot";
            return Err(StoreError::TooLarge { what, bytes, bytes_max });
        }
        let mut unfinished = self.unfinished(name)?;
        unfinished.write(&header_bytes(&meta))?;
        Ok(SnapshotWriter { unfinished, meta, frames: 0 })
    }

    /// Starts to receive a snapshot of `bytes_total` from another member, which said `checksum`
    /// of it.
    ///
    /// # Errors
    /// A wrong name, or the disk.
    pub fn receive(
        &self,
        name: &str,
        bytes_total: u64,
        checksum: u32,
    ) -> Result<SnapshotReceiver, StoreError> {
        Ok(SnapshotReceiver { unfinished: self.unfinished(name)?, bytes_total, checksum })
    }

    /// The newest finished snapshot.
    #[must_use]
    pub fn latest(&self) -> Option<SnapshotFile> {
        self.shared.finished().last().map(|(_, file)| file.clone())
    }

    fn unfinished(&self, name: &str) -> Result<Unfinished, StoreError> {
        self.shared.poison.check()?;
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if name.is_empty() || name.len() > 100 || !name.bytes().all(is_plain) {
            return Err(StoreError::misuse(format!("{name:?} cannot be the name of a snapshot")));
        }
        let path = self.shared.folder.join(format!("{name}{}", files::UNFINISHED));
        let file = File::create_new(&path);
        let file = file.map_err(|source| StoreError::io("create", &path, source))?;
        Ok(Unfinished {
            shared: Arc::clone(&self.shared),
            name: name.to_owned(),
            path,
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            hasher: crc32fast::Hasher::new(),
            bytes: 0,
            is_published: false,
        })
    }
}

impl Shared {
    fn finished(&self) -> MutexGuard<'_, Vec<(u64, SnapshotFile)>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file without its final name; removed when it is dropped.
struct Unfinished {
    shared: Arc<Shared>,
    name: String,
    path: PathBuf,
    file: BufWriter<File>,
    hasher: crc32fast::Hasher,
    bytes: u64,
    is_published: bool,
}

impl Unfinished {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.shared.poison.check()?;
        let written = self.shared.faults.before_write().and_then(|()| self.file.write_all(bytes));
        let written = written.map_err(|source| StoreError::io("write", &self.path, source));
        self.shared.poison.watch(written)?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        let flushed = self.file.flush();
        let synced = flushed.and_then(|()| self.shared.faults.sync_all(self.file.get_ref()));
        let synced = synced.map_err(|source| StoreError::io("flush", &self.path, source));
        self.shared.poison.watch(synced)
    }

    /// Gives the durable file its name and drops the oldest ones.
    fn publish(&mut self, mut file: SnapshotFile) -> Result<SnapshotFile, StoreError> {
        let shared = Arc::clone(&self.shared);
        let mut finished = shared.finished();
        let number = finished.last().map_or(1, |(number, _)| number + 1);
        file.path = shared.folder.join(format!("{number:016x}-{}{SUFFIX}", self.name));
        let published = files::publish(&self.path, &file.path, &shared.faults);
        shared.poison.watch(published)?;
        self.is_published = true;
        finished.push((number, file.clone()));
        while finished.len() > KEPT {
            let (_, oldest) = finished.remove(0);
            if let Err(error) = fs::remove_file(&oldest.path) {
                tracing::warn!(file = %oldest.path.display(), %error, "cannot remove a snapshot");
            }
        }
        Ok(file)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_published {
            // It is removed at the next start too.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes one snapshot, frame by frame.
pub struct SnapshotWriter {
    unfinished: Unfinished,
    meta: Bytes,
    frames: u64,
}

impl SnapshotWriter {
    /// Adds a frame. `tag` says what it holds and is not 255.
    ///
    /// # Errors
    /// A wrong tag, a frame above [`FRAME_BYTES_MAX`], or the disk.
    pub fn write(&mut self, tag: u8, bytes: &[u8]) -> Result<(), StoreError> {
        if tag == TRAILER_TAG {
            return Err(StoreError::misuse("the tag 255 ends a snapshot"));
        }
        if bytes.len() > FRAME_BYTES_MAX {
            let (bytes, bytes_max) = (bytes.len(), FRAME_BYTES_MAX);
            return Err(StoreError::TooLarge { what: "a frame", bytes, bytes_max });
        }
        self.unfinished.write(&[tag])?;
        self.unfinished.write(&(bytes.len() as u32).to_le_bytes())?;
        self.unfinished.write(bytes)?;
        self.frames += 1;
        Ok(())
    }

    /// Ends the snapshot; it is whole and durable when this returns.
    ///
    /// # Errors
    /// The disk.
    pub fn finish(mut self) -> Result<SnapshotFile, StoreError> {
        let mut trailer = vec![TRAILER_TAG];
        trailer.extend_from_slice(&self.frames.to_le_bytes());
        let bytes = self.unfinished.bytes + TRAILER_BYTES as u64;
        trailer.extend_from_slice(&bytes.to_le_bytes());
        self.unfinished.write(&trailer)?;
        let checksum = self.unfinished.hasher.clone().finalize();
        self.unfinished.write(&checksum.to_le_bytes())?;
        self.unfinished.sync()?;
        let meta = std::mem::take(&mut self.meta);
        self.unfinished.publish(SnapshotFile { meta, path: PathBuf::new(), bytes, checksum })
    }
}

/// Takes the raw bytes of a snapshot from another member.
pub struct SnapshotReceiver {
    unfinished: Unfinished,
    bytes_total: u64,
    checksum: u32,
}

impl SnapshotReceiver {
    /// Bytes received so far: where the next chunk begins.
    #[must_use]
    pub fn bytes_received(&self) -> u64 {
        self.unfinished.bytes
    }

    /// Adds the chunk that begins at `offset`.
    ///
    /// # Errors
    /// A chunk that does not follow the one before, or goes beyond the end; nothing is written
    /// then. The disk.
    pub fn write(&mut self, offset: u64, chunk: &[u8]) -> Result<(), StoreError> {
        let expected = self.unfinished.bytes;
        if offset != expected {
            let problem = format!("a chunk begins at {offset}, expected {expected}");
            return Err(StoreError::misuse(problem));
        }
        if expected + chunk.len() as u64 > self.bytes_total {
            let problem = format!("a chunk goes beyond the {} bytes", self.bytes_total);
            return Err(StoreError::misuse(problem));
        }
        self.unfinished.write(chunk)
    }

    /// Verifies the whole and keeps it. Until then nothing has changed.
    ///
    /// # Errors
    /// Missing bytes, another checksum than was said, damage, or the disk.
    pub fn finish(mut self) -> Result<SnapshotFile, StoreError> {
        if self.unfinished.bytes != self.bytes_total {
            let (received, total) = (self.unfinished.bytes, self.bytes_total);
            let problem = format!("the snapshot has {received} bytes, {total} were announced");
            return Err(StoreError::misuse(problem));
        }
        self.unfinished.sync()?;
        let reader = SnapshotReader::open(&self.unfinished.path)?;
        if reader.file.checksum != self.checksum {
            let problem = "the snapshot is not the one that was announced";
            return Err(StoreError::corrupt(&self.unfinished.path, 0, problem));
        }
        let file = reader.file.clone();
        reader.verify()?;
        self.unfinished.publish(file)
    }
}

/// Reads one snapshot, frame by frame. The last call checks counts and checksum, so whoever acts
/// on a frame calls [`SnapshotReader::verify`] first.
pub struct SnapshotReader {
    pub file: SnapshotFile,
    input: BufReader<File>,
    hasher: crc32fast::Hasher,
    at: u64,
    frames: u64,
    is_done: bool,
}

impl SnapshotReader {
    /// Opens a snapshot and checks its header and that its end is there.
    ///
    /// # Errors
    /// A newer format, damage, or the disk.
    pub fn open(path: &Path) -> Result<SnapshotReader, StoreError> {
        let failed = |source| StoreError::io("open", path, source);
        let input = File::open(path).map_err(failed)?;
        let bytes = input.metadata().map_err(failed)?.len();
        let checksum = trailer_checksum(&input, bytes).map_err(failed)?.ok_or_else(|| {
            StoreError::corrupt(path, bytes, "the end of the snapshot is missing")
        })?;
        let meta = Bytes::new();
        let mut reader = SnapshotReader {
            file: SnapshotFile { meta, path: path.to_path_buf(), bytes, checksum },
            input: BufReader::with_capacity(BUFFER_BYTES, input),
            hasher: crc32fast::Hasher::new(),
            at: 0,
            frames: 0,
            is_done: false,
        };
        reader.file.meta = reader.read_header()?;
        Ok(reader)
    }

    /// The next frame, or none when the end was reached and everything matches.
    ///
    /// # Errors
    /// Damage, or the disk.
    pub fn next_frame(&mut self) -> Result<Option<(u8, Vec<u8>)>, StoreError> {
        if self.is_done {
            return Ok(None);
        }
        let [tag] = self.take::<1>()?;
        if tag == TRAILER_TAG {
            return self.check_trailer().map(|()| None);
        }
        let length = u32::from_le_bytes(self.take::<4>()?) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(self.damaged("a frame is longer than the largest one"));
        }
        let mut bytes = vec![0; length];
        self.fill(&mut bytes)?;
        self.frames += 1;
        Ok(Some((tag, bytes)))
    }

    /// Reads everything and throws it away: a snapshot that passes is whole.
    ///
    /// # Errors
    /// Damage, or the disk.
    pub fn verify(mut self) -> Result<(), StoreError> {
        while self.next_frame()?.is_some() {}
        Ok(())
    }

    fn read_header(&mut self) -> Result<Bytes, StoreError> {
        let magic = self.take::<8>()?;
        if &magic != MAGIC {
            return Err(self.damaged("it does not begin as a snapshot"));
        }
        let format = u32::from_le_bytes(self.take::<4>()?);
        format::known(&self.file.path, format)?;
        let length = u32::from_le_bytes(self.take::<4>()?) as usize;
        if length > META_BYTES_MAX {
            return Err(self.damaged("the description is longer than the longest one"));
        }
        let mut meta = vec![0; length];
        self.fill(&mut meta)?;
        let expected = self.hasher.clone().finalize();
        if u32::from_le_bytes(self.take::<4>()?) != expected {
            return Err(self.damaged("the checksum of the header does not match"));
        }
        Ok(Bytes::from(meta))
    }

    fn check_trailer(&mut self) -> Result<(), StoreError> {
        let frames = u64::from_le_bytes(self.take::<8>()?);
        let bytes = u64::from_le_bytes(self.take::<8>()?);
        let expected = self.hasher.clone().finalize();
        let checksum = u32::from_le_bytes(self.take::<4>()?);
        if checksum != expected {
            return Err(self.damaged("the checksum does not match"));
        }
        if frames != self.frames || bytes != self.at || bytes != self.file.bytes {
            return Err(self.damaged("the counts do not match"));
        }
        self.is_done = true;
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), StoreError> {
        match self.input.read_exact(bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(self.damaged("the snapshot is cut off"));
            }
            Err(source) => return Err(StoreError::io("read", &self.file.path, source)),
        }
        self.hasher.update(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn damaged(&self, problem: &str) -> StoreError {
        StoreError::corrupt(&self.file.path, self.at, problem)
    }
}

fn header_bytes(meta: &[u8]) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&FormatVersion::CURRENT.number().to_le_bytes());
    header.extend_from_slice(&(meta.len() as u32).to_le_bytes());
    header.extend_from_slice(meta);
    let checksum = crc32fast::hash(&header);
    header.extend_from_slice(&checksum.to_le_bytes());
    header
}

/// The checksum at the end of the file, or none when no trailer is there.
fn trailer_checksum(file: &File, bytes: u64) -> io::Result<Option<u32>> {
    use std::os::unix::fs::FileExt;

    let Some(at) = bytes.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(None);
    };
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, at)?;
    let mut reader = Reader(&trailer);
    let (tag, _frames, length) = (reader.u8(), reader.u64(), reader.u64());
    let is_whole = tag == Some(TRAILER_TAG) && length == Some(bytes);
    Ok(reader.u32().filter(|_| is_whole))
}

fn number_of(name: &str) -> Option<u64> {
    let (digits, _) = name.strip_suffix(SUFFIX)?.split_once('-')?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}
