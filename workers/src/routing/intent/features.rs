//! Computes the features of each member for a message: words, concepts and example utterances, and similarities of vectors
//! ([`similarity`]) if there are embeddings.

use std::collections::BTreeMap;

use super::{
    concepts::{self, ConceptIndex, ConceptMention},
    example_utterances, lexical,
    member_profile::MemberProfile,
    similarity::{MessageVectors, OutOfScopeSimilarities, VectorSimilarities},
    translation,
    word_bag::WordBag,
};

/// Largest value of a feature.
const FEATURE_MAX: f64 = 3.0;

/// The features of one member for a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemberFeatures {
    /// Common words, weighted by their distinctiveness.
    pub(super) words: f32,
    /// Common words after both were translated to English.
    pub(super) english: f32,
    /// Common concepts, weighted likewise.
    pub(super) concepts: f32,
    /// Words in common with the names of its concepts.
    pub(super) names: f32,
    /// Words in common with the example utterances about its concepts.
    pub(super) said: f32,
    /// Largest part of one such utterance that is in the message.
    pub(super) saying: f32,
    /// Probability that the message is about a concept of the member, by the words of example utterances; a concept of
    /// several members counts less.
    pub(super) matter: f32,
    /// The same probability for concepts whose names have words of the member.
    pub(super) matter_words: f32,
    /// Similarities of the vectors; zeros without embeddings.
    pub(super) alike: VectorSimilarities,
}

/// The features of a message.
#[derive(Clone, Debug)]
pub(super) struct MessageFeatures {
    /// The features of each member, in their order.
    pub(super) members: Vec<MemberFeatures>,
    /// The features of out of scope.
    pub(super) nobody: OutOfScopeFeatures,
    /// The kind of features that are available.
    pub(super) ground: FeatureKind,
    /// Matching words of each member, in their order.
    pub(super) topics: Vec<Vec<String>>,
}

/// The features of a message that is out of scope.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutOfScopeFeatures {
    /// Number of out-of-scope topics in the message.
    pub(super) asides: f32,
    /// Largest part of one out-of-scope utterance that is in the message.
    pub(super) saying: f32,
    /// Similarities of the message to out-of-scope utterances.
    pub(super) alike: OutOfScopeSimilarities,
}

/// The kind of features that a decision is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FeatureKind {
    /// Words and concepts only.
    Words,
    /// Vectors too, of a multilingual model that knows the languages of message and team.
    Vectors,
    /// Vectors too, of an English model, for an English message to an English team.
    English,
    /// Vectors too, of an English model, after message or team were translated.
    ReadInEnglish,
}

/// Computes the features of a message.
pub(super) fn gather(
    message: &str,
    profiles: &[&MemberProfile],
    vectors: Option<&MessageVectors>,
) -> MessageFeatures {
    let words: Vec<_> = profiles.iter().map(|profile| &profile.member).collect();
    let fits = lexical::match_members(message, &words);
    let mentions = concepts::mentions(message);
    let asked = WordBag::of(&translation::in_english(message));
    let bags = |of: fn(&MemberProfile) -> &WordBag| {
        profiles
            .iter()
            .map(|profile| of(profile))
            .collect::<Vec<&WordBag>>()
    };
    let (own, names, said) = (
        bags(|profile| &profile.bags.own),
        bags(|profile| &profile.bags.concepts),
        bags(|profile| &profile.bags.sayings),
    );
    let guesses = example_utterances::guesses(&asked);
    let alike = vectors.map(MessageVectors::alike).unwrap_or_default();
    let evidence = |(index, profile): (usize, &&MemberProfile)| MemberFeatures {
        words: bounded(fits[index].score),
        english: bounded(asked.shared(own[index], &own)),
        concepts: bounded(shared(&mentions, profile, profiles)),
        names: bounded(asked.shared(names[index], &names)),
        said: bounded(asked.shared(said[index], &said)),
        saying: bounded(example_utterances::nearest(
            &asked,
            profile.sayings.iter().copied(),
        )),
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
    MessageFeatures {
        members: profiles.iter().enumerate().map(evidence).collect(),
        nobody: nobody(message, &asked, profiles, vectors),
        ground: vectors.map_or(FeatureKind::Words, MessageVectors::ground),
        topics: fits.into_iter().map(|fit| fit.topics).collect(),
    }
}

fn nobody(
    message: &str,
    asked: &WordBag,
    profiles: &[&MemberProfile],
    vectors: Option<&MessageVectors>,
) -> OutOfScopeFeatures {
    let asides = concepts::asides(message);
    let asides = asides.iter().filter(|aside| {
        !profiles
            .iter()
            .any(|profile| profile.asides.contains(aside))
    });
    let is_handled = |concept: &ConceptIndex| {
        profiles
            .iter()
            .any(|profile| profile.concepts.contains_key(concept))
    };
    OutOfScopeFeatures {
        asides: bounded(f64::from(u32::try_from(asides.count()).unwrap_or(u32::MAX))),
        saying: bounded(example_utterances::nearest(
            asked,
            example_utterances::of_nobody_but(&is_handled),
        )),
        alike: vectors
            .map(MessageVectors::alike_nobodys)
            .unwrap_or_default(),
    }
}

/// Returns the weight of the concepts that message and member share; a concept of fewer members counts more.
fn shared(
    mentions: &BTreeMap<ConceptIndex, ConceptMention>,
    profile: &MemberProfile,
    profiles: &[&MemberProfile],
) -> f64 {
    let of = |(concept, mention): (&ConceptIndex, &ConceptMention)| {
        let own = profile.concepts.get(concept)?;
        Some(mention.weight.min(own.weight) * mentioned(*concept, profile, profiles))
    };
    mentions.iter().filter_map(of).sum()
}

/// Returns 1 if only this member mentions the concept, less if more do, and 0 if this one does not.
fn mentioned(concept: ConceptIndex, profile: &MemberProfile, profiles: &[&MemberProfile]) -> f64 {
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
    reason = "small values, of which a few digits matter"
)]
const fn bounded(value: f64) -> f32 {
    value.min(FEATURE_MAX) as f32
}
