//! What speaks for each member, as numbers: words, concepts and sayings, and what [`meaning`] finds where there are vectors.

use std::collections::BTreeMap;

use super::{
    bag::Bag,
    concepts::{self, Concept, Mention},
    lexical,
    meaning::{Alike, AlikeNobodys, MessageVectors},
    profile::Profile,
    reading, sayings,
};

/// More of one kind says no more.
const WORDS_MAX: f64 = 3.0;

/// What speaks for one member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// Words in common, weighted by how telling they are.
    pub(super) words: f32,
    /// Words in common once both are read in English.
    pub(super) english: f32,
    /// Concepts in common, likewise.
    pub(super) concepts: f32,
    /// Words in common with what its concepts are called.
    pub(super) names: f32,
    /// Words in common with what visitors say who mean its matters.
    pub(super) said: f32,
    /// How much of one such sentence is said.
    pub(super) saying: f32,
    /// How likely the message is about a matter that it mentions, by the words of what visitors say; what other members
    /// mention too says less.
    pub(super) matter: f32,
    /// The same of matters whose names it has words of.
    pub(super) matter_words: f32,
    /// How alike the vectors are, if there are any.
    pub(super) alike: Alike,
}

/// What is known of a message.
#[derive(Clone, Debug)]
pub(super) struct Findings {
    /// Of each member, in their order.
    pub(super) members: Vec<Evidence>,
    /// What speaks for nobody.
    pub(super) nobody: Nobody,
    /// What the numbers stand on.
    pub(super) ground: Ground,
    /// Of each member, its own words that were met.
    pub(super) topics: Vec<Vec<String>>,
}

/// What speaks for nobody.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nobody {
    /// Mentions of what is nobody's matter.
    pub(super) asides: f32,
    /// How much of one sentence that is nobody's matter is said.
    pub(super) saying: f32,
    /// How alike the message is to these sentences.
    pub(super) alike: AlikeNobodys,
}

/// What numbers stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// Words and concepts only.
    Words,
    /// And vectors of a model that knows the languages of both sides, and more than English.
    Vectors,
    /// And vectors of a model that knows English only, as both sides do.
    English,
    /// And vectors of a model that knows only what could be read in English.
    ReadInEnglish,
}

/// Gathers what speaks for each member.
pub(super) fn gather(
    message: &str,
    profiles: &[&Profile],
    vectors: Option<&MessageVectors>,
) -> Findings {
    let words: Vec<_> = profiles.iter().map(|profile| &profile.member).collect();
    let fits = lexical::fits(message, &words);
    let mentions = concepts::mentions(message);
    let asked = Bag::of(&reading::in_english(message));
    let bags = |of: fn(&Profile) -> &Bag| {
        profiles
            .iter()
            .map(|profile| of(profile))
            .collect::<Vec<&Bag>>()
    };
    let (own, names, said) = (
        bags(|profile| &profile.bags.own),
        bags(|profile| &profile.bags.concepts),
        bags(|profile| &profile.bags.sayings),
    );
    let guesses = sayings::guesses(&asked);
    let alike = vectors.map(MessageVectors::alike).unwrap_or_default();
    let evidence = |(index, profile): (usize, &&Profile)| Evidence {
        words: bounded(fits[index].score),
        english: bounded(asked.shared(own[index], &own)),
        concepts: bounded(shared(&mentions, profile, profiles)),
        names: bounded(asked.shared(names[index], &names)),
        said: bounded(asked.shared(said[index], &said)),
        saying: bounded(sayings::nearest(&asked, profile.sayings.iter().copied())),
        matter: bounded(
            guesses
                .iter()
                .map(|guess| guess.weight * mentioned(guess.concept, profile, profiles))
                .sum(),
        ),
        matter_words: bounded(
            guesses
                .iter()
                .map(|guess| guess.weight * guess.name.share_in(&profile.bags.own))
                .sum(),
        ),
        alike: alike.get(index).copied().unwrap_or_default(),
    };
    Findings {
        members: profiles.iter().enumerate().map(evidence).collect(),
        nobody: nobody(message, &asked, profiles, vectors),
        ground: vectors.map_or(Ground::Words, MessageVectors::ground),
        topics: fits.into_iter().map(|fit| fit.topics).collect(),
    }
}

fn nobody(
    message: &str,
    asked: &Bag,
    profiles: &[&Profile],
    vectors: Option<&MessageVectors>,
) -> Nobody {
    let asides = concepts::asides(message);
    let asides = asides.iter().filter(|aside| {
        !profiles
            .iter()
            .any(|profile| profile.asides.contains(aside))
    });
    let is_handled = |concept: &Concept| {
        profiles
            .iter()
            .any(|profile| profile.concepts.contains_key(concept))
    };
    Nobody {
        asides: bounded(f64::from(u32::try_from(asides.count()).unwrap_or(u32::MAX))),
        saying: bounded(sayings::nearest(asked, sayings::of_nobody_but(&is_handled))),
        alike: vectors
            .map(MessageVectors::alike_nobodys)
            .unwrap_or_default(),
    }
}

/// Concepts that the message and the member have; what fewer members have says more.
fn shared(mentions: &BTreeMap<Concept, Mention>, profile: &Profile, profiles: &[&Profile]) -> f64 {
    let of = |(concept, mention): (&Concept, &Mention)| {
        let own = profile.concepts.get(concept)?;
        Some(mention.weight.min(own.weight) * mentioned(*concept, profile, profiles))
    };
    mentions.iter().filter_map(of).sum()
}

/// 1 if the member alone mentions it, less the more do, and 0 if it does not.
fn mentioned(concept: Concept, profile: &Profile, profiles: &[&Profile]) -> f64 {
    if !profile.concepts.contains_key(&concept) {
        return 0.0;
    }
    let having = profiles
        .iter()
        .filter(|other| other.concepts.contains_key(&concept))
        .count();
    1.0 / f64::from(u32::try_from(having.max(1)).unwrap_or(u32::MAX))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "small figures, of which a few digits matter"
)]
const fn bounded(value: f64) -> f32 {
    value.min(WORDS_MAX) as f32
}
