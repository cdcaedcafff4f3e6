//! What a text speaks of, whatever its language: a lexicon of concepts with their words in eight languages.
//!
//! A visitor's word and a member's word meet when they are words of one concept, though they share no letter. The lexicon
//! is `concepts.txt` and `everyday.txt`: a line is a concept, its name first and then the words of each language.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::LazyLock,
};

use super::language::{Languages, tokens};

/// Matters by their trade names.
const CONCEPTS: &str = include_str!("concepts.txt");
/// And the everyday words in which visitors tell of them.
const EVERYDAY: &str = include_str!("everyday.txt");
/// How the names of these begin.
const EVERYDAY_PREFIX: &str = "everyday-";
/// What visitors say that is no member's matter, in the same form.
const ASIDES: &str = include_str!("asides.txt");
/// Letters that begin a word and by which it is looked up.
const INDEX_CHARS: usize = 3;
/// Shortest part of a compound that counts, in letters.
const PART_CHARS_MIN: usize = 5;
/// How sure a form of a word is, against the word itself.
const FORM: f64 = 0.8;
/// How sure a part of a compound is.
const PART: f64 = 0.6;
/// What each further word of a phrase adds.
const FURTHER_WORD: f64 = 0.3;
/// English words that say what a concept is.
const ENGLISH_WORDS: usize = 2;
/// Parts of a compound that are read.
const PARTS_MAX: usize = 2;

/// The place of a concept in the lexicon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Concept(usize);

/// The place of something that is nobody's matter, mostly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Aside(Concept);

/// A mention in a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mention {
    /// 1 for a word of the concept, less for a form of one, more for a phrase.
    pub(super) weight: f64,
    /// Words of the text, as they were looked up.
    pub(super) words: String,
}

/// The longest entry that a text begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Longest<'a> {
    /// Its words.
    pub(super) words: usize,
    /// What it is in English.
    pub(super) english: &'a str,
    is_exact: bool,
}

struct Entry {
    words: Vec<String>,
    languages: Languages,
    concept: Concept,
}

/// Concepts with their words.
pub(super) struct Lexicon {
    names: Vec<String>,
    /// The first English words of each.
    english: Vec<Vec<String>>,
    entries: HashMap<String, Vec<Entry>>,
    /// Single words that compounds are made of, in languages that write compounds as one word.
    parts: Vec<(String, Concept)>,
}

static KNOWN: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(&[CONCEPTS, EVERYDAY]));
static KNOWN_ASIDES: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(&[ASIDES]));

impl Longest<'_> {
    /// More words go before fewer, and a word itself before a form of one.
    pub(super) const fn rank(&self) -> (usize, bool) {
        (self.words, self.is_exact)
    }
}

impl Lexicon {
    /// Reads lists of concepts.
    pub(super) fn read(texts: &[&str]) -> Self {
        let mut lexicon = Self {
            names: Vec::new(),
            english: Vec::new(),
            entries: HashMap::new(),
            parts: Vec::new(),
        };
        let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut fields = line.split('|').map(str::trim);
            let concept = Concept(lexicon.names.len());
            lexicon
                .names
                .push(fields.next().unwrap_or_default().to_owned());
            lexicon.english.push(Vec::new());
            for (code, words) in fields.filter_map(|field| field.split_once(':')) {
                let words: Vec<&str> = words.split(',').map(str::trim).collect();
                if code == "en" {
                    lexicon.english[concept.0] = words
                        .iter()
                        .take(ENGLISH_WORDS)
                        .map(|word| (*word).into())
                        .collect();
                }
                words
                    .iter()
                    .for_each(|word| lexicon.add(word, code, concept));
            }
        }
        lexicon
    }

    fn add(&mut self, word: &str, code: &str, concept: Concept) {
        let words = tokens(word);
        let Some(first) = words.first() else { return };
        if ["de", "nl"].contains(&code)
            && words.len() == 1
            && first.chars().count() >= PART_CHARS_MIN
        {
            self.parts.push((first.clone(), concept));
        }
        let entry = Entry {
            languages: Languages::of_code(code),
            concept,
            words: words.clone(),
        };
        self.entries.entry(start(first)).or_default().push(entry);
    }

    fn mentions(&self, text: &str) -> BTreeMap<Concept, Mention> {
        let languages = Languages::of_text(text);
        let (words, mut found) = (tokens(text), BTreeMap::new());
        for at in 0..words.len() {
            let rest = &words[at..];
            let entries = self
                .entries
                .get(&start(&rest[0]))
                .map(Vec::as_slice)
                .unwrap_or_default();
            for entry in entries
                .iter()
                .filter(|entry| entry.languages.meets(languages) && entry.words.len() <= rest.len())
            {
                let part = &rest[..entry.words.len()];
                if let Some(weight) = likeness(part, &entry.words) {
                    note(&mut found, entry.concept, weight, &part.join(" "));
                }
            }
            if writes_compounds(languages) {
                self.compound(&rest[0])
                    .for_each(|concept| note(&mut found, concept, PART, &rest[0]));
            }
        }
        found
    }

    /// The longest entry of these languages that the words begin with.
    pub(super) fn longest(&self, words: &[String], languages: Languages) -> Option<Longest<'_>> {
        let entries = self.entries.get(&start(words.first()?))?;
        let fitting = entries
            .iter()
            .filter(|entry| entry.languages.meets(languages) && entry.words.len() <= words.len());
        let longest = fitting.filter_map(|entry| {
            let part = &words[..entry.words.len()];
            likeness(part, &entry.words)?;
            let english = self.english[entry.concept.0].first()?;
            Some(Longest {
                words: part.len(),
                english,
                is_exact: part == entry.words,
            })
        });
        longest.reduce(|best, next| {
            if next.rank() > best.rank() {
                next
            } else {
                best
            }
        })
    }

    /// The longest parts of a compound, in English.
    pub(super) fn parts_in_english(&self, word: &str, languages: Languages) -> Vec<String> {
        if !writes_compounds(languages) {
            return Vec::new();
        }
        let inside = |part: &str| {
            word.len() > part.len() && (word.starts_with(part) || word.ends_with(part))
        };
        let mut parts: Vec<&(String, Concept)> =
            self.parts.iter().filter(|(part, _)| inside(part)).collect();
        parts.sort_by_key(|(part, _)| std::cmp::Reverse(part.len()));
        let english = parts
            .into_iter()
            .take(PARTS_MAX)
            .filter_map(|(_, concept)| self.english[concept.0].first());
        english.cloned().collect()
    }

    /// Every entry of one word, with its languages.
    pub(super) fn single_words(&self) -> impl Iterator<Item = (&str, Languages)> {
        let entries = self
            .entries
            .values()
            .flatten()
            .filter(|entry| entry.words.len() == 1);
        entries.map(|entry| (entry.words[0].as_str(), entry.languages))
    }

    fn compound(&self, word: &str) -> impl Iterator<Item = Concept> {
        let parts = self.parts.iter();
        let inside = move |part: &str| {
            word.len() > part.len() && (word.starts_with(part) || word.ends_with(part))
        };
        parts
            .filter(move |(part, _)| inside(part))
            .map(|part| part.1)
    }
}

/// What a text mentions, each concept once, at its surest.
pub(super) fn mentions(text: &str) -> BTreeMap<Concept, Mention> {
    KNOWN.mentions(text)
}

/// What a text mentions that is small talk or otherwise nobody's matter, mostly.
pub(super) fn asides(text: &str) -> BTreeSet<Aside> {
    KNOWN_ASIDES.mentions(text).into_keys().map(Aside).collect()
}

/// The trades that a text mentions, without everyday words.
pub(super) fn trades(text: &str) -> BTreeSet<Concept> {
    mentions(text)
        .into_keys()
        .filter(|concept| !KNOWN.names[concept.0].starts_with(EVERYDAY_PREFIX))
        .collect()
}

/// All concepts that members can have.
pub(super) fn known() -> &'static Lexicon {
    &KNOWN
}

/// The concept of this name.
pub(super) fn named(name: &str) -> Option<Concept> {
    KNOWN
        .names
        .iter()
        .position(|known| known == name)
        .map(Concept)
}

/// What a concept is, in English words.
pub(super) fn in_english(concept: Concept) -> String {
    KNOWN.english[concept.0].join(" ")
}

/// What each concept is, in English words.
pub(super) fn every_english() -> impl Iterator<Item = String> {
    (0..KNOWN.names.len()).map(|place| in_english(Concept(place)))
}

fn writes_compounds(languages: Languages) -> bool {
    languages.meets(Languages::of_code("de")) || languages.meets(Languages::of_code("nl"))
}

fn note(found: &mut BTreeMap<Concept, Mention>, concept: Concept, weight: f64, words: &str) {
    let known = found.get(&concept).map_or(0.0, |mention| mention.weight);
    if weight > known {
        found.insert(
            concept,
            Mention {
                weight,
                words: words.to_owned(),
            },
        );
    }
}

fn likeness(text: &[String], entry: &[String]) -> Option<f64> {
    let mut least: f64 = 1.0;
    for (word, own) in text.iter().zip(entry) {
        if word != own {
            if !is_form(word, own) {
                return None;
            }
            least = FORM;
        }
    }
    let further = u32::try_from(entry.len().saturating_sub(1)).unwrap_or(u32::MAX);
    Some(least * FURTHER_WORD.mul_add(f64::from(further), 1.0))
}

/// Whether two words differ in their endings only: long beginnings in common, short rests.
fn is_form(left: &str, right: &str) -> bool {
    let common = left
        .chars()
        .zip(right.chars())
        .take_while(|(left, right)| left == right)
        .count();
    let (left, right) = (left.chars().count(), right.chars().count());
    common >= 4 && left.max(right) - common <= 3 && left.min(right) - common <= 2
}

fn start(word: &str) -> String {
    word.chars().take(INDEX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        mentions(text)
            .keys()
            .map(|concept| KNOWN.names[concept.0].clone())
            .collect()
    }

    #[test]
    fn a_concept_is_met_in_each_language_in_forms_and_in_compounds() {
        for text in [
            "when will my parcels be delivered",
            "wann wird das Paket geliefert",
            "où est mon colis, la livraison",
        ] {
            assert!(
                names(text).contains(&"delivery".to_owned()),
                "{text}: {:?}",
                names(text)
            );
        }
        assert!(names("Meine Rechnungsnummer fehlt mir").contains(&"invoice".to_owned()));
    }

    #[test]
    fn what_is_no_word_of_a_concept_mentions_nothing() {
        assert!(mentions("qwertz asdf xyzzy").is_empty());
    }

    #[test]
    fn every_line_of_the_lexicon_has_a_name_and_english_words_and_no_name_stands_twice() {
        let lexicon = &*KNOWN;
        assert!(lexicon.names.len() > 100);
        assert!(lexicon.english.iter().all(|words| !words.is_empty()));
        let mut names = lexicon.names.clone();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), lexicon.names.len());
    }
}
