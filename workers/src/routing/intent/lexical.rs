//! Scores members by words that they have in common with a message.
//!
//! A word counts more if fewer members have it, and a complete phrase of a specialization counts more than its words.

use super::content_words::{ContentWord, content_words, similarity};

/// Score of a complete phrase of several words, added to the scores of its words.
const PHRASE_SCORE: f64 = 0.5;
/// Most words in a reason.
const REASON_WORDS_MAX: usize = 3;

/// The match of a message with one member.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LexicalMatch {
    /// Score; 0 for nothing in common and about 1 for each distinctive word.
    pub(super) score: f64,
    /// The member's words that match, the most distinctive first.
    pub(super) topics: Vec<String>,
}

/// The words of one member.
pub(super) struct MemberWords {
    words: Vec<ContentWord>,
    phrases: Vec<Vec<String>>,
}

/// Returns the match of a message with each member, in their order.
pub(super) fn match_members(message: &str, members: &[&MemberWords]) -> Vec<LexicalMatch> {
    let message_words = content_words(message);
    members
        .iter()
        .map(|member| match_member(&message_words, member, members))
        .collect()
}

impl MemberWords {
    /// Creates the words of a member from all its texts and the phrases of its specialization.
    pub(super) fn of(text: &str, phrases: &[String]) -> Self {
        let stems = |phrase: &String| {
            content_words(phrase)
                .into_iter()
                .map(|word| word.stem)
                .collect()
        };
        Self {
            words: content_words(text),
            phrases: phrases.iter().map(stems).collect(),
        }
    }

    /// Returns the member's word that is most similar to `stem`, with the similarity.
    fn nearest(&self, stem: &str) -> Option<(&ContentWord, f64)> {
        let near = self
            .words
            .iter()
            .map(|word| (word, similarity(stem, &word.stem)))
            .filter(|(_, alike)| *alike > 0.0);
        near.max_by(|left, right| left.1.total_cmp(&right.1))
    }
}

fn match_member(
    message_words: &[ContentWord],
    member: &MemberWords,
    members: &[&MemberWords],
) -> LexicalMatch {
    let mut met: Vec<(f64, &ContentWord)> = Vec::new();
    for word in message_words {
        if let Some((own, alike)) = member.nearest(&word.stem) {
            met.push((alike * distinctiveness(&own.stem, members), own));
        }
    }
    met.sort_by(|left, right| right.0.total_cmp(&left.0));
    let whole = |phrase: &&Vec<String>| {
        phrase.len() > 1
            && phrase.iter().all(|stem| {
                message_words
                    .iter()
                    .any(|word| similarity(&word.stem, stem) > 0.0)
            })
    };
    let phrases = member
        .phrases
        .iter()
        .filter(whole)
        .map(|_| PHRASE_SCORE)
        .sum::<f64>();
    let mut topics: Vec<String> = met
        .iter()
        .map(|(_, word)| word.text.to_lowercase())
        .collect();
    topics.dedup();
    topics.truncate(REASON_WORDS_MAX);
    LexicalMatch {
        score: met.iter().map(|(weight, _)| weight).sum::<f64>() + phrases,
        topics,
    }
}

/// Returns the weight of a word: 1 if one member has it, less if more have it.
#[expect(clippy::cast_precision_loss, reason = "teams have few members")]
fn distinctiveness(stem: &str, members: &[&MemberWords]) -> f64 {
    let having = members
        .iter()
        .filter(|member| member.words.iter().any(|word| word.stem == stem))
        .count();
    1.0 - having.saturating_sub(1) as f64 / members.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BILLING: [&str; 2] = [
        "Billing. Support for invoices",
        "Invoices, refunds, payments, billing questions",
    ];
    const TECHNICAL: [&str; 2] = [
        "Technik. Support",
        "Technical problems, crashes, installation, error messages",
    ];

    fn scores(message: &str) -> [f64; 2] {
        let [billing, technical] = [BILLING, TECHNICAL].map(|[text, list]| {
            let phrases: Vec<String> = list.split(", ").map(Into::into).collect();
            MemberWords::of(&[text, list].join("\n"), &phrases)
        });
        let fits = match_members(message, &[&billing, &technical]);
        [fits[0].score, fits[1].score]
    }

    #[test]
    fn message_matches_the_member_with_its_words() {
        let [billing, technical] = scores("I want a refund for my last invoice");
        assert!(billing >= 2.0 && technical == 0.0, "{billing} {technical}");
        let [billing, technical] = scores("The instalation crashed with an error message");
        assert!(technical >= 2.0 && billing == 0.0, "{billing} {technical}");
    }

    #[test]
    fn words_of_all_members_count_less() {
        let [billing, technical] = scores("support");
        assert!(
            billing == technical && billing < 1.0,
            "{billing} {technical}"
        );
    }

    #[test]
    fn unknown_words_match_no_member() {
        assert_eq!(scores("xylophone zebra quartz"), [0.0, 0.0]);
        assert_eq!(scores(""), [0.0, 0.0]);
    }

    #[test]
    fn complete_phrases_count_more_than_their_words() {
        let [_, whole] = scores("error messages");
        let [_, apart] = scores("error crashes");
        assert!(whole > apart, "{whole} {apart}");
    }

    #[test]
    fn topics_are_words_of_the_member() {
        let phrases = ["Invoices".to_owned()];
        let fits = match_members(
            "my INVOICE!!",
            &[
                &MemberWords::of("Invoices", &phrases),
                &MemberWords::of("Crashes", &[]),
            ],
        );
        assert_eq!(fits[0].topics, ["invoices"]);
        assert!(fits[1].topics.is_empty());
    }
}
