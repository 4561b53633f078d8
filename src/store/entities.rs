//! Records of the machine: which puts and deletes its changes are, how a state is loaded again, and
//! how history is read.
//!
//! Every member turns the same changes into the same operations, the removal of old history
//! included: it reads the records as they stand, with the operations of the same batch over them.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::base::time::Timestamp;
use crate::machine::builder::StateBuilder;
use crate::machine::change::Change;
use crate::machine::codec::{self, CodecError};
use crate::machine::state::State;
use crate::model::fire::{AttemptReport, Fire};
use crate::model::id::{FireId, JobId, RunId, Seq};
use crate::store::error::StoreError;
use crate::store::keys::{self, Table};
use crate::store::records::{KeyValue, Records, prefix_end};

/// What a batch of changes does to the records. No key is in both lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    pub puts: Vec<KeyValue>,
    pub deletes: Vec<Vec<u8>>,
}

/// Turns the changes of applied entries, in their order, into operations on the records as they
/// are before them. A record that is put more than once is encoded once.
///
/// # Errors
/// The disk, or a damaged record of the history.
pub fn to_operations<'a>(
    records: &Records,
    changes: impl IntoIterator<Item = &'a Change>,
) -> Result<Operations, StoreError> {
    let mut batch = Batch { records, pending: BTreeMap::new() };
    for change in changes {
        batch.add(change)?;
    }
    batch.finish()
}

/// Loads the hot tables and checks every invariant of the state.
///
/// # Errors
/// The disk, a record that does not decode, or a broken invariant.
pub fn load_state(records: &Records) -> Result<State, StoreError> {
    let mut builder = StateBuilder::new();
    for table in Table::HOT {
        records.for_each(&[table.prefix()], &mut |key, value| {
            load_record(&mut builder, table, key, value)
        })?;
    }
    builder.finish().map_err(|broken| StoreError::BadRecord { problem: broken.to_string() })
}

/// The records of the hot tables, for a snapshot; those for which [`keys::is_cold`] holds are
/// copied from the disk beside them.
pub fn snapshot_records(state: &State) -> impl Iterator<Item = Result<KeyValue, StoreError>> + '_ {
    let meta = std::iter::once_with(|| encoded(keys::meta(), "meta", state.meta()));
    let tenants = state.tenants().values();
    let groups = state.groups().values();
    let jobs = state.jobs().values();
    let specs = state.retired_specs().iter();
    let triggers = state.triggers().values();
    let fires = state.fires().values();
    let workers = state.workers().values();
    let requests = state.requests().values();
    meta.chain(tenants.map(|it| encoded(keys::tenant(&it.name), "tenant", it)))
        .chain(groups.map(|it| encoded(keys::group(&it.key), "group", it)))
        .chain(jobs.map(|it| encoded(keys::job(it.id), "job", it)))
        .chain(specs.map(|((job, revision), spec)| {
            encoded(keys::retired_spec(*job, *revision), "job spec", spec)
        }))
        .chain(triggers.map(|it| encoded(keys::trigger(it.id), "trigger", it)))
        .chain(fires.map(|it| encoded(keys::fire(it.id), "fire", it)))
        .chain(workers.map(|it| encoded(keys::worker(it.id), "worker", it)))
        .chain(requests.map(|it| encoded(keys::request(&it.tenant, &it.key), "request", it)))
}

/// An ended fire.
///
/// # Errors
/// The disk or a damaged record.
pub fn history_fire(records: &Records, id: FireId) -> Result<Option<Fire>, StoreError> {
    let value = records.get(&keys::history(id))?;
    value.map(|value| decoded("fire", &value)).transpose()
}

/// What an attempt left behind, when it left anything.
///
/// # Errors
/// The disk or a damaged record.
pub fn history_attempt(records: &Records, run: RunId) -> Result<Option<AttemptReport>, StoreError> {
    let value = records.get(&keys::attempt(run))?;
    value.map(|value| decoded("attempt report", &value)).transpose()
}

/// The ended fires of a job that were recorded before `before`, newest first, at most `limit`.
///
/// # Errors
/// The disk or a damaged record.
pub fn history_of_job(
    records: &Records,
    job: JobId,
    before: Option<Seq>,
    limit: usize,
) -> Result<Vec<Fire>, StoreError> {
    let prefix = keys::history_of(job);
    let end = match before {
        Some(seq) => Some(keys::history(FireId { job, seq })),
        None => prefix_end(&prefix),
    };
    let found = records.scan(Bound::Included(&prefix), upper(end.as_deref()), true, limit)?;
    found.iter().map(|(_, value)| decoded("fire", value)).collect()
}

/// The ended fires of all jobs that were recorded before `before`, newest first, at most `limit`.
///
/// # Errors
/// The disk or a damaged record.
pub fn history_recent(
    records: &Records,
    before: Option<Seq>,
    limit: usize,
) -> Result<Vec<Fire>, StoreError> {
    let prefix = [Table::HistoryByTime.prefix()];
    let end = match before {
        Some(seq) => Some(keys::by_time(seq)),
        None => prefix_end(&prefix),
    };
    let found = records.scan(Bound::Included(&prefix), upper(end.as_deref()), true, limit)?;
    let mut fires = Vec::with_capacity(found.len());
    for (key, value) in found {
        let entry: TimeEntry = decoded("time entry", &value)?;
        let id = FireId { job: entry.job, seq: seq_of(keys::parse_by_time(&key))? };
        // It may have been removed between the two reads.
        fires.extend(history_fire(records, id)?);
    }
    Ok(fires)
}

/// What the index by time says of an ended fire.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct TimeEntry {
    job: JobId,
    recorded_at: Timestamp,
}

/// What a batch will do to one key.
enum Pending<'a> {
    /// The record inside the change, encoded at the end.
    Record(&'a Change),
    Bytes(Vec<u8>),
    Delete,
}

struct Batch<'a> {
    records: &'a Records,
    pending: BTreeMap<Vec<u8>, Pending<'a>>,
}

impl<'a> Batch<'a> {
    fn add(&mut self, change: &'a Change) -> Result<(), StoreError> {
        match change {
            Change::PutMeta(_) => self.put(keys::meta(), change),
            Change::PutTenant(tenant) => self.put(keys::tenant(&tenant.name), change),
            Change::DropTenant(name) => self.delete(keys::tenant(name)),
            Change::PutGroup(group) => self.put(keys::group(&group.key), change),
            Change::DropGroup(key) => self.delete(keys::group(key)),
            Change::PutJob(job) => self.put(keys::job(job.id), change),
            Change::DropJob(id) => {
                self.delete(keys::job(*id));
                self.delete(keys::aged_out(*id));
            }
            Change::PutRetiredSpec(job, revision, _) => {
                self.put(keys::retired_spec(*job, *revision), change);
            }
            Change::DropRetiredSpec(job, revision) => {
                self.delete(keys::retired_spec(*job, *revision));
            }
            Change::PutTrigger(trigger) => self.put(keys::trigger(trigger.id), change),
            Change::DropTrigger(id) => self.delete(keys::trigger(*id)),
            Change::PutFire(fire) => self.put(keys::fire(fire.id), change),
            Change::EndFire(fire) => {
                self.delete(keys::fire(fire.id));
                self.add_history(fire, change)?;
            }
            Change::PutHistory(fire) => self.add_history(fire, change)?,
            Change::PutAttempt(run, _) => self.put(keys::attempt(*run), change),
            Change::PruneJobHistory(job, count) => self.prune_job(*job, *count)?,
            Change::PruneHistory(before, count) => self.prune_old(*before, *count)?,
            Change::PutWorker(worker) => self.put(keys::worker(worker.id), change),
            Change::DropWorker(id) => self.delete(keys::worker(*id)),
            Change::PutRequest(request) => {
                self.put(keys::request(&request.tenant, &request.key), change);
            }
            Change::DropRequest(tenant, key) => self.delete(keys::request(tenant, key)),
        }
        Ok(())
    }

    fn put(&mut self, key: Vec<u8>, change: &'a Change) {
        self.pending.insert(key, Pending::Record(change));
    }

    fn delete(&mut self, key: Vec<u8>) {
        self.pending.insert(key, Pending::Delete);
    }

    fn add_history(&mut self, fire: &Fire, change: &'a Change) -> Result<(), StoreError> {
        self.put(keys::history(fire.id), change);
        let entry = TimeEntry { job: fire.id.job, recorded_at: fire.recorded_at };
        let (key, value) = encoded(keys::by_time(fire.id.seq), "time entry", &entry)?;
        self.pending.insert(key, Pending::Bytes(value));
        Ok(())
    }

    /// Removes the job's oldest ended fires. The machine counts those too that were removed for
    /// their age meanwhile; they were the oldest, and so they are the first of `count`.
    fn prune_job(&mut self, job: JobId, count: u32) -> Result<(), StoreError> {
        let aged_out = self.aged_out(job)?;
        let gone = aged_out.min(u64::from(count));
        if gone > 0 {
            self.set_aged_out(job, aged_out - gone)?;
        }
        let left = usize::try_from(u64::from(count) - gone).unwrap_or(usize::MAX);
        for (key, _) in self.first(&keys::history_of(job), left)? {
            let seq = seq_of(keys::parse_history_seq(&key))?;
            self.remove_history(FireId { job, seq })?;
        }
        Ok(())
    }

    fn prune_old(&mut self, before: Timestamp, count: u32) -> Result<(), StoreError> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        for (key, value) in self.first(&[Table::HistoryByTime.prefix()], count)? {
            let entry: TimeEntry = decoded("time entry", &value)?;
            if entry.recorded_at >= before {
                break;
            }
            let id = FireId { job: entry.job, seq: seq_of(keys::parse_by_time(&key))? };
            self.remove_history(id)?;
            if self.get(&keys::job(id.job))? {
                let aged_out = self.aged_out(id.job)?;
                self.set_aged_out(id.job, aged_out + 1)?;
            }
        }
        Ok(())
    }

    fn remove_history(&mut self, id: FireId) -> Result<(), StoreError> {
        self.delete(keys::history(id));
        self.delete(keys::by_time(id.seq));
        for (key, _) in self.first(&keys::attempts_of(id), usize::MAX)? {
            self.delete(key);
        }
        Ok(())
    }

    /// How many ended fires of the job were removed for their age, of those it still counts.
    fn aged_out(&self, job: JobId) -> Result<u64, StoreError> {
        let key = keys::aged_out(job);
        let value = match self.pending.get(&key) {
            Some(Pending::Bytes(value)) => Some(value.clone()),
            Some(Pending::Record(_) | Pending::Delete) => None,
            None => self.records.get(&key)?,
        };
        value.map_or(Ok(0), |value| decoded("count", &value))
    }

    fn set_aged_out(&mut self, job: JobId, count: u64) -> Result<(), StoreError> {
        let (key, value) = encoded(keys::aged_out(job), "count", &count)?;
        let pending = if count == 0 { Pending::Delete } else { Pending::Bytes(value) };
        self.pending.insert(key, pending);
        Ok(())
    }

    /// Whether there is a record, after what the batch has done so far.
    fn get(&self, key: &[u8]) -> Result<bool, StoreError> {
        match self.pending.get(key) {
            Some(Pending::Record(_) | Pending::Bytes(_)) => Ok(true),
            Some(Pending::Delete) => Ok(false),
            None => Ok(self.records.get(key)?.is_some()),
        }
    }

    /// The first `limit` records under a prefix, after what the batch has done so far. The value
    /// of one that the batch puts is left out unless it is bytes already.
    fn first(&self, prefix: &[u8], limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let end = prefix_end(prefix);
        let range = (Bound::Included(prefix), upper(end.as_deref()));
        let changed: Vec<(&Vec<u8>, &Pending<'_>)> = self.pending.range::<[u8], _>(range).collect();
        let wanted = limit.saturating_add(changed.len());
        let mut found: BTreeMap<Vec<u8>, Vec<u8>> =
            self.records.scan(range.0, range.1, false, wanted)?.into_iter().collect();
        for (key, pending) in changed {
            match pending {
                Pending::Record(_) => {
                    found.insert(key.clone(), Vec::new());
                }
                Pending::Bytes(value) => {
                    found.insert(key.clone(), value.clone());
                }
                Pending::Delete => {
                    found.remove(key);
                }
            }
        }
        Ok(found.into_iter().take(limit).collect())
    }

    fn finish(self) -> Result<Operations, StoreError> {
        let mut operations = Operations::default();
        for (key, pending) in self.pending {
            match pending {
                Pending::Record(change) => operations.puts.push((key, encode_record(change)?)),
                Pending::Bytes(value) => operations.puts.push((key, value)),
                Pending::Delete => operations.deletes.push(key),
            }
        }
        Ok(operations)
    }
}

/// The bytes of the record inside a change that puts one.
fn encode_record(change: &Change) -> Result<Vec<u8>, StoreError> {
    match change {
        Change::PutMeta(meta) => encode("meta", meta),
        Change::PutTenant(tenant) => encode("tenant", tenant),
        Change::PutGroup(group) => encode("group", group),
        Change::PutJob(job) => encode("job", job),
        Change::PutRetiredSpec(_, _, spec) => encode("job spec", spec),
        Change::PutTrigger(trigger) => encode("trigger", trigger),
        Change::PutFire(fire) | Change::EndFire(fire) | Change::PutHistory(fire) => {
            encode("fire", fire)
        }
        Change::PutAttempt(_, report) => encode("attempt report", report),
        Change::PutWorker(worker) => encode("worker", worker),
        Change::PutRequest(request) => encode("request", request),
        Change::DropTenant(_)
        | Change::DropGroup(_)
        | Change::DropJob(_)
        | Change::DropRetiredSpec(..)
        | Change::DropTrigger(_)
        | Change::PruneJobHistory(..)
        | Change::PruneHistory(..)
        | Change::DropWorker(_)
        | Change::DropRequest(..) => Err(StoreError::misuse("this change puts no record")),
    }
}

fn load_record(
    builder: &mut StateBuilder,
    table: Table,
    key: &[u8],
    value: &[u8],
) -> Result<(), StoreError> {
    match table {
        Table::Meta => builder.put_meta(decoded("meta", value)?),
        Table::Tenants => builder.put_tenant(decoded("tenant", value)?),
        Table::Groups => builder.put_group(decoded("group", value)?),
        Table::Jobs => builder.put_job(decoded("job", value)?),
        Table::RetiredSpecs => {
            let Some((job, revision)) = keys::parse_retired_spec(key) else {
                return Err(bad_key(key));
            };
            builder.put_retired_spec(job, revision, decoded("job spec", value)?);
        }
        Table::Triggers => builder.put_trigger(decoded("trigger", value)?),
        Table::Fires => builder.put_fire(decoded("fire", value)?),
        Table::Workers => builder.put_worker(decoded("worker", value)?),
        Table::Requests => builder.put_request(decoded("request", value)?),
        Table::History | Table::HistoryByTime | Table::Attempts | Table::AgedOut => {}
    }
    Ok(())
}

fn encoded<T: Serialize>(
    key: Vec<u8>,
    form: &'static str,
    value: &T,
) -> Result<KeyValue, StoreError> {
    Ok((key, encode(form, value)?))
}

fn encode<T: Serialize>(form: &'static str, value: &T) -> Result<Vec<u8>, StoreError> {
    codec::encode(form, value).map_err(bad_record)
}

fn decoded<T: DeserializeOwned>(form: &'static str, bytes: &[u8]) -> Result<T, StoreError> {
    codec::decode(form, bytes).map_err(bad_record)
}

fn bad_record(error: CodecError) -> StoreError {
    StoreError::BadRecord { problem: error.to_string() }
}

fn bad_key(key: &[u8]) -> StoreError {
    StoreError::BadRecord { problem: format!("a record has the key {key:02x?}") }
}

fn seq_of(parsed: Option<Seq>) -> Result<Seq, StoreError> {
    parsed.ok_or_else(|| StoreError::BadRecord { problem: "a key of the history is cut".into() })
}

fn upper(end: Option<&[u8]>) -> Bound<&[u8]> {
    end.map_or(Bound::Unbounded, Bound::Excluded)
}
