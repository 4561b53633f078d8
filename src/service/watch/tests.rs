//! What a watcher is told: every change once, in order, and every gap by name.

use super::*;
use crate::base::time::Timestamp;
use crate::model::fire::{FireReason, FireState};
use crate::model::id::{FireId, JobId, JobKey, Revision, Seq};

fn tenant(name: &str) -> Name {
    Name::new(name).unwrap()
}

fn fire(of: &str, number: u64) -> Arc<Fire> {
    let name = Name::default_name;
    let job_key = Arc::new(JobKey { tenant: tenant(of), group: name(), name: name() });
    Arc::new(Fire {
        id: FireId { job: JobId(Seq::ZERO), seq: Seq::from_u64(number) },
        job_key,
        job_revision: Revision::FIRST,
        trigger: None,
        reason: FireReason::Manual,
        scheduled_at: Timestamp::EPOCH,
        due_at: Timestamp::EPOCH,
        folded: None,
        payload: None,
        overlap_allowed: false,
        recorded_at: Timestamp::EPOCH,
        recorded_index: number,
        state: FireState::Ready,
        not_before: Timestamp::EPOCH,
        lease: None,
        attempt_count: 0,
        released_count: 0,
        attempts: Vec::new(),
        cancel_requested_at: None,
        fenced_count: 0,
        ended_at: None,
        ended_index: None,
    })
}

fn push(ring: &Ring, index: u64, of: &[&str]) {
    let effects = of.iter().map(|of| Effect::FireChanged(fire(of, index))).collect();
    ring.push(&AppliedEffects { index, effects });
}

/// What a watcher of tenant `a` is told: `8` for a change at 8 that is not the last of its entry,
/// `8.` for the last, `3-8` for a gap.
fn told(ring: &Ring, position: &mut u64) -> String {
    let events = ring.after(position, &tenant("a"));
    let shown = events.iter().map(|event| match event {
        WatchEvent::Changed { index, last: false, .. } => index.to_string(),
        WatchEvent::Changed { index, last: true, .. } => format!("{index}."),
        WatchEvent::Gap { after, before } => format!("{after}-{before}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_watcher_sees_its_tenants_changes_in_order_and_once() {
    let ring = Ring::starting_after(5);
    push(&ring, 6, &["a", "a"]);
    push(&ring, 7, &["b"]);
    push(&ring, 9, &["a"]);
    let mut position = 5;
    assert_eq!(told(&ring, &mut position), "6 6. 9.");
    assert_eq!(told(&ring, &mut position), "");
    assert_eq!(position, 9);
    assert_eq!(told(&ring, &mut 6), "9.");
}

#[test]
fn a_watcher_that_was_away_too_long_is_told_of_the_gap() {
    let ring = Ring::starting_after(5);
    push(&ring, 6, &["a"]);
    let mut position = 3;
    assert_eq!(told(&ring, &mut position), "3-6 6.");
    for index in 7..7 + RING_MAX as u64 {
        push(&ring, index, &["a"]);
    }
    let shown = told(&ring, &mut position);
    assert!(!shown.contains('-'), "nothing after 6 was lost: {shown}");
    assert!(told(&ring, &mut 5).starts_with("5-7 7."));
}

#[test]
fn lost_changes_and_a_replaced_state_are_gaps() {
    let ring = Ring::starting_after(5);
    push(&ring, 6, &["a"]);
    ring.lose();
    push(&ring, 20, &["a"]);
    assert_eq!(told(&ring, &mut 6), "6-20 20.");
    ring.push(&AppliedEffects { index: 50, effects: Vec::new() });
    assert_eq!(told(&ring, &mut 20), "20-51");
    push(&ring, 51, &["a"]);
    assert_eq!(told(&ring, &mut 20), "20-51 51.");
}

#[test]
fn an_entry_is_never_told_in_part() {
    let ring = Ring::starting_after(0);
    let many = vec!["a"; BATCH_MAX + 10];
    push(&ring, 1, &many);
    push(&ring, 2, &["a"]);
    let mut position = 0;
    assert_eq!(told(&ring, &mut position).split(' ').count(), BATCH_MAX + 10);
    assert_eq!(told(&ring, &mut position), "2.");
}
