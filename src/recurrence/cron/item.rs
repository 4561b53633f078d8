//! One part of a field's list, as read: what it may be, how it prints, and which values it stands
//! for.

use std::fmt;

use crate::model::schedule::Dialect;
use crate::recurrence::cron::field::Field;

/// One part of a field's list. Numbers are those of the dialect; `H` has been resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// `*`, also written `*/1`; unix reads `?` so too.
    All,
    /// quartz's `?`: this day field does not matter.
    Unset,
    /// `*/n`.
    Every {
        step: u16,
    },
    Value(u16),
    /// `a/n`: from `a` to the field's end.
    From {
        start: u16,
        step: u16,
    },
    /// `a-b` or `a-b/n`; wraps over the field's end when `b` is smaller.
    Range {
        start: u16,
        end: u16,
        step: Option<u16>,
    },
    /// `L` in day-of-month, and `L-n`.
    LastDay {
        before: u16,
    },
    /// `LW`, and `L-nW`.
    LastWeekday {
        before: u16,
    },
    /// `nW`.
    NearestWeekday {
        day: u16,
    },
    /// `nL` in day-of-week.
    LastOf {
        weekday: u16,
    },
    /// `n#k`.
    Nth {
        weekday: u16,
        nth: u16,
    },
}

impl Item {
    /// Whether the item was written with `*` or `/`: in minute or hour that makes a job frequent.
    #[must_use]
    pub fn is_interval_like(self) -> bool {
        match self {
            Item::All
            | Item::Every { .. }
            | Item::From { .. }
            | Item::Range { step: Some(_), .. } => true,
            Item::Unset
            | Item::Value(_)
            | Item::Range { step: None, .. }
            | Item::LastDay { .. }
            | Item::LastWeekday { .. }
            | Item::NearestWeekday { .. }
            | Item::LastOf { .. }
            | Item::Nth { .. } => false,
        }
    }

    /// The plain values the item stands for; none for those that depend on the month.
    #[must_use]
    pub fn values(self, field: Field, dialect: Dialect) -> Vec<u16> {
        let (min, max) = (field.min(dialect), field.max(dialect));
        let stepped = |start: u16, end: u16, step: u16| -> Vec<u16> {
            (start..=end).step_by(usize::from(step.max(1))).collect()
        };
        match self {
            Item::All => stepped(min, max, 1),
            Item::Every { step } => stepped(min, max, step),
            Item::Value(value) => vec![value],
            Item::From { start, step } => stepped(start, max, step),
            Item::Range { start, end, step } if start <= end => {
                stepped(start, end, step.unwrap_or(1))
            }
            Item::Range { start, end, step } => {
                let cycle = max - min + 1;
                stepped(start, end + cycle, step.unwrap_or(1))
                    .into_iter()
                    .map(|value| if value > max { value - cycle } else { value })
                    .collect()
            }
            Item::Unset
            | Item::LastDay { .. }
            | Item::LastWeekday { .. }
            | Item::NearestWeekday { .. }
            | Item::LastOf { .. }
            | Item::Nth { .. } => Vec::new(),
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Item::All => f.write_str("*"),
            Item::Unset => f.write_str("?"),
            Item::Every { step } => write!(f, "*/{step}"),
            Item::Value(value) => write!(f, "{value}"),
            Item::From { start, step } => write!(f, "{start}/{step}"),
            Item::Range { start, end, step: None } => write!(f, "{start}-{end}"),
            Item::Range { start, end, step: Some(step) } => write!(f, "{start}-{end}/{step}"),
            Item::LastDay { before: 0 } => f.write_str("L"),
            Item::LastDay { before } => write!(f, "L-{before}"),
            Item::LastWeekday { before: 0 } => f.write_str("LW"),
            Item::LastWeekday { before } => write!(f, "L-{before}W"),
            Item::NearestWeekday { day } => write!(f, "{day}W"),
            Item::LastOf { weekday } => write!(f, "{weekday}L"),
            Item::Nth { weekday, nth } => write!(f, "{weekday}#{nth}"),
        }
    }
}
