//! Finds concepts in a text of any of eight languages by a lexicon.
//!
//! A visitor's word matches a member's word if both belong to one concept. The lexicon is `concepts.txt` and `everyday.txt`:
//! each line is a concept with its name and its words in each language.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::LazyLock,
};

use super::language::{LanguageSet, folded_words};

/// Concepts with their trade names.
const CONCEPTS: &str = include_str!("concepts.txt");
/// Concepts with everyday words of visitors.
const EVERYDAY: &str = include_str!("everyday.txt");
/// Prefix of the names of everyday concepts.
const EVERYDAY_PREFIX: &str = "everyday-";
/// Out-of-scope topics in the same format.
const OUT_OF_SCOPE_TOPICS: &str = include_str!("out_of_scope_topics.txt");
/// Letters at the beginning of a word by which it is looked up.
const INDEX_CHARS: usize = 3;
/// Shortest part of a compound, in letters.
const PART_CHARS_MIN: usize = 5;
/// Weight of another form of a word, relative to the word itself.
const FORM: f64 = 0.8;
/// Weight of a part of a compound.
const PART: f64 = 0.6;
/// Additional weight of each further word of a phrase.
const FURTHER_WORD: f64 = 0.3;
/// Number of English words that name a concept.
const ENGLISH_WORDS: usize = 2;
/// Most parts of a compound that are translated.
const PARTS_MAX: usize = 2;

/// The index of a concept in the lexicon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ConceptIndex(usize);

/// The index of an out-of-scope topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OutOfScopeTopic(ConceptIndex);

/// A mention of a concept in a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConceptMention {
    /// Weight: 1 for a word of the concept, less for another form of it, more for a phrase.
    pub(super) weight: f64,
    /// The folded words of the text.
    pub(super) words: String,
}

/// The longest entry of the lexicon at the beginning of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongestEntry<'a> {
    /// Number of its words.
    pub(super) words: usize,
    /// English translation of the entry.
    pub(super) english: &'a str,
    is_exact: bool,
}

struct LexiconEntry {
    words: Vec<String>,
    languages: LanguageSet,
    concept: ConceptIndex,
}

/// A lexicon of concepts with their words.
pub(super) struct ConceptLexicon {
    names: Vec<String>,
    /// The first English words of each.
    english: Vec<Vec<String>>,
    entries: HashMap<String, Vec<LexiconEntry>>,
    /// Single words that compounds are made of, in languages that write compounds as one word.
    parts: Vec<(String, ConceptIndex)>,
}

static KNOWN: LazyLock<ConceptLexicon> =
    LazyLock::new(|| ConceptLexicon::read(&[CONCEPTS, EVERYDAY]));
static KNOWN_ASIDES: LazyLock<ConceptLexicon> =
    LazyLock::new(|| ConceptLexicon::read(&[OUT_OF_SCOPE_TOPICS]));

impl LongestEntry<'_> {
    /// Returns a rank: more words are better than fewer, and a word is better than another form of it.
    pub(super) const fn rank(&self) -> (usize, bool) {
        (self.words, self.is_exact)
    }
}

impl ConceptLexicon {
    /// Parses lists of concepts.
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
            let concept = ConceptIndex(lexicon.names.len());
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

    fn add(&mut self, word: &str, code: &str, concept: ConceptIndex) {
        let words = folded_words(word);
        let Some(first) = words.first() else { return };
        if ["de", "nl"].contains(&code)
            && words.len() == 1
            && first.chars().count() >= PART_CHARS_MIN
        {
            self.parts.push((first.clone(), concept));
        }
        let entry = LexiconEntry {
            languages: LanguageSet::of_code(code),
            concept,
            words: words.clone(),
        };
        self.entries.entry(start(first)).or_default().push(entry);
    }

    fn mentions(&self, text: &str) -> BTreeMap<ConceptIndex, ConceptMention> {
        let languages = LanguageSet::of_text(text);
        let (words, mut found) = (folded_words(text), BTreeMap::new());
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
                if let Some(weight) = similarity(part, &entry.words) {
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

    /// Returns the longest entry of these languages at the beginning of the words.
    pub(super) fn longest(
        &self,
        words: &[String],
        languages: LanguageSet,
    ) -> Option<LongestEntry<'_>> {
        let entries = self.entries.get(&start(words.first()?))?;
        let fitting = entries
            .iter()
            .filter(|entry| entry.languages.meets(languages) && entry.words.len() <= words.len());
        let longest = fitting.filter_map(|entry| {
            let part = &words[..entry.words.len()];
            similarity(part, &entry.words)?;
            let english = self.english[entry.concept.0].first()?;
            Some(LongestEntry {
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

    /// Returns the English translations of the longest parts of a compound.
    pub(super) fn parts_in_english(&self, word: &str, languages: LanguageSet) -> Vec<String> {
        if !writes_compounds(languages) {
            return Vec::new();
        }
        let inside = |part: &str| {
            word.len() > part.len() && (word.starts_with(part) || word.ends_with(part))
        };
        let mut parts: Vec<&(String, ConceptIndex)> =
            self.parts.iter().filter(|(part, _)| inside(part)).collect();
        parts.sort_by_key(|(part, _)| std::cmp::Reverse(part.len()));
        let english = parts
            .into_iter()
            .take(PARTS_MAX)
            .filter_map(|(_, concept)| self.english[concept.0].first());
        english.cloned().collect()
    }

    /// Returns every entry of one word, with its languages.
    pub(super) fn single_words(&self) -> impl Iterator<Item = (&str, LanguageSet)> {
        let entries = self
            .entries
            .values()
            .flatten()
            .filter(|entry| entry.words.len() == 1);
        entries.map(|entry| (entry.words[0].as_str(), entry.languages))
    }

    fn compound(&self, word: &str) -> impl Iterator<Item = ConceptIndex> {
        let parts = self.parts.iter();
        let inside = move |part: &str| {
            word.len() > part.len() && (word.starts_with(part) || word.ends_with(part))
        };
        parts
            .filter(move |(part, _)| inside(part))
            .map(|part| part.1)
    }
}

/// Returns the concepts that a text mentions, each with its highest weight.
pub(super) fn mentions(text: &str) -> BTreeMap<ConceptIndex, ConceptMention> {
    KNOWN.mentions(text)
}

/// Returns the out-of-scope topics of a text, such as small talk.
pub(super) fn asides(text: &str) -> BTreeSet<OutOfScopeTopic> {
    KNOWN_ASIDES
        .mentions(text)
        .into_keys()
        .map(OutOfScopeTopic)
        .collect()
}

/// Returns the concepts that a text mentions, without everyday ones.
pub(super) fn trades(text: &str) -> BTreeSet<ConceptIndex> {
    mentions(text)
        .into_keys()
        .filter(|concept| !KNOWN.names[concept.0].starts_with(EVERYDAY_PREFIX))
        .collect()
}

/// Returns the lexicon of all concepts.
pub(super) fn known() -> &'static ConceptLexicon {
    &KNOWN
}

/// Returns the concept with this name.
pub(super) fn named(name: &str) -> Option<ConceptIndex> {
    KNOWN
        .names
        .iter()
        .position(|known| known == name)
        .map(ConceptIndex)
}

/// Returns the English name of a concept.
pub(super) fn in_english(concept: ConceptIndex) -> String {
    KNOWN.english[concept.0].join(" ")
}

/// Returns the English names of all concepts.
pub(super) fn every_english() -> impl Iterator<Item = String> {
    (0..KNOWN.names.len()).map(|place| in_english(ConceptIndex(place)))
}

fn writes_compounds(languages: LanguageSet) -> bool {
    languages.meets(LanguageSet::of_code("de")) || languages.meets(LanguageSet::of_code("nl"))
}

fn note(
    found: &mut BTreeMap<ConceptIndex, ConceptMention>,
    concept: ConceptIndex,
    weight: f64,
    words: &str,
) {
    let known = found.get(&concept).map_or(0.0, |mention| mention.weight);
    if weight > known {
        found.insert(
            concept,
            ConceptMention {
                weight,
                words: words.to_owned(),
            },
        );
    }
}

fn similarity(text: &[String], entry: &[String]) -> Option<f64> {
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

/// Returns true if two words have a long common beginning and differ in short endings only.
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
    fn concepts_match_in_each_language_by_forms_and_compounds() {
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
    fn unknown_words_mention_no_concept() {
        assert!(mentions("qwertz asdf xyzzy").is_empty());
    }

    #[test]
    fn lexicon_lines_have_unique_names_and_english_words() {
        let lexicon = &*KNOWN;
        assert!(lexicon.names.len() > 100);
        assert!(lexicon.english.iter().all(|words| !words.is_empty()));
        let mut names = lexicon.names.clone();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), lexicon.names.len());
    }
}
