//! Whether every fire was completed exactly once, as the cluster's own records say.

use serde::Deserialize;

use crate::clock::parse_us;
use crate::cluster::Cluster;
use crate::error::{Error, Result};

/// What the records hold, against what they should hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Expected occurrences without a fire that succeeded.
    pub missed: usize,
    /// Fires beside the first for one occurrence, and attempts beside the first for one fire.
    pub doubled: usize,
}

/// One fire of the records.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Of a schedule's fire, its job and occurrence; of a request's fire, its own id.
    pub occurrence: Occurrence,
    pub scheduled_us: i64,
    pub has_succeeded: bool,
    pub attempts: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Occurrence {
    Scheduled { job: String, trigger: String, at_us: i64 },
    Requested { fire: String },
}

impl Audit {
    /// `expected` occurrences should be among the fires, and no others.
    pub fn of(mut fires: Vec<Seen>, expected: usize) -> Audit {
        fires.retain(|fire| fire.has_succeeded);
        let again: usize = fires.iter().map(|fire| fire.attempts.saturating_sub(1)).sum();
        let all = fires.len();
        fires.sort_by(|a, b| a.occurrence.cmp(&b.occurrence));
        fires.dedup_by(|a, b| a.occurrence == b.occurrence);
        let distinct = fires.len();
        Audit { missed: expected.saturating_sub(distinct), doubled: all - distinct + again }
    }
}

/// Every fire that the cluster has a record of.
///
/// # Errors
/// When a page cannot be read.
pub async fn read_fires(cluster: &Cluster) -> Result<Vec<Seen>> {
    let node = cluster.leader().await?;
    let mut fires = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let from = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let path = format!("/v1/tenants/default/fires?limit={PAGE}{from}");
        let reply = cluster.get(node, &path).await?;
        let page: Page<'_> = serde_json::from_slice(&reply.body).map_err(Error::json("fires"))?;
        for item in &page.items {
            fires.push(item.seen()?);
        }
        cursor = page.next_cursor.map(str::to_owned);
        if cursor.is_none() {
            return Ok(fires);
        }
    }
}

const PAGE: usize = 1_000;

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    items: Vec<Item<'a>>,
    next_cursor: Option<&'a str>,
}

#[derive(Deserialize)]
struct Item<'a> {
    id: &'a str,
    #[serde(borrow)]
    job: Job<'a>,
    trigger: Option<&'a str>,
    scheduled_at: &'a str,
    state: &'a str,
    attempt_count: usize,
}

#[derive(Deserialize)]
struct Job<'a> {
    name: &'a str,
}

impl Item<'_> {
    fn seen(&self) -> Result<Seen> {
        let scheduled_us = parse_us(self.scheduled_at)?;
        let occurrence = match self.trigger {
            Some(trigger) => Occurrence::Scheduled {
                job: self.job.name.to_owned(),
                trigger: trigger.to_owned(),
                at_us: scheduled_us,
            },
            None => Occurrence::Requested { fire: self.id.to_owned() },
        };
        let has_succeeded = self.state == "succeeded";
        Ok(Seen { occurrence, scheduled_us, has_succeeded, attempts: self.attempt_count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fire(name: &str, has_succeeded: bool, attempts: usize) -> Seen {
        let occurrence = Occurrence::Requested { fire: name.to_owned() };
        Seen { occurrence, scheduled_us: 0, has_succeeded, attempts }
    }

    #[test]
    fn what_is_missing_and_what_ran_twice_is_counted() {
        let clean = vec![fire("a", true, 1), fire("b", true, 1)];
        assert_eq!(Audit::of(clean, 2), Audit { missed: 0, doubled: 0 });
        let failed = vec![fire("a", true, 1), fire("b", false, 1)];
        assert_eq!(Audit::of(failed, 3), Audit { missed: 2, doubled: 0 });
        let twice = vec![fire("a", true, 1), fire("a", true, 1), fire("b", true, 3)];
        assert_eq!(Audit::of(twice, 2), Audit { missed: 0, doubled: 3 });
    }
}
