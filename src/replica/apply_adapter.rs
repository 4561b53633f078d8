//! openraft's state machine over `machine` and the records.
//!
//! Order, for every chunk of committed entries:
//!
//! 1. apply them to the machine in memory, one after the other, and stage one batch of records over
//!    the disk: the changes, the last applied position and the members. Readers of the state wait
//!    meanwhile, so a fire that has left the state is already in the history;
//! 2. write the batch to the records, while readers go on;
//! 3. answer the proposers, wake those who wait for an index, tell the effects.
//!
//! The batch is atomic and not synced: after a crash the records are at an older index, and the log
//! is applied again from there. It can be, for the log is purged only up to what is durable in the
//! records. An entry that does not decode, or a record that cannot be written, stops the node: a
//! member that skipped an entry would drift apart from the others.

use std::io;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use openraft::storage::{ApplyResponder, EntryResponder, RaftStateMachine, Snapshot, SnapshotMeta};

use crate::machine::Machine;
use crate::machine::change::Change;
use crate::machine::codec::decode_entry;
use crate::machine::effect::Effect;
use crate::machine::reply::Reply;
use crate::replica::AppliedEffects;
use crate::replica::bridge;
use crate::replica::codec::{decode_stored_members, encode_stored_members};
use crate::replica::live::{Live, Published};
use crate::replica::log_adapter::{DurableMark, failed};
use crate::replica::overlay::Overlay;
use crate::replica::peers::Peers;
use crate::replica::snapshot_adapter::{
    SnapshotBuilder, SnapshotOfUs, install_records, keep, read_meta,
};
use crate::replica::types::{
    Entry, EntryPayload, LogId, StoredMembers, TypeConfig, log_id_of, position_of,
};
use crate::store::error::StoreError;
use crate::store::records::{AppliedMark, Records};
use crate::store::snapshot_file::{SnapshotFile, Snapshots};

/// Entries taken from the log at once.
const CHUNK: usize = 64;
/// Changes after which what was applied is written, and readers get their turn.
const STEP_CHANGES: usize = 1_024;
/// Changes that are written without making room for others first.
const WRITE_INLINE: usize = 128;

pub(crate) struct ApplyAdapter {
    live: Arc<Live>,
    overlay: Arc<Overlay>,
    records: Records,
    snapshots: Snapshots,
    durable: DurableMark,
    peers: Arc<Peers>,
    members: StoredMembers,
}

/// What is left to do for an entry once its chunk is written.
struct Pending {
    responder: Option<ApplyResponder<TypeConfig>>,
    reply: Reply,
    index: u64,
    effects: Vec<Effect>,
}

impl ApplyAdapter {
    /// Loads the state as the records hold it.
    pub(crate) fn open(
        overlay: Arc<Overlay>,
        snapshots: Snapshots,
        durable: DurableMark,
        peers: Arc<Peers>,
    ) -> io::Result<ApplyAdapter> {
        let records = overlay.records();
        let mark = records.applied().map_err(failed)?.unwrap_or_default();
        let members = decode_stored_members(mark.membership)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        let machine = bridge::load(&records).map_err(failed)?;
        peers.learn(members.membership());
        let live = Arc::new(Live::new(machine, mark.position.map(log_id_of)));
        Ok(ApplyAdapter { live, overlay, records, snapshots, durable, peers, members })
    }

    pub(crate) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }

    pub(crate) fn last(&self) -> Option<LogId> {
        self.live.read().last
    }

    /// Applies, writes and tells, in steps that keep the lock for a bounded time only.
    fn apply_chunk(&mut self, chunk: Vec<EntryResponder<TypeConfig>>) -> io::Result<()> {
        let mut entries = chunk.into_iter().peekable();
        while entries.peek().is_some() {
            let (pending, last) = self.apply_step(&mut entries)?;
            if let Some(last) = last {
                self.tell(pending, last);
            }
        }
        Ok(())
    }

    fn apply_step(
        &mut self,
        entries: &mut impl Iterator<Item = EntryResponder<TypeConfig>>,
    ) -> io::Result<(Vec<Pending>, Option<LogId>)> {
        let mut pending = Vec::new();
        let mut changes = Vec::new();
        let mut members = None;
        let live = Arc::clone(&self.live);
        let mut published = live.write();
        while changes.len() < STEP_CHANGES {
            let Some((entry, responder)) = entries.next() else {
                break;
            };
            let (log_id, applied) = apply_one(&mut published, entry, &mut changes)?;
            let (reply, effects) = match applied {
                Applied::Command(reply, effects) => (reply, effects),
                Applied::Members(stored) => {
                    members = Some(stored);
                    (Reply::Done, Vec::new())
                }
            };
            published.last = Some(log_id);
            pending.push(Pending { responder, reply, index: log_id.index, effects });
        }
        if let Some(members) = members {
            self.peers.learn(members.membership());
            self.members = members;
        }
        let mark = mark(&published, &self.members);
        let batch = bridge::batch(&self.records, &changes, mark).map_err(failed)?;
        self.overlay.stage(batch);
        let last = published.last;
        drop(published);
        if changes.len() > WRITE_INLINE {
            without_a_worker(|| self.overlay.write_out()).map_err(failed)?;
        } else {
            self.overlay.write_out().map_err(failed)?;
        }
        Ok((pending, last))
    }

    fn tell(&self, pending: Vec<Pending>, last: LogId) {
        let mut effects = Vec::new();
        for item in pending {
            if let Some(responder) = item.responder {
                responder.send(item.reply);
            }
            if !item.effects.is_empty() {
                effects.push(AppliedEffects { index: item.index, effects: item.effects });
            }
        }
        self.live.advanced(last);
        for told in effects {
            self.live.tell_effects(told);
        }
    }
}

/// Applies one entry to the machine and collects what it changed.
fn apply_one(
    published: &mut Published,
    entry: Entry,
    changes: &mut Vec<Change>,
) -> io::Result<(LogId, Applied)> {
    let log_id = entry.log_id;
    let applied = match entry.payload {
        EntryPayload::Blank => Applied::Command(Reply::Done, Vec::new()),
        EntryPayload::Membership(members) => {
            Applied::Members(StoredMembers::new(Some(log_id), members))
        }
        EntryPayload::Normal(proposal) => {
            let entry = decode_entry(&proposal.0).map_err(|error| {
                let problem = format!("log entry {log_id} cannot be applied: {error}");
                io::Error::new(io::ErrorKind::InvalidData, problem)
            })?;
            let mut applied = published.machine.apply(log_id.index, &entry);
            changes.append(&mut applied.changes);
            Applied::Command(applied.reply, applied.effects)
        }
    };
    Ok((log_id, applied))
}

enum Applied {
    Command(Reply, Vec<Effect>),
    Members(StoredMembers),
}

fn mark(published: &Published, members: &StoredMembers) -> AppliedMark {
    AppliedMark {
        position: published.last.map(position_of),
        membership: encode_stored_members(members),
        stamp_ms: published.machine.state().stamp().as_ms(),
    }
}

impl RaftStateMachine<TypeConfig> for ApplyAdapter {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembers)> {
        Ok((self.last(), self.members.clone()))
    }

    async fn apply<Strm>(&mut self, entries: Strm) -> io::Result<()>
    where
        Strm: Stream<Item = io::Result<EntryResponder<TypeConfig>>> + Unpin + Send,
    {
        let mut chunks = entries.ready_chunks(CHUNK);
        while let Some(chunk) = chunks.next().await {
            let chunk: Vec<_> = chunk.into_iter().collect::<io::Result<_>>()?;
            self.apply_chunk(chunk)?;
            // A long replay leaves room for the others after every chunk.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Declines while the one before is still being made, unless it must not.
    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<SnapshotBuilder> {
        let builder = self.get_snapshot_builder().await;
        (force || builder.still.is_some()).then_some(builder)
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        let published = self.live.read();
        SnapshotBuilder {
            last: published.last,
            members: self.members.clone(),
            mark: mark(&published, &self.members),
            still: self.overlay.hold(),
            snapshots: self.snapshots.clone(),
            durable: self.durable.clone(),
        }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMetaOfUs,
        snapshot: SnapshotFile,
    ) -> io::Result<()> {
        let (records, snapshots) = (self.records.clone(), self.snapshots.clone());
        let (_, mark) = read_meta(&snapshot.meta)?;
        let load = move || -> Result<Machine, StoreError> {
            let snapshot = keep(&snapshots, snapshot)?;
            install_records(&records, &snapshot, mark)?;
            bridge::load(&records)
        };
        let machine = blocking(load).await?.map_err(failed)?;
        self.members = meta.last_membership.clone();
        self.peers.learn(self.members.membership());
        {
            let mut published = self.live.write();
            *published = Published { machine, last: meta.last_log_id };
        }
        if let Some(last) = meta.last_log_id {
            self.durable.reached(last.index);
            self.live.advanced(last);
            self.live.tell_effects(AppliedEffects { index: last.index, effects: Vec::new() });
        }
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<SnapshotOfUs>> {
        let Some(file) = self.snapshots.latest() else {
            return Ok(None);
        };
        let (meta, _) = read_meta(&file.meta)?;
        Ok(Some(Snapshot { meta, snapshot: file }))
    }
}

pub(crate) type SnapshotMetaOfUs = SnapshotMeta<
    openraft::vote::leader_id_std::CommittedLeaderId<u64>,
    u64,
    super::types::PeerNode,
>;

/// Runs work that waits for the disk away from the tasks that must not wait.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

/// Runs work that may wait for the disk where it is, and lets another thread do what else waits.
fn without_a_worker<T>(work: impl FnOnce() -> T) -> T {
    let flavor = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavor, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}
