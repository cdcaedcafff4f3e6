//! The rolling window of one key, pure: exact, constant work per request, and bounded however high the limit is.
//!
//! Requests are kept as marks: the time of the newest request of a slice of the window, and how many were admitted up to
//! then since the key was first seen. What lies between two marks is then a subtraction, never a count. Merging a slice
//! into its newest request can only refuse a request too long (by one slice), never admit one too many.

use std::{collections::VecDeque, time::Duration};

use super::{RateLimitOutcome, RequestQuota};

/// Microseconds on the limiter's own clock.
pub(super) type Micros = u64;

/// Marks that one key may hold, while slices stay under [`SLICE_MAX`].
const MARKS_MAX: u64 = 8_192;
/// Longest slice: the contract's wait is true to one second.
const SLICE_MAX: Duration = Duration::from_millis(500);
/// Shortest slice; requests of one slice share a mark.
const SLICE_MIN: Duration = Duration::from_millis(1);

/// Requests of one key.
#[derive(Debug, Default)]
pub(super) struct RollingWindow {
    marks: VecDeque<Mark>,
    /// Requests that have left the window.
    expired: u64,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    newest: Micros,
    admitted: u64,
}

impl RollingWindow {
    /// Admits or refuses one request at `now`.
    pub(super) fn take(&mut self, now: Micros, quota: RequestQuota) -> RateLimitOutcome {
        // A clock that went back must not let requests in that it has counted already.
        let now = now.max(self.marks.back().map_or(0, |mark| mark.newest));
        let window = micros(quota.window);
        while let Some(mark) = self
            .marks
            .front()
            .filter(|mark| mark.newest + window <= now)
        {
            self.expired = mark.admitted;
            self.marks.pop_front();
        }
        let counted = self.admitted() - self.expired;
        let admitted = counted < u64::from(quota.limit);
        if admitted {
            self.count(now, slice(quota));
        }
        self.verdict(now, quota, admitted)
    }

    /// Whether a window has passed since the last request.
    pub(super) fn is_silent(&self, now: Micros, window: Duration) -> bool {
        self.marks
            .back()
            .is_none_or(|mark| mark.newest + micros(window) <= now)
    }

    fn count(&mut self, now: Micros, slice: Micros) {
        let admitted = self.admitted() + 1;
        match self.marks.back_mut() {
            Some(mark) if mark.newest / slice == now / slice => {
                *mark = Mark {
                    newest: now,
                    admitted,
                }
            }
            _ => self.marks.push_back(Mark {
                newest: now,
                admitted,
            }),
        }
    }

    fn verdict(&self, now: Micros, quota: RequestQuota, admitted: bool) -> RateLimitOutcome {
        let left = |mark: Option<&Mark>| {
            let end = mark.map_or(now, |mark| mark.newest + micros(quota.window));
            Duration::from_micros(end.saturating_sub(now))
        };
        let counted = self.admitted() - self.expired;
        let remaining = u64::from(quota.limit).saturating_sub(counted);
        let retry_after = match (remaining, self.marks.front()) {
            (0, None) => quota.window,
            (0, oldest) => left(oldest),
            _ => Duration::ZERO,
        };
        RateLimitOutcome {
            admitted,
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            retry_after,
            reset_after: left(self.marks.back()),
        }
    }

    fn admitted(&self) -> u64 {
        self.marks.back().map_or(self.expired, |mark| mark.admitted)
    }
}

/// Length of a slice under `quota`.
pub(super) fn slice(quota: RequestQuota) -> Micros {
    let bounded = micros(quota.window) / MARKS_MAX;
    let long = if u64::from(quota.limit) <= MARKS_MAX {
        0
    } else {
        bounded
    };
    long.clamp(micros(SLICE_MIN), micros(SLICE_MAX))
}

pub(super) fn micros(duration: Duration) -> Micros {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn limit_of_a_million_holds_a_bounded_number_of_marks() {
        let quota = RequestQuota {
            limit: 1_000_000,
            window: MINUTE,
        };
        let mut window = RollingWindow::default();
        for request in 0..1_500_000_u64 {
            window.take(request * 50, quota);
        }
        assert!(
            window.marks.len() as u64 <= MARKS_MAX + 2,
            "{} marks",
            window.marks.len()
        );
    }

    #[test]
    fn a_clock_that_goes_back_admits_no_more() {
        let quota = RequestQuota {
            limit: 2,
            window: MINUTE,
        };
        let mut window = RollingWindow::default();
        let admitted = [100_000_000, 99_000_000, 1].map(|now| window.take(now, quota).admitted);
        assert_eq!(admitted, [true, true, false]);
    }

    #[test]
    fn a_limit_of_zero_admits_nothing() {
        let verdict = RollingWindow::default().take(
            5,
            RequestQuota {
                limit: 0,
                window: MINUTE,
            },
        );
        assert_eq!((verdict.admitted, verdict.retry_after), (false, MINUTE));
    }

    proptest! {
        #[test]
        fn no_window_of_any_history_holds_more_than_the_limit(
            steps in proptest::collection::vec(0..40_000_u64, 1..400),
            limit in 1..20_u32,
        ) {
            let quota = RequestQuota { limit, window: Duration::from_millis(100) };
            let mut window = RollingWindow::default();
            let mut now = 0;
            let mut admitted: Vec<Micros> = Vec::new();
            for step in steps {
                now += step;
                let verdict = window.take(now, quota);
                if verdict.admitted {
                    admitted.push(now);
                }
                let inside = admitted.iter().filter(|at| **at + 100_000 > now).count();
                prop_assert!(inside <= limit as usize);
                prop_assert_eq!(verdict.remaining == 0, verdict.retry_after > Duration::ZERO);
            }
        }

        #[test]
        fn refused_request_is_admitted_after_exactly_its_retry_delay(
            steps in proptest::collection::vec(0..300_000_u64, 1..200),
        ) {
            let quota = RequestQuota { limit: 5, window: Duration::from_secs(2) };
            let mut window = RollingWindow::default();
            let mut now = 0;
            for step in steps {
                now += step;
                let verdict = window.take(now, quota);
                if !verdict.admitted {
                    let early = (now + micros(verdict.retry_after)).saturating_sub(1_000_000);
                    if early > now {
                        prop_assert!(!window.take(early, quota).admitted);
                    }
                    now += micros(verdict.retry_after);
                    prop_assert!(window.take(now, quota).admitted);
                }
            }
        }
    }
}
