//! Detects the possible languages of a text by its stop words, and recognizes phrases that announce another topic.

use std::{collections::HashMap, sync::LazyLock};

use crate::text::folding::fold;

/// Stop words, one language a line after its ISO 639-1 code.
const STOP_WORDS: &str = include_str!("stop_words.txt");
/// Phrases in all languages that announce another topic, one a line.
const CHANGE_PHRASES: &str = include_str!("change_phrases.txt");

/// A set of languages with one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LanguageSet(u16);

struct LanguageTables {
    codes: Vec<&'static str>,
    stop_words: HashMap<String, LanguageSet>,
    changes: Vec<Vec<String>>,
}

static TABLES: LazyLock<LanguageTables> = LazyLock::new(|| {
    let (mut codes, mut stop_words) = (Vec::new(), HashMap::<String, LanguageSet>::new());
    for line in STOP_WORDS.lines() {
        let Some((code, words)) = line.split_once(": ") else {
            continue;
        };
        let bit = LanguageSet(1 << codes.len());
        codes.push(code);
        for word in words.split_whitespace() {
            let known = stop_words.entry(fold(word)).or_default();
            known.0 |= bit.0;
        }
    }
    let changes = CHANGE_PHRASES
        .lines()
        .map(folded_words)
        .filter(|phrase| !phrase.is_empty())
        .collect();
    LanguageTables {
        codes,
        stop_words,
        changes,
    }
});

impl LanguageSet {
    /// Returns the set of all languages.
    pub(super) const fn all() -> Self {
        Self(u16::MAX)
    }

    /// Returns the language with this ISO 639-1 code; the empty set if it is unknown.
    pub(super) fn of_code(code: &str) -> Self {
        TABLES
            .codes
            .iter()
            .position(|known| *known == code)
            .map_or(Self::default(), |place| Self(1 << place))
    }

    /// Returns the languages of most stop words in a text; all languages if it has none.
    pub(super) fn of_text(text: &str) -> Self {
        let mut counts = vec![0_u32; TABLES.codes.len()];
        for token in folded_words(text) {
            let languages = TABLES.stop_words.get(&token).copied().unwrap_or_default();
            for (place, count) in counts.iter_mut().enumerate() {
                *count += u32::from(languages.0 >> place & 1);
            }
        }
        let most = counts.iter().copied().max().unwrap_or_default();
        let bits = (0..counts.len())
            .filter(|place| counts[*place] == most)
            .map(|place| 1 << place);
        Self(bits.sum())
    }

    /// Returns true for a single language.
    pub(super) const fn is_one(self) -> bool {
        self.0.count_ones() == 1
    }

    /// Returns the union of two sets.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the languages of `among` that occur most often in a list; all of them if the list is empty.
    pub(super) fn most_frequent(list: &[Self], among: Self) -> Self {
        let places = (0..TABLES.codes.len()).filter(|place| among.0 >> place & 1 == 1);
        let count = |place: usize| {
            list.iter()
                .filter(|languages| languages.0 >> place & 1 == 1)
                .count()
        };
        let most = places.clone().map(count).max().unwrap_or_default();
        Self(
            places
                .filter(|place| count(*place) == most)
                .map(|place| 1 << place)
                .sum(),
        )
    }

    /// Returns true if the sets have a language in common.
    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Returns true for a folded word that is a stop word in one of the languages.
pub(super) fn is_stop_word_in(folded: &str, languages: LanguageSet) -> bool {
    TABLES
        .stop_words
        .get(folded)
        .is_some_and(|known| known.meets(languages))
}

/// Returns true for a folded word that is a stop word in any language.
pub(super) fn is_stop_word(folded: &str) -> bool {
    TABLES.stop_words.contains_key(folded)
}

/// Returns true if the text announces another topic.
pub(super) fn announces_change(text: &str) -> bool {
    let text = folded_words(text);
    TABLES
        .changes
        .iter()
        .any(|phrase| text.windows(phrase.len()).any(|part| part == phrase))
}

/// Returns the folded words of a text in their order.
pub(super) fn folded_words(text: &str) -> Vec<String> {
    let words = text
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_reveal_the_language() {
        for (text, code) in [
            ("where is my parcel", "en"),
            ("wo ist denn mein Paket", "de"),
            ("où est mon colis et pourquoi", "fr"),
            ("dónde está mi paquete, por favor", "es"),
            ("dov'è il mio pacco, non è arrivato", "it"),
            ("gdzie jest moja paczka i kiedy będzie", "pl"),
        ] {
            assert_eq!(
                LanguageSet::of_text(text),
                LanguageSet::of_code(code),
                "{text}"
            );
        }
        let any = LanguageSet::of_text("Kowalczyk");
        assert!(
            ["en", "de", "pl"]
                .iter()
                .all(|code| any.meets(LanguageSet::of_code(code)))
        );
    }

    #[test]
    fn announced_changes_are_recognized_in_any_language() {
        for text in [
            "oh, by the way: my invoice",
            "Außerdem brauche ich",
            "au fait, ma facture",
            "por cierto, otra duda",
        ] {
            assert!(announces_change(text), "{text}");
        }
        assert!(!announces_change("thanks, that is all"));
    }

    #[test]
    fn accents_and_case_are_folded() {
        assert_eq!(
            folded_words("Größe, ÉTÉ d'été"),
            ["grosse", "ete", "d", "ete"]
        );
    }
}
