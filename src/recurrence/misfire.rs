//! Which of the missed occurrences fire.
//!
//! Every occurrence after the cursor and up to now ends in exactly one of two lists: it fires, or
//! it is skipped with a reason. An occurrence at most `grace` old is on time and fires under every
//! policy; an older one is missed, and the policy decides:
//!
//! - `Skip`: none of the missed fires.
//! - `FireOnce`: the latest missed one fires, if it lies inside the window. When an occurrence is
//!   due on time as well, that one makes up for the missed ones: a resumed job starts once, not
//!   twice.
//! - `FireAll`: the newest `count_max` missed ones inside the window fire, oldest first.
//!
//! The work of one call is bounded: it fires at most `budget` occurrences and counts at most
//! [`MISFIRE_STRIDES_MAX`] strides (days of a cron schedule; an interval is one stride) for each
//! run it skips. What is left over is said by `more`, and the next call goes on from the returned
//! cursor, so a count is exact however many calls it takes. Nothing fires in a call that could not
//! finish counting before it.

use crate::base::limits::{CATCHUP_COUNT_MAX, MISFIRE_STRIDES_MAX};
use crate::base::time::{Span, Timestamp};
use crate::model::fire::SkipReason;
use crate::model::policy::{Misfire, MisfirePolicy};
use crate::recurrence::Compiled;

const MS: Span = Span::from_ms(1);

/// What is to be recorded for the occurrences after a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Occurrences that fire, oldest first.
    pub fires: Vec<Timestamp>,
    /// Occurrences that do not, folded into runs, oldest first; all lie before those that fire.
    pub skipped: Vec<SkippedRun>,
    /// The last occurrence accounted for here; the old cursor when there was none.
    pub cursor: Timestamp,
    /// The first occurrence after the cursor.
    pub next: Option<Timestamp>,
    /// Whether `next` is due already: the budget ran out, so ask again with the new cursor.
    pub more: bool,
}

/// Consecutive occurrences that do not fire, for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedRun {
    pub reason: SkipReason,
    pub first: Timestamp,
    pub last: Timestamp,
    /// How many they are, the first and the last included; never zero.
    pub count: u64,
}

/// Accounts for the occurrences after `cursor` and at or before `now`; at most `budget` of them
/// fire.
///
/// A clock that was put back (`now` before `cursor`) selects nothing and moves nothing.
#[must_use]
pub fn select(
    compiled: &Compiled,
    cursor: Timestamp,
    now: Timestamp,
    misfire: &Misfire,
    budget: usize,
) -> Selection {
    let mut account = Account { compiled, cursor, fires: Vec::new(), skipped: Vec::new() };
    if now > cursor && account.settle_missed(now, misfire, budget) {
        account.fire_to(now, budget);
    }
    let next = compiled.next_after(account.cursor);
    let more = next.is_some_and(|next| next <= now);
    let Account { cursor, fires, skipped, .. } = account;
    Selection { fires, skipped, cursor, next, more }
}

/// The accounting so far: everything up to `cursor` is in one of the lists.
struct Account<'a> {
    compiled: &'a Compiled,
    cursor: Timestamp,
    fires: Vec<Timestamp>,
    skipped: Vec<SkippedRun>,
}

impl Account<'_> {
    /// Settles what is older than its grace. Whether it was finished, so that the rest may fire.
    fn settle_missed(&mut self, now: Timestamp, misfire: &Misfire, budget: usize) -> bool {
        let missed_to = now.minus(misfire.grace).minus(MS);
        let outside_to = missed_to.min(now.minus(misfire.window).minus(MS));
        match misfire.policy {
            MisfirePolicy::Skip => self.skip_to(missed_to, u64::MAX, SkipReason::Misfire),
            MisfirePolicy::FireOnce => {
                self.skip_to(outside_to, u64::MAX, SkipReason::OutsideWindow)
                    && self.skip_to(
                        self.before_catchup(missed_to, now),
                        u64::MAX,
                        SkipReason::Misfire,
                    )
            }
            MisfirePolicy::FireAll => {
                self.skip_to(outside_to, u64::MAX, SkipReason::OutsideWindow)
                    && self.skip_over_count(missed_to, misfire.count_max)
                    && self.fire_to(missed_to, budget)
            }
        }
    }

    /// Up to where `fire_once` skips: just before the latest missed occurrence, or all missed ones
    /// when another is due on time.
    fn before_catchup(&self, missed_to: Timestamp, now: Timestamp) -> Timestamp {
        let on_time = self.compiled.next_after(missed_to.max(self.cursor));
        if on_time.is_some_and(|next| next <= now) {
            return missed_to;
        }
        let latest = self.compiled.latest_at_or_before(missed_to, self.cursor.plus(MS));
        latest.map_or(missed_to, |latest| latest.minus(MS))
    }

    /// Skips the oldest occurrences up to `until` that are more than `count_max`. Whether all were
    /// counted.
    fn skip_over_count(&mut self, until: Timestamp, count_max: u32) -> bool {
        let kept = u64::from(count_max.min(CATCHUP_COUNT_MAX));
        let (count, counted_all) = self.count_to(until);
        let over = count.saturating_sub(kept);
        let skipped_all = over == 0 || self.skip_to(until, over, SkipReason::OverCount);
        counted_all && skipped_all
    }

    /// How many occurrences lie after the cursor and up to `until`, and whether that is all of
    /// them.
    fn count_to(&self, until: Timestamp) -> (u64, bool) {
        let (mut count, mut from) = (0, self.cursor);
        for _ in 0..MISFIRE_STRIDES_MAX {
            let Some(stride) = self.compiled.stride_after(from, until, u64::MAX) else {
                return (count, true);
            };
            count += stride.count;
            from = stride.last;
        }
        (count, false)
    }

    /// Skips the next `count_max` occurrences, as far as they lie at or before `until`. Whether it
    /// was finished.
    fn skip_to(&mut self, until: Timestamp, count_max: u64, reason: SkipReason) -> bool {
        let mut run: Option<SkippedRun> = None;
        let mut finished = false;
        for _ in 0..MISFIRE_STRIDES_MAX {
            let left = count_max - run.map_or(0, |run| run.count);
            let Some(stride) = self.compiled.stride_after(self.cursor, until, left) else {
                finished = true;
                break;
            };
            self.cursor = stride.last;
            let (first, count) = run.map_or((stride.first, 0), |run| (run.first, run.count));
            let count = count + stride.count;
            run = Some(SkippedRun { reason, first, last: stride.last, count });
        }
        self.skipped.extend(run);
        finished
    }

    /// Fires what lies at or before `until`, as far as the budget goes. Whether it was finished.
    fn fire_to(&mut self, until: Timestamp, budget: usize) -> bool {
        while let Some(next) = self.compiled.next_after(self.cursor).filter(|&next| next <= until) {
            if self.fires.len() >= budget {
                return false;
            }
            self.fires.push(next);
            self.cursor = next;
        }
        true
    }
}

#[cfg(test)]
mod tests;
