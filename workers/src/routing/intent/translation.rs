//! Translates texts in the languages of the lexicon to English word by word, which is enough for comparing words and for an
//! English embedding model. Unknown words stay as written.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    concepts::{self, ConceptLexicon},
    language::{self, LanguageSet, folded_words},
};

/// Common words in the format of the lexicon; they take precedence over its trade names.
const VOCABULARY: &str = include_str!("vocabulary.txt");

static COMMON: LazyLock<ConceptLexicon> = LazyLock::new(|| ConceptLexicon::read(&[VOCABULARY]));
/// LanguageSet of each word in the lists.
static LISTED: LazyLock<HashMap<String, LanguageSet>> = LazyLock::new(|| {
    let mut listed = HashMap::new();
    for (word, languages) in COMMON
        .single_words()
        .chain(concepts::known().single_words())
    {
        let known: &mut LanguageSet = listed.entry(word.to_owned()).or_default();
        *known = known.and(languages);
    }
    listed
});

/// Returns the translated text, or the text itself if it is English or of an unknown language.
pub(super) fn in_english(text: &str) -> String {
    read(text, languages(text))
}

/// Returns the translation of a part of a longer text, whose languages are known from the whole.
pub(super) fn part_in_english(part: &str, languages: LanguageSet) -> String {
    read(part, languages)
}

/// Returns the possible languages of a text by its stop words, or by its other words if stop words are ambiguous.
pub(super) fn languages(text: &str) -> LanguageSet {
    let by_small_words = LanguageSet::of_text(text);
    if by_small_words.is_one() {
        return by_small_words;
    }
    let words = folded_words(text);
    let listed: Vec<LanguageSet> = words
        .iter()
        .filter_map(|word| LISTED.get(word).copied())
        .collect();
    LanguageSet::most_frequent(&listed, by_small_words)
}

fn read(text: &str, languages: LanguageSet) -> String {
    if languages.meets(LanguageSet::of_code("en")) {
        return text.to_owned();
    }
    let words = folded_words(text);
    let (mut at, mut english) = (0, Vec::new());
    while at < words.len() {
        let rest = &words[at..];
        let found = COMMON
            .longest(rest, languages)
            .into_iter()
            .chain(concepts::known().longest(rest, languages));
        // The first of equal entries wins: a common word before a trade name.
        let longest = found.reduce(|best, next| {
            if next.rank() > best.rank() {
                next
            } else {
                best
            }
        });
        if let Some(longest) = longest {
            at += longest.words;
            english.push(longest.english.to_owned());
            continue;
        }
        at += 1;
        let parts = concepts::known().parts_in_english(&rest[0], languages);
        if !parts.is_empty() {
            english.extend(parts);
        } else if !language::is_stop_word(&rest[0]) {
            english.push(rest[0].clone());
        }
    }
    if english.is_empty() {
        text.to_owned()
    } else {
        english.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_of_each_language_is_translated() {
        for (text, words) in [
            ("Wir haben einen Hund und eine Katze", ["dog", "cat"]),
            ("nous avons un chien et un chat", ["dog", "cat"]),
            ("tenemos un perro y un gato", ["dog", "cat"]),
            ("abbiamo un cane e un gatto", ["dog", "cat"]),
            ("mamy psa i kota, są małe", ["dog", "cat"]),
        ] {
            let english = in_english(text);
            assert!(
                words.iter().all(|word| english.contains(word)),
                "{text}: {english}"
            );
        }
    }

    #[test]
    fn english_and_unknown_words_stay() {
        for text in ["I forgot my password", "qwertz 123", "", "OG-44871"] {
            assert_eq!(in_english(text), text);
        }
    }

    #[test]
    fn content_words_reveal_the_language_without_stop_words() {
        assert!(in_english("Passwort vergessen").contains("password"));
    }
}
