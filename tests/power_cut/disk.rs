//! A disk that forgets: what was not flushed is lost when the power is cut, whole, in part or torn.
//!
//! Every file and folder has a current and a durable state; what lies between them is a list of
//! pending changes in the order they were made. A flush of a file applies its changes to the
//! durable state; a cut keeps the durable state and those pending changes that the cut's mode
//! keeps.

use std::collections::BTreeMap;

use horolog::base::entropy::{Entropy, SeededEntropy};

/// Unit in which an unflushed write arrives or not.
const BLOCK_BYTES: usize = 4_096;
pub const ROOT: u64 = 1;

/// What of the pending changes a cut keeps.
#[derive(Clone, Copy, Debug)]
pub enum CutMode {
    /// Nothing.
    Drop,
    /// Any subset of the blocks of all writes, and the first few of the changes of names: a journal
    /// keeps those in order.
    Subset { seed: u64 },
    /// The first ones up to a byte inside one of them.
    Prefix { seed: u64 },
}

/// What a flush of a file does to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// As ext4: every change of names so far is durable too.
    WithFile,
    /// As POSIX: only a flush of the folder makes names durable.
    WithFolder,
}

#[derive(Clone, Debug)]
enum Node {
    File(Vec<u8>),
    Folder(BTreeMap<String, u64>),
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
    Link { name: String, node: u64 },
    Unlink { name: String },
    Rename { from: String, to: String, node: u64 },
}

impl Change {
    fn is_of_names(&self) -> bool {
        match self {
            Change::Write { .. } | Change::Resize(_) => false,
            Change::Link { .. } | Change::Unlink { .. } | Change::Rename { .. } => true,
        }
    }
}

/// What the disk was asked so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub writes: u64,
    pub file_syncs: u64,
    pub folder_syncs: u64,
}

/// Why the disk refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoEntry,
    Exists,
    NotEmpty,
    WrongKind,
    NoSpace,
    Io,
}

/// The disk itself; `mount` shows it as a file system.
#[derive(Clone, Debug)]
pub struct Disk {
    current: BTreeMap<u64, Node>,
    durable: BTreeMap<u64, Node>,
    pending: Vec<(u64, Change)>,
    next_node: u64,
    names: Names,
    pub counts: Counts,
    /// The next flush fails, and what it should have flushed is lost: as a real disk does.
    pub fail_next_sync: bool,
    /// Bytes that can still be written.
    pub free_bytes: Option<usize>,
}

impl Disk {
    pub fn new(names: Names) -> Disk {
        let empty = BTreeMap::from([(ROOT, Node::Folder(BTreeMap::new()))]);
        Disk {
            current: empty.clone(),
            durable: empty,
            pending: Vec::new(),
            next_node: ROOT + 1,
            names,
            counts: Counts::default(),
            fail_next_sync: false,
            free_bytes: None,
        }
    }

    /// Cuts the power: the disk as the next start finds it.
    pub fn cut(&self, mode: CutMode) -> Disk {
        let mut survivors = self.durable.clone();
        match mode {
            CutMode::Drop => {}
            CutMode::Subset { seed } => {
                let chance = SeededEntropy::new(seed);
                let names = self.pending.iter().filter(|(_, change)| change.is_of_names()).count();
                let mut names_kept = below(&chance, names + 1);
                for (node, change) in &self.pending {
                    if !change.is_of_names() {
                        keep_some(&mut survivors, *node, change, &chance);
                    } else if names_kept > 0 {
                        names_kept -= 1;
                        apply(&mut survivors, *node, change);
                    }
                }
            }
            CutMode::Prefix { seed } => {
                let chance = SeededEntropy::new(seed);
                let kept = below(&chance, self.pending.len() + 1);
                for (node, change) in &self.pending[..kept] {
                    apply(&mut survivors, *node, change);
                }
                if let Some((node, Change::Write { at, bytes })) = self.pending.get(kept) {
                    let torn = bytes[..below(&chance, bytes.len() + 1)].to_vec();
                    apply(&mut survivors, *node, &Change::Write { at: *at, bytes: torn });
                }
            }
        }
        forget_unnamed(&mut survivors);
        Disk {
            current: survivors.clone(),
            durable: survivors,
            pending: Vec::new(),
            next_node: self.next_node,
            counts: Counts::default(),
            fail_next_sync: false,
            free_bytes: None,
            names: self.names,
        }
    }

    /// Flips one bit of the file at `path`, at rest.
    pub fn flip_bit(&mut self, path: &[&str], byte: usize) {
        let mut node = ROOT;
        for name in path {
            node = self.lookup(node, name).unwrap();
        }
        for state in [&mut self.current, &mut self.durable] {
            if let Some(Node::File(bytes)) = state.get_mut(&node) {
                bytes[byte] ^= 1;
            }
        }
    }

    pub fn with_names(mut self, names: Names) -> Disk {
        self.names = names;
        self
    }

    pub fn lookup(&self, folder: u64, name: &str) -> Result<u64, Refusal> {
        self.entries(folder)?.get(name).copied().ok_or(Refusal::NoEntry)
    }

    pub fn entries(&self, folder: u64) -> Result<&BTreeMap<String, u64>, Refusal> {
        match self.current.get(&folder) {
            Some(Node::Folder(entries)) => Ok(entries),
            Some(Node::File(_)) => Err(Refusal::WrongKind),
            None => Err(Refusal::NoEntry),
        }
    }

    /// Length of a file, or none of a folder.
    pub fn length(&self, node: u64) -> Result<Option<usize>, Refusal> {
        match self.current.get(&node) {
            Some(Node::File(bytes)) => Ok(Some(bytes.len())),
            Some(Node::Folder(_)) => Ok(None),
            None => Err(Refusal::NoEntry),
        }
    }

    pub fn read(&self, node: u64, at: usize, length: usize) -> Result<&[u8], Refusal> {
        let Some(Node::File(bytes)) = self.current.get(&node) else {
            return Err(Refusal::WrongKind);
        };
        let from = at.min(bytes.len());
        Ok(&bytes[from..(from + length).min(bytes.len())])
    }

    pub fn create(&mut self, folder: u64, name: &str, is_folder: bool) -> Result<u64, Refusal> {
        if self.entries(folder)?.contains_key(name) {
            return Err(Refusal::Exists);
        }
        let fresh =
            || if is_folder { Node::Folder(BTreeMap::new()) } else { Node::File(Vec::new()) };
        let node = self.next_node;
        self.next_node += 1;
        self.current.insert(node, fresh());
        self.durable.insert(node, fresh());
        self.change(folder, Change::Link { name: name.to_owned(), node });
        Ok(node)
    }

    pub fn write(&mut self, node: u64, at: usize, bytes: &[u8]) -> Result<(), Refusal> {
        if let Some(free) = &mut self.free_bytes {
            *free = free.checked_sub(bytes.len()).ok_or(Refusal::NoSpace)?;
        }
        self.counts.writes += 1;
        self.change(node, Change::Write { at, bytes: bytes.to_vec() });
        Ok(())
    }

    pub fn resize(&mut self, node: u64, length: usize) {
        self.change(node, Change::Resize(length));
    }

    pub fn unlink(&mut self, folder: u64, name: &str) -> Result<(), Refusal> {
        let node = self.lookup(folder, name)?;
        if let Ok(entries) = self.entries(node)
            && !entries.is_empty()
        {
            return Err(Refusal::NotEmpty);
        }
        self.change(folder, Change::Unlink { name: name.to_owned() });
        Ok(())
    }

    /// Renames inside one folder; a file of the new name is replaced.
    pub fn rename(&mut self, folder: u64, from: &str, to: &str) -> Result<(), Refusal> {
        let node = self.lookup(folder, from)?;
        let (from, to) = (from.to_owned(), to.to_owned());
        self.change(folder, Change::Rename { from, to, node });
        Ok(())
    }

    pub fn sync_file(&mut self, node: u64) -> Result<(), Refusal> {
        self.counts.file_syncs += 1;
        if std::mem::take(&mut self.fail_next_sync) {
            self.pending.retain(|(of, _)| *of != node);
            return Err(Refusal::Io);
        }
        let names_too = self.names == Names::WithFile;
        self.flush(|of, change| of == node || (names_too && change.is_of_names()));
        Ok(())
    }

    pub fn sync_folder(&mut self, folder: u64) {
        self.counts.folder_syncs += 1;
        self.flush(|of, _| of == folder);
    }

    fn change(&mut self, node: u64, change: Change) {
        apply(&mut self.current, node, &change);
        self.pending.push((node, change));
    }

    fn flush(&mut self, is_flushed: impl Fn(u64, &Change) -> bool) {
        let mut left = Vec::new();
        for (node, change) in std::mem::take(&mut self.pending) {
            if is_flushed(node, &change) {
                apply(&mut self.durable, node, &change);
            } else {
                left.push((node, change));
            }
        }
        self.pending = left;
    }
}

fn apply(state: &mut BTreeMap<u64, Node>, node: u64, change: &Change) {
    match (state.get_mut(&node), change) {
        (Some(Node::File(data)), Change::Write { at, bytes }) => {
            let end = at + bytes.len();
            if data.len() < end {
                data.resize(end, 0);
            }
            data[*at..end].copy_from_slice(bytes);
        }
        (Some(Node::File(data)), Change::Resize(length)) => data.resize(*length, 0),
        (Some(Node::Folder(entries)), Change::Link { name, node }) => {
            entries.insert(name.clone(), *node);
        }
        (Some(Node::Folder(entries)), Change::Unlink { name }) => {
            entries.remove(name);
        }
        (Some(Node::Folder(entries)), Change::Rename { from, to, node }) => {
            entries.remove(from);
            entries.insert(to.clone(), *node);
        }
        (node, change) => panic!("{change:?} cannot apply to {node:?}"),
    }
}

/// Keeps each block of a write, and a change of a file's length, with one chance in two.
fn keep_some(state: &mut BTreeMap<u64, Node>, node: u64, change: &Change, chance: &SeededEntropy) {
    let Change::Write { at, bytes } = change else {
        if below(chance, 2) == 0 {
            apply(state, node, change);
        }
        return;
    };
    let mut from = *at;
    let end = at + bytes.len();
    while from < end {
        let to = ((from / BLOCK_BYTES + 1) * BLOCK_BYTES).min(end);
        if below(chance, 2) == 0 {
            let bytes = bytes[from - at..to - at].to_vec();
            apply(state, node, &Change::Write { at: from, bytes });
        }
        from = to;
    }
}

/// Drops files without a name, and names without a file.
fn forget_unnamed(state: &mut BTreeMap<u64, Node>) {
    let mut named = vec![ROOT];
    let mut next = 0;
    while let Some(node) = named.get(next) {
        if let Some(Node::Folder(entries)) = state.get(node) {
            named.extend(entries.values());
        }
        next += 1;
    }
    state.retain(|node, _| named.contains(node));
}

/// A number below `bound`, which is not 0.
pub fn below(chance: &SeededEntropy, bound: usize) -> usize {
    (chance.next_u64() % bound as u64) as usize
}

#[test]
fn only_flushed_bytes_and_names_survive() {
    let mut disk = Disk::new(Names::WithFolder);
    let file = disk.create(ROOT, "a", false).unwrap();
    disk.write(file, 0, b"flushed").unwrap();
    disk.sync_file(file).unwrap();
    assert_eq!(disk.cut(CutMode::Drop).lookup(ROOT, "a"), Err(Refusal::NoEntry));
    disk.sync_folder(ROOT);
    disk.write(file, 7, b" not").unwrap();
    disk.rename(ROOT, "a", "b").unwrap();
    let after = disk.cut(CutMode::Drop);
    let file = after.lookup(ROOT, "a").unwrap();
    assert_eq!(after.read(file, 0, 99).unwrap(), b"flushed");
    assert_eq!(disk.read(file, 0, 99).unwrap(), b"flushed not");
}

#[test]
fn a_flush_of_a_file_keeps_its_name_only_where_the_disk_says_so() {
    for (names, survives) in [(Names::WithFile, true), (Names::WithFolder, false)] {
        let mut disk = Disk::new(names);
        let file = disk.create(ROOT, "a", false).unwrap();
        disk.sync_file(file).unwrap();
        assert_eq!(disk.cut(CutMode::Drop).lookup(ROOT, "a").is_ok(), survives, "{names:?}");
    }
}

#[test]
fn a_torn_cut_keeps_some_blocks_and_a_prefix_the_first_bytes() {
    let mut disk = Disk::new(Names::WithFile);
    let file = disk.create(ROOT, "a", false).unwrap();
    disk.resize(file, 16 * BLOCK_BYTES);
    disk.sync_file(file).unwrap();
    disk.write(file, 0, &[7; 16 * BLOCK_BYTES]).unwrap();
    let torn = disk.cut(CutMode::Subset { seed: 5 });
    let blocks: Vec<u8> = torn.read(file, 0, 16 * BLOCK_BYTES).unwrap().to_vec();
    let kept = blocks.chunks(BLOCK_BYTES).filter(|block| block == &[7; BLOCK_BYTES]).count();
    let lost = blocks.chunks(BLOCK_BYTES).filter(|block| block == &[0; BLOCK_BYTES]).count();
    assert!(kept > 0 && lost > 0 && kept + lost == 16, "{kept} kept, {lost} lost");
    let prefix = disk.cut(CutMode::Prefix { seed: 4 });
    let bytes = prefix.read(file, 0, 16 * BLOCK_BYTES).unwrap();
    let first_lost = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    assert!(bytes[first_lost..].iter().all(|byte| *byte == 0));
}
