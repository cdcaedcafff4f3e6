//! The rolling window of one key, a pure state machine: exact, with constant work per request and
//! bounded memory for any limit.
//!
//! Requests are stored as marks: the time of the newest request of a slice of the window, and the
//! number of requests admitted until then since the key was first used. The number between two
//! marks is a subtraction. Merging a slice into its newest request can only reject a request for
//! too long (by one slice), never admit one too many.

use std::{collections::VecDeque, time::Duration};

use super::{RateLimitOutcome, RequestQuota};

/// Microseconds on the clock of the limiter.
pub(super) type ClockMicros = u64;

/// Maximum number of marks per key, as long as slices stay below [`SLICE_MAX`].
const MARKS_MAX: u64 = 8_192;
/// Maximum length of a slice; the contract allows a retry time that is off by one second.
const SLICE_MAX: Duration = Duration::from_millis(500);
/// Minimum length of a slice; requests of one slice share a mark.
const SLICE_MIN: Duration = Duration::from_millis(1);

/// The requests of one key.
#[derive(Debug, Default)]
pub(super) struct RollingWindow {
    marks: VecDeque<RequestMark>,
    /// Number of requests that have left the window.
    expired: u64,
}

#[derive(Clone, Copy, Debug)]
struct RequestMark {
    newest: ClockMicros,
    admitted: u64,
}

impl RollingWindow {
    /// Admits or rejects one request at `now`.
    pub(super) fn take_request(
        &mut self,
        now: ClockMicros,
        quota: RequestQuota,
    ) -> RateLimitOutcome {
        // A clock that went back must not admit requests that were already counted.
        let now = now.max(self.marks.back().map_or(0, |mark| mark.newest));
        let window = to_micros(quota.window);
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
            self.record_request(now, slice_length(quota));
        }
        self.verdict(now, quota, admitted)
    }

    /// Returns `true` if a whole window has passed since the last request.
    pub(super) fn is_silent(&self, now: ClockMicros, window: Duration) -> bool {
        self.marks
            .back()
            .is_none_or(|mark| mark.newest + to_micros(window) <= now)
    }

    fn record_request(&mut self, now: ClockMicros, slice: ClockMicros) {
        let admitted = self.admitted() + 1;
        match self.marks.back_mut() {
            Some(mark) if mark.newest / slice == now / slice => {
                *mark = RequestMark {
                    newest: now,
                    admitted,
                }
            }
            _ => self.marks.push_back(RequestMark {
                newest: now,
                admitted,
            }),
        }
    }

    fn verdict(&self, now: ClockMicros, quota: RequestQuota, admitted: bool) -> RateLimitOutcome {
        let left = |mark: Option<&RequestMark>| {
            let end = mark.map_or(now, |mark| mark.newest + to_micros(quota.window));
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

/// Returns the length of a slice for a quota.
pub(super) fn slice_length(quota: RequestQuota) -> ClockMicros {
    let bounded = to_micros(quota.window) / MARKS_MAX;
    let long = if u64::from(quota.limit) <= MARKS_MAX {
        0
    } else {
        bounded
    };
    long.clamp(to_micros(SLICE_MIN), to_micros(SLICE_MAX))
}

pub(super) fn to_micros(duration: Duration) -> ClockMicros {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn window_of_a_million_requests_has_bounded_marks() {
        let quota = RequestQuota {
            limit: 1_000_000,
            window: MINUTE,
        };
        let mut window = RollingWindow::default();
        for request in 0..1_500_000_u64 {
            window.take_request(request * 50, quota);
        }
        assert!(
            window.marks.len() as u64 <= MARKS_MAX + 2,
            "{} marks",
            window.marks.len()
        );
    }

    #[test]
    fn clock_that_goes_back_admits_no_extra_request() {
        let quota = RequestQuota {
            limit: 2,
            window: MINUTE,
        };
        let mut window = RollingWindow::default();
        let admitted =
            [100_000_000, 99_000_000, 1].map(|now| window.take_request(now, quota).admitted);
        assert_eq!(admitted, [true, true, false]);
    }

    #[test]
    fn window_is_silent_as_soon_as_its_last_request_has_left() {
        let quota = RequestQuota {
            limit: 1,
            window: MINUTE,
        };
        let mut window = RollingWindow::default();
        window.take_request(30_000_000, quota);
        let silent = [89_999_999, 90_000_000].map(|now| window.is_silent(now, MINUTE));
        assert_eq!(silent, [false, true]);
    }

    #[test]
    fn slices_of_high_limits_divide_the_window_up_to_half_a_second() {
        let slice = |limit, hours: u32| {
            slice_length(RequestQuota {
                limit,
                window: 60 * hours * MINUTE,
            })
        };
        assert_eq!(slice(8_192, 1), 1_000);
        assert_eq!(slice(8_193, 1), 3_600_000_000 / 8_192);
        assert_eq!(slice(8_193, 24), 500_000);
        assert!(to_micros(Duration::MAX) > to_micros(24 * 60 * MINUTE));
    }

    #[test]
    fn limit_of_zero_admits_nothing() {
        let verdict = RollingWindow::default().take_request(
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
        fn rolling_window_never_exceeds_the_limit(
            steps in proptest::collection::vec(0..40_000_u64, 1..400),
            limit in 1..20_u32,
        ) {
            let quota = RequestQuota { limit, window: Duration::from_millis(100) };
            let mut window = RollingWindow::default();
            let mut now = 0;
            let mut admitted: Vec<ClockMicros> = Vec::new();
            for step in steps {
                now += step;
                let verdict = window.take_request(now, quota);
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
                let verdict = window.take_request(now, quota);
                if !verdict.admitted {
                    let early = (now + to_micros(verdict.retry_after)).saturating_sub(1_000_000);
                    if early > now {
                        prop_assert!(!window.take_request(early, quota).admitted);
                    }
                    now += to_micros(verdict.retry_after);
                    prop_assert!(window.take_request(now, quota).admitted);
                }
            }
        }
    }
}
