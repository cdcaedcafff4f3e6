//! Turns the features of a message into a score of each member and of out of scope.
//!
//! A logit is a weighted sum, and the scores are the softmax of all logits. A message is out of
//! scope if no member stands out of the team.

use super::{
    lexical::LexicalMatch,
    similarity::{TeamSimilarities, mean},
};
use crate::embedding::ModelLanguages;

/// The features of a message.
#[derive(Clone, Debug)]
pub(super) struct MessageFeatures {
    /// Words in common with each member, in their order.
    pub(super) words: Vec<LexicalMatch>,
    /// Number of content words of the message.
    pub(super) message_words: usize,
    /// Similarities of embeddings; none without them, or if the model does not know the language.
    pub(super) similarities: Option<TeamSimilarities>,
    /// False if there is an embedding model that does not know the language of the message or the
    /// team.
    pub(super) is_known_language: bool,
}

/// The weights of one kind of model: `phrases`, `specialization` and `words` make the logit of a
/// member, the others that of out of scope.
struct ScoreWeights {
    phrases: f32,
    specialization: f32,
    words: f32,
    /// Weight of the logarithm of the number of members: among more of them, one is more often
    /// similar by chance.
    team_size: f32,
    /// Weight of the members' mean similarity, from which the right member has to stand out.
    mean: f32,
    /// Weight of each content word: a longer message resembles a short phrase less.
    message_word: f32,
}

/// Weights without embeddings, fitted on `tests/routing/tuning` and on the public sets of
/// `tests/routing/public_sets.py`.
const WORDS: ScoreWeights = ScoreWeights {
    phrases: 0.0,
    specialization: 0.0,
    words: 3.15,
    team_size: 0.33,
    mean: 0.0,
    message_word: 0.0,
};
/// Weights for an English model, fitted with all-MiniLM-L6-v2 on the English part of the same sets.
const ENGLISH: ScoreWeights = ScoreWeights {
    phrases: 1.60,
    specialization: 0.52,
    words: 0.69,
    team_size: 2.25,
    mean: 0.44,
    message_word: 0.0,
};
/// Weights for a multilingual model, fitted with multilingual-e5-small on the same sets.
const MULTILINGUAL: ScoreWeights = ScoreWeights {
    phrases: 2.42,
    specialization: 1.68,
    words: 0.74,
    team_size: 2.22,
    mean: 0.85,
    message_word: -0.35,
};
/// Number of members as which a lone one counts, so that a message can be out of its scope.
const MEMBERS_MIN: usize = 2;
/// Most content words of a message that count.
const MESSAGE_WORDS_MAX: usize = 8;

/// Returns the score of each member in their order, and last the score of out of scope; their sum
/// is 1.
#[expect(clippy::cast_precision_loss, reason = "teams and messages are small")]
pub(super) fn scores(features: &MessageFeatures) -> Vec<f32> {
    let (weights, similarities) = match &features.similarities {
        None => (&WORDS, vec![0.0; features.words.len()]),
        Some(found) => {
            let weights = match found.languages {
                ModelLanguages::English => &ENGLISH,
                ModelLanguages::Many => &MULTILINGUAL,
            };
            let weighted = found.members.iter().map(|member| {
                weights.phrases * member.phrases + weights.specialization * member.specialization
            });
            (weights, weighted.collect())
        }
    };
    let members = features.words.len().max(MEMBERS_MIN) as f32;
    let message_words = features.message_words.min(MESSAGE_WORDS_MAX) as f32;
    let out_of_scope = weights.team_size * members.ln()
        + weights.mean * mean(&similarities).unwrap_or_default()
        + weights.message_word * message_words;
    let mut logits: Vec<f32> = (similarities.iter().zip(&features.words))
        .map(|(similarity, words)| similarity + weights.words * words.score)
        .collect();
    logits.push(out_of_scope);
    softmax(&logits)
}

fn softmax(logits: &[f32]) -> Vec<f32> {
    let highest = logits.iter().copied().fold(f32::MIN, f32::max);
    let powers: Vec<f32> = logits.iter().map(|logit| (logit - highest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::similarity::MemberSimilarities, *};

    fn by_words(scores: &[f32]) -> MessageFeatures {
        let words = |score: &f32| LexicalMatch {
            score: *score,
            ..LexicalMatch::default()
        };
        MessageFeatures {
            words: scores.iter().map(words).collect(),
            message_words: 4,
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
            languages,
        };
        scores(&MessageFeatures {
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
            let (out_of_scope, members) = unclear.split_last().unwrap();
            let is_highest = members.iter().all(|member| out_of_scope > member);
            assert!(is_highest, "{unclear:?}");
        }
    }
}
