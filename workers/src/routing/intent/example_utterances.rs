//! Example utterances: sentences in which visitors describe a concept without its trade name.
//!
//! `example_utterances.txt` has sentences for the concepts of the lexicon; a member has those of the concepts that it mentions. They
//! are English; messages in other languages are translated first ([`super::translation`]).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::LazyLock,
};

use super::{
    concepts::{self, ConceptIndex, ConceptMention},
    word_bag::WordBag,
};

/// Utterances by concept: its name, a bar, and the sentences separated by semicolons.
const UTTERANCES: &str = include_str!("example_utterances.txt");
/// Out-of-scope utterances, one a line.
const OUT_OF_SCOPE_UTTERANCES: &str = include_str!("out_of_scope_utterances.txt");
/// Most utterances of one member, those of its most certain concepts first.
const MEMBER_MAX: usize = 200;

/// Nearest utterances that determine the probable concepts of a message.
const NEIGHBOURS: usize = 20;
/// Distance to the nearest utterance at which another one counts 1/e of it.
const NEIGHBOURS_WIDTH: f64 = 0.1;

/// An example utterance of a concept.
#[derive(Debug)]
pub(super) struct ExampleUtterance {
    /// The sentence as written.
    pub(super) text: String,
    /// The words of the sentence.
    pub(super) words: WordBag,
    /// Index of the sentence among [`all`].
    pub(super) place: usize,
    /// Index of its concept among [`matters`].
    pub(super) matter: usize,
}

/// A concept with example utterances.
#[derive(Debug)]
pub(super) struct UtteranceConcept {
    concept: ConceptIndex,
    /// English name of the concept.
    pub(super) name: String,
    words: WordBag,
}

/// A concept that a message may be about.
pub(super) struct ConceptGuess {
    /// The concept of the utterances.
    pub(super) concept: ConceptIndex,
    /// Words of its name.
    pub(super) name: &'static WordBag,
    /// Probability; the sum over all guesses is at most 1.
    pub(super) weight: f64,
}

/// All utterances with their concepts.
#[derive(Default)]
struct UtteranceTables {
    all: Vec<ExampleUtterance>,
    matters: Vec<UtteranceConcept>,
    by_concept: BTreeMap<ConceptIndex, Range<usize>>,
    /// Indexes of the utterances with a stem.
    by_stem: HashMap<String, Vec<usize>>,
}

static KNOWN: LazyLock<UtteranceTables> = LazyLock::new(|| {
    let mut known = UtteranceTables::default();
    for line in UTTERANCES.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, sentences)) = line.split_once('|') else {
            continue;
        };
        let Some(concept) = concepts::named(name.trim()) else {
            continue;
        };
        let (from, matter) = (known.all.len(), known.matters.len());
        for text in sentences.split(';') {
            known
                .all
                .push(ExampleUtterance::of(text, known.all.len(), matter));
        }
        let name = concepts::in_english(concept);
        known.matters.push(UtteranceConcept {
            concept,
            words: WordBag::of(&name),
            name,
        });
        known.by_concept.insert(concept, from..known.all.len());
    }
    for saying in &known.all {
        for stem in saying.words.stems() {
            known
                .by_stem
                .entry(stem.to_owned())
                .or_default()
                .push(saying.place);
        }
    }
    known
});
static OF_NOBODY: LazyLock<Vec<ExampleUtterance>> = LazyLock::new(|| {
    OUT_OF_SCOPE_UTTERANCES
        .lines()
        .enumerate()
        .map(|(place, text)| ExampleUtterance::of(text, place, 0))
        .collect()
});
/// Concepts of the out-of-scope utterances, which some teams may handle after all.
static TRADES_OF_NOBODY: LazyLock<Vec<BTreeSet<ConceptIndex>>> = LazyLock::new(|| {
    OF_NOBODY
        .iter()
        .map(|saying| concepts::trades(&saying.text))
        .collect()
});

impl ExampleUtterance {
    fn of(text: &str, place: usize, matter: usize) -> Self {
        Self {
            text: text.trim().to_owned(),
            words: WordBag::of(text),
            place,
            matter,
        }
    }
}

/// Returns all example utterances.
pub(super) fn all() -> &'static [ExampleUtterance] {
    &KNOWN.all
}

/// Returns all concepts with example utterances.
pub(super) fn matters() -> &'static [UtteranceConcept] {
    &KNOWN.matters
}

/// Returns the example utterances of the mentioned concepts.
pub(super) fn of(
    mentions: &BTreeMap<ConceptIndex, ConceptMention>,
) -> Vec<&'static ExampleUtterance> {
    let mut surest: Vec<(&ConceptIndex, &ConceptMention)> = mentions.iter().collect();
    surest.sort_by(|left, right| right.1.weight.total_cmp(&left.1.weight));
    let places = surest
        .into_iter()
        .filter_map(|(concept, _)| KNOWN.by_concept.get(concept))
        .cloned()
        .flatten();
    places
        .take(MEMBER_MAX)
        .map(|place| &KNOWN.all[place])
        .collect()
}

/// Returns the probable concepts of a message, which are those of the utterances with most of its words.
pub(super) fn guesses(asked: &WordBag) -> Vec<ConceptGuess> {
    let places: BTreeSet<usize> = asked
        .stems()
        .filter_map(|stem| KNOWN.by_stem.get(stem))
        .flatten()
        .copied()
        .collect();
    let near = |place: usize| {
        (
            asked.overlap(&KNOWN.all[place].words),
            KNOWN.all[place].matter,
        )
    };
    let (likely, highest) = likely(places.into_iter().map(near), NEIGHBOURS_WIDTH);
    let guess = |(matter, weight): (usize, f64)| {
        let UtteranceConcept { concept, words, .. } = &KNOWN.matters[matter];
        // Few common words are weak evidence, even if they make up most of an utterance.
        ConceptGuess {
            concept: *concept,
            name: words,
            weight: weight * highest.min(1.0),
        }
    };
    likely.into_iter().map(guess).collect()
}

/// Returns the concepts of the nearest utterances with their probabilities, whose sum is 1, and the similarity of the nearest
/// one, 0 if there is none. An utterance at distance `width` from the nearest counts 1/e of it.
pub(super) fn likely(
    near: impl Iterator<Item = (f64, usize)>,
    width: f64,
) -> (BTreeMap<usize, f64>, f64) {
    let mut near: Vec<(f64, usize)> = near.collect();
    near.sort_by(|left, right| right.0.total_cmp(&left.0));
    near.truncate(NEIGHBOURS);
    let highest = near.first().map_or(0.0, |nearest| nearest.0);
    let weight = |nearness: f64| ((nearness - highest) / width).exp();
    let all: f64 = near.iter().map(|(nearness, _)| weight(*nearness)).sum();
    let mut likely = BTreeMap::new();
    for (nearness, matter) in near {
        *likely.entry(matter).or_default() += weight(nearness) / all;
    }
    (likely, highest)
}

/// Returns the out-of-scope utterances.
pub(super) fn of_nobody() -> &'static [ExampleUtterance] {
    &OF_NOBODY
}

/// Returns the out-of-scope utterances without those about concepts that the team handles.
pub(super) fn of_nobody_but<'a>(
    is_handled: &'a dyn Fn(&ConceptIndex) -> bool,
) -> impl Iterator<Item = &'static ExampleUtterance> + 'a {
    let sayings = OF_NOBODY.iter().zip(TRADES_OF_NOBODY.iter());
    sayings
        .filter(move |(_, trades)| !trades.iter().any(is_handled))
        .map(|(saying, _)| saying)
}

/// Returns the largest part of one of the utterances that is in the message.
pub(super) fn nearest<'a>(
    asked: &WordBag,
    sayings: impl IntoIterator<Item = &'a ExampleUtterance>,
) -> f64 {
    sayings
        .into_iter()
        .map(|saying| asked.overlap(&saying.words))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_utterance_has_a_concept_of_the_lexicon() {
        let lines = UTTERANCES
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        assert_eq!(lines.count(), KNOWN.by_concept.len());
        assert!(all().iter().all(|saying| !saying.text.is_empty()));
    }

    #[test]
    fn member_has_the_utterances_of_its_concepts_in_any_language() {
        for member in [
            "Refunds and exchanges",
            "Rückerstattung und Umtausch",
            "Remboursements et échanges",
        ] {
            let sayings = of(&concepts::mentions(member));
            assert!(
                sayings
                    .iter()
                    .any(|saying| saying.text == "I want my money back"),
                "{member}"
            );
        }
        assert!(of(&concepts::mentions("qwertz")).is_empty());
    }

    #[test]
    fn handled_topics_are_in_scope() {
        let weather = concepts::named("weather").unwrap();
        let (nobody, all) = (
            WordBag::of("what is the weather like tomorrow"),
            |_: &ConceptIndex| false,
        );
        assert!(nearest(&nobody, of_nobody_but(&all)) > 1.0);
        assert!(nearest(&nobody, of_nobody_but(&|concept| *concept == weather)) < 1.0);
    }

    #[test]
    fn sentence_is_nearest_to_the_utterance_with_its_rare_words() {
        let refund = of(&concepts::mentions("refunds"));
        let dentist = of(&concepts::mentions("dentist"));
        let asked = WordBag::of("my wisdom tooth is killing me");
        assert!(nearest(&asked, dentist) > nearest(&asked, refund));
    }

    #[test]
    fn concept_is_guessed_without_its_name() {
        let guesses = guesses(&WordBag::of("my wisdom tooth is killing me"));
        let heaviest = guesses
            .iter()
            .max_by(|left, right| left.weight.total_cmp(&right.weight))
            .unwrap();
        assert_eq!(Some(heaviest.concept), concepts::named("dentist"));
        assert!(guesses.iter().map(|guess| guess.weight).sum::<f64>() <= 1.0 + 1e-9);
        assert!(super::guesses(&WordBag::of("qwertz")).is_empty());
    }
}
