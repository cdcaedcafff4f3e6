//! Product wishes of a question: the words that may name a product, and the highest price. Pure.

use super::conversation::split_words;

/// Most words of a search; a long message does not name more.
const WORDS_MAX: usize = 12;
/// Words that ask for something and name nothing, in the languages that visitors try first.
const ASKING: &str = "a about all an and any are at available be best buy can catalog catalogue cheap costs could do does find \
    for from get give good got has have help how i im in is it just like list long looking me much my need nice of on one ones \
    or order our please price prices product products recommend sell sells shop show some something stock suggest tell than \
    thank that the them there these they this those to us want was we what whats which who will with would you your \
    ich suche habt ihr haben sie was welche zeig mir bitte einen eine ein und der die das für \
    je cherche avez vous montrez moi un une des les le la quel quels quelle avec pour \
    busco tienen muéstrame unos unas el los las con para qué";
const AT_MOST: [&str; 8] = [
    "under", "below", "less", "most", "max", "maximum", "unter", "until",
];
const CURRENCIES: [&str; 6] = ["dollar", "dollars", "usd", "euro", "euros", "eur"];

/// A product search that a question asks for.
#[derive(Debug, PartialEq)]
pub(super) struct ProductWish {
    /// Words that may name the product; empty if any product will do.
    pub(super) words: String,
    /// Highest price, in the currency of the shop.
    pub(super) price_max: Option<f64>,
}

impl ProductWish {
    /// Extracts the wish from a question.
    pub(super) fn from_question(question: &str) -> Self {
        let said = split_words(question);
        let bound = said
            .iter()
            .position(|word| AT_MOST.contains(&word.as_str()));
        let price_max = bound.and_then(|at| {
            said[at + 1..]
                .iter()
                .take(3)
                .find_map(|word| word.parse().ok())
        });
        let names = said.iter().filter(|word| {
            let is_price = price_max.is_some()
                && (word.parse::<f64>().is_ok()
                    || AT_MOST.contains(&word.as_str())
                    || CURRENCIES.contains(&word.as_str()));
            !is_price && !ASKING.split_whitespace().any(|asking| asking == *word)
        });
        let words = names
            .take(WORDS_MAX)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ");
        Self { words, price_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_become_searches() {
        for (question, words, price_max) in [
            ("Which products do you have?", "", None),
            ("Show me some tea, please", "tea", None),
            (
                "I'm looking for a glass teapot under $30",
                "glass teapot",
                Some(30.0),
            ),
            ("coffee for less than 15 euros", "coffee", Some(15.0)),
            ("Habt ihr Oolong?", "oolong", None),
            ("", "", None),
        ] {
            assert_eq!(
                ProductWish::from_question(question),
                ProductWish {
                    words: words.into(),
                    price_max
                },
                "{question}"
            );
        }
    }
}
