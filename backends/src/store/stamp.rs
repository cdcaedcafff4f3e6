//! Which of two writes of one cell wins: the one with the higher stamp, whatever their order of arrival.
//!
//! The next turn may be accepted by a process whose clock is behind, so that what belongs to the order of a conversation
//! is stamped by its place in that order and never by a clock.

use switchboard_schemas::time::Timestamp;

/// Stamps lie after this moment (2020-01-01T00:00:00Z, in microseconds) and, for twenty billion positions, before any real
/// clock: a database tool takes them for times, and a deletion stamped by a clock covers them.
const HISTORY_EPOCH_MICROS: i64 = 1_577_836_800_000_000;
/// Stamp of the note that a message was accepted: below every final state's, so that a note that is late, or repeated
/// after the end, changes nothing.
pub(super) const ACCEPTANCE_STAMP: i64 = HISTORY_EPOCH_MICROS;
/// Stamps of one position: two phases of [`ATTEMPTS`].
const STAMPS_PER_POSITION: i64 = 2 * ATTEMPTS;
/// Attempts of a turn that have a stamp of their own.
const ATTEMPTS: i64 = 4096;

/// The two writes of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The user message.
    Begin,
    /// The reply: it wins over the beginning of any attempt, because a final state does not become open again.
    End,
}

/// Stamp of a message, and of the head that counts it, by the place of the turn's user message.
pub(super) fn history_stamp(user_position: u64, phase: Phase, attempt: u32) -> i64 {
    let place = i64::try_from(user_position)
        .unwrap_or(i64::MAX)
        .saturating_mul(STAMPS_PER_POSITION);
    let phase = if phase == Phase::End { ATTEMPTS } else { 0 };
    HISTORY_EPOCH_MICROS
        .saturating_add(place)
        .saturating_add(phase + i64::from(attempt).min(ATTEMPTS - 1))
}

/// Stamp of a reply's record: the moment of acceptance is the same for every attempt of a turn.
pub(super) fn result_stamp(accepted_at: Timestamp, attempt: u32) -> i64 {
    accepted_at.micros().saturating_add(i64::from(attempt))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_later_turn_wins_over_any_attempt_of_an_earlier_one(position in 0u64..1 << 32, attempt: u32) {
            let earlier = history_stamp(position, Phase::End, attempt);
            prop_assert!(earlier < history_stamp(position + 1, Phase::Begin, 0));
        }

        #[test]
        fn higher_attempt_wins_and_an_end_beats_every_start(position in 0u64..1 << 32, attempt in 1u32..4095) {
            let stamp = |phase, attempt| history_stamp(position, phase, attempt);
            prop_assert!(stamp(Phase::Begin, attempt) < stamp(Phase::Begin, attempt + 1));
            prop_assert!(stamp(Phase::End, attempt) < stamp(Phase::End, attempt + 1));
            prop_assert!(stamp(Phase::Begin, u32::MAX) < stamp(Phase::End, 0));
        }
    }
}
