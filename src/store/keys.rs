//! The keys of the records: one byte for the table, then numbers in big-endian order or names, so
//! that the order of the keys is the order of reading.
//!
//! | prefix | table | key |
//! | --- | --- | --- |
//! | `m` | meta | |
//! | `e` | tenants | name |
//! | `g` | groups | tenant, 0, group |
//! | `j` | jobs | job |
//! | `s` | retired definitions | job, revision |
//! | `r` | triggers | trigger |
//! | `f` | open fires | job, seq |
//! | `w` | workers | worker |
//! | `q` | remembered requests | tenant, 0, key |
//! | `h` | ended fires, cold | job, seq |
//! | `t` | ended fires by the time of recording, cold | seq |
//! | `a` | what attempts left behind, cold | job, seq, attempt |
//! | `n` | ended fires of a job that were removed for their age, cold | job |
//!
//! A prefix is never given another meaning.

use crate::base::bounded::Name;
use crate::model::id::{FireId, GroupKey, JobId, Revision, RunId, Seq, TriggerId, WorkerId};

/// A table of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Meta,
    Tenants,
    Groups,
    Jobs,
    RetiredSpecs,
    Triggers,
    Fires,
    Workers,
    Requests,
    History,
    HistoryByTime,
    Attempts,
    AgedOut,
}

impl Table {
    /// The tables that a state is loaded from. Jobs come before fires, which share their keys.
    pub const HOT: [Table; 9] = [
        Table::Meta,
        Table::Tenants,
        Table::Groups,
        Table::Jobs,
        Table::RetiredSpecs,
        Table::Triggers,
        Table::Fires,
        Table::Workers,
        Table::Requests,
    ];
    /// The tables that stay on the disk.
    pub const COLD: [Table; 4] =
        [Table::History, Table::HistoryByTime, Table::Attempts, Table::AgedOut];

    #[must_use]
    pub fn prefix(self) -> u8 {
        match self {
            Table::Meta => b'm',
            Table::Tenants => b'e',
            Table::Groups => b'g',
            Table::Jobs => b'j',
            Table::RetiredSpecs => b's',
            Table::Triggers => b'r',
            Table::Fires => b'f',
            Table::Workers => b'w',
            Table::Requests => b'q',
            Table::History => b'h',
            Table::HistoryByTime => b't',
            Table::Attempts => b'a',
            Table::AgedOut => b'n',
        }
    }
}

/// Whether a key belongs to a table that no state is loaded from.
#[must_use]
pub fn is_cold(key: &[u8]) -> bool {
    let prefix = key.first().copied();
    Table::COLD.iter().any(|table| Some(table.prefix()) == prefix)
}

#[must_use]
pub fn meta() -> Vec<u8> {
    vec![Table::Meta.prefix()]
}

#[must_use]
pub fn tenant(name: &Name) -> Vec<u8> {
    of_texts(Table::Tenants, &[name.as_str()])
}

#[must_use]
pub fn group(key: &GroupKey) -> Vec<u8> {
    of_texts(Table::Groups, &[key.tenant.as_str(), key.group.as_str()])
}

#[must_use]
pub fn job(id: JobId) -> Vec<u8> {
    of_numbers(Table::Jobs, &[id.0.as_u64()])
}

#[must_use]
pub fn retired_spec(job: JobId, revision: Revision) -> Vec<u8> {
    of_numbers(Table::RetiredSpecs, &[job.0.as_u64(), revision.0])
}

/// The job and revision inside a key of [`retired_spec`].
#[must_use]
pub fn parse_retired_spec(key: &[u8]) -> Option<(JobId, Revision)> {
    let (job, rest) = key.get(1..)?.split_first_chunk::<8>()?;
    let revision: [u8; 8] = rest.try_into().ok()?;
    let job = JobId(Seq::from_u64(u64::from_be_bytes(*job)));
    Some((job, Revision(u64::from_be_bytes(revision))))
}

#[must_use]
pub fn trigger(id: TriggerId) -> Vec<u8> {
    of_numbers(Table::Triggers, &[id.0.as_u64()])
}

/// An open fire.
#[must_use]
pub fn fire(id: FireId) -> Vec<u8> {
    of_numbers(Table::Fires, &[id.job.0.as_u64(), id.seq.as_u64()])
}

#[must_use]
pub fn worker(id: WorkerId) -> Vec<u8> {
    of_numbers(Table::Workers, &[id.0.as_u64()])
}

#[must_use]
pub fn request(tenant: &Name, key: &str) -> Vec<u8> {
    of_texts(Table::Requests, &[tenant.as_str(), key])
}

/// An ended fire.
#[must_use]
pub fn history(id: FireId) -> Vec<u8> {
    of_numbers(Table::History, &[id.job.0.as_u64(), id.seq.as_u64()])
}

/// The prefix of the ended fires of a job.
#[must_use]
pub fn history_of(job: JobId) -> Vec<u8> {
    of_numbers(Table::History, &[job.0.as_u64()])
}

/// The seq inside a key of [`history`].
#[must_use]
pub fn parse_history_seq(key: &[u8]) -> Option<Seq> {
    let seq: [u8; 8] = key.get(9..)?.try_into().ok()?;
    Some(Seq::from_u64(u64::from_be_bytes(seq)))
}

/// An ended fire by the time of its recording.
#[must_use]
pub fn by_time(seq: Seq) -> Vec<u8> {
    of_numbers(Table::HistoryByTime, &[seq.as_u64()])
}

/// The seq inside a key of [`by_time`].
#[must_use]
pub fn parse_by_time(key: &[u8]) -> Option<Seq> {
    let seq: [u8; 8] = key.get(1..)?.try_into().ok()?;
    Some(Seq::from_u64(u64::from_be_bytes(seq)))
}

#[must_use]
pub fn attempt(run: RunId) -> Vec<u8> {
    let mut key = attempts_of(run.fire);
    key.extend_from_slice(&run.attempt.to_be_bytes());
    key
}

/// The prefix of the attempts of a fire.
#[must_use]
pub fn attempts_of(fire: FireId) -> Vec<u8> {
    of_numbers(Table::Attempts, &[fire.job.0.as_u64(), fire.seq.as_u64()])
}

#[must_use]
pub fn aged_out(job: JobId) -> Vec<u8> {
    of_numbers(Table::AgedOut, &[job.0.as_u64()])
}

fn of_numbers(table: Table, numbers: &[u64]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + 8 * numbers.len() + 4);
    key.push(table.prefix());
    for number in numbers {
        key.extend_from_slice(&number.to_be_bytes());
    }
    key
}

/// No name holds the byte 0; only the last text may be anything.
fn of_texts(table: Table, texts: &[&str]) -> Vec<u8> {
    let mut key = vec![table.prefix()];
    for (i, text) in texts.iter().enumerate() {
        if i > 0 {
            key.push(0);
        }
        key.extend_from_slice(text.as_bytes());
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_is_the_order_of_numbers() {
        let id = |job, seq| FireId { job: JobId(Seq::from_u64(job)), seq: Seq::from_u64(seq) };
        let ids = [id(0, 1), id(1, 0), id(1, 255), id(1, 256), id(256, 0), id(u64::MAX, 0)];
        let keys: Vec<Vec<u8>> = ids.iter().map(|id| history(*id)).collect();
        assert!(keys.is_sorted());
        assert!(keys[1].starts_with(&history_of(ids[1].job)));
        assert_eq!(parse_history_seq(&keys[3]), Some(ids[3].seq));
        assert_eq!(parse_by_time(&by_time(ids[3].seq)), Some(ids[3].seq));
    }

    #[test]
    fn tables_have_prefixes_of_their_own() {
        let tables = Table::HOT.into_iter().chain(Table::COLD);
        let mut prefixes: Vec<u8> = tables.map(Table::prefix).collect();
        let count = prefixes.len();
        prefixes.sort_unstable();
        prefixes.dedup();
        assert_eq!((prefixes.len(), count), (13, 13));
        assert!(is_cold(&by_time(Seq::ZERO)) && !is_cold(&meta()) && !is_cold(b""));
    }
}
