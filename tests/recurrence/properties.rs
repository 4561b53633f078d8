//! Properties of random schedules: order, splitting, agreement with two other implementations, and
//! bounds.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use horolog::base::time::{Span, Timestamp};
use horolog::model::policy::{Misfire, MisfirePolicy};
use horolog::model::schedule::{Bounds, CronSource, Dialect, DstGap, DstOverlap, Schedule};
use horolog::recurrence::Compiled;
use horolog::recurrence::misfire::select;
use horolog::recurrence::preview::next_times;
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::recurrence::naive::Naive;
use crate::recurrence::{at, compiled};

const DAY_MS: i64 = 86_400_000;

/// One part of a list of a field whose values run from `min` to `max`, without wrapping.
fn part(min: u8, max: u8) -> impl Strategy<Value = String> {
    let pair = (min..=max, min..=max).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        3 => (min..=max).prop_map(|value| value.to_string()),
        2 => pair.clone().prop_map(|(a, b)| format!("{a}-{b}")),
        1 => (pair, 1..=max).prop_map(|((a, b), step)| format!("{a}-{b}/{step}")),
        1 => (2..=max).prop_map(|step| format!("*/{step}")),
        1 => (min..=max, 1..=max).prop_map(|(a, step)| format!("{a}/{step}")),
    ]
}

fn word(min: u8, max: u8) -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just("*".to_owned()),
        3 => proptest::collection::vec(part(min, max), 1..3).prop_map(|parts| parts.join(",")),
    ]
}

/// Unix expressions in plain numbers.
fn unix() -> impl Strategy<Value = String> {
    (word(0, 59), word(0, 23), word(1, 31), word(1, 12), word(0, 6))
        .prop_map(|(m, h, d, month, w)| format!("{m} {h} {d} {month} {w}"))
}

/// Unix expressions that fire on most days, often at night, where clocks change.
fn unix_daily() -> impl Strategy<Value = String> {
    let hour = prop_oneof![word(0, 23), word(0, 4)];
    let weekday = prop_oneof![3 => Just("*".to_owned()), 1 => word(0, 6)];
    let day = prop_oneof![3 => Just("*".to_owned()), 1 => word(1, 31)];
    (word(0, 59), hour, day, weekday).prop_map(|(m, h, d, w)| format!("{m} {h} {d} * {w}"))
}

/// Quartz expressions in the words that crate `cron` also knows.
fn quartz_plain() -> impl Strategy<Value = String> {
    let days = prop_oneof![
        word(1, 31).prop_map(|day| (day, "?".to_owned())),
        word(1, 7).prop_map(|weekday| ("?".to_owned(), weekday)),
    ];
    (word(0, 59), word(0, 59), word(0, 23), days, word(1, 12))
        .prop_map(|(s, m, h, (d, w), month)| format!("{s} {m} {h} {d} {month} {w}"))
}

/// Quartz expressions with everything the dialect has.
fn quartz_full() -> impl Strategy<Value = String> {
    let day = prop_oneof![
        word(1, 31),
        Just("L".to_owned()),
        Just("LW".to_owned()),
        Just("H".to_owned()),
        (1..=30_u8).prop_map(|n| format!("L-{n}")),
        (1..=30_u8).prop_map(|n| format!("L-{n}W")),
        (1..=31_u8).prop_map(|n| format!("{n}W")),
        (1..=31_u8, 1..=31_u8).prop_map(|(a, b)| format!("{a}-{b}")),
    ];
    let weekday = prop_oneof![
        word(1, 7),
        Just("L".to_owned()),
        Just("FRI-MON".to_owned()),
        (1..=7_u8).prop_map(|n| format!("{n}L")),
        (1..=7_u8, 1..=5_u8).prop_map(|(n, k)| format!("{n}#{k}")),
    ];
    let days = prop_oneof![
        day.prop_map(|day| (day, "?".to_owned())),
        weekday.prop_map(|weekday| ("?".to_owned(), weekday)),
    ];
    let hour = prop_oneof![word(0, 23), Just("22-2".to_owned()), Just("H(0-7)".to_owned())];
    let minute = prop_oneof![word(0, 59), Just("H/15".to_owned()), Just("H".to_owned())];
    (word(0, 59), minute, hour, days, word(1, 12))
        .prop_map(|(s, m, h, (d, w), month)| format!("{s} {m} {h} {d} {month} {w}"))
}

fn any_text() -> impl Strategy<Value = (String, Dialect)> {
    prop_oneof![
        unix().prop_map(|text| (text, Dialect::Unix)),
        quartz_full().prop_map(|text| (text, Dialect::Quartz)),
    ]
}

fn zone_name() -> impl Strategy<Value = String> {
    any::<Index>().prop_map(|index| {
        let names: Vec<String> =
            TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect();
        names[index.index(names.len())].clone()
    })
}

/// Any cron schedule in any zone, with any choice for changes of the clock.
fn any_cron() -> impl Strategy<Value = Schedule> {
    let gaps = prop_oneof![Just(DstGap::Auto), Just(DstGap::FirstValid), Just(DstGap::Skip)];
    let overlaps = prop_oneof![
        Just(DstOverlap::Auto),
        Just(DstOverlap::First),
        Just(DstOverlap::Last),
        Just(DstOverlap::Both),
    ];
    (any_text(), zone_name(), gaps, overlaps).prop_map(|((text, dialect), zone, gap, overlap)| {
        Schedule::Cron(CronSource { text, dialect, zone, dst_gap: gap, dst_overlap: overlap })
    })
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        4 => any_cron(),
        1 => (1_000..DAY_MS, 0..DAY_MS * 365).prop_map(|(interval, anchor)| Schedule::Every {
            interval: Span::from_ms(interval),
            anchor: Timestamp::from_ms(anchor),
        }),
    ]
}

/// An instant of the years 1975 to 2037, often close to a change of the clock of the zone.
fn instant() -> impl Strategy<Value = Timestamp> {
    (at("1975-01-01T00:00:00Z").as_ms()..at("2037-01-01T00:00:00Z").as_ms())
        .prop_map(Timestamp::from_ms)
}

/// A zone, and an instant shortly before a change of its clock where it has one.
fn zone_and_instant() -> impl Strategy<Value = (String, Timestamp)> {
    (zone_name(), instant(), 0..2 * DAY_MS).prop_map(|(zone, near, lead_ms)| {
        let rules = TimeZoneDatabase::bundled().get(&zone).unwrap();
        let from = jiff::Timestamp::from_millisecond(near.as_ms()).unwrap();
        let change_ms = rules.following(from).next().map(|c| c.timestamp().as_millisecond());
        let start_ms = change_ms.unwrap_or(near.as_ms()) - lead_ms;
        (zone, Timestamp::from_ms(start_ms))
    })
}

fn in_zone(schedule: Schedule, zone: String) -> Schedule {
    match schedule {
        Schedule::Cron(source) => Schedule::Cron(CronSource { zone, ..source }),
        other => other,
    }
}

fn compile(schedule: &Schedule) -> Compiled {
    Compiled::new(schedule, &Bounds::default(), "tenant/group/job/trigger").unwrap()
}

fn misfire() -> impl Strategy<Value = Misfire> {
    let policies = prop_oneof![
        Just(MisfirePolicy::FireOnce),
        Just(MisfirePolicy::Skip),
        Just(MisfirePolicy::FireAll),
    ];
    (policies, 0..60_000_i64, 0..3 * DAY_MS, 0..20_u32).prop_map(
        |(policy, grace, window, count_max)| Misfire {
            policy,
            grace: Span::from_ms(grace),
            window: Span::from_ms(window),
            count_max,
        },
    )
}

proptest! {
    // A failing case is shown with its input; it belongs into a table, not into a file at the root.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_minute_by_minute_implementation(
        text in prop_oneof![1 => unix(), 4 => unix_daily()],
        (zone, after) in zone_and_instant(),
    ) {
        let until = after.plus(Span::from_ms(3 * DAY_MS));
        let naive = Naive::new(&text, &zone).between(after, until);
        let ours = compiled(&text, Dialect::Unix, &zone).unwrap();
        let mut found = Vec::new();
        let mut last = after;
        while let Some(next) = ours.next_after(last).filter(|&next| next <= until) {
            found.push(next);
            last = next;
        }
        prop_assert_eq!(found, naive, "{} {} after {}", text, zone, after);
    }

    #[test]
    fn agrees_with_the_cron_crate_where_both_speak(text in quartz_plain(), after in instant()) {
        let theirs = cron::Schedule::from_str(&text).unwrap();
        let start = DateTime::<Utc>::from_timestamp_millis(after.as_ms()).unwrap();
        let horizon = at("2099-01-01T00:00:00Z");
        let expected: Vec<Timestamp> = theirs
            .after(&start)
            .take(5)
            .map(|next| Timestamp::from_ms(next.timestamp_millis()))
            .filter(|&next| next < horizon)
            .collect();
        let mut found = next_times(&compiled(&text, Dialect::Quartz, "UTC").unwrap(), after, 5);
        found.retain(|&next| next < horizon);
        prop_assert_eq!(found, expected, "{} after {}", text, after);
    }

    #[test]
    fn occurrences_strictly_increase_and_split_anywhere(
        schedule in any_schedule(),
        after in instant(),
        middle_ms in 0..400 * DAY_MS,
    ) {
        let ours = compile(&schedule);
        let times = next_times(&ours, after, 40);
        prop_assert!(times.first().is_none_or(|&first| first > after));
        prop_assert!(times.is_sorted_by(|a, b| a < b), "{:?}", times);
        let middle = after.plus(Span::from_ms(middle_ms));
        let before_middle = times.iter().filter(|&&time| time <= middle).count();
        if before_middle < times.len() {
            prop_assert_eq!(ours.next_after(middle), Some(times[before_middle]));
        }
    }

    #[test]
    fn the_latest_is_the_last_of_those_before(
        schedule in any_schedule(),
        after in instant(),
        reach_ms in 0..90 * DAY_MS,
    ) {
        let ours = compile(&schedule);
        let times = next_times(&ours, after, 30);
        let until = after.plus(Span::from_ms(reach_ms)).min(times.last().copied().unwrap_or(after));
        let expected = times.iter().rev().find(|&&time| time <= until).copied();
        prop_assert_eq!(ours.latest_at_or_before(until, after.plus(Span::from_ms(1))), expected);
    }

    #[test]
    fn strides_count_what_next_finds(
        schedule in any_schedule(),
        (zone, after) in zone_and_instant(),
        reach_ms in 0..2 * DAY_MS,
        count_max in 1..5_000_u64,
    ) {
        let ours = compile(&in_zone(schedule, zone));
        let until = after.plus(Span::from_ms(reach_ms));
        let Some(stride) = ours.stride_after(after, until, count_max) else {
            prop_assert!(ours.next_after(after).is_none_or(|next| next > until));
            return Ok(());
        };
        let (mut last, mut count) = (after, 0);
        while last < stride.last {
            last = ours.next_after(last).unwrap();
            count += 1;
            prop_assert!(count <= stride.count);
        }
        prop_assert_eq!((last, count), (stride.last, stride.count));
        prop_assert!(stride.last <= until && stride.count <= count_max);
        prop_assert_eq!(Some(stride.first), ours.next_after(after));
    }

    #[test]
    fn every_occurrence_is_accounted_for_exactly_once(
        schedule in any_schedule(),
        cursor in instant(),
        late_ms in 0..4 * DAY_MS,
        misfire in misfire(),
        budget in 1..50_usize,
    ) {
        let ours = compile(&schedule);
        let now = ours.next_after(cursor).unwrap_or(cursor).plus(Span::from_ms(late_ms));
        let mut accounted = Vec::new();
        let (mut from, mut calls) = (cursor, 0);
        loop {
            let step = select(&ours, from, now, &misfire, budget);
            prop_assert!(step.fires.len() <= budget);
            for run in &step.skipped {
                accounted.push((run.first, run.last, run.count));
            }
            accounted.extend(step.fires.iter().map(|&fire| (fire, fire, 1)));
            from = step.cursor;
            calls += 1;
            if !step.more || calls > 40 {
                break;
            }
        }
        // Runs follow one another without a hole: each begins with the first occurrence after the
        // last.
        let mut last = cursor;
        for (first, end, count) in accounted {
            prop_assert_eq!(ours.next_after(last), Some(first));
            let mut counted = 0;
            let mut reached = last;
            while let Some(stride) = ours.stride_after(reached, end, u64::MAX) {
                counted += stride.count;
                reached = stride.last;
            }
            prop_assert_eq!((reached, counted), (end, count));
            last = end;
        }
        prop_assert_eq!(last, from);
        prop_assert!(calls > 40 || ours.next_after(last).is_none_or(|next| next > now));
    }

    #[test]
    fn the_normal_form_reads_back_as_itself_with_the_same_occurrences(
        (text, dialect) in any_text(),
        after in instant(),
    ) {
        let first = compiled(&text, dialect, "America/New_York").unwrap();
        let second = compiled(&first.normal_form(), dialect, "America/New_York").unwrap();
        prop_assert_eq!(first.normal_form(), second.normal_form());
        prop_assert_eq!(next_times(&first, after, 10), next_times(&second, after, 10));
    }

    #[test]
    fn any_text_ends_in_an_expression_or_an_error(text in "\\PC{0,60}") {
        for dialect in [Dialect::Unix, Dialect::Quartz] {
            let _ = compiled(&text, dialect, "UTC").map(|ours| ours.next_after(Timestamp::EPOCH));
            let _ = compiled("0 0 * * *", dialect, &text);
        }
    }

    #[test]
    fn any_text_of_cron_characters_ends_in_an_expression_or_an_error(
        text in "[0-9*/,\\-LWH#?() a-zA-Z@]{0,60}",
        words in proptest::collection::vec("[0-9*/,\\-LWH#?()]{1,7}", 5..8),
        after in instant(),
    ) {
        for dialect in [Dialect::Unix, Dialect::Quartz] {
            for text in [&text, &words.join(" ")] {
                if let Ok(ours) = compiled(text, dialect, "Pacific/Apia") {
                    prop_assert!(ours.next_after(after).is_none_or(|next| next > after));
                }
            }
        }
    }
}
