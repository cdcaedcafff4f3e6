//! The offset ledger: offsets finish in any order and are committed as a contiguous prefix.
//!
//! Many jobs of one partition run at once, but a consumer group stores one offset. The ledger
//! returns that offset (the low-water mark) and encodes the offsets finished above it into the
//! metadata of the commit, so that the next owner of the partition runs exactly the unfinished
//! jobs.

use std::collections::BTreeSet;

use super::CommitMark;

/// Maximum distance of the newest taken offset from the low-water mark; the metadata has one bit
/// per offset.
pub const LEDGER_WINDOW_OFFSETS: u64 = 16_384;

/// Prefix of the metadata, to distinguish it from that of other tools.
const METADATA_PREFIX: &str = "v1:";
const BITS_PER_CHAR: u64 = 6;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The ledger of one assignment of one partition.
#[derive(Debug, Default)]
pub struct OffsetLedger {
    /// All offsets below are finished.
    next: u64,
    /// One more than the newest taken offset; at least `next`.
    end: u64,
    open: BTreeSet<u64>,
    /// Finished offsets from `next` on.
    finished: BTreeSet<u64>,
    moved: bool,
}

/// The state of a record in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetState {
    /// The record is to be run, then reported by [`OffsetLedger::finish`].
    Run,
    /// An earlier owner finished the record.
    AlreadyFinished,
}

impl OffsetLedger {
    /// Creates a ledger that continues where the last owner stopped. Foreign metadata counts as
    /// empty.
    pub fn resume(mark: Option<&CommitMark>) -> Self {
        let Some(mark) = mark else {
            return Self::default();
        };
        let finished = decode(mark.next_offset, &mark.finished);
        Self {
            next: mark.next_offset,
            end: mark.next_offset,
            finished,
            ..Self::default()
        }
    }

    /// Takes a record. Offsets rise from call to call and may have gaps.
    pub fn take(&mut self, offset: u64) -> OffsetState {
        if offset < self.next || self.open.contains(&offset) {
            return OffsetState::AlreadyFinished;
        }
        self.end = self.end.max(offset.saturating_add(1));
        let take = if self.finished.contains(&offset) {
            OffsetState::AlreadyFinished
        } else {
            self.open.insert(offset);
            OffsetState::Run
        };
        self.advance();
        take
    }

    /// Marks the job of an offset as finished. An offset that is not open is ignored.
    pub fn finish(&mut self, offset: u64) {
        if self.open.remove(&offset) {
            self.finished.insert(offset);
            self.moved = true;
            self.advance();
        }
    }

    /// Returns the mark to commit if it has changed since the last call.
    pub fn mark(&mut self) -> Option<CommitMark> {
        std::mem::take(&mut self.moved).then(|| CommitMark {
            next_offset: self.next,
            finished: encode(self.next, &self.finished),
        })
    }

    /// Returns the number of taken and unfinished jobs.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Returns `true` if no further record may be taken until the low-water mark moves. Records
    /// finished beyond the window are not part of the mark and would run again.
    pub fn is_full(&self) -> bool {
        self.end - self.next >= LEDGER_WINDOW_OFFSETS
    }

    fn advance(&mut self) {
        let next = self.open.first().copied().unwrap_or(self.end);
        if next > self.next {
            self.next = next;
            self.finished = self.finished.split_off(&next);
            self.moved = true;
        }
    }
}

fn encode(next: u64, finished: &BTreeSet<u64>) -> String {
    let mut sextets: Vec<u8> = Vec::new();
    for distance in finished
        .iter()
        .map(|offset| offset - next)
        .take_while(|far| *far < LEDGER_WINDOW_OFFSETS)
    {
        let index = usize::try_from(distance / BITS_PER_CHAR).unwrap_or(usize::MAX);
        // End with the last finished offset, so that a small set stays small.
        sextets.resize(sextets.len().max(index + 1), 0);
        sextets[index] |= 1 << (distance % BITS_PER_CHAR);
    }
    if sextets.is_empty() {
        return String::new();
    }
    let chars = sextets
        .iter()
        .map(|sextet| char::from(ALPHABET[usize::from(*sextet)]));
    METADATA_PREFIX.chars().chain(chars).collect()
}

fn decode(next: u64, metadata: &str) -> BTreeSet<u64> {
    parse(next, metadata).unwrap_or_default()
}

fn parse(next: u64, metadata: &str) -> Option<BTreeSet<u64>> {
    let chars = metadata.strip_prefix(METADATA_PREFIX)?.as_bytes();
    let mut finished = BTreeSet::new();
    for (start, char) in (0..LEDGER_WINDOW_OFFSETS).step_by(6).zip(chars) {
        let sextet = ALPHABET.iter().position(|letter| letter == char)?;
        let bits = (0..BITS_PER_CHAR).filter(|bit| sextet >> bit & 1 == 1);
        finished.extend(bits.filter_map(|bit| next.checked_add(start + bit)));
    }
    Some(finished)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// Kafka's `offset.metadata.max.bytes`.
    const METADATA_MAX_BYTES: usize = 4096;

    /// Offsets with gaps, and an order in which some of them are finished.
    fn history() -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
        (0..5000u64, vec(1..9u64, 1..60)).prop_flat_map(|(first, steps)| {
            let offsets: Vec<u64> = steps
                .iter()
                .scan(first, |offset, step| {
                    *offset += step;
                    Some(*offset)
                })
                .collect();
            let some =
                proptest::sample::subsequence(offsets.clone(), 0..=offsets.len()).prop_shuffle();
            (Just(offsets), some)
        })
    }

    proptest! {
        #[test]
        fn mark_never_passes_an_unfinished_offset((offsets, finished) in history()) {
            let mut ledger = OffsetLedger::resume(None);
            for offset in &offsets {
                prop_assert_eq!(ledger.take(*offset), OffsetState::Run);
            }
            let mut unfinished: BTreeSet<u64> = offsets.iter().copied().collect();
            for offset in finished {
                ledger.finish(offset);
                unfinished.remove(&offset);
                let mark = ledger.mark().expect("a finish moves the mark");
                let expected = unfinished.first().copied().unwrap_or(offsets[offsets.len() - 1] + 1);
                prop_assert_eq!(mark.next_offset, expected);
                prop_assert_eq!(ledger.open(), unfinished.len());
            }
        }

        #[test]
        fn redelivery_runs_exactly_the_unfinished_records((offsets, finished) in history()) {
            let mut ledger = OffsetLedger::resume(None);
            offsets.iter().for_each(|offset| { ledger.take(*offset); });
            finished.iter().for_each(|offset| ledger.finish(*offset));
            let mark = ledger.mark().expect("taking moved it");

            let mut resumed = OffsetLedger::resume(Some(&mark));
            for offset in offsets {
                let expected = if finished.contains(&offset) { OffsetState::AlreadyFinished } else { OffsetState::Run };
                prop_assert_eq!(resumed.take(offset), expected);
            }
        }

        #[test]
        fn second_resume_keeps_offsets_finished_by_the_first_owner((offsets, finished) in history()) {
            let mut first = OffsetLedger::resume(None);
            offsets.iter().for_each(|offset| { first.take(*offset); });
            finished.iter().for_each(|offset| first.finish(*offset));
            let mut second = OffsetLedger::resume(first.mark().as_ref());
            let mut rest: Vec<u64> = offsets.iter().copied().filter(|offset| !finished.contains(offset)).collect();
            // The second owner finishes only its newest record, then dies.
            rest.iter().for_each(|offset| { second.take(*offset); });
            if let Some(newest) = rest.pop() {
                second.finish(newest);
                let mut third = OffsetLedger::resume(second.mark().as_ref());
                let run: Vec<u64> = offsets.into_iter().filter(|offset| third.take(*offset) == OffsetState::Run).collect();
                prop_assert_eq!(run, rest);
            }
        }

        #[test]
        fn foreign_metadata_counts_as_empty(metadata in "\\PC{0,40}", next in any::<u64>()) {
            let ledger = OffsetLedger::resume(Some(&CommitMark { next_offset: next, finished: metadata.clone() }));
            prop_assert!(metadata.starts_with(METADATA_PREFIX) || ledger.finished.is_empty());
        }
    }

    proptest! {
        // Each case fills a whole window.
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn metadata_of_a_full_window_fits_into_a_commit(seed in any::<u64>()) {
            let mut ledger = OffsetLedger::resume(None);
            (0..LEDGER_WINDOW_OFFSETS).for_each(|offset| { ledger.take(offset); });
            prop_assert!(ledger.is_full());
            (1..LEDGER_WINDOW_OFFSETS).filter(|offset| (seed >> (offset % 64)) & 1 == 1 || *offset == LEDGER_WINDOW_OFFSETS - 1)
                .for_each(|offset| ledger.finish(offset));
            let mark = ledger.mark().expect("moved");
            prop_assert!(mark.finished.len() < METADATA_MAX_BYTES);
            prop_assert_eq!(OffsetLedger::resume(Some(&mark)).take(LEDGER_WINDOW_OFFSETS - 1), OffsetState::AlreadyFinished);
        }
    }

    #[test]
    fn mark_is_returned_once() {
        let mut ledger = OffsetLedger::resume(None);
        ledger.take(0);
        assert_eq!(ledger.mark(), None);
        ledger.finish(0);
        assert_eq!(
            ledger.mark(),
            Some(CommitMark {
                next_offset: 1,
                finished: String::new()
            })
        );
        assert_eq!(ledger.mark(), None);
        ledger.finish(0);
        assert_eq!(ledger.mark(), None);
    }

    #[test]
    fn resumed_ledger_has_its_whole_window() {
        let mark = CommitMark {
            next_offset: 7,
            finished: String::new(),
        };
        let mut ledger = OffsetLedger::resume(Some(&mark));
        assert!(!ledger.is_full());
        ledger.take(7);
        ledger.take(7 + LEDGER_WINDOW_OFFSETS - 2);
        assert!(!ledger.is_full());
        ledger.take(7 + LEDGER_WINDOW_OFFSETS - 1);
        assert!(ledger.is_full());
    }

    #[test]
    fn mark_ends_with_the_window() {
        let mut ledger = OffsetLedger::resume(None);
        ledger.take(0);
        ledger.take(LEDGER_WINDOW_OFFSETS);
        ledger.finish(LEDGER_WINDOW_OFFSETS);
        assert_eq!(ledger.mark().unwrap().finished, "");
    }

    #[test]
    fn damaged_metadata_runs_the_records_again() {
        let damaged = CommitMark {
            next_offset: 7,
            finished: "v1:A!".to_owned(),
        };
        assert_eq!(
            OffsetLedger::resume(Some(&damaged)).take(8),
            OffsetState::Run
        );
    }

    #[test]
    fn full_window_opens_when_its_oldest_job_finishes() {
        let mut ledger = OffsetLedger::resume(None);
        ledger.take(0);
        ledger.take(LEDGER_WINDOW_OFFSETS);
        assert!(ledger.is_full());
        ledger.finish(0);
        assert!(!ledger.is_full());
    }
}
