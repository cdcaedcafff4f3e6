//! Reads any language of the lexicon in English, word by word: enough for what compares words, and for an embedding model
//! that was taught English only. No grammar; what no list knows stays as it was written.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    concepts::{self, Lexicon},
    language::{self, Languages, tokens},
};

/// Common words, in the format of the lexicon; they go before its trade names.
const VOCABULARY: &str = include_str!("vocabulary.txt");

static COMMON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(&[VOCABULARY]));
/// The languages that a word stands in, in one of the lists.
static LISTED: LazyLock<HashMap<String, Languages>> = LazyLock::new(|| {
    let mut listed = HashMap::new();
    for (word, languages) in COMMON
        .single_words()
        .chain(concepts::known().single_words())
    {
        let known: &mut Languages = listed.entry(word.to_owned()).or_default();
        *known = known.and(languages);
    }
    listed
});

/// The text in English; as it is, if it is English already or there is no telling.
pub(super) fn in_english(text: &str) -> String {
    read(text, languages(text))
}

/// The same for a part of a longer text, whose languages are told from all of it.
pub(super) fn part_in_english(part: &str, languages: Languages) -> String {
    read(part, languages)
}

/// The languages that a text may be in: by its small words, and where they leave it open, by the other words.
pub(super) fn languages(text: &str) -> Languages {
    let by_small_words = Languages::of_text(text);
    if by_small_words.is_one() {
        return by_small_words;
    }
    let words = tokens(text);
    let listed: Vec<Languages> = words
        .iter()
        .filter_map(|word| LISTED.get(word).copied())
        .collect();
    Languages::most_frequent(&listed, by_small_words)
}

fn read(text: &str, languages: Languages) -> String {
    if languages.meets(Languages::of_code("en")) {
        return text.to_owned();
    }
    let words = tokens(text);
    let (mut at, mut english) = (0, Vec::new());
    while at < words.len() {
        let rest = &words[at..];
        let found = COMMON
            .longest(rest, languages)
            .into_iter()
            .chain(concepts::known().longest(rest, languages));
        // Of equal ones the first: a common word before a trade name.
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
        } else if !language::is_small(&rest[0]) {
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
    fn a_sentence_of_each_language_is_read_in_english_words() {
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
    fn english_and_what_no_list_knows_stay_as_they_are() {
        for text in ["I forgot my password", "qwertz 123", "", "OG-44871"] {
            assert_eq!(in_english(text), text);
        }
    }

    #[test]
    fn words_alone_tell_a_language_where_there_is_no_small_word() {
        assert!(in_english("Passwort vergessen").contains("password"));
    }
}
