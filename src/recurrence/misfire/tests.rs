//! Misfire selection as a table of stories.

use super::*;
use crate::model::schedule::{Bounds, CronSource, Dialect, DstGap, DstOverlap, Schedule};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron(text: &str) -> Compiled {
    let schedule = Schedule::Cron(CronSource {
        text: text.to_owned(),
        dialect: Dialect::Quartz,
        zone: "UTC".to_owned(),
        dst_gap: DstGap::Auto,
        dst_overlap: DstOverlap::Auto,
    });
    Compiled::new(&schedule, &Bounds::default(), "key").unwrap()
}

fn every(interval: Span, anchor: &str) -> Compiled {
    let schedule = Schedule::Every { interval, anchor: at(anchor) };
    Compiled::new(&schedule, &Bounds::default(), "key").unwrap()
}

fn policy(policy: MisfirePolicy) -> Misfire {
    Misfire { policy, ..Misfire::default() }
}

/// Asks until nothing is left; every call must account for something.
fn select_all(compiled: &Compiled, from: &str, now: &str, misfire: &Misfire) -> Selection {
    let mut total = select(compiled, at(from), at(now), misfire, 100);
    let mut calls = 1;
    while total.more {
        let step = select(compiled, total.cursor, at(now), misfire, 100);
        assert!(step.cursor > total.cursor, "a call without progress");
        total.fires.extend(step.fires);
        total.skipped.extend(step.skipped);
        (total.cursor, total.next, total.more) = (step.cursor, step.next, step.more);
        calls += 1;
        assert!(calls < 100, "too many calls");
    }
    total
}

fn show(selection: &Selection) -> String {
    let mut lines: Vec<String> = selection
        .skipped
        .iter()
        .map(|run| format!("{:?} {} x{} {}", run.reason, run.first, run.count, run.last))
        .collect();
    lines.extend(selection.fires.iter().map(|fire| format!("fire {fire}")));
    lines.push(selection.next.map_or("end".to_owned(), |next| format!("next {next}")));
    lines.join("\n")
}

#[test]
fn m01_a_minute_job_down_for_hours_goes_on_under_every_policy() {
    let job = cron("0 * * * * ?");
    let (from, now) = ("2026-03-01T10:00:00Z", "2026-03-01T12:00:30Z");
    let skip = select_all(&job, from, now, &policy(MisfirePolicy::Skip));
    assert_eq!(
        show(&skip),
        "Misfire 2026-03-01T10:01:00Z x120 2026-03-01T12:00:00Z\nnext 2026-03-01T12:01:00Z"
    );
    let once = select_all(&job, from, now, &policy(MisfirePolicy::FireOnce));
    assert_eq!(
        show(&once),
        "Misfire 2026-03-01T10:01:00Z x119 2026-03-01T11:59:00Z\nfire 2026-03-01T12:00:00Z\n\
         next 2026-03-01T12:01:00Z"
    );
    let some = Misfire { count_max: 3, ..policy(MisfirePolicy::FireAll) };
    let all = select_all(&job, from, now, &some);
    assert_eq!(
        show(&all),
        "OverCount 2026-03-01T10:01:00Z x117 2026-03-01T11:57:00Z\nfire 2026-03-01T11:58:00Z\n\
         fire 2026-03-01T11:59:00Z\nfire 2026-03-01T12:00:00Z\nnext 2026-03-01T12:01:00Z"
    );
}

#[test]
fn m03_a_resumed_job_starts_once_when_one_is_missed_and_one_is_on_time() {
    let job = cron("0 * * * * ?");
    let (from, now) = ("2026-03-01T11:00:00Z", "2026-03-01T12:00:05Z");
    let once = select_all(&job, from, now, &policy(MisfirePolicy::FireOnce));
    assert_eq!(
        show(&once),
        "Misfire 2026-03-01T11:01:00Z x59 2026-03-01T11:59:00Z\nfire 2026-03-01T12:00:00Z\n\
         next 2026-03-01T12:01:00Z"
    );
}

#[test]
fn m05_after_a_skip_the_next_occurrence_lies_in_the_future() {
    let (from, now) = ("2026-03-01T10:00:00Z", "2026-03-01T10:02:30Z");
    let skip = policy(MisfirePolicy::Skip);
    let expected =
        "Misfire 2026-03-01T10:02:00Z x1 2026-03-01T10:02:00Z\nnext 2026-03-01T10:04:00Z";
    assert_eq!(show(&select_all(&cron("0 0/2 * * * ?"), from, now, &skip)), expected);
    let interval = every(Span::from_mins(2), "2026-03-01T00:00:00Z");
    assert_eq!(show(&select_all(&interval, from, now, &skip)), expected);
}

#[test]
fn m09_a_start_in_the_past_does_not_fire_at_once_and_keeps_its_phase() {
    let bounds = Bounds { start_at: Some(at("2025-03-01T07:30:00Z")), end_at: None };
    let schedule =
        Schedule::Every { interval: Span::from_hours(24), anchor: at("2025-03-01T07:30:00Z") };
    let job = Compiled::new(&schedule, &bounds, "key").unwrap();
    let created = "2026-03-01T10:00:00Z";
    let fresh = select_all(&job, created, created, &policy(MisfirePolicy::FireOnce));
    assert_eq!(show(&fresh), "next 2026-03-02T07:30:00Z");
    let from_start =
        select_all(&job, "2025-01-01T00:00:00Z", created, &policy(MisfirePolicy::Skip));
    assert_eq!(
        show(&from_start),
        "Misfire 2025-03-01T07:30:00Z x366 2026-03-01T07:30:00Z\nnext 2026-03-02T07:30:00Z"
    );
}

#[test]
fn m13_a_run_two_seconds_late_is_on_time_and_a_skipped_one_leaves_a_record() {
    let job = cron("0 0 * * * ?");
    for kind in [MisfirePolicy::Skip, MisfirePolicy::FireOnce, MisfirePolicy::FireAll] {
        let late =
            select_all(&job, "2026-03-01T11:00:00Z", "2026-03-01T12:00:01.800Z", &policy(kind));
        assert_eq!(show(&late), "fire 2026-03-01T12:00:00Z\nnext 2026-03-01T13:00:00Z");
    }
    let edge = policy(MisfirePolicy::Skip);
    let on_edge = select_all(&job, "2026-03-01T11:00:00Z", "2026-03-01T12:00:10Z", &edge);
    assert_eq!(on_edge.fires, [at("2026-03-01T12:00:00Z")]);
    let beyond = select_all(&job, "2026-03-01T11:00:00Z", "2026-03-01T12:00:10.001Z", &edge);
    assert_eq!((beyond.fires.len(), beyond.skipped.len()), (0, 1));
}

#[test]
fn m15_a_clock_put_back_neither_refires_nor_moves_the_cursor() {
    let job = cron("0 0 * * * ?");
    let back = select_all(
        &job,
        "2026-03-01T12:00:00Z",
        "2026-03-01T11:00:05Z",
        &policy(MisfirePolicy::FireAll),
    );
    assert_eq!(show(&back), "next 2026-03-01T13:00:00Z");
    assert_eq!(back.cursor, at("2026-03-01T12:00:00Z"));
}

#[test]
fn what_lies_outside_the_window_never_fires() {
    let job = cron("0 0 * * * ?");
    let (from, now) = ("2026-03-01T00:00:00Z", "2026-03-02T12:30:00Z");
    let short = |kind| Misfire { window: Span::from_hours(2), ..policy(kind) };
    assert_eq!(
        show(&select_all(&job, from, now, &short(MisfirePolicy::FireAll))),
        "OutsideWindow 2026-03-01T01:00:00Z x34 2026-03-02T10:00:00Z\nfire 2026-03-02T11:00:00Z\n\
         fire 2026-03-02T12:00:00Z\nnext 2026-03-02T13:00:00Z"
    );
    let tiny = Misfire { window: Span::from_mins(5), ..policy(MisfirePolicy::FireOnce) };
    assert_eq!(
        show(&select_all(&job, from, now, &tiny)),
        "OutsideWindow 2026-03-01T01:00:00Z x36 2026-03-02T12:00:00Z\nnext 2026-03-02T13:00:00Z"
    );
}

#[test]
fn a_second_job_down_for_a_year_is_counted_exactly_in_bounded_calls() {
    let (from, now) = ("2025-03-01T00:00:00Z", "2026-03-01T00:00:00Z");
    let misfire = policy(MisfirePolicy::FireAll);
    let grace_s = 10;
    let missed = 365 * 86_400 - grace_s - 1;
    let window = 86_400 - grace_s - 1;
    for job in [cron("* * * * * ?"), every(Span::from_secs(1), from)] {
        let first = select(&job, at(from), at(now), &misfire, 512);
        assert_eq!(first.fires.len(), 512);
        assert!(first.more);
        let total = select_all(&job, from, now, &misfire);
        let skipped: u64 = total.skipped.iter().map(|run| run.count).sum();
        assert_eq!(skipped + total.fires.len() as u64, 365 * 86_400);
        assert_eq!(total.skipped[0].count, missed - window - 1, "outside the window");
        assert_eq!(total.skipped[1].count, window + 1 - 1_000, "over the count");
        assert_eq!(total.fires.len() as u64, 1_000 + grace_s + 1);
    }
}

#[test]
fn an_outage_over_a_change_of_the_clock_is_counted_by_real_time() {
    let quarters = |text: &str, zone: &str| {
        let schedule = Schedule::Cron(CronSource {
            text: text.to_owned(),
            dialect: Dialect::Unix,
            zone: zone.to_owned(),
            dst_gap: DstGap::Auto,
            dst_overlap: DstOverlap::Auto,
        });
        Compiled::new(&schedule, &Bounds::default(), "key").unwrap()
    };
    let skip = policy(MisfirePolicy::Skip);
    let changes = [
        ("America/New_York", "2024-11-02T00:00:00Z"),
        ("America/New_York", "2024-03-09T00:00:00Z"),
        ("Australia/Lord_Howe", "2024-04-05T00:00:00Z"),
        ("Pacific/Apia", "2011-12-29T00:00:00Z"),
    ];
    for (zone, from) in changes {
        let now = at(from).plus(Span::from_hours(60)).plus(Span::from_mins(1));
        let total = select(&quarters("*/15 * * * *", zone), at(from), now, &skip, 9);
        assert_eq!(total.skipped[0].count, 60 * 4, "{zone} {from}");
        assert!(!total.more);
    }
    // Six hours a night: the night of the change has five of them in spring and seven in autumn.
    let nights = quarters("*/15 0-5 * * *", "America/New_York");
    for (from, now, count) in [
        ("2024-03-10T04:00:00Z", "2024-03-11T03:00:00Z", 5 * 4),
        ("2024-11-03T03:00:00Z", "2024-11-04T04:00:00Z", 7 * 4),
    ] {
        let total = select(&nights, at(from), at(now), &skip, 9);
        assert_eq!(total.skipped[0].count, count, "{from}");
    }
}

#[test]
fn an_outage_longer_than_one_call_can_count_goes_on_where_it_stopped() {
    let job = cron("0 0 12 * * ?");
    let (from, now) = ("1990-01-01T00:00:00Z", "2026-03-01T00:00:00Z");
    let first = select(&job, at(from), at(now), &policy(MisfirePolicy::FireOnce), 10);
    assert!(first.more && first.fires.is_empty());
    assert_eq!(first.skipped[0].count, u64::from(MISFIRE_STRIDES_MAX));
    let total = select_all(&job, from, now, &policy(MisfirePolicy::FireOnce));
    let skipped: u64 = total.skipped.iter().map(|run| run.count).sum();
    assert_eq!(skipped, 13_208 - 1, "days from 1990-01-01 to 2026-02-28, but the last");
    assert_eq!(total.fires, [at("2026-02-28T12:00:00Z")]);
    let wide = Misfire { window: Span::MAX, ..policy(MisfirePolicy::FireAll) };
    let total = select_all(&job, from, now, &wide);
    assert_eq!(total.fires.len(), 1_000);
    let skipped: u64 = total.skipped.iter().map(|run| run.count).sum();
    assert_eq!(skipped, 13_208 - 1_000);
}

#[test]
fn without_a_budget_nothing_fires_and_nothing_is_lost() {
    let job = cron("0 * * * * ?");
    let (from, now) = (at("2026-03-01T11:00:00Z"), at("2026-03-01T12:00:30Z"));
    let none = select(&job, from, now, &policy(MisfirePolicy::FireOnce), 0);
    assert!(none.more && none.fires.is_empty());
    assert_eq!(none.next, Some(at("2026-03-01T12:00:00Z")));
}
