//! Text as routing compares it: words without their endings, and how alike two of them are. Pure. The
//! endings are English ones; what words of other languages share shows in their beginnings and trigrams.

use std::collections::HashSet;

use super::language::{self, Languages};

/// Shortest word that is compared, in characters; shorter ones are kept only if they are all of the word's script.
const WORD_CHARS_MIN: usize = 3;
/// Shortest word that loses an ending.
const STEM_CHARS_MIN: usize = 3;
/// Endings, the longest first.
const ENDINGS: [&str; 14] = [
    "ations", "ation", "ingly", "ings", "ies", "ing", "ers", "ed", "es", "er", "en", "ly", "s", "e",
];
/// Share of common trigrams from which two words are taken for one with a slip of the pen.
const ALIKE_MIN: f64 = 0.6;
/// Common beginning from which two words are taken for forms of one, in characters.
const COMMON_START_CHARS: usize = 5;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// As it was written.
    pub(super) text: String,
    /// Without its ending, in small letters.
    pub(super) stem: String,
}

/// The words that say something, whatever the language, each stem once, in their order.
pub(super) fn words(text: &str) -> Vec<Word> {
    words_in(text, Languages::all())
}

/// The words that say something in one of the languages, each stem once, in their order.
pub(super) fn words_in(text: &str, languages: Languages) -> Vec<Word> {
    let mut seen = HashSet::new();
    let mut words = Vec::new();
    for text in text
        .split(|character: char| !character.is_alphanumeric())
        .filter(|text| !text.is_empty())
    {
        let lower = text.to_lowercase();
        let says_nothing = language::is_small_in(&language::fold(text), languages);
        if lower.chars().all(char::is_numeric) || says_nothing || is_too_short(&lower) {
            continue;
        }
        let stem = stem(&lower);
        if seen.insert(stem.clone()) {
            words.push(Word {
                text: text.to_owned(),
                stem,
            });
        }
    }
    words
}

/// How alike two stems are, from 0 to 1.
pub(super) fn likeness(left: &str, right: &str) -> f64 {
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
        return ALIKE_MIN.max(share(start, longest));
    }
    // A slip in the first letter is rare, and comparing every pair of words by trigrams takes most of a decision's time.
    if start == 0 {
        return 0.0;
    }
    let dice = common_trigrams(left, right);
    if dice >= ALIKE_MIN { dice } else { 0.0 }
}

/// Scripts that write no spaces make long words or single characters; only the latter of Latin and its kin say nothing.
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
    // What "stopped" leaves is a doubled letter, which "stop" has not.
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

/// Counts of letters are far below what a float holds exactly.
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
        words(text).into_iter().map(|word| word.stem).collect()
    }

    #[test]
    fn forms_of_a_word_are_one_word() {
        for (left, right) in [
            ("invoices", "invoice"),
            ("crashes", "crashed"),
            ("billing", "bills"),
            ("stopped", "stops"),
            ("Rechnung", "rechnungen"),
        ] {
            let alike = likeness(&stems(left)[0], &stems(right)[0]);
            assert!(alike >= ALIKE_MIN, "{left} {right}: {alike}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_alike_and_another_word_is_not() {
        assert!(likeness(&stems("instalation")[0], &stems("installation")[0]) > 0.0);
        for (left, right) in [
            ("refund", "fund"),
            ("crash", "cash"),
            ("order", "older"),
            ("price", "prize"),
        ] {
            let alike = likeness(&stems(left)[0], &stems(right)[0]);
            assert!(alike < 1.0, "{left} {right}: {alike}");
        }
        assert_eq!(likeness("refund", "install"), 0.0);
    }

    #[test]
    fn small_words_and_numbers_say_nothing() {
        assert!(words("thanks, and how long does it take? 42").is_empty());
        assert_eq!(stems("my invoice, the Invoices").len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_has_words_and_each_is_like_itself(text in "\\PC{0,60}") {
            for word in words(&text) {
                prop_assert_eq!(likeness(&word.stem, &word.stem), 1.0);
            }
        }

        #[test]
        fn likeness_is_the_same_both_ways(left in "[a-zäöüß]{1,12}", right in "[a-zäöüß]{1,12}") {
            prop_assert_eq!(likeness(&left, &right), likeness(&right, &left));
        }
    }
}
