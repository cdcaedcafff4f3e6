//! Stems of words by the Snowball stemmers of several languages at once.
//!
//! A query or a message is often too short to tell its language. Two words therefore count as forms
//! of one word if the stemmer of any language reduces them to the same stem.

use std::collections::BTreeSet;

use snowball_stemmers_rs::{Algorithm, Stemmer};

/// The languages that most visitors write.
const ALGORITHMS: [Algorithm; 8] = [
    Algorithm::English,
    Algorithm::German,
    Algorithm::French,
    Algorithm::Spanish,
    Algorithm::Italian,
    Algorithm::Polish,
    Algorithm::Portuguese,
    Algorithm::Dutch,
];

/// Returns the stems of a folded word in all languages, each once. A word with digits is its own
/// only stem.
pub(crate) fn stems(word: &str) -> BTreeSet<String> {
    if word.chars().any(char::is_numeric) {
        return BTreeSet::from([word.to_owned()]);
    }
    let stem = |algorithm| Stemmer::create(algorithm).stem(word).into_owned();
    ALGORITHMS.into_iter().map(stem).collect()
}

/// Returns true if two folded words have a stem in common.
pub(crate) fn have_common_stem(left: &str, right: &str) -> bool {
    !stems(left).is_disjoint(&stems(right))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plurals_and_genders_share_a_stem() {
        for [left, right] in [
            ["shoe", "shoes"],
            ["dress", "dresses"],
            ["berry", "berries"],
            ["bus", "buses"],
            ["schuh", "schuhen"],
            ["kleid", "kleider"],
            ["rojo", "rojas"],
            ["pantalon", "pantalones"],
            ["vestito", "vestiti"],
            ["chapeau", "chapeaux"],
            ["schoen", "schoenen"],
        ] {
            assert!(have_common_stem(left, right), "{left} {right}");
        }
        for [left, right] in [["shoe", "shirt"], ["13", "12"], ["x12", "x12s"]] {
            assert!(!have_common_stem(left, right), "{left} {right}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_word_has_a_stem(word in "\\PC{0,40}") {
            prop_assert!(!stems(&word).is_empty());
        }
    }
}
