//! Computes similarities of a message and each member from their vectors, directly and through known concepts.
//!
//! A visitor's sentence and a member's phrase are different kinds of text even if they mean the same. A sentence resembles
//! example utterances, and a member's phrase resembles the name of a concept. Therefore the nearest example utterances
//! determine the probable concepts of the message, and the names of these are compared with the members.

use std::sync::Arc;

use super::{
    features::FeatureKind,
    member_profile::{MemberProfile, MemberTexts},
    reference_vectors::{ConceptGuess, ReferenceVectors, TextHubness, highest, mean},
    translation,
};
use crate::embedding::{EmbeddingVector, cosine};

/// Similarity to a piece of a member from which an out-of-scope utterance is in scope for the team.
const MEMBERS_MIN: f32 = 4.0;
/// Nearest utterances or pieces that are averaged, because a single one may be near by chance.
const NEAREST: usize = 3;
/// Distance to the nearest piece, in standard deviations, at which another one counts 1/e of it.
const PIECES_WIDTH: f32 = 0.5;

/// Standardized similarities of a message and a member, corrected by [hubness](TextHubness) unless noted otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct VectorSimilarities {
    /// Similarity of the nearest piece.
    pub(super) piece: f32,
    /// Mean similarity of the nearest pieces.
    pub(super) pieces: f32,
    /// Mean similarity of the nearest pieces, without correction.
    pub(super) pieces_plain: f32,
    /// Soft maximum over all pieces, without correction.
    pub(super) pooled: f32,
    /// Similarity of the specialization.
    pub(super) matters: f32,
    /// Similarity of the whole text.
    pub(super) whole: f32,
    /// Similarity of the nearest example utterance of its concepts, without correction.
    pub(super) saying: f32,
    /// Mean similarity of the nearest example utterances, without correction.
    pub(super) sayings: f32,
    /// Similarity of the probable concepts to the nearest piece of each.
    pub(super) matter_piece: f32,
    /// Similarity of the probable concepts to the whole text.
    pub(super) matter_whole: f32,
}

/// Standardized similarities of a message to utterances that are out of scope for the team.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutOfScopeSimilarities {
    /// Similarity of the nearest utterance.
    pub(super) nearest: f32,
    /// Mean similarity of the nearest utterances.
    pub(super) near: f32,
}

/// The vectors of a message and its team.
pub(super) struct MessageVectors {
    asked: EmbeddingVector,
    members: Vec<Arc<MemberVectors>>,
    background: Arc<ReferenceVectors>,
    ground: FeatureKind,
}

/// The vectors of a member and their relation to the reference vectors, computed once.
pub(super) struct MemberVectors {
    whole: HubnessVector,
    matters: HubnessVector,
    pieces: Vec<HubnessVector>,
    /// Indexes of the example utterances of its concepts.
    sayings: Vec<usize>,
    /// For each out-of-scope utterance, true if the member handles it.
    nobodys: Vec<bool>,
}

/// A text of a member with its hubness.
struct HubnessVector {
    vector: EmbeddingVector,
    nearness: TextHubness,
}

/// Returns the kind of features that a model provides for a message and a team.
pub(super) fn ground(
    background: &ReferenceVectors,
    message: &str,
    profiles: &[&MemberProfile],
) -> FeatureKind {
    let knows = |text: &str| background.knows(translation::languages(text));
    let known = knows(message)
        && profiles
            .first()
            .is_none_or(|profile| knows(&profile.texts.whole));
    match (known, background.knows_english_only()) {
        (true, false) => FeatureKind::Vectors,
        (true, true) => FeatureKind::English,
        (false, _) => FeatureKind::ReadInEnglish,
    }
}

/// Returns the text of the message that is embedded.
pub(super) fn message_text(message: &str, ground: FeatureKind) -> String {
    if ground == FeatureKind::ReadInEnglish {
        translation::in_english(message)
    } else {
        message.to_owned()
    }
}

/// Returns the texts of a member that are embedded, in the order that [`MemberVectors::of`] expects.
pub(super) const fn member_texts(
    profile: &MemberProfile,
    ground: FeatureKind,
) -> &Arc<MemberTexts> {
    match ground {
        FeatureKind::Words | FeatureKind::Vectors => &profile.texts,
        FeatureKind::English => &profile.inquiries,
        FeatureKind::ReadInEnglish => &profile.english,
    }
}

impl MemberVectors {
    /// Creates the vectors of a member from those of [`member_texts`]; none if there are too few.
    pub(super) fn of(
        vectors: &[EmbeddingVector],
        profile: &MemberProfile,
        background: &ReferenceVectors,
    ) -> Option<Self> {
        let mut placed = vectors
            .iter()
            .map(|vector| HubnessVector::of(vector, background));
        let (whole, matters, pieces) = (placed.next()?, placed.next()?, placed.collect::<Vec<_>>());
        let scale = background.scale();
        let is_own = |sentence: &EmbeddingVector| {
            pieces
                .iter()
                .any(|piece| scale.read(piece.to(sentence)) >= MEMBERS_MIN)
        };
        let nobodys = background.nobodys().iter().map(is_own).collect();
        let sayings = profile.sayings.iter().map(|saying| saying.place).collect();
        Some(Self {
            whole,
            matters,
            pieces,
            sayings,
            nobodys,
        })
    }

    /// Returns its approximate memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let placed = self.pieces.iter().chain([&self.whole, &self.matters]);
        placed
            .map(|placed| size_of_val(&*placed.vector))
            .sum::<usize>()
            + size_of_val(&*self.sayings)
    }
}

impl HubnessVector {
    fn of(vector: &EmbeddingVector, background: &ReferenceVectors) -> Self {
        Self {
            vector: vector.clone(),
            nearness: background.nearness(vector),
        }
    }

    fn to(&self, other: &EmbeddingVector) -> f32 {
        cosine(&self.vector, other)
    }

    /// Returns the corrected cosine to a message.
    fn to_message(&self, message: &EmbeddingVector) -> f32 {
        self.to(message) - self.nearness.sayings
    }

    /// Returns the corrected cosine to the name of a concept.
    fn to_name(&self, name: &EmbeddingVector) -> f32 {
        self.to(name) - self.nearness.names
    }
}

impl MessageVectors {
    /// Creates the vectors of a message and of its members in their order.
    pub(super) const fn new(
        asked: EmbeddingVector,
        members: Vec<Arc<MemberVectors>>,
        background: Arc<ReferenceVectors>,
        ground: FeatureKind,
    ) -> Self {
        Self {
            asked,
            members,
            background,
            ground,
        }
    }

    /// Returns the kind of features that the vectors provide.
    pub(super) const fn ground(&self) -> FeatureKind {
        self.ground
    }

    /// Returns the similarities of each member, in their order.
    pub(super) fn alike(&self) -> Vec<VectorSimilarities> {
        let said = self.background.said(&self.asked);
        let guesses = self.background.guesses(&said);
        self.members
            .iter()
            .map(|member| self.alike_member(member, &said, &guesses))
            .collect()
    }

    /// Returns the similarities to out-of-scope utterances.
    pub(super) fn alike_nobodys(&self) -> OutOfScopeSimilarities {
        let nobodys = self.background.nobodys().iter().enumerate();
        let nobodys =
            nobodys.filter(|(place, _)| !self.members.iter().any(|member| member.nobodys[*place]));
        let near = highest(
            nobodys.map(|(_, sentence)| cosine(&self.asked, sentence)),
            NEAREST,
        );
        OutOfScopeSimilarities {
            nearest: self.read(near.first().copied()),
            near: self.read(mean(&near)),
        }
    }

    fn alike_member(
        &self,
        member: &MemberVectors,
        said: &[f32],
        guesses: &[ConceptGuess<'_>],
    ) -> VectorSimilarities {
        let pieces = highest(
            member
                .pieces
                .iter()
                .map(|piece| piece.to_message(&self.asked)),
            NEAREST,
        );
        let plain = highest(
            member.pieces.iter().map(|piece| piece.to(&self.asked)),
            usize::MAX,
        );
        let sayings = highest(
            member
                .sayings
                .iter()
                .filter_map(|place| said.get(*place).copied()),
            NEAREST,
        );
        let by_matter = |alike: &dyn Fn(&EmbeddingVector) -> Option<f32>| {
            guesses
                .iter()
                .map(|guess| guess.weight * self.read(alike(guess.name)))
                .sum()
        };
        let nearest_piece = |name: &EmbeddingVector| {
            member
                .pieces
                .iter()
                .map(|piece| piece.to_name(name))
                .reduce(f32::max)
        };
        VectorSimilarities {
            piece: self.read(pieces.first().copied()),
            pieces: self.read(mean(&pieces)),
            pieces_plain: self.read(mean(&plain[..plain.len().min(NEAREST)])),
            pooled: pooled(
                &plain
                    .iter()
                    .map(|cosine| self.read(Some(*cosine)))
                    .collect::<Vec<_>>(),
            ),
            matters: self.read(Some(member.matters.to_message(&self.asked))),
            whole: self.read(Some(member.whole.to_message(&self.asked))),
            saying: self.read(sayings.first().copied()),
            sayings: self.read(mean(&sayings)),
            matter_piece: by_matter(&nearest_piece),
            matter_whole: by_matter(&|name| Some(member.whole.to_name(name))),
        }
    }

    /// Returns a cosine on the model's scale; a missing one counts as that of unrelated sentences.
    fn read(&self, cosine: Option<f32>) -> f32 {
        let scale = self.background.scale();
        scale.read(cosine.unwrap_or_else(|| scale.mean()))
    }
}

/// Returns a soft maximum: the highest value and a little more for each value that is nearly as high; 0 for no values.
fn pooled(values: &[f32]) -> f32 {
    let Some(highest) = values.iter().copied().reduce(f32::max) else {
        return 0.0;
    };
    let all: f32 = values
        .iter()
        .map(|value| ((value - highest) / PIECES_WIDTH).exp())
        .sum();
    highest + PIECES_WIDTH * all.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the reference of a model without similar texts, except for one sentence in several languages if it knows them.
    fn background(knows_others: bool) -> ReferenceVectors {
        const DIRECTIONS: usize = 64;
        let direction = |text: usize| {
            (0..DIRECTIONS)
                .map(|place| f32::from(u8::from(place == text % DIRECTIONS)))
                .collect()
        };
        let probes = 8;
        let texts = 0..ReferenceVectors::texts().len();
        ReferenceVectors::of(
            texts
                .map(|text| {
                    direction(if knows_others && text < probes {
                        0
                    } else {
                        text
                    })
                })
                .collect(),
        )
        .unwrap()
    }

    #[test]
    fn pieces_are_questions_only_for_an_english_model() {
        let profile = MemberProfile::of("Billing", "Looks after your money.", "refunds");
        let question = "I have a question about refunds.".to_owned();
        for (knows_others, message, ground, asks) in [
            (
                false,
                "where is the money that you owe me",
                FeatureKind::English,
                true,
            ),
            (
                false,
                "wo ist das Geld, das ihr mir schuldet",
                FeatureKind::ReadInEnglish,
                false,
            ),
            (
                true,
                "where is the money that you owe me",
                FeatureKind::Vectors,
                false,
            ),
        ] {
            let found = super::ground(&background(knows_others), message, &[&profile]);
            assert_eq!(found, ground, "{message}");
            assert_eq!(
                member_texts(&profile, found).pieces.contains(&question),
                asks,
                "{message}"
            );
        }
    }

    #[test]
    fn soft_maximum_counts_near_pieces_only() {
        let (one, two, far) = (pooled(&[3.0]), pooled(&[3.0, 2.9]), pooled(&[3.0, -5.0]));
        assert!(two > one && two < one + 0.5, "{two}");
        assert!((far - one).abs() < 1e-4, "{far}");
        assert!(pooled(&[]).abs() < f32::EPSILON);
    }
}
