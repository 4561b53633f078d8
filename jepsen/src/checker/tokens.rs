//! P4: no token of a job is granted twice, and those of one fire grow with its attempts.

use std::collections::BTreeSet;

use crate::history::JobHistory;

pub(crate) fn check(job: &JobHistory) -> Vec<String> {
    let mut broken = Vec::new();
    let mut seen = BTreeSet::new();
    for record in &job.records {
        if !record.tokens.is_sorted_by(|earlier, later| earlier < later) {
            let (first, tokens) = (record.first, &record.tokens);
            broken.push(format!("P4: {} {first} has tokens {tokens:?}", job.name));
        }
        for token in &record.tokens {
            if !seen.insert(*token) {
                broken.push(format!("P4: {} granted token {token} twice", job.name));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Record;
    use horolog::base::time::Timestamp;
    use std::collections::BTreeMap;

    fn job(fires: &[&[u64]]) -> JobHistory {
        let record = |tokens: &&[u64]| Record {
            trigger: None,
            first: Timestamp::EPOCH,
            last: Timestamp::EPOCH,
            count: 1,
            tokens: tokens.to_vec(),
        };
        JobHistory {
            name: "default/a".to_owned(),
            periods_ms: BTreeMap::new(),
            records: fires.iter().map(record).collect(),
        }
    }

    #[test]
    fn a_token_granted_twice_or_out_of_order_is_seen() {
        assert_eq!(check(&job(&[&[1, 4], &[2, 3]])), Vec::<String>::new());
        assert_eq!(check(&job(&[&[1], &[1]])).len(), 1);
        assert_eq!(check(&job(&[&[4, 1]])).len(), 1);
    }
}
