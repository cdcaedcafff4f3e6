//! Splits text into folded words; runs of a script without spaces between words become single
//! characters and pairs, which needs no dictionary and finds any part of a text.

use std::ops::RangeInclusive;

use super::folding::fold;

/// Longest word in characters; longer ones are truncated.
pub(crate) const WORD_CHARS_MAX: usize = 40;

/// Scripts without spaces between words: Thai to Myanmar, Khmer, kana, ideographs and their
/// extensions, Hangul.
const UNSPACED_SCRIPTS: [RangeInclusive<char>; 8] = [
    '\u{e00}'..='\u{eff}',
    '\u{1000}'..='\u{109f}',
    '\u{1780}'..='\u{17ff}',
    '\u{3005}'..='\u{3007}',
    '\u{3040}'..='\u{30ff}',
    '\u{3400}'..='\u{9fff}',
    '\u{ac00}'..='\u{d7af}',
    '\u{20000}'..='\u{3ffff}',
];

/// A part of a text between two separators.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TextPart {
    /// A word of a script with spaces.
    Word {
        /// The word in folded form.
        text: String,
        /// The word as written.
        written: String,
        /// True if a hyphen or an apostrophe connects it to the word before, so that both may be
        /// one.
        joined: bool,
    },
    /// A run of a script without spaces.
    Unspaced(String),
}

/// Returns the parts of a text in order.
pub(crate) fn split_parts(text: &str) -> Vec<TextPart> {
    let mut parts = Vec::new();
    let (mut run, mut written) = (String::new(), String::new());
    let (mut run_is_unspaced, mut joined) = (false, false);
    for original in text.chars() {
        // One character may become several or, for a combining mark, none.
        for character in fold(original.encode_utf8(&mut [0; 4])).chars() {
            let unspaced = is_unspaced(character);
            if !unspaced && !character.is_alphanumeric() {
                end_run(&mut parts, &mut run, &mut written, run_is_unspaced, joined);
                joined = matches!(character, '-' | '\'' | '’' | '‑' | '.' | '&');
                continue;
            }
            if !run.is_empty() && unspaced != run_is_unspaced {
                end_run(&mut parts, &mut run, &mut written, run_is_unspaced, joined);
                joined = false;
            }
            run_is_unspaced = unspaced;
            run.push(character);
        }
        if !run.is_empty() {
            written.push(original);
        }
    }
    end_run(&mut parts, &mut run, &mut written, run_is_unspaced, joined);
    parts
}

fn end_run(
    parts: &mut Vec<TextPart>,
    run: &mut String,
    written: &mut String,
    is_unspaced: bool,
    joined: bool,
) {
    let (text, written) = (std::mem::take(run), std::mem::take(written));
    if text.is_empty() {
        return;
    }
    if is_unspaced {
        parts.push(TextPart::Unspaced(text));
    } else {
        let text = unify_spelling(text.chars().take(WORD_CHARS_MAX).collect());
        let joined = joined && matches!(parts.last(), Some(TextPart::Word { .. }));
        parts.push(TextPart::Word {
            text,
            written,
            joined,
        });
    }
}

/// Calls `take` with every word under which a text is indexed.
pub(crate) fn for_each_index_word(text: &str, mut take: impl FnMut(&str)) {
    let mut before = String::new();
    for part in split_parts(text) {
        match part {
            TextPart::Word { text, joined, .. } => {
                take(&text);
                for piece in letter_digit_pieces(&text) {
                    take(piece);
                }
                if joined && before.len() + text.len() <= WORD_CHARS_MAX {
                    take(&format!("{before}{text}"));
                }
                before = text;
            }
            TextPart::Unspaced(run) => {
                before.clear();
                let characters: Vec<char> = run.chars().collect();
                for (index, character) in characters.iter().enumerate() {
                    take(character.encode_utf8(&mut [0; 4]));
                    if let Some(next) = characters.get(index + 1) {
                        take(&format!("{character}{next}"));
                    }
                }
            }
        }
    }
}

/// Splits a word of letters and digits: `500ml` is also `500` and `ml`. Empty for a word of one
/// kind.
pub(crate) fn letter_digit_pieces(word: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    let mut before: Option<bool> = None;
    for (index, character) in word.char_indices() {
        let digit = character.is_numeric();
        if before.is_some_and(|before| before != digit) {
            pieces.push(&word[begin..index]);
            begin = index;
        }
        before = Some(digit);
    }
    if begin > 0 {
        pieces.push(&word[begin..]);
    }
    pieces
}

/// Returns the pairs of neighboring characters in a run of a script without spaces; a single
/// character is returned alone.
pub(crate) fn character_pairs(run: &str) -> Vec<String> {
    let characters: Vec<char> = run.chars().collect();
    if characters.len() < 2 {
        return vec![run.to_owned()];
    }
    characters
        .windows(2)
        .map(|pair| pair.iter().collect())
        .collect()
}

/// Replaces spellings that differ between countries (`colour`, `gray`) by one of them; shops and
/// visitors mix them.
pub(crate) fn unify_spelling(word: String) -> String {
    if word.contains("colour") || word.contains("gray") {
        return word.replace("colour", "color").replace("gray", "grey");
    }
    word
}

/// Returns true for a character of a script without spaces between words.
pub(crate) fn is_unspaced(character: char) -> bool {
    UNSPACED_SCRIPTS
        .iter()
        .any(|range| range.contains(&character))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn indexed(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_index_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn joined_and_mixed_words_are_indexed_in_all_spellings() {
        assert_eq!(
            indexed("T-Shirt 500ml"),
            ["t", "shirt", "tshirt", "500ml", "500", "ml"]
        );
        assert_eq!(indexed("L'Oréal"), ["l", "oreal", "loreal"]);
    }

    #[test]
    fn parts_keep_the_word_as_written() {
        let word = |text: &str, written: &str, joined| TextPart::Word {
            text: text.into(),
            written: written.into(),
            joined,
        };
        assert_eq!(
            split_parts("Größe, L'Été e\u{301}té靴"),
            [
                word("grosse", "Größe", false),
                word("l", "L", false),
                word("ete", "Été", true),
                word("ete", "e\u{301}té", false),
                TextPart::Unspaced("靴".into()),
            ]
        );
    }

    #[test]
    fn british_and_american_spellings_are_one_word() {
        assert_eq!(
            indexed("Colour COLOR multicoloured"),
            ["color", "color", "multicolored"]
        );
        assert_eq!(
            indexed("Gray grey lightgray"),
            ["grey", "grey", "lightgrey"]
        );
    }

    #[test]
    fn unspaced_scripts_are_indexed_by_character_and_pair() {
        assert_eq!(indexed("赤い靴"), ["赤", "赤い", "い", "い靴", "靴"]);
        assert_eq!(character_pairs("靴"), ["靴"]);
        assert_eq!(character_pairs("赤い靴"), ["赤い", "い靴"]);
    }

    proptest! {
        #[test]
        fn index_words_are_alphanumeric_or_unspaced(text: String) {
            for word in indexed(&text) {
                prop_assert!(!word.is_empty());
                prop_assert!(word.chars().all(|character| character.is_alphanumeric() || is_unspaced(character)), "{word:?}");
                prop_assert!(!word.contains(['"', ' ', '\0']));
            }
        }
    }
}
