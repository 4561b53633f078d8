//! Cron expressions of both dialects: from text to lists of items, and to a normal form.
//!
//! The grammar, one field at a time (`field` has the ranges, `parse` and `reader` the rules, `item`
//! the meaning):
//!
//! - unix: `minute hour day-of-month month day-of-week`; ranges do not wrap; 0 and 7 are Sunday.
//! - quartz: `second minute hour day-of-month month day-of-week [year]`; ranges wrap; 1 is Sunday;
//!   exactly one of the day fields is `?`.
//! - both: `*`, lists, ranges, steps (`a/n` runs to the field's end), names of months and weekdays
//!   in any case, `L`, `L-n`, `LW`, `L-nW`, `nW`, `nL`, `n#k`, the macros, and `H`, `H/n`,
//!   `H(a-b)`, `H(a-b)/n`.
//!
//! `H` stands for a value hashed from a key, so that a thousand nightly jobs do not start in one
//! second; it is resolved while reading, and the normal form shows the resolved value. Reading is
//! total: any text ends in an expression or in an error, after one pass.

pub mod error;
pub mod field;
pub mod item;
pub mod parse;
mod reader;

use std::fmt;

use crate::model::schedule::Dialect;
use crate::recurrence::cron::field::{FIELDS, Field};
use crate::recurrence::cron::item::Item;

/// A cron expression that was read. Lists are sorted and without repetition.
///
/// It prints its normal form: numbers instead of names, no leading zeros, macros and `H` resolved.
/// The normal form reads back as the same expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronExpr {
    dialect: Dialect,
    /// In the order of [`FIELDS`]; those that the dialect does not have hold their implied value.
    lists: [Vec<Item>; 7],
}

impl CronExpr {
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The items of a field, sorted, never empty.
    #[must_use]
    pub fn items(&self, field: Field) -> &[Item] {
        &self.lists[field as usize]
    }

    /// Whether the field lets everything pass: `*` or `?`.
    #[must_use]
    pub fn is_unrestricted(&self, field: Field) -> bool {
        self.items(field).iter().any(|item| matches!(item, Item::All | Item::Unset))
    }

    /// Whether `*` or `/` stands in minute or hour: such a job counts elapsed time, not dates.
    #[must_use]
    pub fn is_frequent(&self) -> bool {
        [Field::Minute, Field::Hour]
            .into_iter()
            .any(|field| self.items(field).iter().any(|item| item.is_interval_like()))
    }

    /// The field in normal form.
    #[must_use]
    pub fn field_text(&self, field: Field) -> String {
        let parts: Vec<String> = self.items(field).iter().map(Item::to_string).collect();
        parts.join(",")
    }
}

impl fmt::Display for CronExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let year_matters = !self.is_unrestricted(Field::Year);
        let written = FIELDS.iter().filter(|&&field| match (field, self.dialect) {
            (Field::Second, Dialect::Unix) => false,
            (Field::Year, _) => year_matters,
            _ => true,
        });
        let texts: Vec<String> = written.map(|&field| self.field_text(field)).collect();
        f.write_str(&texts.join(" "))
    }
}
