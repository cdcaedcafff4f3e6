//! What to do after a failed call: try again, ask the fallback, or fail with the right name. Pure.
//!
//! | failure before the first token | then | in the end |
//! |---|---|---|
//! | unreachable, 429, 5xx | same provider after a pause, then the fallback | unavailable |
//! | broken off, error inside the stream | the same | error |
//! | silent | the fallback if there is one, else the same provider | timeout |
//! | 401, 402, 403, 404 | the fallback: it has a key and a model of its own | error |
//! | longer than its context | nothing: whoever made the prompt makes a shorter one | error |
//! | any other 4xx | nothing: the request itself is at fault | error |
//! | no answer at all (page, redirect, garbage) | the fallback | error |

use std::time::Duration;

use switchboard_schemas::reply_event::ReplyFailure;

use super::CallError;

/// How often and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Tries of one provider after the first.
    pub(crate) retries_max: u32,
    /// Shortest pause.
    pub(crate) delay_min: Duration,
    /// Longest pause that we choose ourselves.
    pub(crate) delay_max: Duration,
}

/// Where a reply stands when a call has failed before its first token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// Tries of this provider so far, this one included.
    pub(crate) tries: u32,
    /// Time left until the first token must be there.
    pub(crate) left: Duration,
    /// Whether another provider may be asked.
    pub(crate) has_fallback: bool,
    /// A random number in [0, 1).
    pub(crate) jitter: f64,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Ask the same provider again after this pause.
    Again(Duration),
    /// Ask the fallback now.
    Fallback,
    /// Tell the client.
    Fail(ReplyFailure),
}

/// Decides.
pub(crate) fn after(error: &CallError, standing: Standing, limits: Limits) -> Decision {
    let again = match error {
        CallError::Unreachable { .. }
        | CallError::Overloaded { .. }
        | CallError::BrokenOff
        | CallError::Reported => pause(error, standing, limits),
        CallError::Silent if !standing.has_fallback => {
            pause(error, standing, limits).map(|_| Duration::ZERO)
        }
        CallError::Silent
        | CallError::Refused { .. }
        | CallError::TooLong { .. }
        | CallError::NotAnAnswer => None,
    };
    if let Some(pause) = again {
        return Decision::Again(pause);
    }
    if standing.has_fallback && !standing.left.is_zero() && fallback_may_help(error) {
        return Decision::Fallback;
    }
    Decision::Fail(failure(error))
}

/// The name of a failure in the public API.
pub(crate) const fn failure(error: &CallError) -> ReplyFailure {
    match error {
        CallError::Unreachable { .. } | CallError::Overloaded { .. } => {
            ReplyFailure::ModelUnavailable
        }
        CallError::Silent => ReplyFailure::ModelTimeout,
        CallError::Refused { .. }
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

/// The pause before another try of the same provider; none when there is no try or no time left.
fn pause(error: &CallError, standing: Standing, limits: Limits) -> Option<Duration> {
    if standing.tries > limits.retries_max {
        return None;
    }
    let ceiling = limits
        .delay_min
        .saturating_mul(1 << standing.tries.min(16))
        .min(limits.delay_max);
    let spread = ceiling.saturating_sub(limits.delay_min);
    let chosen = limits.delay_min + spread.mul_f64(standing.jitter);
    let asked = match error {
        CallError::Overloaded { retry_after, .. } => retry_after.unwrap_or_default(),
        _ => Duration::ZERO,
    };
    let pause = chosen.max(asked);
    (pause < standing.left).then_some(pause)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits {
        retries_max: 2,
        delay_min: Duration::from_millis(200),
        delay_max: Duration::from_secs(2),
    };

    fn standing(tries: u32, has_fallback: bool) -> Standing {
        Standing {
            tries,
            left: Duration::from_secs(20),
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
    fn an_overloaded_provider_is_asked_three_times_then_the_fallback() {
        assert!(matches!(
            after(&overloaded(None), standing(1, true), LIMITS),
            Decision::Again(_)
        ));
        assert!(matches!(
            after(&overloaded(None), standing(2, true), LIMITS),
            Decision::Again(_)
        ));
        assert_eq!(
            after(&overloaded(None), standing(3, true), LIMITS),
            Decision::Fallback
        );
        assert_eq!(
            after(&overloaded(None), standing(3, false), LIMITS),
            Decision::Fail(ReplyFailure::ModelUnavailable)
        );
    }

    #[test]
    fn the_wait_that_a_provider_asks_for_is_honoured_if_it_fits() {
        assert_eq!(
            after(&overloaded(Some(7)), standing(1, false), LIMITS),
            Decision::Again(Duration::from_secs(7))
        );
        assert_eq!(
            after(&overloaded(Some(21)), standing(1, false), LIMITS),
            Decision::Fail(ReplyFailure::ModelUnavailable)
        );
    }

    #[test]
    fn a_refusal_is_final_unless_it_concerns_the_key_or_the_model() {
        let refused = |status| CallError::Refused { status };
        assert_eq!(
            after(&refused(400), standing(1, true), LIMITS),
            Decision::Fail(ReplyFailure::ModelError)
        );
        for status in [401, 403, 404] {
            assert_eq!(
                after(&refused(status), standing(1, true), LIMITS),
                Decision::Fallback
            );
            assert_eq!(
                after(&refused(status), standing(1, false), LIMITS),
                Decision::Fail(ReplyFailure::ModelError)
            );
        }
    }

    #[test]
    fn silence_ends_as_a_timeout() {
        let late = Standing {
            left: Duration::ZERO,
            ..standing(3, true)
        };
        assert_eq!(
            after(&CallError::Silent, late, LIMITS),
            Decision::Fail(ReplyFailure::ModelTimeout)
        );
    }

    proptest! {
        #[test]
        fn pauses_keep_their_bounds_and_tries_come_to_an_end(tries in 1u32..20, jitter in 0.0f64..1.0, left_ms in 0u64..30_000) {
            let standing = Standing { tries, left: Duration::from_millis(left_ms), has_fallback: false, jitter };
            match after(&CallError::Unreachable { cause: String::new() }, standing, LIMITS) {
                Decision::Again(pause) => {
                    prop_assert!(tries <= LIMITS.retries_max);
                    prop_assert!(pause >= LIMITS.delay_min && pause <= LIMITS.delay_max && pause < standing.left);
                }
                decision => prop_assert_eq!(decision, Decision::Fail(ReplyFailure::ModelUnavailable)),
            }
        }
    }
}
