//! Which languages a text may be in, by its small words: the same letters mean different things in different languages.
//!
//! Small words are also those that say nothing of a topic, and the phrases with which people change it.

use std::{collections::HashMap, sync::LazyLock};

/// Small words by language, one language a line; the code stands first.
const SMALL_WORDS: &str = include_str!("small_words.txt");
/// Phrases with which a new topic is begun, in all languages, one a line.
const CHANGE_PHRASES: &str = include_str!("change_phrases.txt");

/// A set of languages, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Languages(u16);

struct Tables {
    codes: Vec<&'static str>,
    small: HashMap<String, Languages>,
    changes: Vec<Vec<String>>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let (mut codes, mut small) = (Vec::new(), HashMap::<String, Languages>::new());
    for line in SMALL_WORDS.lines() {
        let Some((code, words)) = line.split_once(": ") else {
            continue;
        };
        let bit = Languages(1 << codes.len());
        codes.push(code);
        for word in words.split_whitespace() {
            let known = small.entry(fold(word)).or_default();
            known.0 |= bit.0;
        }
    }
    let changes = CHANGE_PHRASES
        .lines()
        .map(tokens)
        .filter(|phrase| !phrase.is_empty())
        .collect();
    Tables {
        codes,
        small,
        changes,
    }
});

impl Languages {
    /// Each of them.
    pub(super) const fn all() -> Self {
        Self(u16::MAX)
    }

    /// The language with this code; none if it is not known.
    pub(super) fn of_code(code: &str) -> Self {
        TABLES
            .codes
            .iter()
            .position(|known| *known == code)
            .map_or(Self::default(), |place| Self(1 << place))
    }

    /// The languages that most of the small words of a text belong to; all, if there is no telling.
    pub(super) fn of_text(text: &str) -> Self {
        let mut counts = vec![0_u32; TABLES.codes.len()];
        for token in tokens(text) {
            let languages = TABLES.small.get(&token).copied().unwrap_or_default();
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

    /// Whether it is a single language.
    pub(super) const fn is_one(self) -> bool {
        self.0.count_ones() == 1
    }

    /// Those of both.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of `among` that stand most often in a list; all of them, if the list is empty.
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

    /// Whether the two have a language in common.
    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Whether a word, folded, says nothing of a topic in one of the languages.
pub(super) fn is_small_in(folded: &str, languages: Languages) -> bool {
    TABLES
        .small
        .get(folded)
        .is_some_and(|known| known.meets(languages))
}

/// Whether a word, folded, says nothing of a topic in any language.
pub(super) fn is_small(folded: &str) -> bool {
    TABLES.small.contains_key(folded)
}

/// Whether the text says that it begins something else.
pub(super) fn announces_change(text: &str) -> bool {
    let text = tokens(text);
    TABLES
        .changes
        .iter()
        .any(|phrase| text.windows(phrase.len()).any(|part| part == phrase))
}

/// The words of a text, folded, in their order.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let words = text
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(fold).collect()
}

/// In small letters and without accents: visitors leave them out.
pub(super) fn fold(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    for character in word.chars().flat_map(char::to_lowercase) {
        match character {
            'ß' => folded.push_str("ss"),
            'œ' => folded.push_str("oe"),
            'æ' => folded.push_str("ae"),
            other => folded.push(bare(other)),
        }
    }
    folded
}

const fn bare(character: char) -> char {
    match character {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'è' | 'é' | 'ê' | 'ë' | 'ę' => 'e',
        'ì' | 'í' | 'î' | 'ï' => 'i',
        'ł' => 'l',
        'ñ' | 'ń' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' => 'o',
        'ś' | 'š' => 's',
        'ù' | 'ú' | 'û' | 'ü' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_words_tell_the_language_and_a_name_alone_does_not() {
        for (text, code) in [
            ("where is my parcel", "en"),
            ("wo ist denn mein Paket", "de"),
            ("où est mon colis et pourquoi", "fr"),
            ("dónde está mi paquete, por favor", "es"),
            ("dov'è il mio pacco, non è arrivato", "it"),
            ("gdzie jest moja paczka i kiedy będzie", "pl"),
        ] {
            assert_eq!(Languages::of_text(text), Languages::of_code(code), "{text}");
        }
        let any = Languages::of_text("Kowalczyk");
        assert!(
            ["en", "de", "pl"]
                .iter()
                .all(|code| any.meets(Languages::of_code(code)))
        );
    }

    #[test]
    fn a_change_is_announced_in_any_language_and_by_whole_words() {
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
    fn accents_and_capitals_do_not_make_another_word() {
        assert_eq!(tokens("Größe, ÉTÉ d'été"), ["grosse", "ete", "d", "ete"]);
    }
}
