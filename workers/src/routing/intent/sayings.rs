//! How visitors tell of a matter: few of them use its trade name, so that a member is held against what they say instead.
//!
//! `sayings.txt` has sentences for the concepts of the lexicon; a member has those of the concepts that it mentions. They
//! are English: what is written in another language is read in English first ([`super::reading`]).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::LazyLock,
};

use super::{
    bag::Bag,
    concepts::{self, Concept, Mention},
};

/// Sentences by concept: its name, a bar, and the sentences apart by semicolons.
const SAYINGS: &str = include_str!("sayings.txt");
/// Sentences that are nobody's matter, one a line.
const NOBODYS: &str = include_str!("nobodys.txt");
/// Sentences of one member, those of its surest concepts first.
const MEMBER_MAX: usize = 200;

/// Sentences by which a message is taken for one of a matter.
const NEIGHBOURS: usize = 20;
/// How much less a sentence counts than the nearest: at this distance a power of e.
const NEIGHBOURS_WIDTH: f64 = 0.1;

/// A sentence.
#[derive(Debug)]
pub(super) struct Saying {
    /// As it is said.
    pub(super) text: String,
    /// Its words.
    pub(super) words: Bag,
    /// Its place among [`all`].
    pub(super) place: usize,
    /// The place among [`matters`] of what it is said of.
    pub(super) matter: usize,
}

/// A concept of which things are said.
#[derive(Debug)]
pub(super) struct Matter {
    concept: Concept,
    /// What it is, in English words.
    pub(super) name: String,
    words: Bag,
}

/// A matter that a message may be about.
pub(super) struct Guess {
    /// What it is.
    pub(super) concept: Concept,
    /// The words of its name.
    pub(super) name: &'static Bag,
    /// How likely; all guesses together at most 1.
    pub(super) weight: f64,
}

/// Every sentence, with what each is said of.
#[derive(Default)]
struct Known {
    all: Vec<Saying>,
    matters: Vec<Matter>,
    by_concept: BTreeMap<Concept, Range<usize>>,
    /// The places of the sentences that have a stem.
    by_stem: HashMap<String, Vec<usize>>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut known = Known::default();
    for line in SAYINGS.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, sentences)) = line.split_once('|') else {
            continue;
        };
        let Some(concept) = concepts::named(name.trim()) else {
            continue;
        };
        let (from, matter) = (known.all.len(), known.matters.len());
        for text in sentences.split(';') {
            known.all.push(Saying::of(text, known.all.len(), matter));
        }
        let name = concepts::in_english(concept);
        known.matters.push(Matter {
            concept,
            words: Bag::of(&name),
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
static OF_NOBODY: LazyLock<Vec<Saying>> = LazyLock::new(|| {
    NOBODYS
        .lines()
        .enumerate()
        .map(|(place, text)| Saying::of(text, place, 0))
        .collect()
});
/// What each of these is about, which some members may handle after all.
static TRADES_OF_NOBODY: LazyLock<Vec<BTreeSet<Concept>>> = LazyLock::new(|| {
    OF_NOBODY
        .iter()
        .map(|saying| concepts::trades(&saying.text))
        .collect()
});

impl Saying {
    fn of(text: &str, place: usize, matter: usize) -> Self {
        Self {
            text: text.trim().to_owned(),
            words: Bag::of(text),
            place,
            matter,
        }
    }
}

/// What visitors say of any matter.
pub(super) fn all() -> &'static [Saying] {
    &KNOWN.all
}

/// What is spoken of.
pub(super) fn matters() -> &'static [Matter] {
    &KNOWN.matters
}

/// What visitors say who mean what is mentioned.
pub(super) fn of(mentions: &BTreeMap<Concept, Mention>) -> Vec<&'static Saying> {
    let mut surest: Vec<(&Concept, &Mention)> = mentions.iter().collect();
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

/// What may be meant by these words: the matters of the sentences that have most of them.
pub(super) fn guesses(asked: &Bag) -> Vec<Guess> {
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
        let Matter { concept, words, .. } = &KNOWN.matters[matter];
        // Of few words nothing much is sure, however near they are to each other.
        Guess {
            concept: *concept,
            name: words,
            weight: weight * highest.min(1.0),
        }
    };
    likely.into_iter().map(guess).collect()
}

/// The matters of the sentences that are nearest, of which each says how near it is, and how likely each is; together 1. At
/// a distance of `width` a sentence counts a power of e less than the nearest. And how near that is; 0 of none.
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

/// What is said that is nobody's matter, mostly.
pub(super) fn of_nobody() -> &'static [Saying] {
    &OF_NOBODY
}

/// The same without what is about something that is handled here.
pub(super) fn of_nobody_but<'a>(
    is_handled: &'a dyn Fn(&Concept) -> bool,
) -> impl Iterator<Item = &'static Saying> + 'a {
    let sayings = OF_NOBODY.iter().zip(TRADES_OF_NOBODY.iter());
    sayings
        .filter(move |(_, trades)| !trades.iter().any(is_handled))
        .map(|(saying, _)| saying)
}

/// How much of one of the sayings is said, at most.
pub(super) fn nearest<'a>(asked: &Bag, sayings: impl IntoIterator<Item = &'a Saying>) -> f64 {
    sayings
        .into_iter()
        .map(|saying| asked.overlap(&saying.words))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_a_concept_that_the_lexicon_has() {
        let lines = SAYINGS
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        assert_eq!(lines.count(), KNOWN.by_concept.len());
        assert!(all().iter().all(|saying| !saying.text.is_empty()));
    }

    #[test]
    fn a_member_has_what_visitors_say_of_what_it_mentions_in_whatever_language() {
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
    fn what_is_nobodys_matter_mostly_is_a_members_where_it_is_handled() {
        let weather = concepts::named("weather").unwrap();
        let (nobody, all) = (
            Bag::of("what is the weather like tomorrow"),
            |_: &Concept| false,
        );
        assert!(nearest(&nobody, of_nobody_but(&all)) > 1.0);
        assert!(nearest(&nobody, of_nobody_but(&|concept| *concept == weather)) < 1.0);
    }

    #[test]
    fn a_sentence_is_nearest_to_the_saying_that_has_its_telling_words() {
        let refund = of(&concepts::mentions("refunds"));
        let dentist = of(&concepts::mentions("dentist"));
        let asked = Bag::of("my wisdom tooth is killing me");
        assert!(nearest(&asked, dentist) > nearest(&asked, refund));
    }

    #[test]
    fn what_is_meant_is_guessed_from_words_that_name_no_matter() {
        let guesses = guesses(&Bag::of("my wisdom tooth is killing me"));
        let heaviest = guesses
            .iter()
            .max_by(|left, right| left.weight.total_cmp(&right.weight))
            .unwrap();
        assert_eq!(Some(heaviest.concept), concepts::named("dentist"));
        assert!(guesses.iter().map(|guess| guess.weight).sum::<f64>() <= 1.0 + 1e-9);
        assert!(super::guesses(&Bag::of("qwertz")).is_empty());
    }
}
