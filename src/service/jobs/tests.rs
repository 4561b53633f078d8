//! Pages of jobs: ranges, filters, and their bounded work.

use super::*;
use crate::base::time::Timestamp;
use crate::machine::Machine;
use crate::machine::command::{Entry, Precondition, Proposal};
use crate::model::job::{Executor, Payload};
use crate::model::policy::{Overlap, RetryPolicy, TimeoutPolicy};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn put(group: &str, job: &str) -> Command {
    let key = JobKey { tenant: Name::default_name(), group: name(group), name: name(job) };
    let spec = JobSpec {
        description: String::new(),
        executor: Executor::Worker,
        payload: Payload::null(),
        pool: Name::default_name(),
        priority: 5,
        overlap: Overlap::Skip,
        retry: RetryPolicy::default(),
        timeout: TimeoutPolicy::default(),
        lease_ttl: crate::base::limits::LEASE_TTL_DEFAULT,
        history_count: 1,
        labels: std::collections::BTreeMap::new(),
    };
    let precondition = Precondition::Always;
    Command::PutJob(Box::new(PutJob { job: key, spec, triggers: None, precondition }))
}

/// A machine with these jobs, of which every third is paused.
fn machine_with<'a>(jobs: impl Iterator<Item = (&'a str, String)>) -> Machine {
    let mut machine = Machine::default();
    let mut index = 0;
    let mut apply = |command: Command| {
        index += 1;
        let entry = Entry { stamp: Timestamp::EPOCH, proposal: Proposal::from(command) };
        let reply = machine.apply(index, &entry).reply;
        assert!(!matches!(reply, Reply::Rejected(_)), "{reply:?}");
    };
    apply(Command::Bootstrap { cluster_id: "c".to_owned() });
    for (number, (group, job)) in jobs.enumerate() {
        let key = JobKey { tenant: Name::default_name(), group: name(group), name: name(&job) };
        apply(put(group, &job));
        if number % 3 == 0 {
            apply(Command::PauseJob { job: key });
        }
    }
    machine
}

/// All names that a filter finds, page by page, and how many pages it took.
fn walk(state: &State, filter: &JobFilter, limit: usize) -> (Vec<String>, usize) {
    let tenant = Name::default_name();
    let (mut names, mut pages, mut after) = (Vec::new(), 0, None);
    loop {
        let page = page_of_jobs(state, first_key(&tenant, filter, after), filter, limit);
        assert!(page.items.len() <= limit);
        pages += 1;
        let shown = |view: &JobView| format!("{}/{}", view.job.key.group, view.job.key.name);
        names.extend(page.items.iter().map(shown));
        let Some(next) = page.next else {
            return (names, pages);
        };
        let request = PageRequest { limit, cursor: Some(next) };
        let read = |key: &str| {
            let (group, job) = key.split_once('/')?;
            Some((name(group), name(job)))
        };
        after = request.after(read).unwrap();
    }
}

/// A group, the beginning of a name, whether it is paused; and the jobs that this finds.
type Filtered<'a> = (Option<&'a str>, Option<&'a str>, Option<bool>, &'a [&'a str]);

#[test]
fn filters_find_exactly_what_they_name() {
    let jobs = ["a/x1", "a/x2", "a/y1", "b/x1", "b/x2", "b/x3", "c/z"];
    let split = |job: &&'static str| job.split_once('/').map(|(g, j)| (g, j.to_owned())).unwrap();
    let machine = machine_with(jobs.iter().map(split));
    let table: [Filtered<'_>; 7] = [
        (None, None, None, &jobs),
        (Some("b"), None, None, &["b/x1", "b/x2", "b/x3"]),
        (Some("a"), Some("x"), None, &["a/x1", "a/x2"]),
        (None, Some("x1"), None, &["a/x1", "b/x1"]),
        (None, None, Some(true), &["a/x1", "b/x1", "c/z"]),
        (Some("b"), Some("x"), Some(false), &["b/x2", "b/x3"]),
        (Some("nothing"), None, None, &[]),
    ];
    for (group, prefix, paused, expected) in table {
        let name_prefix = prefix.map(str::to_owned);
        let filter = JobFilter { group: group.map(name), name_prefix, paused };
        for limit in [1, 2, 100] {
            let (found, _) = walk(machine.state(), &filter, limit);
            assert_eq!(found, expected, "{filter:?} by {limit}");
        }
    }
}

#[test]
fn a_narrow_filter_looks_at_a_bounded_number_of_jobs_a_page() {
    let count = SCAN_MAX + 10;
    let machine = machine_with((0..count).map(|number| ("g", format!("job-{number:06}"))));
    let last = format!("job-{:06}", count - 1);
    let name_prefix = Some(last[1..].to_owned());
    let filter = JobFilter { name_prefix, ..JobFilter::default() };
    let (found, pages) = walk(machine.state(), &filter, 100);
    assert_eq!((found.len(), pages), (0, 2));
    let filter = JobFilter { name_prefix: Some(last.clone()), ..JobFilter::default() };
    let (found, pages) = walk(machine.state(), &filter, 100);
    assert_eq!((found, pages), (vec![format!("g/{last}")], 2));
}
