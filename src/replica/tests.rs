//! The adapters against openraft's own storage suite, over the real store in temporary folders.

use std::sync::Arc;
use std::time::Duration;

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;

use crate::replica::apply_adapter::ApplyAdapter;
use crate::replica::frames::ClusterTag;
use crate::replica::link::LinkTimings;
use crate::replica::log_adapter::{DurableMark, LogAdapter};
use crate::replica::overlay::Overlay;
use crate::replica::peers::Peers;
use crate::replica::types::TypeConfig;
use crate::store::{Store, StoreOptions};

struct Builder;

/// Keeps the folder and its lock as long as the adapters are in use.
struct Guard {
    _store: Store,
    _folder: TempDir,
}

pub(crate) fn timings() -> LinkTimings {
    let second = Duration::from_secs(1);
    LinkTimings { connect: second, probe_after: second, probe_wait: second }
}

impl StoreBuilder<TypeConfig, LogAdapter, ApplyAdapter, Guard> for Builder {
    async fn build(&self) -> Result<(Guard, LogAdapter, ApplyAdapter), StorageError<TypeConfig>> {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        let durable = DurableMark::default();
        let log = LogAdapter::new(store.log.clone(), store.records.clone(), durable.clone());
        let peers = Arc::new(Peers::new(ClusterTag::NONE, timings()));
        let overlay = Overlay::new(store.records.clone());
        let snapshots = store.snapshots.clone();
        let adapter = ApplyAdapter::open(overlay, snapshots, durable, peers).unwrap();
        Ok((Guard { _store: store, _folder: folder }, log, adapter))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openrafts_storage_suite_passes() {
    Suite::test_store(&Builder).await.unwrap();
}
