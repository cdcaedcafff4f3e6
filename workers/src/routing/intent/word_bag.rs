//! English words of a text without their order; a word of fewer concepts has more weight.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use super::{concepts, content_words, language::LanguageSet};

/// Damping of the overlap with short sentences.
const SHORT_SENTENCE: f64 = 0.5;

/// Smallest weight of a bag, which keeps quotients finite.
const SHORTEST: f64 = 0.1;

/// Stems of English words without stop words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WordBag(BTreeSet<String>);

/// Number of concepts with each stem, and number of all concepts.
static TRADES: LazyLock<(HashMap<String, u32>, u32)> = LazyLock::new(|| {
    let (mut counts, mut all) = (HashMap::new(), 0);
    for text in concepts::every_english() {
        all += 1;
        for stem in WordBag::of(&text).0 {
            *counts.entry(stem).or_insert(0) += 1;
        }
    }
    (counts, all)
});

impl WordBag {
    /// Creates the bag of an English text.
    pub(super) fn of(text: &str) -> Self {
        Self(
            content_words::content_words_in(text, LanguageSet::of_code("en"))
                .into_iter()
                .map(|word| word.stem)
                .collect(),
        )
    }

    /// Returns the union of some bags.
    pub(super) fn union<'a>(bags: impl IntoIterator<Item = &'a Self>) -> Self {
        Self(
            bags.into_iter()
                .flat_map(|bag| bag.0.iter().cloned())
                .collect(),
        )
    }

    /// Returns the weight of the words in common with a member's bag; words of other members too count less.
    pub(super) fn shared(&self, own: &Self, all: &[&Self]) -> f64 {
        let of = |stem: &String| {
            let having = all.iter().filter(|bag| bag.0.contains(stem)).count();
            weight(stem) / f64::from(u32::try_from(having.max(1)).unwrap_or(u32::MAX))
        };
        self.0.intersection(&own.0).map(of).sum()
    }

    /// Returns the part of its weight that is in another bag, from 0 to 1.
    pub(super) fn share_in(&self, other: &Self) -> f64 {
        let weigh =
            |stems: &mut dyn Iterator<Item = &String>| stems.map(|stem| weight(stem)).sum::<f64>();
        weigh(&mut self.0.intersection(&other.0)) / weigh(&mut self.0.iter()).max(SHORTEST)
    }

    /// Returns its stems in order.
    pub(super) fn stems(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the part of a sentence that is in the bag, from 0 to about 1 for short and a little more for long sentences.
    pub(super) fn overlap(&self, sentence: &Self) -> f64 {
        let common: f64 = self
            .0
            .intersection(&sentence.0)
            .map(|stem| weight(stem))
            .sum();
        let whole: f64 = sentence.0.iter().map(|stem| weight(stem)).sum();
        common / (whole + SHORT_SENTENCE).sqrt()
    }
}

/// Returns the weight of a stem, from 0 for a stem of every concept to 1 for an unknown one.
fn weight(stem: &str) -> f64 {
    let (counts, all) = &*TRADES;
    let (having, all) = (
        f64::from(counts.get(stem).copied().unwrap_or_default()),
        f64::from(*all),
    );
    ((all + 1.0) / (having + 1.0)).ln() / (all + 1.0).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_words_weigh_less_than_rare_ones() {
        assert!(weight("card") < weight("xylophon"));
        assert!((0.0..=1.0).contains(&weight("card")));
    }

    #[test]
    fn words_of_other_members_count_less() {
        let (one, other) = (
            WordBag::of("broken screens, cracked glass"),
            WordBag::of("broken doors"),
        );
        let asked = WordBag::of("it is broken and cracked");
        let of = |own: &WordBag| asked.shared(own, &[&one, &other]);
        assert!(of(&one) > of(&other) && of(&other) > 0.0);
        assert!(asked.shared(&other, &[&other]) > of(&other));
    }

    #[test]
    fn stop_words_are_in_no_bag() {
        assert_eq!(WordBag::of("what is it, and why?"), WordBag::default());
        assert_eq!(WordBag::of("a refund").overlap(&WordBag::default()), 0.0);
    }
}
