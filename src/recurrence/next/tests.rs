//! The stated bound, counted in steps and not in time; and every change of every zone.

use super::*;
use crate::base::time::Span;
use crate::model::schedule::Dialect;
use crate::recurrence::cron::parse::parse;
use crate::recurrence::zone::zone_names;

fn search(text: &str, dialect: Dialect, zone: &str) -> CronSearch {
    let expr = parse(text, dialect, "key").unwrap();
    let frequent = expr.is_frequent();
    CronSearch {
        times: TimeSet::of(&expr),
        days: DaySet::of(&expr),
        zone: Zone::named(zone).unwrap(),
        gap_fires: !frequent,
        passes: if frequent { Passes::Both } else { Passes::First },
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn the_worst_expressions_stay_within_the_bound() {
    let worst = [
        ("0 0 30 2 *", Dialect::Unix),
        ("0 0 31 4,6,9,11 *", Dialect::Unix),
        ("0 0 29 2 1#5", Dialect::Unix),
        ("0 0 * 2 1#5", Dialect::Unix),
        ("* * * * *", Dialect::Unix),
        ("0 0 0 ? 2 2#5 2199", Dialect::Quartz),
        ("0 0 0 29 2 ? 2199", Dialect::Quartz),
        ("59 59 23 31 12 ? 2199", Dialect::Quartz),
        ("0 0 0 L-30 2-12/2 ?", Dialect::Quartz),
        ("0 30 2 ? 3 1#2", Dialect::Quartz),
        ("* * * * * ?", Dialect::Quartz),
    ];
    let instants = [
        Timestamp::MIN,
        at("1900-02-28T23:59:59Z"),
        at("2011-12-29T09:59:59.999Z"),
        at("2024-03-10T06:59:59Z"),
        at("2096-03-01T00:00:00Z"),
        at("2199-12-31T23:59:59Z"),
        Timestamp::MAX,
    ];
    for (text, dialect) in worst {
        for zone in ["UTC", "Pacific/Apia", "America/New_York", "Africa/Casablanca"] {
            for gap_fires in [true, false] {
                let ours = CronSearch { gap_fires, ..search(text, dialect, zone) };
                for after in instants {
                    let mut steps = 0;
                    let found = ours.find_after(after, &mut steps);
                    assert!(steps <= MONTH_STEPS_MAX, "{text} {zone} {after}: {steps} steps");
                    assert!(found.is_none_or(|f| f.instant * 1_000 > after.as_ms()), "{text}");
                }
            }
        }
    }
}

#[test]
fn an_impossible_date_costs_one_look_at_each_year() {
    let mut steps = 0;
    let ours = search("0 0 30 2 *", Dialect::Unix, "Europe/Berlin");
    assert!(ours.find_after(Timestamp::MIN, &mut steps).is_none());
    let years = (YEAR_MAX - YEAR_MIN + 1).unsigned_abs();
    assert!(steps <= 2 * years + 1, "{steps} steps for {years} years");
}

#[test]
fn a_daily_job_runs_once_on_every_date_of_every_zone_around_every_change() {
    let until = at("2037-12-31T00:00:00Z").as_ms() / 1_000;
    let from = at("2000-01-01T00:00:00Z").as_ms() / 1_000;
    for zone in zone_names() {
        for text in ["30 2 * * *", "0 0 * * *", "45 23 * * *", "30 1 * * *"] {
            let ours = search(text, Dialect::Unix, zone);
            let changes = ours.zone.segments_from(0).iter().map(|segment| segment.end);
            for change in changes.filter(|change| (from..until).contains(change)) {
                let start = to_timestamp(change - 2 * DAY_S);
                let end = to_timestamp(change + 2 * DAY_S);
                let (mut last, mut count) = (start, 0);
                while let Some(next) = ours.next_after(last).filter(|&next| next <= end) {
                    assert!(next > last);
                    let gap_s = next.since(last).as_ms() / 1_000;
                    assert!(
                        count == 0 || (20 * 3_600..=28 * 3_600).contains(&gap_s),
                        "{zone} {last}"
                    );
                    (last, count) = (next, count + 1);
                }
                // Four days hold four local times, give or take one where the offset moves the
                // edge; a date that is skipped at the date line takes its own away.
                assert!((3..=5).contains(&count), "{zone} {text} {start}: {count}");
            }
        }
    }
}

#[test]
fn a_frequent_job_fires_every_quarter_of_an_hour_through_every_change() {
    let until = at("2037-12-31T00:00:00Z").as_ms() / 1_000;
    let from = at("2000-01-01T00:00:00Z").as_ms() / 1_000;
    for zone in zone_names() {
        let ours = search("*/15 * * * *", Dialect::Unix, zone);
        for segment in ours.zone.segments_from(0) {
            let whole = segment.offset % 900 == 0 && segment.offset_after % 900 == 0;
            if !whole || !(from..until).contains(&segment.end) || segment.end % 900 != 0 {
                continue;
            }
            let mut expected = to_timestamp(segment.end - 3 * 3_600);
            for _ in 0..24 {
                let next = ours.next_after(expected).unwrap();
                expected = expected.plus(Span::from_mins(15));
                assert_eq!(next, expected, "{zone}");
            }
        }
    }
}
