//! English words of a text without their order, and what they weigh: rare words say more than those of many trades.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use super::{concepts, language::Languages, words};

/// Damps the overlap with sentences of a single word.
const SHORT_SENTENCE: f64 = 0.5;

/// Keeps a share finite where all words are of every trade.
const SHORTEST: f64 = 0.1;

/// Stems of English words, small words left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bag(BTreeSet<String>);

/// In how many of the lexicon's concepts a stem stands, and how many there are.
static TRADES: LazyLock<(HashMap<String, u32>, u32)> = LazyLock::new(|| {
    let (mut counts, mut all) = (HashMap::new(), 0);
    for text in concepts::every_english() {
        all += 1;
        for stem in Bag::of(&text).0 {
            *counts.entry(stem).or_insert(0) += 1;
        }
    }
    (counts, all)
});

impl Bag {
    /// The words of an English text.
    pub(super) fn of(text: &str) -> Self {
        Self(
            words::words_in(text, Languages::of_code("en"))
                .into_iter()
                .map(|word| word.stem)
                .collect(),
        )
    }

    /// Everything that is in one of them.
    pub(super) fn union<'a>(bags: impl IntoIterator<Item = &'a Self>) -> Self {
        Self(
            bags.into_iter()
                .flat_map(|bag| bag.0.iter().cloned())
                .collect(),
        )
    }

    /// What the words weigh that it has in common with a member's bag; what other members have too says less.
    pub(super) fn shared(&self, own: &Self, all: &[&Self]) -> f64 {
        let of = |stem: &String| {
            let having = all.iter().filter(|bag| bag.0.contains(stem)).count();
            weight(stem) / f64::from(u32::try_from(having.max(1)).unwrap_or(u32::MAX))
        };
        self.0.intersection(&own.0).map(of).sum()
    }

    /// How much of it is in another, from 0 to 1.
    pub(super) fn share_in(&self, other: &Self) -> f64 {
        let weigh =
            |stems: &mut dyn Iterator<Item = &String>| stems.map(|stem| weight(stem)).sum::<f64>();
        weigh(&mut self.0.intersection(&other.0)) / weigh(&mut self.0.iter()).max(SHORTEST)
    }

    /// Its stems.
    pub(super) fn stems(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// How much of a sentence is in it, from 0 to about 1 for short ones and somewhat more for long ones.
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

/// From 0 for a word of every trade to 1 for one that the lexicon does not know.
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
    fn a_word_of_many_trades_weighs_less_than_a_rare_one() {
        assert!(weight("card") < weight("xylophon"));
        assert!((0.0..=1.0).contains(&weight("card")));
    }

    #[test]
    fn what_other_members_have_too_says_less() {
        let (one, other) = (
            Bag::of("broken screens, cracked glass"),
            Bag::of("broken doors"),
        );
        let asked = Bag::of("it is broken and cracked");
        let of = |own: &Bag| asked.shared(own, &[&one, &other]);
        assert!(of(&one) > of(&other) && of(&other) > 0.0);
        assert!(asked.shared(&other, &[&other]) > of(&other));
    }

    #[test]
    fn stop_words_are_ignored_and_empty_sets_do_not_overlap() {
        assert_eq!(Bag::of("what is it, and why?"), Bag::default());
        assert_eq!(Bag::of("a refund").overlap(&Bag::default()), 0.0);
    }
}
