//! Edit distance of two words, in wrong, missing, extra and transposed letters.

use super::tokens::WORD_CHARS_MAX;

/// The letters of a word as a bit set, which rules most words out before they are compared letter
/// by letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LetterSet(u64);

impl LetterSet {
    /// Returns the letters of `word`.
    pub(crate) fn of(word: &str) -> Self {
        // Multiplying by the golden ratio spreads neighbors over the 64 bits.
        let bit = |character: char| 1_u64 << (u32::from(character).wrapping_mul(0x9e37_79b1) >> 26);
        Self(
            word.chars()
                .fold(0, |bits, character| bits | bit(character)),
        )
    }

    /// Returns false if words of these letters are more than `distance` apart.
    pub(crate) const fn may_be_within(self, other: Self, distance: usize) -> bool {
        (self.0 & !other.0).count_ones() as usize <= distance
            && (other.0 & !self.0).count_ones() as usize <= distance
    }
}

/// Returns the distance of two words if it is at most `max`; two transposed letters count once.
pub(crate) fn edit_distance(left: &[char], right: &[char], max: usize) -> Option<usize> {
    if left.len().abs_diff(right.len()) > max || right.len() > WORD_CHARS_MAX {
        return None;
    }
    let width = right.len() + 1;
    let mut rows = [[0_usize; WORD_CHARS_MAX + 1]; 3];
    for (index, cell) in rows[0][..width].iter_mut().enumerate() {
        *cell = index;
    }
    for (row, letter) in left.iter().enumerate() {
        let (before, last, now) = ((row + 2) % 3, row % 3, (row + 1) % 3);
        rows[now][0] = row + 1;
        let mut least = row + 1;
        for (column, other) in right.iter().enumerate() {
            let mut cost = rows[last][column] + usize::from(letter != other);
            cost = cost
                .min(rows[last][column + 1] + 1)
                .min(rows[now][column] + 1);
            if row > 0 && column > 0 && *letter == right[column - 1] && left[row - 1] == *other {
                cost = cost.min(rows[before][column - 1] + 1);
            }
            rows[now][column + 1] = cost;
            least = least.min(cost);
        }
        if least > max {
            return None;
        }
    }
    Some(rows[left.len() % 3][right.len()]).filter(|distance| *distance <= max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn apart(left: &str, right: &str, max: usize) -> Option<usize> {
        let letters = |word: &str| word.chars().collect::<Vec<_>>();
        edit_distance(&letters(left), &letters(right), max)
    }

    #[test]
    fn each_kind_of_typo_counts_one() {
        for (left, right, expected) in [
            ("shoes", "shoes", 0),
            ("shoes", "shoas", 1),
            ("shoes", "shes", 1),
            ("shoes", "shooes", 1),
            ("shoes", "sheos", 1),
            ("headphones", "haedfones", 3),
            ("", "ab", 2),
        ] {
            assert_eq!(apart(left, right, 3), Some(expected), "{left} {right}");
            assert_eq!(apart(left, right, expected), Some(expected));
            if expected > 0 {
                assert_eq!(apart(left, right, expected - 1), None);
            }
        }
    }

    proptest! {
        #[test]
        fn distance_is_symmetric_and_letter_sets_hide_no_near_word(
            left in "[a-dé]{0,8}", right in "[a-dé]{0,8}", max in 0_usize..4,
        ) {
            let found = apart(&left, &right, max);
            prop_assert_eq!(found, apart(&right, &left, max));
            if let Some(distance) = found {
                prop_assert!(LetterSet::of(&left).may_be_within(LetterSet::of(&right), distance));
            }
        }
    }
}
