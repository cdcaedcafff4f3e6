//! How visitors tell of a matter: few of them use its trade name, so that a member is held against what they say instead.
//!
//! `sayings.txt` has sentences for the concepts of the lexicon; a member has those of the concepts that it mentions. They
//! are English: what is written in another language is read in English first ([`super::reading`]).

use std::{collections::BTreeMap, sync::LazyLock};

use super::{
    bag::Bag,
    concepts::{self, Concept, Mention},
};

/// Sentences by concept: its name, a bar, and the sentences apart by semicolons.
const SAYINGS: &str = include_str!("sayings.txt");
/// Sentences that are nobody's matter, one a line.
const NOBODYS: &str = include_str!("nobodys.txt");
/// Sentences of one member, those of its surest concepts first: each of them has to be made a vector.
const MEMBER_MAX: usize = 120;

/// A sentence.
#[derive(Clone, Debug)]
pub(super) struct Saying {
    /// As it is said.
    pub(super) text: String,
    /// Its words.
    pub(super) words: Bag,
}

static KNOWN: LazyLock<BTreeMap<Concept, Vec<Saying>>> = LazyLock::new(|| {
    let lines = SAYINGS.lines().filter(|line| !line.starts_with('#'));
    let known = lines.filter_map(|line| {
        let (name, sentences) = line.split_once('|')?;
        Some((concepts::named(name.trim())?, sentences.split(';').map(Saying::of).collect()))
    });
    known.collect()
});
static OF_NOBODY: LazyLock<Vec<Saying>> = LazyLock::new(|| NOBODYS.lines().map(Saying::of).collect());

impl Saying {
    fn of(text: &str) -> Self {
        Self { text: text.trim().to_owned(), words: Bag::of(text) }
    }
}

/// What visitors say who mean what is mentioned.
pub(super) fn of(mentions: &BTreeMap<Concept, Mention>) -> Vec<Saying> {
    let mut surest: Vec<(&Concept, &Mention)> = mentions.iter().collect();
    surest.sort_by(|left, right| right.1.weight.total_cmp(&left.1.weight));
    let sayings = surest.into_iter().filter_map(|(concept, _)| KNOWN.get(concept)).flatten();
    sayings.take(MEMBER_MAX).cloned().collect()
}

/// What is said that is nobody's matter, mostly.
pub(super) fn of_nobody() -> &'static [Saying] {
    &OF_NOBODY
}

/// How much of one of the sayings is said, at most.
pub(super) fn nearest<'a>(asked: &Bag, sayings: impl IntoIterator<Item = &'a Saying>) -> f64 {
    sayings.into_iter().map(|saying| asked.overlap(&saying.words)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_a_concept_that_the_lexicon_has() {
        let lines = SAYINGS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        assert_eq!(lines.count(), KNOWN.len());
        assert!(KNOWN.values().flatten().all(|saying| !saying.text.is_empty()));
    }

    #[test]
    fn a_member_has_what_visitors_say_of_what_it_mentions_in_whatever_language() {
        for member in ["Refunds and exchanges", "Rückerstattung und Umtausch", "Remboursements et échanges"] {
            let sayings = of(&concepts::mentions(member));
            assert!(sayings.iter().any(|saying| saying.text == "I want my money back"), "{member}");
        }
        assert!(of(&concepts::mentions("qwertz")).is_empty());
    }

    #[test]
    fn a_sentence_is_nearest_to_the_saying_that_has_its_telling_words() {
        let refund = of(&concepts::mentions("refunds"));
        let dentist = of(&concepts::mentions("dentist"));
        let asked = Bag::of("my wisdom tooth is killing me");
        assert!(nearest(&asked, &dentist) > nearest(&asked, &refund));
    }
}
