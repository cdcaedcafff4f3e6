//! Text as search compares it: words in lower case without accents. Scripts that put no blanks between words are cut into
//! single characters and pairs, which needs no dictionary and finds any part of a text.

use std::ops::RangeInclusive;

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Longest word, in characters; what is longer is cut there.
pub(super) const WORD_CHARS_MAX: usize = 40;
/// Shortest word that can have an ending, in characters.
const STEM_CHARS_MIN: usize = 3;

/// Marks above, below and inside letters, of all scripts that lose nothing but accents and vowel signs by it.
const MARKS: [RangeInclusive<char>; 7] = [
    '\u{300}'..='\u{36f}',
    '\u{591}'..='\u{5c7}',
    '\u{610}'..='\u{61a}',
    '\u{64b}'..='\u{65f}',
    '\u{1ab0}'..='\u{1aff}',
    '\u{20d0}'..='\u{20ff}',
    '\u{3099}'..='\u{309a}',
];
/// Scripts without blanks: Thai to Myanmar, Khmer, kana and ideographs, Hangul, and what Unicode added to them.
const DENSE: [RangeInclusive<char>; 8] = [
    '\u{e00}'..='\u{eff}',
    '\u{1000}'..='\u{109f}',
    '\u{1780}'..='\u{17ff}',
    '\u{3005}'..='\u{3007}',
    '\u{3040}'..='\u{30ff}',
    '\u{3400}'..='\u{9fff}',
    '\u{ac00}'..='\u{d7af}',
    '\u{20000}'..='\u{3ffff}',
];

/// A part of a text between separators.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A word; `joined` to the one before it by a hyphen or an apostrophe.
    Word {
        /// The word.
        text: String,
        /// Whether both could be one.
        joined: bool,
    },
    /// A run of a script without blanks.
    Dense(String),
}

/// The parts of a text, in order.
pub(super) fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut run, mut run_is_dense, mut joined) = (String::new(), false, false);
    let folded = fold(text);
    for character in folded.chars() {
        let dense = is_dense(character);
        if !dense && !character.is_alphanumeric() {
            end_run(&mut parts, &mut run, run_is_dense, joined);
            joined = matches!(character, '-' | '\'' | '’' | '‑' | '.' | '&');
            continue;
        }
        if !run.is_empty() && dense != run_is_dense {
            end_run(&mut parts, &mut run, run_is_dense, joined);
            joined = false;
        }
        run_is_dense = dense;
        run.push(character);
    }
    end_run(&mut parts, &mut run, run_is_dense, joined);
    parts
}

fn end_run(parts: &mut Vec<Part>, run: &mut String, is_dense: bool, joined: bool) {
    if run.is_empty() {
        return;
    }
    let text = std::mem::take(run);
    if is_dense {
        parts.push(Part::Dense(text));
    } else {
        let text = text.chars().take(WORD_CHARS_MAX).collect();
        let text = in_one_spelling(text);
        let joined = joined && matches!(parts.last(), Some(Part::Word { .. }));
        parts.push(Part::Word { text, joined });
    }
}

/// Every word under which a text is found.
pub(super) fn index_words(text: &str, mut take: impl FnMut(&str)) {
    let mut before = String::new();
    for part in parts(text) {
        match part {
            Part::Word { text, joined } => {
                take(&text);
                for piece in pieces(&text) {
                    take(piece);
                }
                if joined && before.len() + text.len() <= WORD_CHARS_MAX {
                    take(&format!("{before}{text}"));
                }
                before = text;
            }
            Part::Dense(run) => {
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

/// Letters and digits of a mixed word apart: `500ml` is also `500` and `ml`. None of a word of one kind.
pub(super) fn pieces(word: &str) -> Vec<&str> {
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

/// The pairs of a run of a script without blanks; a single character is itself.
pub(super) fn pairs(run: &str) -> Vec<String> {
    let characters: Vec<char> = run.chars().collect();
    if characters.len() < 2 {
        return vec![run.to_owned()];
    }
    characters
        .windows(2)
        .map(|pair| pair.iter().collect())
        .collect()
}

/// Lower case without accents.
pub(super) fn fold(text: &str) -> String {
    let normalizer = DecomposingNormalizerBorrowed::new_nfkd();
    let mut folded = String::with_capacity(text.len());
    let mut utf8 = [0; 4];
    for character in text.chars() {
        match character {
            _ if character.is_ascii() => folded.push(character.to_ascii_lowercase()),
            // Syllables would fall apart into letters.
            '\u{ac00}'..='\u{d7af}' => folded.push(character),
            'ß' | 'ẞ' => folded.push_str("ss"),
            'ø' | 'Ø' => folded.push('o'),
            'æ' | 'Æ' => folded.push_str("ae"),
            'œ' | 'Œ' => folded.push_str("oe"),
            'ł' | 'Ł' => folded.push('l'),
            'đ' | 'Đ' | 'ð' | 'Ð' => folded.push('d'),
            'þ' | 'Þ' => folded.push_str("th"),
            'ı' => folded.push('i'),
            _ => {
                let decomposed = normalizer.normalize(character.encode_utf8(&mut utf8));
                let kept = decomposed
                    .chars()
                    .filter(|mark| !MARKS.iter().any(|marks| marks.contains(mark)));
                folded.extend(kept.flat_map(char::to_lowercase));
            }
        }
    }
    folded
}

/// British words as Americans write colours, and `gray` as everybody else does: shops and visitors mix them.
pub(super) fn in_one_spelling(word: String) -> String {
    if word.contains("colour") || word.contains("gray") {
        return word.replace("colour", "color").replace("gray", "grey");
    }
    word
}

/// What a word has in common with its plural and its other genders, in the languages that form them with endings. Used
/// only to gather words that are in the shop: what merges too much costs a place in the order, not a find.
pub(super) fn stem(word: &str) -> &str {
    if word.chars().any(|character| character.is_numeric())
        || word.chars().count() <= STEM_CHARS_MIN
    {
        return word;
    }
    let mut stem = word;
    if let Some(rest) = stem.strip_suffix(['s', 'x']) {
        stem = rest;
    }
    // Twice, or a word that ends like a plural (`schoen`) would lose what its plural (`schoenen`) keeps.
    for _ in 0..2 {
        let ending = ["en", "er", "em"]
            .iter()
            .find_map(|ending| stem.strip_suffix(ending));
        stem = ending
            .filter(|rest| rest.chars().count() >= STEM_CHARS_MIN)
            .unwrap_or(stem);
    }
    for _ in 0..2 {
        if let Some(rest) = stem.strip_suffix(['a', 'e', 'i', 'o', 'u', 'y'])
            && rest.chars().count() >= STEM_CHARS_MIN
        {
            stem = rest;
        }
    }
    without_doubled_end(stem)
}

fn without_doubled_end(stem: &str) -> &str {
    let mut characters = stem.chars().rev();
    match (characters.next(), characters.next()) {
        (Some(last), Some(before)) if last == before && stem.chars().count() > STEM_CHARS_MIN => {
            &stem[..stem.len() - last.len_utf8()]
        }
        _ => stem,
    }
}

fn is_dense(character: char) -> bool {
    DENSE.iter().any(|range| range.contains(&character))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn indexed(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        index_words(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn case_accents_and_width_make_no_difference() {
        for (text, folded) in [
            ("Crème BRÛLÉE", "creme brulee"),
            ("Größe", "grosse"),
            ("ＴＶ ４Ｋ", "tv 4k"),
            ("Ελλάδα", "ελλαδα"),
            ("ЁЛКА", "елка"),
            ("Smørrebrød Łódź", "smorrebrod lodz"),
            ("한국", "한국"),
        ] {
            assert_eq!(fold(text), folded);
        }
        // Two ways to write one letter.
        assert_eq!(fold("e\u{301}"), fold("é"));
    }

    #[test]
    fn plurals_and_genders_share_a_stem() {
        for words in [
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
            assert_eq!(stem(words[0]), stem(words[1]), "{words:?}");
        }
        for words in [["shoe", "shirt"], ["13", "12"], ["x12", "x12s"]] {
            assert_ne!(stem(words[0]), stem(words[1]), "{words:?}");
        }
    }

    #[test]
    fn joined_and_mixed_words_are_found_under_all_their_spellings() {
        assert_eq!(
            indexed("T-Shirt 500ml"),
            ["t", "shirt", "tshirt", "500ml", "500", "ml"]
        );
        assert_eq!(indexed("L'Oréal"), ["l", "oreal", "loreal"]);
    }

    #[test]
    fn words_that_two_countries_spell_differently_are_one() {
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
    fn scripts_without_blanks_are_found_by_any_part() {
        assert_eq!(indexed("赤い靴"), ["赤", "赤い", "い", "い靴", "靴"]);
        assert_eq!(pairs("靴"), ["靴"]);
        assert_eq!(pairs("赤い靴"), ["赤い", "い靴"]);
    }

    proptest! {
        #[test]
        fn words_are_alphanumeric_or_of_a_script_without_spaces(text: String) {
            for word in indexed(&text) {
                prop_assert!(!word.is_empty());
                prop_assert!(word.chars().all(|character| character.is_alphanumeric() || is_dense(character)), "{word:?}");
                prop_assert!(!word.contains(['"', ' ', '\0']));
                let _ = stem(&word);
            }
        }
    }
}
