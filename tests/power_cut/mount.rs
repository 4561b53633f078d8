//! Shows a [`Disk`] as a file system, and takes the picture of it when the power is cut.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags,
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::power_cut::disk::{CutMode, Disk, Refusal};

/// Nothing is cached by the kernel: every request reaches the disk.
const NO_CACHE: Duration = Duration::ZERO;
const WRITE_BYTES_MAX: u32 = 1_024 * 1_024;
const SLED_SEGMENT_BYTES: u64 = 16 * 1_024 * 1_024;

/// When and how the power goes, and who is told.
pub struct CutPlan {
    /// The requests are counted only once this many overwritten segments of sled have begun.
    pub after_reuses: u64,
    /// Writes and flushes from then on until the cut.
    pub after_requests: u64,
    pub mode: CutMode,
    /// Read at the moment of the cut: what was acknowledged by then.
    pub acked: Arc<AtomicU64>,
    pub tell: Sender<Cut>,
}

/// The picture taken at the cut.
pub struct Cut {
    pub disk: Disk,
    pub acked: u64,
}

struct Shared {
    disk: Disk,
    plan: Option<CutPlan>,
}

/// A mounted disk; it is unmounted when this is dropped.
pub struct Mounted {
    pub folder: tempfile::TempDir,
    shared: Arc<Mutex<Shared>>,
    session: Option<BackgroundSession>,
}

impl Mounted {
    pub fn new(disk: Disk) -> io::Result<Mounted> {
        let folder = tempfile::tempdir()?;
        let shared = Arc::new(Mutex::new(Shared { disk, plan: None }));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("losing".to_owned())];
        let view = View { shared: Arc::clone(&shared) };
        let session = fuser::spawn_mount(view, folder.path(), &config)?;
        Ok(Mounted { folder, shared, session: Some(session) })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Arms the cut. The file system goes on; what happens later is not in the picture.
    pub fn cut_later(&self, plan: CutPlan) {
        self.shared.lock().unwrap().plan = Some(plan);
    }

    pub fn with_disk<T>(&self, act: impl FnOnce(&mut Disk) -> T) -> T {
        act(&mut self.shared.lock().unwrap().disk)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(session) = self.session.take()
            && let Err(error) = session.umount_and_join()
        {
            panic!("cannot unmount {}: {error}", self.folder.path().display());
        }
    }
}

struct View {
    shared: Arc<Mutex<Shared>>,
}

impl View {
    fn disk(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    fn count_reuse(shared: &mut Shared) {
        if let Some(plan) = &mut shared.plan {
            plan.after_reuses = plan.after_reuses.saturating_sub(1);
        }
    }

    /// Counts a write or flush that was just done, and cuts when it was the last one.
    fn count_request(shared: &mut Shared) {
        let Some(plan) = &mut shared.plan else {
            return;
        };
        if plan.after_reuses > 0 {
            return;
        }
        plan.after_requests = plan.after_requests.saturating_sub(1);
        if plan.after_requests > 0 {
            return;
        }
        let acked = plan.acked.load(Ordering::SeqCst);
        let disk = shared.disk.cut(plan.mode);
        plan.tell.send(Cut { disk, acked }).unwrap();
        shared.plan = None;
    }

    fn attributes(shared: &Shared, node: u64) -> Result<FileAttr, Errno> {
        let length = shared.disk.length(node).map_err(errno)?;
        let kind = if length.is_some() { FileType::RegularFile } else { FileType::Directory };
        let size = length.unwrap_or(0) as u64;
        Ok(FileAttr {
            ino: INodeNo(node),
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: 0o755,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4_096,
        })
    }

    fn create_node(&self, parent: INodeNo, name: &OsStr, folder: bool) -> Result<FileAttr, Errno> {
        let mut shared = self.disk();
        let node = shared.disk.create(u64::from(parent), text(name)?, folder).map_err(errno)?;
        View::attributes(&shared, node)
    }

    fn remove(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        self.disk().disk.unlink(u64::from(parent), text(name)?).map_err(errno)
    }
}

fn errno(refusal: Refusal) -> Errno {
    match refusal {
        Refusal::NoEntry => Errno::ENOENT,
        Refusal::Exists => Errno::EEXIST,
        Refusal::NotEmpty => Errno::ENOTEMPTY,
        Refusal::WrongKind => Errno::EINVAL,
        Refusal::NoSpace => Errno::ENOSPC,
        Refusal::Io => Errno::EIO,
    }
}

fn text(name: &OsStr) -> Result<&str, Errno> {
    name.to_str().ok_or(Errno::EINVAL)
}

fn answer(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn answer_entry(reply: ReplyEntry, result: Result<FileAttr, Errno>) {
    match result {
        Ok(attributes) => reply.entry(&NO_CACHE, &attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn answer_attributes(reply: ReplyAttr, result: Result<FileAttr, Errno>) {
    match result {
        Ok(attributes) => reply.attr(&NO_CACHE, &attributes),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for View {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        config.set_max_write(WRITE_BYTES_MAX).map_err(|_| io::Error::other("max write"))?;
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let shared = self.disk();
        let found = text(name)
            .and_then(|name| shared.disk.lookup(u64::from(parent), name).map_err(errno))
            .and_then(|node| View::attributes(&shared, node));
        answer_entry(reply, found);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        answer_attributes(reply, View::attributes(&self.disk(), u64::from(ino)));
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut shared = self.disk();
        if let Some(size) = size {
            shared.disk.resize(u64::from(ino), size as usize);
        }
        answer_attributes(reply, View::attributes(&shared, u64::from(ino)));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        answer_entry(reply, self.create_node(parent, name, true));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(parent, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(parent, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if parent != newparent {
            return reply.error(Errno::ENOSYS);
        }
        let renamed = text(name).and_then(|from| {
            let to = text(newname)?;
            self.disk().disk.rename(u64::from(parent), from, to).map_err(errno)
        });
        answer(reply, renamed);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        match self.create_node(parent, name, false) {
            Ok(attributes) => {
                let (handle, flags) = (FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
                reply.created(&NO_CACHE, &attributes, Generation(0), handle, flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.disk().disk.read(u64::from(ino), offset as usize, size as usize) {
            Ok(bytes) => reply.data(bytes),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut shared = self.disk();
        let length = shared.disk.length(u64::from(ino)).ok().flatten().unwrap_or(0) as u64;
        if offset.is_multiple_of(SLED_SEGMENT_BYTES) && offset + SLED_SEGMENT_BYTES / 2 < length {
            View::count_reuse(&mut shared);
        }
        let written = shared.disk.write(u64::from(ino), offset as usize, data);
        View::count_request(&mut shared);
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let mut shared = self.disk();
        let synced = shared.disk.sync_file(u64::from(ino));
        View::count_request(&mut shared);
        answer(reply, synced.map_err(errno));
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let mut shared = self.disk();
        shared.disk.sync_folder(u64::from(ino));
        View::count_request(&mut shared);
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let shared = self.disk();
        let entries = match shared.disk.entries(u64::from(ino)) {
            Ok(entries) => entries,
            Err(refusal) => return reply.error(errno(refusal)),
        };
        for (nth, (name, node)) in entries.iter().enumerate().skip(offset as usize) {
            let is_file = matches!(shared.disk.length(*node), Ok(Some(_)));
            let kind = if is_file { FileType::RegularFile } else { FileType::Directory };
            if reply.add(INodeNo(*node), nth as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
