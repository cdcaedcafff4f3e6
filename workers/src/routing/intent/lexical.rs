//! Scores members by words that they have in common with a message: equal stems, forms of one word,
//! and misspellings.
//!
//! A word counts more if fewer members have it, and a complete phrase of a specialization counts
//! more than its words. Pure functions.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::{
    distance::edit_distance,
    stemming::stems,
    stop_words::is_message_stop_word,
    tokens::{TextPart, character_pairs, split_parts},
};

/// Shortest content word in characters; words of scripts without spaces may be shorter.
const WORD_CHARS_MIN: usize = 3;
/// Similarity of a word and a longer one that contains it, and least similarity of two forms of a
/// word.
const FORM_SIMILARITY: f32 = 0.6;
/// Similarity of a word and its misspelling.
const MISSPELLING_SIMILARITY: f32 = 0.7;
/// Shortest common part of two similar words, in characters.
const COMMON_CHARS_MIN: usize = 5;
/// Length from which a word may have two wrong letters.
const LONG_WORD_CHARS: usize = 8;
/// Score of a complete phrase of several words, added to the scores of its words.
const PHRASE_SCORE: f32 = 0.5;
/// Largest score.
const SCORE_MAX: f32 = 3.0;
/// Most words in a reason.
const REASON_WORDS_MAX: usize = 3;

/// A content word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContentWord {
    /// The word as written.
    text: String,
    folded: Vec<char>,
    stems: BTreeSet<String>,
}

/// The words of one member.
pub(super) struct MemberWords {
    words: Vec<ContentWord>,
    phrases: Vec<Vec<ContentWord>>,
}

/// The words that a message and one member have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LexicalMatch {
    /// Score, at most 3; 0 for nothing in common and about 1 for each word that no other member
    /// has.
    pub(super) score: f32,
    /// The member's words that match, the most distinctive first.
    pub(super) topics: Vec<String>,
}

/// Returns the content words of a text in their order; each stem once.
pub(super) fn content_words(text: &str) -> Vec<ContentWord> {
    let mut seen = BTreeSet::new();
    let mut words = Vec::new();
    for part in split_parts(text) {
        let pieces = match part {
            TextPart::Unspaced(run) => {
                let pairs = character_pairs(&run).into_iter();
                pairs.map(|pair| (pair, run.clone())).collect()
            }
            TextPart::Word { text, written, .. } if is_content_word(&text) => vec![(text, written)],
            TextPart::Word { .. } => continue,
        };
        for (folded, text) in pieces {
            let stems = stems(&folded);
            if stems.is_disjoint(&seen) {
                seen.extend(stems.iter().cloned());
                words.push(ContentWord {
                    text,
                    folded: folded.chars().collect(),
                    stems,
                });
            }
        }
    }
    words
}

fn is_content_word(word: &str) -> bool {
    word.chars().count() >= WORD_CHARS_MIN
        && !word.chars().all(char::is_numeric)
        && !is_message_stop_word(word)
}

/// Returns what a message has in common with each member, in their order.
pub(super) fn match_members(message: &str, members: &[&MemberWords]) -> Vec<LexicalMatch> {
    let asked = content_words(message);
    let mut having: BTreeMap<&str, usize> = BTreeMap::new();
    for word in members.iter().flat_map(|member| &member.words) {
        for stem in &word.stems {
            *having.entry(stem).or_default() += 1;
        }
    }
    let distinctiveness = |word: &ContentWord| {
        let counts = word
            .stems
            .iter()
            .filter_map(|stem| having.get(stem.as_str()));
        distinctiveness(counts.copied().max().unwrap_or(1), members.len())
    };
    members
        .iter()
        .map(|member| member.matches(&asked, &distinctiveness))
        .collect()
}

impl MemberWords {
    /// Creates the words of a member from all its texts and the phrases of its specialization.
    pub(super) fn of(texts: &str, phrases: &[String]) -> Self {
        Self {
            words: content_words(texts),
            phrases: phrases.iter().map(|phrase| content_words(phrase)).collect(),
        }
    }

    fn matches(
        &self,
        asked: &[ContentWord],
        distinctiveness: &impl Fn(&ContentWord) -> f32,
    ) -> LexicalMatch {
        let mut shared: Vec<(f32, &ContentWord)> = Vec::new();
        for word in asked {
            if let Some((similarity, own)) = self.nearest(word) {
                shared.push((similarity * distinctiveness(own), own));
            }
        }
        shared.sort_by(|left, right| right.0.total_cmp(&left.0));
        let is_shared = |own: &ContentWord| asked.iter().any(|word| similarity(word, own) > 0.0);
        let is_complete =
            |phrase: &&Vec<ContentWord>| phrase.len() > 1 && phrase.iter().all(is_shared);
        let phrases = self.phrases.iter().filter(is_complete);
        let score = shared.iter().map(|(weight, _)| weight).sum::<f32>()
            + phrases.map(|_| PHRASE_SCORE).sum::<f32>();
        let mut topics: Vec<String> = shared
            .iter()
            .map(|(_, own)| own.text.to_lowercase())
            .collect();
        topics.dedup();
        topics.truncate(REASON_WORDS_MAX);
        LexicalMatch {
            score: score.min(SCORE_MAX),
            topics,
        }
    }

    /// Returns the member's word that is most similar to `word`, the first one of several.
    fn nearest(&self, word: &ContentWord) -> Option<(f32, &ContentWord)> {
        self.words
            .iter()
            .map(|own| (similarity(word, own), own))
            .filter(|(similarity, _)| *similarity > 0.0)
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
    }
}

/// Returns the weight of a word that `having` of all members have: 1 for one member, less for more
/// (inverse document frequency).
#[expect(clippy::cast_precision_loss, reason = "teams have few members")]
fn distinctiveness(having: usize, members: usize) -> f32 {
    let base = members as f32 + 1.0;
    (base / having.max(1) as f32).ln() / base.ln()
}

/// Returns the similarity of two words, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "words have few letters")]
fn similarity(left: &ContentWord, right: &ContentWord) -> f32 {
    if !left.stems.is_disjoint(&right.stems) {
        return 1.0;
    }
    let (left, right) = (&left.folded, &right.folded);
    let longest = left.len().max(right.len());
    let pairs = left.iter().zip(right);
    let common = pairs.take_while(|(left, right)| left == right).count();
    if common >= COMMON_CHARS_MIN && common * 3 >= longest * 2 {
        return FORM_SIMILARITY.max(common as f32 / longest as f32);
    }
    let (short, long) = if left.len() < right.len() {
        (left, right)
    } else {
        (right, left)
    };
    if short.len() >= COMMON_CHARS_MIN && long.windows(short.len()).any(|part| part == short) {
        return FORM_SIMILARITY;
    }
    // The first letter is rarely wrong.
    let wrong_max = if longest >= LONG_WORD_CHARS { 2 } else { 1 };
    let may_be_misspelled = longest >= COMMON_CHARS_MIN && common > 0;
    if may_be_misspelled && edit_distance(left, right, wrong_max).is_some() {
        return MISSPELLING_SIMILARITY;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BILLING: &str = "Invoices, refunds, payments, billing questions";
    const TECHNICAL: &str = "Technical problems, crashes, installation, error messages";

    fn member(name: &str, list: &str) -> MemberWords {
        let phrases: Vec<String> = list.split(", ").map(Into::into).collect();
        MemberWords::of(&[list, name].join("\n"), &phrases)
    }

    fn matches(message: &str) -> [LexicalMatch; 2] {
        let members = [
            member("Billing Support", BILLING),
            member("Technik Support", TECHNICAL),
        ];
        let found = match_members(message, &[&members[0], &members[1]]);
        found.try_into().unwrap()
    }

    fn words_similarity(left: &str, right: &str) -> f32 {
        similarity(&content_words(left)[0], &content_words(right)[0])
    }

    #[test]
    fn message_matches_the_member_with_its_words() {
        let [billing, technical] = matches("I want a refund for my last invoice");
        assert!(
            billing.score >= 2.0 && technical.score == 0.0,
            "{billing:?} {technical:?}"
        );
        assert_eq!(billing.topics, ["refunds", "invoices"]);
        let [billing, technical] = matches("The instalation crashed with an error message");
        assert!(
            technical.score >= 2.0 && billing.score == 0.0,
            "{billing:?} {technical:?}"
        );
    }

    #[test]
    fn words_of_all_members_count_less() {
        let [billing, technical] = matches("support");
        assert!(
            billing.score == technical.score && billing.score < 0.5,
            "{billing:?}"
        );
    }

    #[test]
    fn complete_phrases_count_more_than_their_words() {
        let [_, whole] = matches("error messages");
        let [_, apart] = matches("error crashes");
        assert!(whole.score > apart.score, "{whole:?} {apart:?}");
    }

    #[test]
    fn forms_and_misspellings_of_a_word_are_similar() {
        for (left, right) in [
            ("invoices", "invoice"),
            ("crashes", "crashed"),
            ("installation", "instalation"),
            ("Rechnung", "rechnungen"),
            ("Rechnung", "Rechnungsadresse"),
            ("remboursement", "rembourser"),
        ] {
            assert!(
                words_similarity(left, right) >= FORM_SIMILARITY,
                "{left} {right}"
            );
        }
        for (left, right) in [
            ("refund", "install"),
            ("cash", "crash"),
            ("order", "border"),
        ] {
            assert!(words_similarity(left, right) < 1.0, "{left} {right}");
        }
        assert!(words_similarity("refund", "install") == 0.0);
    }

    #[test]
    fn stop_words_and_numbers_are_no_content_words() {
        assert!(content_words("thanks, and how long does it take? 42").is_empty());
        assert_eq!(content_words("my invoice, the Invoices").len(), 1);
        assert_eq!(
            content_words("返金").len(),
            1,
            "scripts without spaces have words too"
        );
    }

    proptest! {
        #[test]
        fn similarity_is_symmetric(left in "[a-zäöüß]{3,12}", right in "[a-zäöüß]{3,12}") {
            let (left, right) = (content_words(&left), content_words(&right));
            if let ([left], [right]) = (left.as_slice(), right.as_slice()) {
                prop_assert_eq!(similarity(left, right), similarity(right, left));
                prop_assert_eq!(similarity(left, left), 1.0);
            }
        }
    }
}
