//! Computes similarities of a message and each member from embeddings.
//!
//! Cosines of unrelated sentences differ between models: about 0 for one, about 0.8 for another.
//! All vectors are therefore centered on the mean of some unrelated sentences, and cosines are
//! standardized by those of these sentences: 0 is their mean and 1 is one standard deviation more.

use std::time::Duration;

use super::member_profile::MemberProfile;
use crate::embedding::{
    EmbeddingCache, EmbeddingError, EmbeddingSource, EmbeddingVector, ModelLanguages, cosine,
    normalized,
};

/// Sentences that have nothing in common but that visitors write them.
const UNRELATED_SENTENCES: [&str; 24] = [
    "Where is my parcel? It should have arrived on Monday.",
    "I want my money back for the jacket I returned.",
    "I cannot log in any more, the password is not accepted.",
    "How do I cancel my subscription?",
    "There is a charge on my statement that I do not know.",
    "The app crashes as soon as I open it.",
    "Do you have this in a larger size?",
    "What are your opening hours on Sunday?",
    "I would like to book a table for two.",
    "Can I move my appointment to next week?",
    "The heating has not worked since yesterday.",
    "How much does shipping abroad cost?",
    "Please send me a copy of last month's invoice.",
    "Is breakfast included in the room price?",
    "My luggage did not arrive with the flight.",
    "I need a doctor's note for my employer.",
    "The screen of my phone is cracked.",
    "Which plan do you recommend for a small team?",
    "Our internet connection is very slow in the evening.",
    "I was in a car accident and need to report the damage.",
    "How do I apply for a loan?",
    "My child is ill and will not come to school today.",
    "I want to change my delivery address.",
    "Do you offer a discount for students?",
];
/// Smallest standard deviation, which keeps the scale finite for a model with equal cosines.
const DEVIATION_MIN: f32 = 1e-3;
/// Distance to the nearest phrase, in standard deviations, at which another one counts 1/e of it.
const PHRASES_WIDTH: f32 = 0.5;

/// The similarities of a message and a team.
#[derive(Clone, Debug)]
pub(super) struct TeamSimilarities {
    /// Similarities of each member, in their order.
    pub(super) members: Vec<MemberSimilarities>,
    /// The languages that the model knows.
    pub(super) languages: ModelLanguages,
}

/// Standardized similarities of a message and a member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemberSimilarities {
    /// Soft maximum over the phrases.
    pub(super) phrases: f32,
    /// Similarity of the specialization.
    pub(super) specialization: f32,
}

/// The scale of a model's cosines.
struct CosineScale {
    center: Vec<f32>,
    mean: f32,
    deviation: f32,
}

/// Returns true if the model of a source knows the language of the message and that of most
/// members.
pub(super) fn knows_languages(
    source: &dyn EmbeddingSource,
    message: &str,
    profiles: &[&MemberProfile],
) -> bool {
    let known = profiles
        .iter()
        .filter(|profile| source.knows_language(&profile.whole));
    source.knows_language(message) && known.count() * 2 >= profiles.len()
}

/// Returns the similarities of a message and its team. Fails if the source fails or does not
/// respond in time; all vectors but that of the message are usually cached.
pub(super) async fn compare(
    source: &std::sync::Arc<dyn EmbeddingSource>,
    cache: &EmbeddingCache,
    message: &str,
    profiles: &[&MemberProfile],
    wait: Duration,
) -> Result<TeamSimilarities, EmbeddingError> {
    let texts: Vec<String> = UNRELATED_SENTENCES
        .into_iter()
        .chain([message])
        .chain(profiles.iter().flat_map(|profile| profile.embedded_texts()))
        .map(Into::into)
        .collect();
    // One call, so that a message waits only once for a new team.
    let vectors = cache.embed_all(source, &texts, wait).await?;
    let counts = profiles
        .iter()
        .map(|profile| profile.embedded_texts().count());
    similarities(&vectors, counts, source.languages()).ok_or(EmbeddingError::Malformed)
}

/// Returns the similarities from the vectors of the unrelated sentences, the message, and the texts
/// of each member.
fn similarities(
    vectors: &[EmbeddingVector],
    counts: impl Iterator<Item = usize>,
    languages: ModelLanguages,
) -> Option<TeamSimilarities> {
    let (sentences, rest) = vectors.split_at_checked(UNRELATED_SENTENCES.len())?;
    let scale = CosineScale::of(sentences);
    let (message, mut rest) = rest.split_first()?;
    let message = scale.centered(message);
    let mut members = Vec::new();
    for count in counts {
        let (own, others) = rest.split_at_checked(count)?;
        rest = others;
        let own: Vec<EmbeddingVector> = own.iter().map(|vector| scale.centered(vector)).collect();
        let [phrases @ .., specialization] = own.as_slice() else {
            return None;
        };
        let phrases: Vec<f32> = phrases
            .iter()
            .map(|phrase| scale.standardized(phrase, &message))
            .collect();
        members.push(MemberSimilarities {
            phrases: soft_maximum(&phrases),
            specialization: scale.standardized(specialization, &message),
        });
    }
    Some(TeamSimilarities { members, languages })
}

impl CosineScale {
    fn of(sentences: &[EmbeddingVector]) -> Self {
        let dimensions = sentences.first().map_or(0, |vector| vector.len());
        let center = (0..dimensions).map(|place| {
            let values: Vec<f32> = sentences
                .iter()
                .filter_map(|vector| vector.get(place).copied())
                .collect();
            mean(&values).unwrap_or_default()
        });
        let uncentered = Self {
            center: center.collect(),
            mean: 0.0,
            deviation: 1.0,
        };
        let sentences: Vec<EmbeddingVector> = sentences
            .iter()
            .map(|vector| uncentered.centered(vector))
            .collect();
        let pairs = sentences.iter().enumerate().flat_map(|(place, left)| {
            let others = sentences[place + 1..].iter();
            others.map(move |right| cosine(left, right))
        });
        let cosines: Vec<f32> = pairs.collect();
        let mean = mean(&cosines).unwrap_or_default();
        let squares: Vec<f32> = cosines
            .iter()
            .map(|cosine| (cosine - mean).powi(2))
            .collect();
        let variance = self::mean(&squares).unwrap_or_default();
        Self {
            mean,
            deviation: variance.sqrt().max(DEVIATION_MIN),
            ..uncentered
        }
    }

    /// Returns the vector relative to the center, scaled to length 1; the center itself stays as it
    /// is.
    fn centered(&self, vector: &EmbeddingVector) -> EmbeddingVector {
        let pairs = vector.iter().zip(&self.center);
        normalized(pairs.map(|(value, center)| value - center).collect())
            .unwrap_or_else(|| vector.clone())
    }

    fn standardized(&self, left: &EmbeddingVector, right: &EmbeddingVector) -> f32 {
        (cosine(left, right) - self.mean) / self.deviation
    }
}

/// Returns the highest value and a little more for each value that is nearly as high; 0 for no
/// values.
fn soft_maximum(values: &[f32]) -> f32 {
    let Some(highest) = values.iter().copied().reduce(f32::max) else {
        return 0.0;
    };
    let all: f32 = values
        .iter()
        .map(|value| ((value - highest) / PHRASES_WIDTH).exp())
        .sum();
    highest + PHRASES_WIDTH * all.ln()
}

/// Returns the mean of some values; none for no values.
#[expect(clippy::cast_precision_loss, reason = "at most a few hundred values")]
pub(super) fn mean(values: &[f32]) -> Option<f32> {
    (!values.is_empty()).then(|| values.iter().sum::<f32>() / values.len() as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTIONS: usize = 64;

    fn direction(place: usize) -> EmbeddingVector {
        (0..DIRECTIONS)
            .map(|other| f32::from(u8::from(other == place)))
            .collect()
    }

    #[test]
    fn soft_maximum_counts_near_values_only() {
        let (one, two, far) = (
            soft_maximum(&[3.0]),
            soft_maximum(&[3.0, 2.9]),
            soft_maximum(&[3.0, -5.0]),
        );
        assert!(two > one && two < one + 0.5, "{two}");
        assert!((far - one).abs() < 1e-4, "{far}");
        assert!(soft_maximum(&[]).abs() < f32::EPSILON);
    }

    #[test]
    fn nearest_phrase_determines_the_similarity() {
        let sentences = (0..UNRELATED_SENTENCES.len()).map(direction);
        // The message, and two members of one phrase and a specialization each.
        let places = [40, 40, 41, 50, 51];
        let vectors: Vec<_> = sentences.chain(places.map(direction)).collect();
        let found = similarities(&vectors, [2, 2].into_iter(), ModelLanguages::Many).unwrap();
        let [near, far] = [found.members[0], found.members[1]];
        assert!(near.phrases > far.phrases + 1.0, "{near:?} {far:?}");
        assert!(similarities(&vectors[..28], [2, 2].into_iter(), ModelLanguages::Many).is_none());
    }
}
