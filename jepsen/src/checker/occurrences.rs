//! P1 and P2: of a trigger with a fixed rate, every occurrence between the oldest and the newest
//! record has exactly one.

use std::collections::BTreeMap;

use crate::history::{JobHistory, Record};

pub(crate) fn check(job: &JobHistory) -> Vec<String> {
    let mut broken = Vec::new();
    for (trigger, &period_ms) in &job.periods_ms {
        let mut by_time: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
        for record in &job.records {
            if record.trigger.as_deref() == Some(trigger.as_str()) {
                by_time.entry(record.first).or_default().push(record);
            }
        }
        let mut expected = None;
        for (first, records) in by_time {
            if records.len() > 1 {
                broken.push(format!("P2: {} {trigger} {first} ×{}", job.name, records.len()));
            }
            let Some(record) = records.first() else { continue };
            if expected.is_some_and(|expected| first != expected) {
                broken.push(format!("P1: {} {trigger} has a hole before {first}", job.name));
            }
            let span_ms = record.last.since(first).as_ms();
            if u64::try_from(span_ms / period_ms.max(1)).ok() != record.count.checked_sub(1) {
                broken.push(format!("P1: {} {trigger} {first} is folded wrongly", job.name));
            }
            let period = horolog::base::time::Span::from_ms(period_ms);
            expected = Some(record.last.plus(period));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog::base::time::{Span, Timestamp};

    fn second(n: i64) -> Timestamp {
        Timestamp::EPOCH.plus(Span::from_secs(n))
    }

    fn job(runs: &[(i64, i64)]) -> JobHistory {
        let record = |&(first, last): &(i64, i64)| Record {
            trigger: Some("tick".to_owned()),
            first: second(first),
            last: second(last),
            count: (last - first).unsigned_abs() + 1,
            tokens: Vec::new(),
        };
        JobHistory {
            name: "default/a".to_owned(),
            periods_ms: BTreeMap::from([("tick".to_owned(), 1_000)]),
            records: runs.iter().map(record).collect(),
        }
    }

    #[test]
    fn a_lost_and_a_doubled_occurrence_are_seen() {
        assert_eq!(check(&job(&[(1, 1), (2, 5), (6, 6)])), Vec::<String>::new());
        assert_eq!(check(&job(&[(1, 1), (3, 3)])).len(), 1);
        assert_eq!(check(&job(&[(1, 1), (2, 2), (2, 2)])).len(), 1);
        assert_eq!(check(&job(&[(1, 3), (2, 2), (4, 4)])).len(), 2, "inside a folded run");
    }
}
