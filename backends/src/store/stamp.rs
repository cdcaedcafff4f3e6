//! Stamps that decide which of two writes of one cell wins: the higher one, in any order of
//! arrival.
//!
//! The next turn may be accepted by a process whose clock is behind. Cells that depend on the order
//! of a conversation are therefore stamped by position in that order, never by a clock.

use switchboard_schemas::time::Timestamp;

/// Lowest stamp (2020-01-01T00:00:00Z in microseconds). For twenty billion positions stamps stay
/// below any real clock, so that database tools take them for times and a deletion stamped by a
/// clock covers them.
const HISTORY_EPOCH_MICROS: i64 = 1_577_836_800_000_000;
/// Stamp of the record that a message was accepted, below that of every final state, so that a late
/// or repeated acceptance changes nothing.
pub(super) const ACCEPTANCE_STAMP: i64 = HISTORY_EPOCH_MICROS;
/// Number of stamps per position: two phases of [`ATTEMPTS`].
const STAMPS_PER_POSITION: i64 = 2 * ATTEMPTS;
/// Number of attempts of a turn with a stamp of their own.
const ATTEMPTS: i64 = 4096;

/// The two writes of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnPhase {
    /// Stage of the user message.
    Begin,
    /// The write of the reply. It wins over the start of any attempt, because a final state does
    /// not become open again.
    End,
}

/// Returns the stamp of a message, and of the head that counts it, from the position of the turn's
/// user message.
pub(super) fn history_stamp(user_position: u64, phase: TurnPhase, attempt: u32) -> i64 {
    let place = i64::try_from(user_position)
        .unwrap_or(i64::MAX)
        .saturating_mul(STAMPS_PER_POSITION);
    let phase = if phase == TurnPhase::End { ATTEMPTS } else { 0 };
    HISTORY_EPOCH_MICROS
        .saturating_add(place)
        .saturating_add(phase + i64::from(attempt).min(ATTEMPTS - 1))
}

/// Returns the stamp of a reply's record. The time of acceptance is the same for all attempts of a
/// turn.
pub(super) fn result_stamp(accepted_at: Timestamp, attempt: u32) -> i64 {
    accepted_at.micros().saturating_add(i64::from(attempt))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn later_turn_outranks_every_attempt_of_an_earlier_one(position in 0u64..1 << 32, attempt: u32) {
            let earlier = history_stamp(position, TurnPhase::End, attempt);
            prop_assert!(earlier < history_stamp(position + 1, TurnPhase::Begin, 0));
        }

        #[test]
        fn higher_attempt_wins_and_an_end_beats_every_start(position in 0u64..1 << 32, attempt in 1u32..4095) {
            let stamp = |phase, attempt| history_stamp(position, phase, attempt);
            prop_assert!(stamp(TurnPhase::Begin, attempt) < stamp(TurnPhase::Begin, attempt + 1));
            prop_assert!(stamp(TurnPhase::End, attempt) < stamp(TurnPhase::End, attempt + 1));
            prop_assert!(stamp(TurnPhase::Begin, u32::MAX) < stamp(TurnPhase::End, 0));
        }
    }
}
