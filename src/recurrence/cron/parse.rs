//! Reading a cron expression: macros, the number of fields, and the rules between fields.

use crate::base::limits::CRON_BYTES_MAX;
use crate::model::schedule::Dialect;
use crate::recurrence::cron::CronExpr;
use crate::recurrence::cron::error::{CronError, shown};
use crate::recurrence::cron::field::{FIELDS, Field};
use crate::recurrence::cron::item::Item;
use crate::recurrence::cron::reader::FieldReader;

/// Reads `text`. `hash_key` is what `H` is hashed from: the same key gives the same values for
/// ever.
///
/// # Errors
/// [`CronError`] names the field, the part of it, and what would be right.
pub fn parse(text: &str, dialect: Dialect, hash_key: &str) -> Result<CronExpr, CronError> {
    let expr = parse_fields(text, dialect, hash_key)?;
    if dialect == Dialect::Quartz {
        check_day_fields(&expr)?;
    }
    Ok(expr)
}

fn parse_fields(text: &str, dialect: Dialect, hash_key: &str) -> Result<CronExpr, CronError> {
    if text.len() > CRON_BYTES_MAX {
        return Err(CronError::TooLong { bytes: text.len() });
    }
    let text = text.trim_matches([' ', '\t']);
    let text = if text.starts_with('@') { expand_macro(text, dialect)? } else { text };
    let words: Vec<&str> = text.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
    let fits = match dialect {
        Dialect::Unix => words.len() == 5,
        Dialect::Quartz => words.len() == 6 || words.len() == 7,
    };
    if !fits {
        let hint = field_count_hint(&words, dialect, hash_key);
        return Err(CronError::FieldCount { dialect, found: words.len(), hint });
    }
    let first = match dialect {
        Dialect::Unix => Field::Minute as usize,
        Dialect::Quartz => Field::Second as usize,
    };
    let mut lists = [const { Vec::new() }; 7];
    lists[Field::Second as usize] = vec![Item::Value(0)];
    lists[Field::Year as usize] = vec![Item::All];
    for (field, word) in FIELDS.into_iter().skip(first).zip(words) {
        let reader = FieldReader { field, dialect, hash_key };
        lists[field as usize] = reader.read_list(word)?;
    }
    Ok(CronExpr { dialect, lists })
}

fn expand_macro(text: &str, dialect: Dialect) -> Result<&'static str, CronError> {
    let (unix, quartz) = match text.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => ("0 0 1 1 *", "0 0 0 1 1 ?"),
        "@monthly" => ("0 0 1 * *", "0 0 0 1 * ?"),
        "@weekly" => ("0 0 * * 0", "0 0 0 ? * 1"),
        "@daily" | "@midnight" => ("0 0 * * *", "0 0 0 * * ?"),
        "@hourly" => ("0 * * * *", "0 0 * * * ?"),
        other => {
            let hint = if other.starts_with("@every") {
                "; a fixed interval is a schedule of its own kind, every"
            } else {
                ""
            };
            return Err(CronError::Macro { text: shown(text), hint });
        }
    };
    Ok(match dialect {
        Dialect::Unix => unix,
        Dialect::Quartz => quartz,
    })
}

/// Says what the text means in the other dialect, when it is one of its expressions.
fn field_count_hint(words: &[&str], dialect: Dialect, hash_key: &str) -> String {
    let text = words.join(" ");
    match dialect {
        Dialect::Quartz if words.len() == 5 => {
            match parse_fields(&text, Dialect::Unix, hash_key).ok().and_then(|e| to_quartz(&e)) {
                Some(quartz) => format!(
                    "; it reads as unix, where 1 = MON; in quartz, where 1 = SUN, the same is \
                     {quartz:?}"
                ),
                None => String::new(),
            }
        }
        Dialect::Unix if matches!(words.len(), 6 | 7) => {
            match parse_fields(&text, Dialect::Quartz, hash_key) {
                Ok(_) => "; it reads as quartz, which has seconds first and 1 = SUN: name that \
                          dialect, or leave the seconds out and count 1 = MON"
                    .to_owned(),
                Err(_) => String::new(),
            }
        }
        Dialect::Unix | Dialect::Quartz => String::new(),
    }
}

/// A unix expression in quartz's words; `None` when quartz has none for it.
fn to_quartz(expr: &CronExpr) -> Option<String> {
    let shifted = |item: &Item| match *item {
        Item::Value(value) => Item::Value(value + 1),
        Item::From { start, step } => Item::From { start: start + 1, step },
        Item::Range { start: 0, end: 7, step: None } => Item::All,
        Item::Range { start, end, step } => {
            Item::Range { start: start + 1, end: end % 7 + 1, step }
        }
        Item::LastOf { weekday } => Item::LastOf { weekday: weekday + 1 },
        Item::Nth { weekday, nth } => Item::Nth { weekday: weekday + 1, nth },
        other => other,
    };
    let weekdays: Vec<String> =
        expr.items(Field::DayOfWeek).iter().map(|item| shifted(item).to_string()).collect();
    let (day, weekday) =
        match (expr.is_unrestricted(Field::DayOfMonth), expr.is_unrestricted(Field::DayOfWeek)) {
            (_, true) => (expr.field_text(Field::DayOfMonth), "?".to_owned()),
            (true, false) => ("?".to_owned(), weekdays.join(",")),
            (false, false) => return None,
        };
    let [minute, hour, month] =
        [Field::Minute, Field::Hour, Field::Month].map(|field| expr.field_text(field));
    Some(format!("0 {minute} {hour} {day} {month} {weekday}"))
}

fn check_day_fields(expr: &CronExpr) -> Result<(), CronError> {
    let unset = |field| expr.items(field).contains(&Item::Unset);
    if unset(Field::DayOfMonth) != unset(Field::DayOfWeek) {
        return Ok(());
    }
    let (day, weekday) = if !expr.is_unrestricted(Field::DayOfWeek) {
        ("?".to_owned(), expr.field_text(Field::DayOfWeek))
    } else if unset(Field::DayOfMonth) {
        ("*".to_owned(), "?".to_owned())
    } else {
        (expr.field_text(Field::DayOfMonth), "?".to_owned())
    };
    let [second, minute, hour, month] =
        [Field::Second, Field::Minute, Field::Hour, Field::Month].map(|f| expr.field_text(f));
    Err(CronError::DayFields {
        day_of_month: shown(&expr.field_text(Field::DayOfMonth)),
        day_of_week: shown(&expr.field_text(Field::DayOfWeek)),
        example: format!("{second} {minute} {hour} {day} {month} {weekday}"),
    })
}
