//! Histograms of durations, which can be added up over many days and still yield percentiles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Number of binary digits kept. Durations below 128 ms are exact; above, a percentile is off by at
/// most 0.8 %.
const DIGITS_KEPT: u32 = 7;

/// A histogram of durations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurationHistogram {
    /// Sum of the exact durations, so that the average is exact.
    sum_ms: u64,
    /// Counts by the shortest duration of each bucket.
    counts: BTreeMap<u64, u64>,
}

impl DurationHistogram {
    /// Adds a duration in milliseconds.
    pub fn add(&mut self, ms: u64) {
        self.sum_ms = self.sum_ms.saturating_add(ms);
        let shift = digits_dropped(ms);
        *self.counts.entry(ms >> shift << shift).or_default() += 1;
    }

    /// Adds all durations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
        for (shortest, count) in &other.counts {
            *self.counts.entry(*shortest).or_default() += count;
        }
    }

    /// Returns the number of recorded durations.
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Returns the average in whole milliseconds, or `None` for an empty histogram.
    pub fn average_ms(&self) -> Option<u64> {
        let count = self.count();
        (self.sum_ms + count / 2).checked_div(count)
    }

    /// Returns the duration that `percent` of all do not exceed (nearest rank), or `None` for an
    /// empty histogram.
    pub fn percentile_ms(&self, percent: u64) -> Option<u64> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (shortest, count) in &self.counts {
            seen += count;
            if seen >= rank {
                // Return the middle of the bucket.
                return Some(shortest + (1 << digits_dropped(*shortest) >> 1));
            }
        }
        None
    }
}

const fn digits_dropped(ms: u64) -> u32 {
    (u64::BITS - ms.leading_zeros()).saturating_sub(DIGITS_KEPT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(times: &[u64]) -> DurationHistogram {
        let mut histogram = DurationHistogram::default();
        times.iter().for_each(|ms| histogram.add(*ms));
        histogram
    }

    #[test]
    fn empty_histogram_has_no_average_or_percentile() {
        let empty = DurationHistogram::default();
        assert_eq!(
            (empty.count(), empty.average_ms(), empty.percentile_ms(50)),
            (0, None, None)
        );
    }

    #[test]
    fn percentile_is_the_duration_of_nearest_rank() {
        let hundred: Vec<u64> = (1..=100).collect();
        let percentiles =
            [1, 50, 95, 100].map(|percent| of(&hundred).percentile_ms(percent).unwrap());
        assert_eq!(percentiles, [1, 50, 95, 100]);
        assert_eq!(of(&[7]).percentile_ms(50), Some(7));
    }

    proptest! {
        #[test]
        fn percentile_error_is_below_one_percent(
            mut times in prop::collection::vec(0u64..10_000_000, 1..200),
            percent in 1u64..=100,
        ) {
            let estimate = of(&times).percentile_ms(percent).unwrap();
            times.sort_unstable();
            let exact = times[(times.len() as u64 * percent).div_ceil(100).max(1) as usize - 1];
            prop_assert!(estimate.abs_diff(exact) * 128 <= exact, "{estimate} for {exact}");
        }

        #[test]
        fn merged_histograms_equal_one_of_all_durations(
            first in prop::collection::vec(0u64..1_000_000, 0..50),
            second in prop::collection::vec(0u64..1_000_000, 0..50),
        ) {
            let mut merged = of(&first);
            merged.merge(&of(&second));
            prop_assert_eq!(merged, of(&[first, second].concat()));
        }
    }
}
