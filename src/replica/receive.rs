//! Takes a snapshot from the leader, chunk by chunk, and hands it to the core once it is whole.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::StreamExt;
use openraft::storage::Snapshot;

use crate::replica::apply_adapter::blocking;
use crate::replica::codec::{DecodeError, Reader, read_vote};
use crate::replica::frames::Kind;
use crate::replica::inner::Inner;
use crate::replica::link::{Frames, LinkError};
use crate::replica::snapshot_adapter::read_meta;
use crate::replica::types::Vote;
use crate::store::error::StoreError;

/// Why a snapshot was not taken; the leader is told, and sends it again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    #[error("a frame of the snapshot cannot be read: {0}")]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("the snapshot was not kept: {0}")]
    Store(#[from] StoreError),
    #[error("the snapshot was not installed: {0}")]
    Install(String),
}

/// Distinguishes transfers that run at the same time.
static TRANSFERS: AtomicU64 = AtomicU64::new(0);

/// Returns this node's vote, by which the leader sees whether it still leads.
pub(crate) async fn receive_snapshot(
    inner: &Inner,
    begin: Bytes,
    mut frames: Frames,
) -> Result<Vote, ReceiveError> {
    let mut input = Reader(begin);
    let vote = read_vote(&mut input)?;
    let (bytes, checksum) = (input.u64("snapshot")?, input.u32("snapshot")?);
    let meta = input.bytes("snapshot")?;
    input.end()?;
    let transfer = TRANSFERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("received-{}-{transfer}", vote.leader_id.term);
    tracing::info!(node = inner.me.0, bytes, "receiving a snapshot");
    let mut receiver = inner.store.snapshots.receive(&name, bytes, checksum)?;
    while receiver.bytes_received() < bytes {
        let Some(frame) = frames.next().await else {
            return Err(LinkError::Broken("the snapshot was cut off".to_owned()).into());
        };
        let frame = frame?;
        if frame.kind != Some(Kind::SnapshotChunk) || frame.cluster != inner.peers.cluster() {
            return Err(LinkError::Broken("not a chunk of a snapshot".to_owned()).into());
        }
        inner.heard_from_leader();
        let mut chunk = Reader(frame.body);
        let offset = chunk.u64("chunk")?;
        let data = chunk.bytes("chunk")?;
        chunk.end()?;
        receiver.write(offset, &data)?;
    }
    let finished = blocking(move || receiver.finish()).await;
    let file = finished.map_err(|error| ReceiveError::Install(error.to_string()))??;
    if file.meta != meta {
        return Err(ReceiveError::Install("it is not the one that was announced".to_owned()));
    }
    let (meta, _) =
        read_meta(&file.meta).map_err(|error| ReceiveError::Install(error.to_string()))?;
    let snapshot = Snapshot { meta, snapshot: file };
    let installed = inner.raft.install_full_snapshot(vote, snapshot).await;
    let response = installed.map_err(|fatal| ReceiveError::Install(fatal.to_string()))?;
    Ok(response.vote)
}
