//! Field reports, by their id: what failed in other schedulers, and what is right here.

use horolog::base::time::{Span, Timestamp};
use horolog::model::schedule::{Bounds, CronSource, Dialect, DstGap, DstOverlap, Schedule};
use horolog::recurrence::preview::next_times;
use horolog::recurrence::{Compiled, ScheduleError, validate};

use crate::recurrence::{at, compiled, cron};

use Dialect::{Quartz, Unix};

/// Expression, dialect, zone, the instant asked, and how the list of occurrences begins.
type Story = (&'static str, Dialect, &'static str, &'static str, &'static [&'static str]);

fn check(stories: &[Story]) {
    for (text, dialect, zone, after, expected) in stories {
        let ours = compiled(text, *dialect, zone).unwrap_or_else(|error| panic!("{text}: {error}"));
        let found = next_times(&ours, at(after), expected.len());
        let expected: Vec<Timestamp> = expected.iter().map(|text| at(text)).collect();
        assert_eq!(found, expected, "{text} {zone} after {after}");
    }
}

/// Every text must be refused, with a message that holds the words.
fn check_refused(dialect: Dialect, refusals: &[(&str, &str)]) {
    for (text, words) in refusals {
        let error = match compiled(text, dialect, "UTC") {
            Ok(ours) => panic!("{text:?} is accepted as {:?}", ours.normal_form()),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(words), "{text:?}: {error}");
    }
}

#[test]
fn c01_the_nearest_weekday_of_a_weekend_is_found_in_every_month() {
    check(&[
        (
            "0 30 15 1W * ?",
            Quartz,
            "UTC",
            "2025-05-02T00:00:00Z",
            &["2025-06-02T15:30:00Z", "2025-07-01T15:30:00Z", "2025-08-01T15:30:00Z"],
        ),
        (
            "0 0 5 4W * ?",
            Quartz,
            "UTC",
            "2025-04-17T00:00:00Z",
            &["2025-05-05T05:00:00Z", "2025-06-04T05:00:00Z"],
        ),
        ("0 0 5 3W * ?", Quartz, "UTC", "2025-04-17T00:00:00Z", &["2025-05-02T05:00:00Z"]),
        // 2025-11-01 is a Saturday: the nearest weekday inside the month is the 3rd.
        ("0 30 15 1W * ?", Quartz, "UTC", "2025-10-02T00:00:00Z", &["2025-11-03T15:30:00Z"]),
    ]);
}

#[test]
fn c03_the_last_day_still_fires_when_asked_on_it() {
    check(&[(
        "0 0 23 L * ?",
        Quartz,
        "UTC",
        "2025-08-31T15:00:00Z",
        &["2025-08-31T23:00:00Z", "2025-09-30T23:00:00Z", "2025-10-31T23:00:00Z"],
    )]);
}

#[test]
fn c05_a_last_friday_is_not_every_friday() {
    let fridays: &[&str] =
        &["2024-07-26T00:00:00Z", "2024-08-30T00:00:00Z", "2024-09-27T00:00:00Z"];
    check(&[
        ("0 0 * * 5L", Unix, "UTC", "2024-07-11T00:00:00Z", fridays),
        ("0 0 0 ? * 6L", Quartz, "UTC", "2024-07-11T00:00:00Z", fridays),
        ("0 0 0 ? * fril", Quartz, "UTC", "2024-07-11T00:00:00Z", fridays),
        (
            "0 0 0 ? * L",
            Quartz,
            "UTC",
            "2024-07-11T00:00:00Z",
            &["2024-07-13T00:00:00Z", "2024-07-20T00:00:00Z"],
        ),
    ]);
    check_refused(Unix, &[("0 0 * * L", "two readings")]);
}

#[test]
fn c07_a_nearest_weekday_never_clamps_to_a_shorter_month() {
    check(&[(
        "0 0 31W * *",
        Unix,
        "UTC",
        "2024-01-15T00:00:00Z",
        &["2024-01-31T00:00:00Z", "2024-03-29T00:00:00Z", "2024-05-31T00:00:00Z"],
    )]);
    let february = compiled("0 0 31W 2 *", Unix, "UTC").unwrap();
    assert_eq!(february.next_after(at("2024-01-15T00:00:00Z")), None);
}

#[test]
fn c09_a_step_from_a_value_runs_to_the_end_of_the_field() {
    check(&[
        (
            "59/15 * * * *",
            Unix,
            "UTC",
            "2024-01-15T10:20:00Z",
            &["2024-01-15T10:59:00Z", "2024-01-15T11:59:00Z"],
        ),
        (
            "5/15 * * * *",
            Unix,
            "UTC",
            "2024-01-15T10:20:00Z",
            &[
                "2024-01-15T10:35:00Z",
                "2024-01-15T10:50:00Z",
                "2024-01-15T11:05:00Z",
                "2024-01-15T11:20:00Z",
            ],
        ),
        (
            "30/1 * * * *",
            Unix,
            "UTC",
            "2024-01-15T10:58:00Z",
            &["2024-01-15T10:59:00Z", "2024-01-15T11:30:00Z"],
        ),
        (
            "0 23/6 * * *",
            Unix,
            "UTC",
            "2024-01-15T10:20:00Z",
            &["2024-01-15T23:00:00Z", "2024-01-16T23:00:00Z"],
        ),
    ]);
}

#[test]
fn c11_ranges_wrap_in_quartz_and_are_refused_in_unix() {
    check(&[
        (
            "0 0 0 ? * FRI-MON",
            Quartz,
            "UTC",
            "2024-01-15T10:20:30Z",
            &[
                "2024-01-19T00:00:00Z",
                "2024-01-20T00:00:00Z",
                "2024-01-21T00:00:00Z",
                "2024-01-22T00:00:00Z",
                "2024-01-26T00:00:00Z",
            ],
        ),
        (
            "0 0 22-2 * * ?",
            Quartz,
            "UTC",
            "2024-01-15T10:20:30Z",
            &[
                "2024-01-15T22:00:00Z",
                "2024-01-15T23:00:00Z",
                "2024-01-16T00:00:00Z",
                "2024-01-16T01:00:00Z",
                "2024-01-16T02:00:00Z",
                "2024-01-16T22:00:00Z",
            ],
        ),
        (
            "0 0 0 1 NOV-FEB ?",
            Quartz,
            "UTC",
            "2024-01-15T10:20:30Z",
            &[
                "2024-02-01T00:00:00Z",
                "2024-11-01T00:00:00Z",
                "2024-12-01T00:00:00Z",
                "2025-01-01T00:00:00Z",
            ],
        ),
        (
            "0 0 * * SAT-SUN",
            Unix,
            "UTC",
            "2024-01-15T10:20:30Z",
            &["2024-01-20T00:00:00Z", "2024-01-21T00:00:00Z", "2024-01-27T00:00:00Z"],
        ),
    ]);
    check_refused(
        Unix,
        &[
            ("0 0 * * FRI-MON", "write FRI-6,0-MON"),
            ("0 22-2 * * *", "write 22-23,0-2"),
            ("0 0 1 NOV-FEB *", "write NOV-12,1-FEB"),
        ],
    );
    check_refused(Quartz, &[("0 0 0 1 1 ? 2030-2028", "ends before it begins")]);
    for advice in ["0 0 * * FRI-6,0-MON", "0 22-23,0-2 * * *", "0 0 1 NOV-12,1-FEB *"] {
        assert!(compiled(advice, Unix, "UTC").is_ok(), "{advice}");
    }
}

#[test]
fn c13_impossible_dates_are_refused_by_field_and_possible_ones_are_not() {
    let verdict = |text, dialect| validate(&cron(text, dialect, "UTC"), &Bounds::default(), "key");
    let impossible = [
        ("* * 31 2 *", Unix, "day-of-month"),
        ("0 0 30,31 2 *", Unix, "day-of-month"),
        ("0 0 0 31W 2 ?", Quartz, "day-of-month"),
        ("0 0 0 29 2 ? 2025", Quartz, "year"),
        ("0 0 0 ? 2 6#5 2025", Quartz, "year"),
        ("0 0 0 L-30 2,4 ?", Quartz, "day-of-month"),
    ];
    for (text, dialect, field) in impossible {
        let error = verdict(text, dialect).unwrap_err();
        assert_eq!(error.field(), field, "{text}: {error}");
        assert!(error.to_string().starts_with(&format!("{field}: never fires")), "{error}");
    }
    for text in ["0 0 30 2,4 *", "0 0 29 2 *", "0 0 30 2 1", "0 0 * 2 5#5"] {
        assert_eq!(verdict(text, Unix), Ok(()), "{text}");
    }
}

#[test]
fn c15_quartz_wants_exactly_one_question_mark_and_says_how_to_write_it() {
    check_refused(
        Quartz,
        &[
            ("0 0 0 * * *", "exactly one of them is ?"),
            ("0 0 0 * * *", "\"0 0 0 * * ?\""),
            ("0 0 0 1 * MON", "\"0 0 0 ? * 2\""),
            ("0 0 0 ? * ?", "\"0 0 0 * * ?\""),
            ("0 0 0 ?,1 * 2", "? stands alone"),
        ],
    );
}

#[test]
fn c17_trailing_garbage_is_refused() {
    check_refused(
        Quartz,
        &[
            ("0 0 0 * * ? 2026 *", "this one has 8"),
            ("0 0 0 * * ?x", "day-of-week: \"?x\""),
            ("0 0 0 * * ??", "day-of-week: \"??\""),
            ("*5 0 0 * * ?", "second: \"*5\""),
            ("0 0 0 1,, * ?", "empty part of a list"),
        ],
    );
    check_refused(
        Unix,
        &[
            ("* * * *", "this one has 4"),
            ("* * * * * * * *", "this one has 8"),
            ("** * * * *", "minute: \"**\""),
            ("*/5/2 * * * *", "minute: \"*/5/2\" has a step"),
            ("1-2-3 * * * *", "minute: \"1-2-3\""),
            ("1, * * * *", "empty part of a list"),
            ("-5 * * * *", "minute: \"-5\""),
            ("*/ * * * *", "minute: \"*/\" has a step"),
            ("+5 * * * *", "minute: \"+5\""),
            ("1.5 * * * *", "minute: \"1.5\""),
            ("0x10 * * * *", "minute: \"0x10\""),
        ],
    );
}

#[test]
fn c19_an_empty_expression_is_refused() {
    for dialect in [Unix, Quartz] {
        check_refused(dialect, &[("", "this one has 0"), ("  \t ", "this one has 0")]);
    }
    check_refused(Unix, &[("*", "this one has 1"), ("\n", "this one has 1")]);
}

#[test]
fn c21_digits_outside_ascii_are_refused_without_a_panic() {
    for digit in ["¹", "٣", "１", "五", "\u{202e}1"] {
        check_refused(Unix, &[(&format!("{digit} * * * *"), "minute: ")]);
        check_refused(Quartz, &[(&format!("0 0 0 {digit}W * ?"), "day-of-month: ")]);
        check_refused(Quartz, &[(&format!("0 0 0 ? * 2#{digit}"), "day-of-week: ")]);
        check_refused(Unix, &[(&format!("*/{digit} * * * *"), "minute: ")]);
    }
}

#[test]
fn c23_a_list_of_nth_weekdays_is_accepted() {
    check(&[(
        "0 0 * * fri#1,fri#3",
        Unix,
        "UTC",
        "2024-01-15T00:00:00Z",
        &["2024-01-19T00:00:00Z", "2024-02-02T00:00:00Z", "2024-02-16T00:00:00Z"],
    )]);
}

#[test]
fn c25_the_dialects_count_weekdays_differently_and_say_so() {
    check(&[
        ("0 0 * * 1", Unix, "UTC", "2024-01-16T00:00:00Z", &["2024-01-22T00:00:00Z"]),
        ("0 0 0 ? * 1", Quartz, "UTC", "2024-01-16T00:00:00Z", &["2024-01-21T00:00:00Z"]),
        ("0 0 * * 7", Unix, "UTC", "2024-01-16T00:00:00Z", &["2024-01-21T00:00:00Z"]),
        ("0 0 * * 0", Unix, "UTC", "2024-01-16T00:00:00Z", &["2024-01-21T00:00:00Z"]),
    ]);
    check_refused(
        Quartz,
        &[
            ("0 0 0 ? * 0", "Sunday is 0 in unix, but 1 or SUN in quartz"),
            ("0 0 0 ? * 8", "lies outside 1-7"),
            ("0 0 * * 1", "reads as unix, where 1 = MON"),
            ("0 0 * * 1", "the same is \"0 0 0 ? * 2\""),
        ],
    );
    check_refused(Unix, &[("0 0 0 ? * 2", "it reads as quartz")]);
    check_refused(Unix, &[("0 0 0 * *  * *", "this one has 7")]);
}

#[test]
fn t01_a_daily_job_in_the_gap_fires_once_after_it() {
    check(&[(
        "30 2 * * *",
        Unix,
        "America/New_York",
        "2024-03-09T12:00:00Z",
        &["2024-03-10T07:00:00Z", "2024-03-11T06:30:00Z"],
    )]);
}

#[test]
fn t03_a_daily_job_in_the_overlap_fires_once_on_the_first_pass() {
    check(&[(
        "30 1 * * *",
        Unix,
        "America/New_York",
        "2024-11-02T12:00:00Z",
        &["2024-11-03T05:30:00Z", "2024-11-04T06:30:00Z"],
    )]);
}

#[test]
fn t05_a_minute_job_goes_through_the_overlap_without_a_hole() {
    let quarters = compiled("*/15 * * * *", Unix, "America/New_York").unwrap();
    let mut expected = at("2024-11-03T04:30:00Z");
    for found in next_times(&quarters, expected, 20) {
        expected = expected.plus(Span::from_mins(15));
        assert_eq!(found, expected);
    }
    assert_eq!(expected, at("2024-11-03T09:30:00Z"));
    check(&[(
        "0 * * * * ?",
        Quartz,
        "America/Sao_Paulo",
        "2016-02-21T02:00:00Z",
        &["2016-02-21T02:01:00Z"],
    )]);
    let seconds = compiled("*/15 * * * * ?", Quartz, "America/New_York").unwrap();
    let hours_later = next_times(&seconds, at("2024-11-03T04:30:00Z"), 960);
    assert_eq!(hours_later.last(), Some(&at("2024-11-03T08:30:00Z")));
}

#[test]
fn t07_an_hourly_job_loses_no_hour() {
    check(&[(
        "0 * * * *",
        Unix,
        "US/Pacific",
        "2026-11-01T07:30:00Z",
        &["2026-11-01T08:00:00Z", "2026-11-01T09:00:00Z", "2026-11-01T10:00:00Z"],
    )]);
}

#[test]
fn t09_a_midnight_that_does_not_exist_neither_loops_nor_is_lost() {
    check(&[
        (
            "0 0 10 * *",
            Unix,
            "America/Sao_Paulo",
            "2014-10-18T12:00:00Z",
            &["2014-11-10T02:00:00Z"],
        ),
        (
            "0 12 11,26 * *",
            Unix,
            "America/Sao_Paulo",
            "2014-10-12T12:00:00Z",
            &["2014-10-26T14:00:00Z"],
        ),
        (
            "0 9 10 * *",
            Unix,
            "America/Sao_Paulo",
            "2018-10-17T09:00:00Z",
            &["2018-11-10T11:00:00Z"],
        ),
        ("0 0 * * *", Unix, "America/Sao_Paulo", "2018-11-03T06:00:00Z", &["2018-11-04T03:00:00Z"]),
        ("0 6 * * *", Unix, "America/Santiago", "2019-09-07T16:00:00Z", &["2019-09-08T09:00:00Z"]),
    ]);
}

#[test]
fn t11_the_days_around_a_change_are_neither_lost_nor_shifted() {
    check(&[
        ("5 0 * * *", Unix, "Europe/Amsterdam", "2021-03-28T00:00:00Z", &["2021-03-28T22:05:00Z"]),
        (
            "11 7 * * *",
            Unix,
            "America/New_York",
            "2017-11-04T00:00:00Z",
            &["2017-11-04T11:11:00Z", "2017-11-05T12:11:00Z"],
        ),
        ("4 16 * * *", Unix, "America/New_York", "2025-03-09T00:00:00Z", &["2025-03-09T20:04:00Z"]),
    ]);
}

#[test]
fn t13_a_date_that_does_not_exist_does_not_fire_and_does_not_end_the_schedule() {
    check(&[
        (
            "0 12 * * *",
            Unix,
            "Pacific/Apia",
            "2011-12-29T00:00:00Z",
            &["2011-12-29T22:00:00Z", "2011-12-30T22:00:00Z", "2011-12-31T22:00:00Z"],
        ),
        ("0 9 * * 5", Unix, "Pacific/Apia", "2011-12-29T00:00:00Z", &["2012-01-05T19:00:00Z"]),
        ("0 12 30 12 *", Unix, "Pacific/Apia", "2011-12-29T00:00:00Z", &["2012-12-29T22:00:00Z"]),
    ]);
    let hourly = compiled("0 * * * *", Unix, "Pacific/Apia").unwrap();
    let mut expected = at("2011-12-29T00:00:00Z");
    for found in next_times(&hourly, expected, 72) {
        expected = expected.plus(Span::from_hours(1));
        assert_eq!(found, expected);
    }
}

#[test]
fn t15_the_rules_of_the_year_in_question_count() {
    check(&[(
        "30 1 * * *",
        Unix,
        "Asia/Shanghai",
        "1991-09-14T00:00:00Z",
        &["1991-09-14T16:30:00Z", "1991-09-15T17:30:00Z"],
    )]);
    let midnight = compiled("0 0 * * *", Unix, "America/Sao_Paulo").unwrap();
    for found in next_times(&midnight, at("2019-10-01T00:00:00Z"), 900) {
        assert_eq!(found.as_ms().rem_euclid(86_400_000), 3 * 3_600_000, "{found}");
    }
}

#[test]
fn t17_the_instant_asked_is_never_the_answer() {
    check(&[(
        "0 * * * *",
        Unix,
        "Europe/Berlin",
        "2018-03-25T21:00:00Z",
        &["2018-03-25T22:00:00Z"],
    )]);
}

#[test]
fn m11_the_end_belongs_to_the_span_and_nothing_follows_it() {
    let schedule = cron("0 0 * * *", Unix, "UTC");
    let days = |start: &str, end: &str| {
        let bounds = Bounds { start_at: Some(at(start)), end_at: Some(at(end)) };
        Compiled::new(&schedule, &bounds, "key").map(|ours| next_times(&ours, Timestamp::MIN, 9))
    };
    let midnights = days("2026-03-01T00:00:00Z", "2026-03-03T00:00:00Z").unwrap();
    assert_eq!(midnights.first(), Some(&at("2026-03-01T00:00:00Z")));
    assert_eq!(midnights.last(), Some(&at("2026-03-03T00:00:00Z")));
    assert_eq!(midnights.len(), 3);
    let refused = days("2026-03-03T00:00:00Z", "2026-03-02T23:59:59Z").unwrap_err();
    assert_eq!(refused.field(), "end_at");
    let between = Bounds {
        start_at: Some(at("2026-03-01T00:00:01Z")),
        end_at: Some(at("2026-03-01T23:59:59Z")),
    };
    let never = validate(&schedule, &between, "key").unwrap_err();
    assert!(matches!(never, ScheduleError::NeverFires { field: "end_at", .. }), "{never}");
}

#[test]
fn a11_intervals_outside_their_limits_are_refused_and_long_ones_do_not_overflow() {
    let every = |interval| Schedule::Every { interval, anchor: at("2026-03-01T00:00:00Z") };
    for interval in [Span::ZERO, Span::from_ms(10), Span::from_ms(999), Span::MAX] {
        let error = validate(&every(interval), &Bounds::default(), "key").unwrap_err();
        assert_eq!(error.field(), "interval", "{interval}");
    }
    let sixty_days = every(Span::from_days(60));
    let ours = Compiled::new(&sixty_days, &Bounds::default(), "key").unwrap();
    assert_eq!(
        next_times(&ours, at("2026-02-01T00:00:00Z"), 2),
        [at("2026-03-01T00:00:00Z"), at("2026-04-30T00:00:00Z")]
    );
    assert_eq!(ours.next_after(Timestamp::MAX), None);
}

#[test]
fn the_choices_for_gap_and_overlap_hold_for_any_expression() {
    let times = |text: &str, gap, overlap, after: &str, count| {
        let source = CronSource {
            text: text.to_owned(),
            dialect: Unix,
            zone: "America/New_York".to_owned(),
            dst_gap: gap,
            dst_overlap: overlap,
        };
        let ours = Compiled::new(&Schedule::Cron(source), &Bounds::default(), "key").unwrap();
        let found = next_times(&ours, at(after), count);
        found.iter().map(Timestamp::to_string).collect::<Vec<_>>()
    };
    let (spring, autumn) = ("2024-03-10T00:00:00Z", "2024-11-03T00:00:00Z");
    let gap = |text, gap| times(text, gap, DstOverlap::Auto, spring, 1);
    assert_eq!(gap("30 2 * * *", DstGap::Auto), ["2024-03-10T07:00:00Z"]);
    assert_eq!(gap("30 2 * * *", DstGap::Skip), ["2024-03-11T06:30:00Z"]);
    assert_eq!(gap("*/30 2 * * *", DstGap::Auto), ["2024-03-11T06:00:00Z"]);
    assert_eq!(gap("*/30 2 * * *", DstGap::FirstValid), ["2024-03-10T07:00:00Z"]);
    let overlap = |text, overlap| times(text, DstGap::Auto, overlap, autumn, 2);
    let (first, second) = ("2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z");
    let next_day = "2024-11-04T06:30:00Z";
    assert_eq!(overlap("30 1 * * *", DstOverlap::Auto), [first, next_day]);
    assert_eq!(overlap("30 1 * * *", DstOverlap::First), [first, next_day]);
    assert_eq!(overlap("30 1 * * *", DstOverlap::Last), [second, next_day]);
    assert_eq!(overlap("30 1 * * *", DstOverlap::Both), [first, second]);
    assert_eq!(overlap("30/59 1 * * *", DstOverlap::Auto), [first, second]);
    assert_eq!(overlap("30-30/2 1 * * *", DstOverlap::Auto), [first, second], "a step is a step");
}
