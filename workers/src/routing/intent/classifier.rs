//! The classifier of the local stage: turns features into a score of each member and of out of scope.
//!
//! A logit is a weighted sum of features, and the scores are the softmax of all logits, so that a feature that is equal for
//! all members decides nothing. The weights were fitted on `tests/routing/tuning` (multinomial logistic regression with a
//! weak penalty on large weights), separately for each kind of features; those of `English` also on the public sets
//! (`tests/routing/public_sets.py`), where each team has the same weight. Those of `Vectors` were fitted on English messages,
//! because weights fitted on E5 were no better on teams that were left out.

use super::features::{FeatureKind, MemberFeatures, MessageFeatures};

/// Number of features of a member.
const MEMBER_FEATURES: usize = 18;
/// Number of features of out of scope, the first of which is always 1.
const OUT_OF_SCOPE_FEATURES: usize = 5;

/// The feature vectors of a message.
#[derive(Clone, Debug)]
pub(super) struct FeatureVectors {
    /// Features of each member, in their order.
    pub(super) members: Vec<[f32; MEMBER_FEATURES]>,
    /// Features of out of scope.
    pub(super) nobody: [f32; OUT_OF_SCOPE_FEATURES],
}

/// The weight of each feature.
struct FeatureWeights {
    member: [f32; MEMBER_FEATURES],
    nobody: [f32; OUT_OF_SCOPE_FEATURES],
}

const WORDS: FeatureWeights = FeatureWeights {
    member: [
        1.04, 0.95, 0.74, 0.95, 0.94, 0.98, 0.85, 2.45, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        0.0, 0.0,
    ],
    nobody: [1.17, 1.45, 1.36, 0.0, 0.0],
};
const VECTORS: FeatureWeights = FeatureWeights {
    member: [
        0.24, 0.65, 0.38, 0.47, 0.44, 0.19, 0.32, 1.35, 0.30, 0.0, 0.76, 0.0, 0.50, 0.16, 0.16,
        0.94, 0.18, 1.05,
    ],
    nobody: [2.04, 0.93, -0.31, 0.97, 1.48],
};
const ENGLISH: FeatureWeights = FeatureWeights {
    member: [
        0.11, 0.54, 0.03, 0.42, 0.24, 0.0, 0.25, 1.27, 0.21, 0.0, 0.0, 0.61, 0.35, 0.14, 0.17,
        0.23, 0.22, 0.45,
    ],
    nobody: [1.64, 0.18, -0.63, 0.24, 1.29],
};
const READ_IN_ENGLISH: FeatureWeights = FeatureWeights {
    member: [
        1.28, 0.13, 0.64, 0.14, 0.57, 0.93, 0.60, 0.75, 0.0, 0.29, 0.35, 0.0, 0.10, 0.28, 0.0,
        0.74, 0.06, 0.27,
    ],
    nobody: [1.02, 0.73, -0.14, 0.68, 0.98],
};

/// Returns the score of each member in their order, and last the score of out of scope; their sum is 1.
pub(super) fn shares(findings: &MessageFeatures) -> Vec<f32> {
    let weights = match findings.ground {
        FeatureKind::Words => &WORDS,
        FeatureKind::Vectors => &VECTORS,
        FeatureKind::English => &ENGLISH,
        FeatureKind::ReadInEnglish => &READ_IN_ENGLISH,
    };
    let figures = FeatureVectors::of(findings);
    let mut scores: Vec<f32> = figures
        .members
        .iter()
        .map(|member| sum(&weights.member, member))
        .collect();
    scores.push(sum(&weights.nobody, &figures.nobody));
    let highest = scores.iter().copied().fold(f32::MIN, f32::max);
    let powers: Vec<f32> = scores
        .into_iter()
        .map(|score| (score - highest).exp())
        .collect();
    let sum: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

impl FeatureVectors {
    /// Arranges the features for the classifier.
    pub(super) fn of(findings: &MessageFeatures) -> Self {
        let nobody = findings.nobody;
        Self {
            members: findings.members.iter().map(of_member).collect(),
            nobody: [
                1.0,
                nobody.asides,
                nobody.saying,
                nobody.alike.nearest,
                nobody.alike.near,
            ],
        }
    }
}

const fn of_member(evidence: &MemberFeatures) -> [f32; MEMBER_FEATURES] {
    let alike = evidence.alike;
    [
        evidence.words,
        evidence.english,
        evidence.concepts,
        evidence.names,
        evidence.said,
        evidence.saying,
        evidence.matter,
        evidence.matter_words,
        alike.piece,
        alike.pieces,
        alike.pieces_plain,
        alike.pooled,
        alike.matters,
        alike.whole,
        alike.saying,
        alike.sayings,
        alike.matter_piece,
        alike.matter_whole,
    ]
}

fn sum(weights: &[f32], figures: &[f32]) -> f32 {
    weights
        .iter()
        .zip(figures)
        .map(|(weight, figure)| weight * figure)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{super::features::OutOfScopeFeatures, *};

    fn findings(words: &[f32], asides: f32) -> MessageFeatures {
        let of = |words: &f32| MemberFeatures {
            words: *words,
            ..MemberFeatures::default()
        };
        let members = words.iter().map(of).collect();
        let nobody = OutOfScopeFeatures {
            asides,
            ..OutOfScopeFeatures::default()
        };
        MessageFeatures {
            members,
            nobody,
            ground: FeatureKind::Words,
            topics: vec![Vec::new(); words.len()],
        }
    }

    #[test]
    fn scores_sum_to_one_and_follow_the_features() {
        let shares = shares(&findings(&[2.0, 0.0, 1.0], 0.0));
        assert!((shares.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        assert!(shares[0] > shares[2] && shares[2] > shares[1], "{shares:?}");
    }

    #[test]
    fn small_talk_raises_the_out_of_scope_score() {
        let (plain, talk) = (
            shares(&findings(&[1.0, 0.0], 0.0)),
            shares(&findings(&[1.0, 0.0], 2.0)),
        );
        assert!(talk[2] > plain[2]);
        let none = shares(&findings(&[0.0, 0.0], 0.0));
        assert!((none[0] - none[1]).abs() < f32::EPSILON);
    }
}
