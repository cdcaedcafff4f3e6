//! How well a message fits each member, by the words that they share: the local stage of intent, which needs no model.
//!
//! A word that fewer members have says more; of a phrase
//! of the specialization that is met whole, more is sure than of its words alone.

use super::words::{Word, likeness, words};

/// What a phrase adds that is met whole and has more than one word.
const WHOLE_PHRASE: f64 = 0.5;
/// Words of a reason, so that it stays a line.
const REASON_WORDS_MAX: usize = 3;

/// How well a message fits one member.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fit {
    /// 0 for nothing in common; about 1 for each telling word.
    pub(super) score: f64,
    /// The member's own words that were met, the most telling first.
    pub(super) topics: Vec<String>,
}

/// A member's words.
pub(super) struct Member {
    words: Vec<Word>,
    phrases: Vec<Vec<String>>,
}

/// The fit of each member, in their order.
pub(super) fn fits(message: &str, members: &[&Member]) -> Vec<Fit> {
    let asked = words(message);
    members
        .iter()
        .map(|member| fit(&asked, member, members))
        .collect()
}

impl Member {
    /// The words of all its texts, and the phrases of its specialization.
    pub(super) fn of(text: &str, phrases: &[String]) -> Self {
        let stems = |phrase: &String| words(phrase).into_iter().map(|word| word.stem).collect();
        Self {
            words: words(text),
            phrases: phrases.iter().map(stems).collect(),
        }
    }

    /// The member's word that is most like `stem`.
    fn nearest(&self, stem: &str) -> Option<(&Word, f64)> {
        let near = self
            .words
            .iter()
            .map(|word| (word, likeness(stem, &word.stem)))
            .filter(|(_, alike)| *alike > 0.0);
        near.max_by(|left, right| left.1.total_cmp(&right.1))
    }
}

fn fit(asked: &[Word], member: &Member, members: &[&Member]) -> Fit {
    let mut met: Vec<(f64, &Word)> = Vec::new();
    for word in asked {
        if let Some((own, alike)) = member.nearest(&word.stem) {
            met.push((alike * telling(&own.stem, members), own));
        }
    }
    met.sort_by(|left, right| right.0.total_cmp(&left.0));
    let whole = |phrase: &&Vec<String>| {
        phrase.len() > 1
            && phrase
                .iter()
                .all(|stem| asked.iter().any(|word| likeness(&word.stem, stem) > 0.0))
    };
    let phrases = member
        .phrases
        .iter()
        .filter(whole)
        .map(|_| WHOLE_PHRASE)
        .sum::<f64>();
    let mut topics: Vec<String> = met
        .iter()
        .map(|(_, word)| word.text.to_lowercase())
        .collect();
    topics.dedup();
    topics.truncate(REASON_WORDS_MAX);
    Fit {
        score: met.iter().map(|(weight, _)| weight).sum::<f64>() + phrases,
        topics,
    }
}

/// How much a word says: 1 when one member has it, ever less the more have it.
#[expect(clippy::cast_precision_loss, reason = "teams have few members")]
fn telling(stem: &str, members: &[&Member]) -> f64 {
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
            Member::of(&[text, list].join("\n"), &phrases)
        });
        let fits = fits(message, &[&billing, &technical]);
        [fits[0].score, fits[1].score]
    }

    #[test]
    fn a_message_fits_the_member_whose_words_it_uses() {
        let [billing, technical] = scores("I want a refund for my last invoice");
        assert!(billing >= 2.0 && technical == 0.0, "{billing} {technical}");
        let [billing, technical] = scores("The instalation crashed with an error message");
        assert!(technical >= 2.0 && billing == 0.0, "{billing} {technical}");
    }

    #[test]
    fn a_word_that_all_members_have_says_less() {
        let [billing, technical] = scores("support");
        assert!(
            billing == technical && billing < 1.0,
            "{billing} {technical}"
        );
    }

    #[test]
    fn what_nobody_speaks_of_fits_nobody() {
        assert_eq!(scores("xylophone zebra quartz"), [0.0, 0.0]);
        assert_eq!(scores(""), [0.0, 0.0]);
    }

    #[test]
    fn a_phrase_that_is_met_whole_counts_more_than_its_words() {
        let [_, whole] = scores("error messages");
        let [_, apart] = scores("error crashes");
        assert!(whole > apart, "{whole} {apart}");
    }

    #[test]
    fn the_topics_are_the_members_own_words() {
        let phrases = ["Invoices".to_owned()];
        let fits = fits(
            "my INVOICE!!",
            &[
                &Member::of("Invoices", &phrases),
                &Member::of("Crashes", &[]),
            ],
        );
        assert_eq!(fits[0].topics, ["invoices"]);
        assert!(fits[1].topics.is_empty());
    }
}
