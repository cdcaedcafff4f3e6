//! The words of a shop, with lookups of word forms, compounds and probable corrections of a word.

use std::collections::{BTreeSet, HashMap};

use crate::text::{
    distance::{LetterSet, edit_distance},
    stemming::{have_common_stem, stems},
    tokens::WORD_CHARS_MAX,
};

/// Corrections of one misspelled word, not counting their other forms.
const CANDIDATES_MAX: usize = 5;
/// Shortest word that may have one wrong letter, in characters.
const ONE_TYPO_CHARS_MIN: usize = 4;
/// Shortest word that may have two wrong letters, in characters.
const TWO_TYPOS_CHARS_MIN: usize = 8;
/// Longest word in which a replaced letter makes another word, such as `boat` and `boot`.
const NO_REPLACEMENT_CHARS_MAX: usize = 4;
/// Shortest word that is searched inside longer ones, in characters.
const INSIDE_CHARS_MIN: usize = 4;
/// Compounds that one word can match.
const COMPOUNDS_MAX: usize = 24;
/// Transcriptions of umlauts, with the folded letter.
const UMLAUTS: [(&str, &str); 3] = [("ae", "a"), ("oe", "o"), ("ue", "u")];

/// All words of an index.
#[derive(Default)]
pub(super) struct ShopVocabulary {
    words: Vec<VocabularyWord>,
    by_text: HashMap<Box<str>, u32>,
    by_stem: HashMap<Box<str>, Vec<u32>>,
    /// Words of letters only, by length in characters; words with digits are never corrected.
    by_length: Vec<Vec<u32>>,
}

struct VocabularyWord {
    text: Box<str>,
    products: u32,
    letters: LetterSet,
}

impl ShopVocabulary {
    /// Counts one more product with this word.
    pub(super) fn add(&mut self, text: &str) {
        if let Some(id) = self.by_text.get(text) {
            self.words[*id as usize].products += 1;
            return;
        }
        let Ok(id) = u32::try_from(self.words.len()) else {
            return;
        };
        self.words.push(VocabularyWord {
            text: text.into(),
            products: 1,
            letters: LetterSet::of(text),
        });
        self.by_text.insert(text.into(), id);
        for stem in stems(text) {
            self.by_stem.entry(stem.into()).or_default().push(id);
        }
        let length = text.chars().count();
        if length <= WORD_CHARS_MAX && text.chars().all(char::is_alphabetic) {
            if self.by_length.len() <= length {
                self.by_length.resize_with(length + 1, Vec::new);
            }
            self.by_length[length].push(id);
        }
    }

    /// Returns the number of products with this word.
    pub(super) fn products_with(&self, text: &str) -> u32 {
        self.by_text
            .get(text)
            .map_or(0, |id| self.words[*id as usize].products)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        /// Bytes of a word with its keys and its entries in three tables; words have two stems on
        /// average.
        const BYTES_PER_WORD: usize = 240;
        self.words.len() * BYTES_PER_WORD
    }

    /// Returns the forms of a word that the shop has: the word itself, plurals, genders and
    /// spellings with umlauts.
    pub(super) fn word_forms(&self, word: &str) -> Vec<&str> {
        let mut forms = self.of_stem(word);
        for (written, meant) in UMLAUTS {
            if word.contains(written) {
                let others = self.of_stem(&word.replace(written, meant));
                forms.extend(
                    others
                        .into_iter()
                        .filter(|other| !have_common_stem(other, word)),
                );
            }
        }
        forms
    }

    /// Returns words similar to `word` in four groups, the nearest first: longer and shorter forms,
    /// forms with umlauts, words with one wrong letter, words with two. Unlike
    /// [`Self::corrections`], other forms of these words are left out.
    pub(super) fn similar_words(&self, word: &str) -> [Vec<&str>; 4] {
        let continues = |other: &&str| other.starts_with(word) || word.starts_with(*other);
        let longer = self.of_stem(word).into_iter().filter(continues).collect();
        let umlauts = UMLAUTS.iter().filter(|(written, _)| word.contains(written));
        let respelled = umlauts
            .filter_map(|(written, meant)| self.by_text.get(word.replace(written, meant).as_str()));
        let respelled = respelled
            .map(|id| self.words[*id as usize].text.as_ref())
            .collect();
        let near = self.words_within_typos(word);
        let at = |wanted: usize| {
            let at = near.iter().filter(|(distance, _)| *distance == wanted);
            at.map(|(_, id)| self.words[*id as usize].text.as_ref())
                .collect()
        };
        [longer, respelled, at(1), at(2)]
    }

    /// Returns the most probable corrections of a misspelled word, with their other forms.
    pub(super) fn corrections(&self, word: &str) -> Vec<&str> {
        let first = word.chars().next();
        let mut near = self.words_within_typos(word);
        let least = near
            .iter()
            .map(|(distance, _)| *distance)
            .min()
            .unwrap_or_default();
        near.retain(|(distance, _)| *distance == least);
        // The first letter is rarely wrong.
        let begins_alike = |id: &u32| self.words[*id as usize].text.chars().next() == first;
        if near.iter().any(|(_, id)| begins_alike(id)) {
            near.retain(|(_, id)| begins_alike(id));
        }
        near.sort_by_key(|(_, id)| std::cmp::Reverse(self.words[*id as usize].products));
        near.truncate(CANDIDATES_MAX);
        let mut meant: Vec<&str> = near
            .iter()
            .flat_map(|(_, id)| self.of_stem(&self.words[*id as usize].text))
            .collect();
        meant.sort_unstable();
        meant.dedup();
        meant
    }

    /// Returns the most frequent longer words that contain `word`; many languages write `running
    /// shoe` as one word.
    pub(super) fn compounds_with(&self, word: &str) -> Vec<&str> {
        let stems = stems(word);
        let Some(part) = stems.iter().min_by_key(|stem| stem.chars().count()) else {
            return Vec::new();
        };
        if part.chars().count() < INSIDE_CHARS_MIN {
            return Vec::new();
        }
        let contains = |entry: &&VocabularyWord| {
            entry.text.contains(part) && !have_common_stem(&entry.text, word)
        };
        let mut found: Vec<&VocabularyWord> = self.words.iter().filter(contains).collect();
        found.sort_by_key(|entry| std::cmp::Reverse(entry.products));
        found
            .iter()
            .take(COMPOUNDS_MAX)
            .map(|entry| entry.text.as_ref())
            .collect()
    }

    /// Returns words within the number of typos that a word of this length may have, each with its
    /// edit distance.
    fn words_within_typos(&self, word: &str) -> Vec<(usize, u32)> {
        let letters: Vec<char> = word.chars().collect();
        let mistakes_max = match letters.len() {
            TWO_TYPOS_CHARS_MIN.. => 2,
            ONE_TYPO_CHARS_MIN.. => 1,
            _ => return Vec::new(),
        };
        if !letters.iter().all(|letter| letter.is_alphabetic()) {
            return Vec::new();
        }
        self.nearby_words(word, &letters, mistakes_max)
    }

    fn nearby_words(&self, word: &str, letters: &[char], mistakes_max: usize) -> Vec<(usize, u32)> {
        let letter_set = LetterSet::of(word);
        let lengths = letters.len().saturating_sub(mistakes_max)..=letters.len() + mistakes_max;
        let ids = lengths
            .filter_map(|length| self.by_length.get(length))
            .flatten();
        let may_be = |id: &&u32| {
            self.words[**id as usize]
                .letters
                .may_be_within(letter_set, mistakes_max)
        };
        let measured = ids.filter(may_be).filter_map(|id| {
            let other: Vec<char> = self.words[*id as usize].text.chars().collect();
            let distance = edit_distance(letters, &other, mistakes_max)?;
            let replaced = other.len() == letters.len() && !is_rearranged(letters, &other);
            (letters.len() > NO_REPLACEMENT_CHARS_MAX || !replaced).then_some((distance, *id))
        });
        measured.collect()
    }

    fn of_stem(&self, word: &str) -> Vec<&str> {
        let stems = stems(word);
        let ids = stems
            .iter()
            .filter_map(|stem| self.by_stem.get(stem.as_str()));
        let ids: BTreeSet<u32> = ids.flatten().copied().collect();
        ids.into_iter()
            .map(|id| self.words[id as usize].text.as_ref())
            .collect()
    }
}

fn is_rearranged(left: &[char], right: &[char]) -> bool {
    let sorted = |letters: &[char]| {
        let mut letters = letters.to_vec();
        letters.sort_unstable();
        letters
    };
    sorted(left) == sorted(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(words: &[&str]) -> ShopVocabulary {
        let mut vocabulary = ShopVocabulary::default();
        for word in words {
            vocabulary.add(word);
        }
        vocabulary
    }

    #[test]
    fn word_is_found_in_its_other_forms() {
        let vocabulary = vocabulary(&["shoe", "shoes", "shirt", "grosse"]);
        assert_eq!(vocabulary.word_forms("shoes"), ["shoe", "shoes"]);
        assert_eq!(vocabulary.word_forms("groesse"), ["grosse"]);
        assert!(vocabulary.word_forms("sofa").is_empty());
    }

    #[test]
    fn misspelled_word_stands_for_the_nearest_words() {
        let vocabulary = vocabulary(&[
            "headphones",
            "headphone",
            "microphones",
            "shoes",
            "boots",
            "coat",
            "boot",
        ]);
        for (misspelled, meant) in [
            ("hedphones", &["headphone", "headphones"][..]),
            ("haedfones", &[]),
            ("headfones", &["headphone", "headphones"]),
            ("sheos", &["shoes"]),
            ("shos", &["shoes"]),
            ("boat", &[]),
            ("bot", &[]),
            ("xyz123", &[]),
        ] {
            assert_eq!(vocabulary.corrections(misspelled), meant, "{misspelled}");
        }
    }

    #[test]
    fn word_is_found_inside_longer_ones() {
        let vocabulary = vocabulary(&["laufschuhe", "handschuh", "hose"]);
        assert_eq!(
            vocabulary.compounds_with("schuhe"),
            ["laufschuhe", "handschuh"]
        );
        assert!(vocabulary.compounds_with("hos").is_empty());
    }
}
