//! The vectors of `cron.tsv`: expression, dialect, zone, instant, and the next five occurrences.
//!
//! A list that ends early closes with `NONE`; `ERROR` must be refused. What is `NONE` from the
//! start and impossible for every instant is also refused by `validate`.

use horolog::base::time::Timestamp;
use horolog::model::schedule::{Bounds, Dialect};
use horolog::recurrence::preview::next_times;
use horolog::recurrence::validate;

use crate::recurrence::{at, compiled, cron};

const VECTORS: &str = include_str!("cron.tsv");
const ROWS: usize = 428;

struct Row<'a> {
    line: usize,
    expression: &'a str,
    dialect: Dialect,
    zone: &'a str,
    after: &'a str,
    expected: &'a str,
}

fn rows() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for (index, text) in VECTORS.lines().enumerate().skip(1) {
        let columns: Vec<&str> = text.split('\t').collect();
        let [expression, dialect, zone, after, expected, ..] = columns[..] else {
            panic!("line {} has too few columns", index + 1);
        };
        let dialect = match dialect {
            "unix" => Dialect::Unix,
            "quartz" => Dialect::Quartz,
            other => panic!("line {}: dialect {other}", index + 1),
        };
        rows.push(Row { line: index + 1, expression, dialect, zone, after, expected });
    }
    rows
}

/// What the row says, or how the answer differs.
fn check(row: &Row<'_>) -> Result<(), String> {
    let compiled = compiled(row.expression, row.dialect, row.zone);
    if row.expected == "ERROR" {
        return match compiled {
            Ok(compiled) => Err(format!("accepted as {:?}", compiled.normal_form())),
            Err(_) => Ok(()),
        };
    }
    let compiled = compiled.map_err(|error| format!("refused: {error}"))?;
    let after = first_representable(row.after);
    let mut expected: Vec<&str> = row.expected.split(',').collect();
    let ends = expected.last() == Some(&"NONE");
    if ends {
        expected.pop();
    }
    // One vector begins before the first instant that can be asked for.
    expected.retain(|text| text.parse::<Timestamp>().is_ok());
    let found = next_times(&compiled, after, expected.len() + usize::from(ends));
    let found: Vec<String> = found.iter().map(Timestamp::to_string).collect();
    if found == expected { Ok(()) } else { Err(format!("got {found:?}, expected {expected:?}")) }
}

fn first_representable(after: &str) -> Timestamp {
    if after < "1900" { Timestamp::MIN } else { at(after) }
}

#[test]
fn every_vector_of_independent_implementations_holds() {
    let rows = rows();
    assert_eq!(rows.len(), ROWS);
    let mut failures = Vec::new();
    for row in &rows {
        if let Err(difference) = check(row) {
            failures.push(format!("line {} {:?}: {difference}", row.line, row.expression));
        }
    }
    assert!(failures.is_empty(), "{} rows fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn c13_what_can_never_fire_is_refused_on_creation() {
    let mut refused = 0;
    for row in rows().iter().filter(|row| row.expected == "NONE") {
        let schedule = cron(row.expression, row.dialect, row.zone);
        let verdict = validate(&schedule, &Bounds::default(), "key");
        // Some rows only have their occurrences in the past of the instant they ask about.
        let possible = compiled(row.expression, row.dialect, row.zone)
            .unwrap()
            .next_after(Timestamp::MIN)
            .is_some();
        assert_eq!(verdict.is_ok(), possible, "line {} {verdict:?}", row.line);
        refused += usize::from(!possible);
    }
    assert!(refused >= 10, "only {refused} rows are impossible");
}
