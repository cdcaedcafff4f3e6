//! Content words of a text with their stems, and the similarity of two stems. Only English endings are removed; forms of a
//! word in other languages match by common beginnings and trigrams. Pure functions.

use std::collections::HashSet;

use super::language::{self, LanguageSet};
use crate::text::folding::fold;

/// Shortest content word in characters; words of scripts without spaces may be shorter.
const WORD_CHARS_MIN: usize = 3;
/// Shortest stem in characters.
const STEM_CHARS_MIN: usize = 3;
/// English endings, the longest first.
const ENDINGS: [&str; 14] = [
    "ations", "ation", "ingly", "ings", "ies", "ing", "ers", "ed", "es", "er", "en", "ly", "s", "e",
];
/// Similarity from which two words count as spellings or forms of one word.
const SIMILARITY_MIN: f64 = 0.6;
/// Shortest common beginning of two forms of a word, in characters.
const COMMON_START_CHARS: usize = 5;

/// A content word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContentWord {
    /// The word as written.
    pub(super) text: String,
    /// The word in lower case without its ending.
    pub(super) stem: String,
}

/// Returns the content words of a text in any language, in their order; each stem once.
pub(super) fn content_words(text: &str) -> Vec<ContentWord> {
    content_words_in(text, LanguageSet::all())
}

/// Returns the content words of a text in the given languages, in their order; each stem once.
pub(super) fn content_words_in(text: &str, languages: LanguageSet) -> Vec<ContentWord> {
    let mut seen = HashSet::new();
    let mut words = Vec::new();
    for text in text
        .split(|character: char| !character.is_alphanumeric())
        .filter(|text| !text.is_empty())
    {
        let lower = text.to_lowercase();
        let says_nothing = language::is_stop_word_in(&fold(text), languages);
        if lower.chars().all(char::is_numeric) || says_nothing || is_too_short(&lower) {
            continue;
        }
        let stem = stem(&lower);
        if seen.insert(stem.clone()) {
            words.push(ContentWord {
                text: text.to_owned(),
                stem,
            });
        }
    }
    words
}

/// Returns the similarity of two stems, from 0 to 1; 0 below [`SIMILARITY_MIN`].
pub(super) fn similarity(left: &str, right: &str) -> f64 {
    if left == right {
        return 1.0;
    }
    let start = left
        .chars()
        .zip(right.chars())
        .take_while(|(left, right)| left == right)
        .count();
    let longest = left.chars().count().max(right.chars().count());
    if start >= COMMON_START_CHARS && start * 3 >= longest * 2 {
        return SIMILARITY_MIN.max(share(start, longest));
    }
    // The first letter is rarely wrong, and comparing every pair of words by trigrams takes most of a decision's time.
    if start == 0 {
        return 0.0;
    }
    let dice = common_trigrams(left, right);
    if dice >= SIMILARITY_MIN { dice } else { 0.0 }
}

/// Returns true for a word of one or two characters in a script with spaces; in other scripts such words have a meaning.
fn is_too_short(lower: &str) -> bool {
    lower.chars().count() < WORD_CHARS_MIN && lower.chars().all(|character| character < '\u{2e80}')
}

fn stem(lower: &str) -> String {
    let chars = lower.chars().count();
    let ending = ENDINGS.iter().find(|ending| {
        lower.ends_with(**ending)
            && chars - ending.len() >= STEM_CHARS_MIN
            && !lower.ends_with("ss")
    });
    let stem = ending.map_or(lower, |ending| &lower[..lower.len() - ending.len()]);
    // Without its ending, "stopped" has a doubled letter that "stop" lacks.
    let mut backwards = stem.chars().rev();
    match (backwards.next(), backwards.next()) {
        (Some(last), Some(before))
            if ending.is_some() && last == before && stem.chars().count() > STEM_CHARS_MIN =>
        {
            stem[..stem.len() - last.len_utf8()].to_owned()
        }
        _ => stem.to_owned(),
    }
}

fn common_trigrams(left: &str, right: &str) -> f64 {
    let (left, right) = (trigrams(left), trigrams(right));
    share(
        2 * left.intersection(&right).count(),
        left.len() + right.len(),
    )
}

fn trigrams(word: &str) -> HashSet<[char; 3]> {
    let padded: Vec<char> = std::iter::once(' ')
        .chain(word.chars())
        .chain([' '])
        .collect();
    padded
        .windows(3)
        .map(|window| [window[0], window[1], window[2]])
        .collect()
}

/// Returns `part / whole`; 0 for an empty whole.
#[expect(clippy::cast_precision_loss, reason = "words have few letters")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stems(text: &str) -> Vec<String> {
        content_words(text)
            .into_iter()
            .map(|word| word.stem)
            .collect()
    }

    #[test]
    fn forms_of_a_word_are_similar() {
        for (left, right) in [
            ("invoices", "invoice"),
            ("crashes", "crashed"),
            ("billing", "bills"),
            ("stopped", "stops"),
            ("Rechnung", "rechnungen"),
        ] {
            let alike = similarity(&stems(left)[0], &stems(right)[0]);
            assert!(alike >= SIMILARITY_MIN, "{left} {right}: {alike}");
        }
    }

    #[test]
    fn misspelling_is_similar_and_another_word_is_not() {
        assert!(similarity(&stems("instalation")[0], &stems("installation")[0]) > 0.0);
        for (left, right) in [
            ("refund", "fund"),
            ("crash", "cash"),
            ("order", "older"),
            ("price", "prize"),
        ] {
            let alike = similarity(&stems(left)[0], &stems(right)[0]);
            assert!(alike < 1.0, "{left} {right}: {alike}");
        }
        assert_eq!(similarity("refund", "install"), 0.0);
    }

    #[test]
    fn stop_words_and_numbers_are_no_content_words() {
        assert!(content_words("thanks, and how long does it take? 42").is_empty());
        assert_eq!(stems("my invoice, the Invoices").len(), 1);
    }

    proptest! {
        #[test]
        fn every_word_is_similar_to_itself(text in "\\PC{0,60}") {
            for word in content_words(&text) {
                prop_assert_eq!(similarity(&word.stem, &word.stem), 1.0);
            }
        }

        #[test]
        fn similarity_is_symmetric(left in "[a-zäöüß]{1,12}", right in "[a-zäöüß]{1,12}") {
            prop_assert_eq!(similarity(&left, &right), similarity(&right, &left));
        }
    }
}
