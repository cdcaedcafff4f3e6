//! From findings to shares: how likely each member is meant, and nobody. The only place with weights of findings.
//!
//! A member's score is a weighted sum of what speaks for it, nobody's one of what speaks against all, and the shares are
//! their softmax, so that what speaks for all alike decides nothing. The weights were fitted on `tests/routing/tuning`
//! (multinomial logistic regression, a weak penalty on large weights), apart for each ground.

use super::evidence::{Evidence, Findings, Ground};

/// What each kind of evidence is worth.
struct Weights {
    words: f32,
    concepts: f32,
    piece: f32,
    whole: f32,
    english_piece: f32,
    english_whole: f32,
    /// Of nobody, before anything is known.
    nobody: f32,
    /// Of nobody, for each mention of what is nobody's matter.
    asides: f32,
    /// Of nobody, for nearness to texts that are nobody's matter.
    nobodys: f32,
}

const WORDS: Weights = Weights {
    words: 0.6,
    concepts: 1.12,
    piece: 0.0,
    whole: 0.0,
    english_piece: 0.0,
    english_whole: 0.0,
    nobody: 0.02,
    asides: 1.55,
    nobodys: 0.0,
};
const VECTORS: Weights = Weights {
    words: 0.23,
    concepts: -0.18,
    piece: 9.76,
    whole: 7.95,
    english_piece: 2.73,
    english_whole: 2.19,
    nobody: 1.31,
    asides: 0.61,
    nobodys: 10.75,
};
const ENGLISH_ONLY: Weights = Weights {
    words: 0.1,
    concepts: 0.86,
    piece: 0.0,
    whole: 2.11,
    english_piece: 0.73,
    english_whole: 4.36,
    nobody: 0.51,
    asides: 1.16,
    nobodys: 5.36,
};

/// How likely each member is meant, in their order, and last how likely nobody is; together 1.
pub(super) fn shares(findings: &Findings) -> Vec<f32> {
    let weights = match findings.ground {
        Ground::Words => &WORDS,
        Ground::Vectors => &VECTORS,
        Ground::EnglishOnly => &ENGLISH_ONLY,
    };
    let nobody = weights.nobody + weights.asides * findings.asides + weights.nobodys * findings.nobodys;
    let mut scores: Vec<f32> = findings.members.iter().map(|evidence| weights.score(evidence)).collect();
    scores.push(nobody);
    let highest = scores.iter().copied().fold(f32::MIN, f32::max);
    let powers: Vec<f32> = scores.into_iter().map(|score| (score - highest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

impl Weights {
    fn score(&self, evidence: &Evidence) -> f32 {
        let pairs = [
            (self.words, evidence.words),
            (self.concepts, evidence.concepts),
            (self.piece, evidence.piece),
            (self.whole, evidence.whole),
            (self.english_piece, evidence.english_piece),
            (self.english_whole, evidence.english_whole),
        ];
        pairs.iter().map(|(weight, value)| weight * value).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(words: &[f32], asides: f32) -> Findings {
        let of = |words: &f32| Evidence { words: *words, ..Evidence::default() };
        let members = words.iter().map(of).collect();
        Findings { members, asides, nobodys: 0.0, ground: Ground::Words, topics: vec![Vec::new(); words.len()] }
    }

    #[test]
    fn shares_add_up_to_one_and_follow_the_evidence() {
        let shares = shares(&findings(&[2.0, 0.0, 1.0], 0.0));
        assert!((shares.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        assert!(shares[0] > shares[2] && shares[2] > shares[1], "{shares:?}");
    }

    #[test]
    fn small_talk_raises_the_share_of_nobody_and_without_evidence_no_member_stands_out() {
        let (plain, talk) = (shares(&findings(&[1.0, 0.0], 0.0)), shares(&findings(&[1.0, 0.0], 2.0)));
        assert!(talk[2] > plain[2]);
        let none = shares(&findings(&[0.0, 0.0], 0.0));
        assert!((none[0] - none[1]).abs() < f32::EPSILON);
    }
}
