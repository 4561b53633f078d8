//! The choices a definition makes about trouble: overlap, retry, misfire, time-outs.

use serde::{Deserialize, Serialize};

use crate::base::limits;
use crate::base::time::Span;

/// What happens when a job fires while an earlier fire of it is still open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Overlap {
    /// The new fire is recorded as skipped.
    #[default]
    Skip,
    /// The new fire waits for the earlier one; a second one that would wait is skipped.
    BufferOne,
    /// Up to this many fires run side by side; one more is skipped. `None`: without a bound.
    Allow { max: Option<u32> },
}

/// When a failed attempt is tried again.
///
/// Attempt n+1 waits `first_delay × factor^(n-1)`, at most `delay_max`. The factor is kept in
/// percent, for the state machine knows no fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Attempts in all, the first one included; 1 means no retry.
    pub attempts_max: u32,
    pub first_delay: Span,
    /// 200 doubles the delay each time; at least 100.
    pub factor_percent: u32,
    pub delay_max: Span,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            attempts_max: 3,
            first_delay: Span::from_secs(10),
            factor_percent: 200,
            delay_max: Span::from_mins(10),
        }
    }
}

impl RetryPolicy {
    /// The delay after `attempt` (counted from 1) has failed; `None` when it was the last.
    #[must_use]
    pub fn delay_after(&self, attempt: u32) -> Option<Span> {
        if attempt >= self.attempts_max {
            return None;
        }
        let cap_ms = i128::from(self.delay_max.as_ms());
        let mut delay_ms = i128::from(self.first_delay.as_ms());
        for _ in 1..attempt {
            if delay_ms >= cap_ms || self.factor_percent <= 100 {
                break;
            }
            delay_ms = delay_ms * i128::from(self.factor_percent) / 100;
        }
        let capped_ms = delay_ms.min(cap_ms);
        Some(Span::from_ms(i64::try_from(capped_ms).unwrap_or(i64::MAX)))
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeoutPolicy {
    /// From the grant to the answer; `None`: an attempt ends only by its answer or by its lease.
    pub start_to_finish: Option<Span>,
}

/// Which of the missed occurrences fire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MisfirePolicy {
    /// One fire, for the latest missed occurrence.
    #[default]
    FireOnce,
    /// None.
    Skip,
    /// All of them, oldest first.
    FireAll,
}

/// What happens to occurrences that were missed: while the cluster was down, without a leader, or
/// paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfire {
    pub policy: MisfirePolicy,
    /// An occurrence recorded at most this long after its time is on time.
    pub grace: Span,
    /// Occurrences older than this never fire.
    pub window: Span,
    /// Most fires of one catch-up.
    pub count_max: u32,
}

impl Default for Misfire {
    fn default() -> Misfire {
        Misfire {
            policy: MisfirePolicy::default(),
            grace: limits::MISFIRE_GRACE_DEFAULT,
            window: limits::CATCHUP_WINDOW_DEFAULT,
            count_max: limits::CATCHUP_COUNT_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delays_grow_to_their_cap_and_end() {
        let policy = RetryPolicy {
            attempts_max: 6,
            first_delay: Span::from_secs(30),
            factor_percent: 200,
            delay_max: Span::from_mins(5),
        };
        let seconds: Vec<Option<i64>> =
            (1..=6).map(|n| policy.delay_after(n).map(|d| d.as_ms() / 1_000)).collect();
        assert_eq!(seconds, [Some(30), Some(60), Some(120), Some(240), Some(300), None]);
    }

    #[test]
    fn retry_delays_never_overflow() {
        let policy = RetryPolicy {
            attempts_max: u32::MAX,
            first_delay: Span::MAX,
            factor_percent: u32::MAX,
            delay_max: Span::MAX,
        };
        assert_eq!(policy.delay_after(u32::MAX - 1), Some(Span::MAX));
    }
}
