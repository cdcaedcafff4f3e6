//! Folds text to lower case without accents, so that spellings of one word compare equal.

use std::ops::RangeInclusive;

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Combining marks of the scripts that lose nothing but accents and vowel signs without them.
const COMBINING_MARKS: [RangeInclusive<char>; 7] = [
    '\u{300}'..='\u{36f}',
    '\u{591}'..='\u{5c7}',
    '\u{610}'..='\u{61a}',
    '\u{64b}'..='\u{65f}',
    '\u{1ab0}'..='\u{1aff}',
    '\u{20d0}'..='\u{20ff}',
    '\u{3099}'..='\u{309a}',
];
/// Returns the text in lower case without accents.
pub(crate) fn fold(text: &str) -> String {
    let normalizer = DecomposingNormalizerBorrowed::new_nfkd();
    let mut folded = String::with_capacity(text.len());
    let mut utf8 = [0; 4];
    for character in text.chars() {
        match character {
            _ if character.is_ascii() => folded.push(character.to_ascii_lowercase()),
            // Hangul syllables would decompose into letters.
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
                    .filter(|mark| !COMBINING_MARKS.iter().any(|marks| marks.contains(mark)));
                folded.extend(kept.flat_map(char::to_lowercase));
            }
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_accents_and_width_are_folded() {
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
        // Precomposed and decomposed form of one letter.
        assert_eq!(fold("e\u{301}"), fold("é"));
    }
}
