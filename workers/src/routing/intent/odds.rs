//! From findings to shares: how likely each member is meant, and nobody. The only place with weights of findings.
//!
//! A member's score is a weighted sum of what speaks for it, nobody's one of what speaks against all, and the shares are
//! their softmax, so that what speaks for all alike decides nothing. The weights were fitted on `tests/routing/tuning`
//! (multinomial logistic regression, a weak penalty on large weights), apart for each ground; those of `English` on the
//! public sets too (`tests/routing/public_sets.py`), where each team counts alike. Those of `Vectors` are older: fitted on
//! English messages, and kept because weights fitted on E5 itself were no better for it on teams left out.

use super::evidence::{Evidence, Findings, Ground};

/// Figures of a member.
const MEMBER_FIGURES: usize = 18;
/// Figures of nobody, the first of which is always 1.
const NOBODY_FIGURES: usize = 5;

/// Everything that is weighed.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    /// Of each member, in their order.
    pub(super) members: Vec<[f32; MEMBER_FIGURES]>,
    /// What speaks for nobody.
    pub(super) nobody: [f32; NOBODY_FIGURES],
}

/// What each figure is worth.
struct Weights {
    member: [f32; MEMBER_FIGURES],
    nobody: [f32; NOBODY_FIGURES],
}

const WORDS: Weights = Weights {
    member: [
        1.04, 0.95, 0.74, 0.95, 0.94, 0.98, 0.85, 2.45, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        0.0, 0.0,
    ],
    nobody: [1.17, 1.45, 1.36, 0.0, 0.0],
};
const VECTORS: Weights = Weights {
    member: [
        0.24, 0.65, 0.38, 0.47, 0.44, 0.19, 0.32, 1.35, 0.30, 0.0, 0.76, 0.0, 0.50, 0.16, 0.16,
        0.94, 0.18, 1.05,
    ],
    nobody: [2.04, 0.93, -0.31, 0.97, 1.48],
};
const ENGLISH: Weights = Weights {
    member: [
        0.11, 0.54, 0.03, 0.42, 0.24, 0.0, 0.25, 1.27, 0.21, 0.0, 0.0, 0.61, 0.35, 0.14, 0.17,
        0.23, 0.22, 0.45,
    ],
    nobody: [1.64, 0.18, -0.63, 0.24, 1.29],
};
const READ_IN_ENGLISH: Weights = Weights {
    member: [
        1.28, 0.13, 0.64, 0.14, 0.57, 0.93, 0.60, 0.75, 0.0, 0.29, 0.35, 0.0, 0.10, 0.28, 0.0,
        0.74, 0.06, 0.27,
    ],
    nobody: [1.02, 0.73, -0.14, 0.68, 0.98],
};

/// How likely each member is meant, in their order, and last how likely nobody is; together 1.
pub(super) fn shares(findings: &Findings) -> Vec<f32> {
    let weights = match findings.ground {
        Ground::Words => &WORDS,
        Ground::Vectors => &VECTORS,
        Ground::English => &ENGLISH,
        Ground::ReadInEnglish => &READ_IN_ENGLISH,
    };
    let figures = Figures::of(findings);
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

impl Figures {
    /// The figures of what was found.
    pub(super) fn of(findings: &Findings) -> Self {
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

const fn of_member(evidence: &Evidence) -> [f32; MEMBER_FIGURES] {
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
    use super::{super::evidence::Nobody, *};

    fn findings(words: &[f32], asides: f32) -> Findings {
        let of = |words: &f32| Evidence {
            words: *words,
            ..Evidence::default()
        };
        let members = words.iter().map(of).collect();
        let nobody = Nobody {
            asides,
            ..Nobody::default()
        };
        Findings {
            members,
            nobody,
            ground: Ground::Words,
            topics: vec![Vec::new(); words.len()],
        }
    }

    #[test]
    fn shares_add_up_to_one_and_follow_the_evidence() {
        let shares = shares(&findings(&[2.0, 0.0, 1.0], 0.0));
        assert!((shares.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        assert!(shares[0] > shares[2] && shares[2] > shares[1], "{shares:?}");
    }

    #[test]
    fn small_talk_raises_the_share_of_nobody_and_without_evidence_no_member_stands_out() {
        let (plain, talk) = (
            shares(&findings(&[1.0, 0.0], 0.0)),
            shares(&findings(&[1.0, 0.0], 2.0)),
        );
        assert!(talk[2] > plain[2]);
        let none = shares(&findings(&[0.0, 0.0], 0.0));
        assert!((none[0] - none[1]).abs() < f32::EPSILON);
    }
}
