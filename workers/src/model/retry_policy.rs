//! Retry policy of model calls: after a failure, retry, call the fallback, or fail with a public
//! name. Pure.
//!
//! | failure before the first token | next step | failure name |
//! |---|---|---|
//! | unreachable, 429, 5xx | same provider after a pause, then the fallback | unavailable |
//! | broken off, error inside the stream | the same | error |
//! | address refused | the fallback | unavailable |
//! | silent | the fallback, because a slow call is paid like any other | timeout |
//! | 401 to 404, invalid key or address | the fallback: it has its own key and model | error |
//! | longer than the context | none: the caller builds a shorter prompt | error |
//! | any other 4xx | none: the request itself is invalid | error |
//! | no answer at all (page, redirect, garbage) | the fallback | error |

use std::time::Duration;

use switchboard_schemas::reply_event::ReplyFailure;

use super::CallError;
use crate::retry::longest_pause;

/// Bounds of the retries of one provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryLimits {
    pub(crate) retries_max: u32,
    /// Shortest pause between two calls.
    pub(crate) delay_min: Duration,
    /// Longest pause, unless the provider asks for more.
    pub(crate) delay_max: Duration,
}

/// State of a generation after a call has failed before its first token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallState {
    /// Calls of this provider so far, including the failed one.
    pub(crate) tries: u32,
    /// Time left until the first token must arrive.
    pub(crate) left: Duration,
    /// Longest pause within the time that this provider may take.
    pub(crate) pause_max: Duration,
    /// True if another endpoint follows.
    pub(crate) has_fallback: bool,
    /// A random number in [0, 1).
    pub(crate) jitter: f64,
}

/// Next step after a failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// Call the same provider again after this pause.
    Retry(Duration),
    /// Call the fallback now.
    Fallback,
    /// Fail the reply with this name.
    Fail(ReplyFailure),
}

/// Returns the next step after `error`.
pub(crate) fn next_step(error: &CallError, state: CallState, limits: RetryLimits) -> RetryDecision {
    let again = match error {
        CallError::Unreachable { .. }
        | CallError::Overloaded { .. }
        | CallError::BrokenOff
        | CallError::Reported => retry_pause(error, state, limits),
        CallError::Silent
        | CallError::AddressRefused
        | CallError::InvalidEndpoint
        | CallError::Refused { .. }
        | CallError::TooLong { .. }
        | CallError::NotAnAnswer => None,
    };
    if let Some(pause) = again {
        return RetryDecision::Retry(pause);
    }
    if state.has_fallback && !state.left.is_zero() && fallback_may_help(error) {
        return RetryDecision::Fallback;
    }
    RetryDecision::Fail(public_failure(error))
}

pub(crate) const fn public_failure(error: &CallError) -> ReplyFailure {
    match error {
        // A refused address looks like one that does not answer, so that nothing can be scanned.
        CallError::Unreachable { .. }
        | CallError::AddressRefused
        | CallError::Overloaded { .. } => ReplyFailure::ModelUnavailable,
        CallError::Silent => ReplyFailure::ModelTimeout,
        CallError::InvalidEndpoint
        | CallError::Refused { .. }
        | CallError::TooLong { .. }
        | CallError::NotAnAnswer
        | CallError::Reported
        | CallError::BrokenOff => ReplyFailure::ModelError,
    }
}

const fn fallback_may_help(error: &CallError) -> bool {
    match error {
        CallError::Refused { status } => matches!(*status, 401..=404),
        CallError::TooLong { .. } => false,
        _ => true,
    }
}

/// Returns the pause before the next call of the same provider; `None` if no retry or no time is
/// left.
fn retry_pause(error: &CallError, state: CallState, limits: RetryLimits) -> Option<Duration> {
    if state.tries > limits.retries_max {
        return None;
    }
    let ceiling = longest_pause(limits.delay_min, limits.delay_max, state.tries);
    let spread = ceiling.saturating_sub(limits.delay_min);
    let chosen = limits.delay_min + spread.mul_f64(state.jitter);
    let asked = match error {
        CallError::Overloaded { retry_after, .. } => retry_after.unwrap_or_default(),
        _ => Duration::ZERO,
    };
    if asked > limits.delay_max && state.has_fallback {
        return None;
    }
    let pause = chosen.max(asked);
    (pause < state.pause_max).then_some(pause)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: RetryLimits = RetryLimits {
        retries_max: 2,
        delay_min: Duration::from_millis(200),
        delay_max: Duration::from_secs(2),
    };

    fn state(tries: u32, has_fallback: bool) -> CallState {
        CallState {
            tries,
            left: Duration::from_secs(30),
            pause_max: Duration::from_secs(20),
            has_fallback,
            jitter: 0.5,
        }
    }

    fn overloaded(retry_after: Option<u64>) -> CallError {
        CallError::Overloaded {
            status: 429,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    #[test]
    fn overloaded_provider_is_called_three_times_then_the_fallback() {
        assert!(matches!(
            next_step(&overloaded(None), state(1, true), LIMITS),
            RetryDecision::Retry(_)
        ));
        assert!(matches!(
            next_step(&overloaded(None), state(2, true), LIMITS),
            RetryDecision::Retry(_)
        ));
        assert_eq!(
            next_step(&overloaded(None), state(3, true), LIMITS),
            RetryDecision::Fallback
        );
        assert_eq!(
            next_step(&overloaded(None), state(3, false), LIMITS),
            RetryDecision::Fail(ReplyFailure::ModelUnavailable)
        );
    }

    #[test]
    fn requested_wait_is_honored_if_it_fits() {
        assert_eq!(
            next_step(&overloaded(Some(7)), state(1, false), LIMITS),
            RetryDecision::Retry(Duration::from_secs(7))
        );
        assert_eq!(
            next_step(&overloaded(Some(21)), state(1, false), LIMITS),
            RetryDecision::Fail(ReplyFailure::ModelUnavailable)
        );
        assert_eq!(
            next_step(&overloaded(Some(7)), state(1, true), LIMITS),
            RetryDecision::Fallback
        );
    }

    #[test]
    fn rejection_is_final_unless_key_or_model_is_at_fault() {
        let refused = |status| CallError::Refused { status };
        assert_eq!(
            next_step(&refused(400), state(1, true), LIMITS),
            RetryDecision::Fail(ReplyFailure::ModelError)
        );
        for status in [401, 403, 404] {
            assert_eq!(
                next_step(&refused(status), state(1, true), LIMITS),
                RetryDecision::Fallback
            );
            assert_eq!(
                next_step(&refused(status), state(1, false), LIMITS),
                RetryDecision::Fail(ReplyFailure::ModelError)
            );
        }
    }

    #[test]
    fn silent_provider_is_not_called_again() {
        let late = CallState {
            left: Duration::ZERO,
            ..state(1, true)
        };
        let timeout = RetryDecision::Fail(ReplyFailure::ModelTimeout);
        for (state, want) in [
            (state(1, true), RetryDecision::Fallback),
            (state(1, false), timeout.clone()),
            (late, timeout),
        ] {
            assert_eq!(next_step(&CallError::Silent, state, LIMITS), want);
        }
    }

    proptest! {
        #[test]
        fn pauses_are_bounded_and_retries_end(tries in 1u32..20, jitter in 0.0f64..1.0, left_ms in 0u64..30_000) {
            let state = CallState { tries, left: Duration::from_secs(60), pause_max: Duration::from_millis(left_ms), has_fallback: false, jitter };
            match next_step(&CallError::Unreachable { cause: String::new() }, state, LIMITS) {
                RetryDecision::Retry(pause) => {
                    prop_assert!(tries <= LIMITS.retries_max);
                    prop_assert!(pause >= LIMITS.delay_min && pause <= LIMITS.delay_max && pause < state.pause_max);
                }
                decision => prop_assert_eq!(decision, RetryDecision::Fail(ReplyFailure::ModelUnavailable)),
            }
        }
    }
}
