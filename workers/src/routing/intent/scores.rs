//! Turns the evidence about a message into a score of each member and of out of scope.
//!
//! A logit is a weighted sum, and the scores are the softmax of all logits. A message is out of scope if no member stands out
//! of the team: the mean of the members' similarities counts for out of scope.

use super::{lexical::LexicalMatch, similarity::TeamSimilarities};
use crate::embedding::ModelLanguages;

/// The evidence about a message.
#[derive(Clone, Debug)]
pub(super) struct MessageEvidence {
    /// Words in common with each member, in their order.
    pub(super) words: Vec<LexicalMatch>,
    /// Similarities of embeddings; none without them, or if the model does not know the language.
    pub(super) similarities: Option<TeamSimilarities>,
    /// False if there is an embedding model that does not know the language of the message or the team.
    pub(super) is_known_language: bool,
}

/// The weights of a logit. `phrases` to `name` belong to members, the others to out of scope.
struct ScoreWeights {
    phrases: f32,
    specialization: f32,
    words: f32,
    name: f32,
    constant: f32,
    /// Weight of the members' mean logit of similarities.
    mean: f32,
    between_members: f32,
}

/// Weights without embeddings, fitted on `tests/routing/tuning` and on the public sets of `tests/routing/public_sets.py`.
const WORDS: ScoreWeights = ScoreWeights {
    phrases: 0.0,
    specialization: 0.0,
    words: 3.04,
    name: 0.78,
    constant: 1.08,
    mean: 0.0,
    between_members: 0.0,
};
/// Weights for an English model, fitted with all-MiniLM-L6-v2 on the English part of the same sets.
const ENGLISH: ScoreWeights = ScoreWeights {
    phrases: 1.55,
    specialization: 0.54,
    words: 0.70,
    name: 0.0,
    constant: 1.51,
    mean: 0.48,
    between_members: 0.62,
};
/// Weights for a multilingual model, fitted with multilingual-e5-small on the same sets.
const MULTILINGUAL: ScoreWeights = ScoreWeights {
    phrases: 2.28,
    specialization: 1.66,
    words: 0.78,
    name: 0.0,
    constant: 3.10,
    mean: 0.84,
    between_members: 0.0,
};

/// Returns the score of each member in their order, and last the score of out of scope; their sum is 1.
pub(super) fn scores(evidence: &MessageEvidence) -> Vec<f32> {
    let weights = match &evidence.similarities {
        None => &WORDS,
        Some(found) if found.languages == ModelLanguages::English => &ENGLISH,
        Some(_) => &MULTILINGUAL,
    };
    let similar = |member: usize| {
        let found = evidence.similarities.as_ref();
        let found = found.and_then(|found| found.members.get(member).copied());
        let found = found.unwrap_or_default();
        weights.phrases * found.phrases + weights.specialization * found.specialization
    };
    let similar: Vec<f32> = (0..evidence.words.len()).map(similar).collect();
    let logit = |(words, similar): (&LexicalMatch, &f32)| {
        similar + weights.words * words.score + weights.name * words.name
    };
    let mut logits: Vec<f32> = evidence.words.iter().zip(&similar).map(logit).collect();
    let between = evidence.similarities.as_ref();
    let between = between.map_or(0.0, |found| found.between_members);
    logits
        .push(weights.constant + weights.mean * mean(&similar) + weights.between_members * between);
    softmax(&logits)
}

fn softmax(logits: &[f32]) -> Vec<f32> {
    let highest = logits.iter().copied().fold(f32::MIN, f32::max);
    let powers: Vec<f32> = logits.iter().map(|logit| (logit - highest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

#[expect(clippy::cast_precision_loss, reason = "teams have few members")]
fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len().max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::{super::similarity::MemberSimilarities, *};

    fn by_words(scores: &[f32]) -> MessageEvidence {
        let words = |score: &f32| LexicalMatch {
            score: *score,
            ..LexicalMatch::default()
        };
        MessageEvidence {
            words: scores.iter().map(words).collect(),
            similarities: None,
            is_known_language: true,
        }
    }

    fn by_phrases(phrases: &[f32], languages: ModelLanguages) -> Vec<f32> {
        let member = |phrases: &f32| MemberSimilarities {
            phrases: *phrases,
            specialization: *phrases,
        };
        let similarities = TeamSimilarities {
            members: phrases.iter().map(member).collect(),
            between_members: 5.0,
            languages,
        };
        scores(&MessageEvidence {
            similarities: Some(similarities),
            ..by_words(&vec![0.0; phrases.len()])
        })
    }

    #[test]
    fn scores_sum_to_one_and_follow_the_words() {
        let scores = scores(&by_words(&[2.0, 0.0, 1.0]));
        assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        assert!(scores[0] > scores[2] && scores[2] > scores[1], "{scores:?}");
    }

    #[test]
    fn message_without_a_common_word_is_out_of_scope() {
        let scores = scores(&by_words(&[0.0, 0.0]));
        assert!(
            scores[2] > scores[0] && scores[0] == scores[1],
            "{scores:?}"
        );
    }

    #[test]
    fn member_must_stand_out_of_its_team() {
        for languages in [ModelLanguages::English, ModelLanguages::Many] {
            let clear = by_phrases(&[6.0, 0.0, 0.0], languages);
            assert!(clear[0] > 0.6, "{clear:?}");
            let unclear = by_phrases(&[1.0, 0.9, 0.9], languages);
            assert!(unclear[3] > 0.6, "{unclear:?}");
        }
    }
}
