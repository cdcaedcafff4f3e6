//! Reads price limits among the words of a query, such as `mug under 20 EUR`, where small models
//! and visitors write them. A limit needs a limiting word, a number and a currency, so that `lamp
//! under 5 W` and `shoes up to 45` stay words.

use switchboard_schemas::price;

use super::{
    PriceLimits,
    price_words::{
        AND, AT_LEAST, AT_MOST, BETWEEN, CURRENCIES, CURRENCY_SIGNS, FILLERS, OR_LESS, OR_MORE,
        PRICE_MARKERS,
    },
};
use crate::text::folding::fold;

/// Characters of a currency code.
const CODE_CHARS: usize = 3;

/// A query text split into other words and price limits.
#[derive(Debug, PartialEq)]
pub(super) struct TypedPrice {
    /// The query text without the price limits.
    pub(super) text: String,
    /// The widest limits, if there are several.
    pub(super) limits: PriceLimits,
}

/// Returns the price limits in `text` and the other words; none if there are no limits.
pub(super) fn parse_typed_price(text: &str) -> Option<TypedPrice> {
    let tokens = QueryTokens(split_tokens(text));
    let (mut limits, mut others, mut done) = (PriceLimits::default(), Vec::new(), 0);
    let (mut at, mut first_free) = (0, 0);
    while at < tokens.0.len() {
        let Some(phrase) = tokens.parse_phrase(at) else {
            at += 1;
            continue;
        };
        let begin = tokens.with_leads(at, first_free);
        others.push(text[done..tokens.0[begin].begin].trim());
        done = tokens.0[phrase.next - 1].end;
        limits = limits.widen(phrase.limits);
        (at, first_free) = (phrase.next, phrase.next);
    }
    others.push(text[done..].trim());
    others.retain(|words| !words.is_empty());
    (done > 0).then(|| TypedPrice {
        text: others.join(" "),
        limits,
    })
}

impl PriceLimits {
    fn widen(self, other: Self) -> Self {
        let widest =
            |one: Option<f64>, other: Option<f64>, pick: fn(f64, f64) -> f64| match (one, other) {
                (Some(one), Some(other)) => Some(pick(one, other)),
                (one, other) => one.or(other),
            };
        Self {
            min: widest(self.min, other.min, f64::min),
            max: widest(self.max, other.max, f64::max),
        }
    }
}

/// A word or currency symbol, a number, or a character that ends every phrase.
#[derive(Debug, PartialEq)]
enum TokenKind {
    Word(String),
    Number(f64),
    Break,
}

#[derive(Debug)]
struct QueryToken {
    kind: TokenKind,
    /// Byte offset of its first character in the text.
    begin: usize,
    end: usize,
}

struct QueryTokens(Vec<QueryToken>);

/// Price limits with the index of the token after them.
struct PricePhrase {
    limits: PriceLimits,
    next: usize,
}

struct PriceAmount {
    amount: f64,
    has_currency: bool,
    next: usize,
}

impl QueryTokens {
    /// Returns the limits that begin at this token.
    fn parse_phrase(&self, at: usize) -> Option<PricePhrase> {
        self.parse_range(at)
            .or_else(|| self.parse_limit(at))
            .or_else(|| self.parse_price_first(at))
    }

    /// Reads a range: `between $10 and 20`, `10 € bis 20 €`.
    fn parse_range(&self, at: usize) -> Option<PricePhrase> {
        let opening = self.any_of(BETWEEN, at);
        let one = self.parse_money(opening.unwrap_or(at))?;
        let other = self.parse_money(self.any_of(AND, one.next)?)?;
        // `size 42 bis 100 €` is no range.
        let is_price = match opening {
            Some(_) => one.has_currency || other.has_currency,
            None => one.has_currency && other.has_currency,
        };
        let (min, max) = (one.amount.min(other.amount), one.amount.max(other.amount));
        is_price.then_some(PricePhrase {
            limits: PriceLimits {
                min: Some(min),
                max: Some(max),
            },
            next: other.next,
        })
    }

    /// Reads a limit before a price: `under 20 EUR`, `no more than $5`.
    fn parse_limit(&self, at: usize) -> Option<PricePhrase> {
        let (most, least) = (self.any_of(AT_MOST, at), self.any_of(AT_LEAST, at));
        // The longer phrase wins: `no more than` contains `more than`.
        let money = self
            .parse_money(most.max(least)?)
            .filter(|money| money.has_currency)?;
        Some(PricePhrase {
            limits: limits_of(money.amount, most > least),
            next: money.next,
        })
    }

    /// Reads a limit after a price: `20 € max`, `$50 or more`.
    fn parse_price_first(&self, at: usize) -> Option<PricePhrase> {
        let money = self.parse_money(at).filter(|money| money.has_currency)?;
        let (most, least) = (
            self.any_of(OR_LESS, money.next),
            self.any_of(OR_MORE, money.next),
        );
        Some(PricePhrase {
            limits: limits_of(money.amount, most.is_some()),
            next: most.or(least)?,
        })
    }

    /// Reads a number with an optional currency before or after it; in `90 $120` the symbol belongs
    /// to the second number.
    fn parse_money(&self, at: usize) -> Option<PriceAmount> {
        let mut at = at;
        while self.is_one_of(FILLERS, at) {
            at += 1;
        }
        let has_prefix = self.is_currency(at);
        at += usize::from(has_prefix);
        let QueryToken {
            kind: TokenKind::Number(amount),
            ..
        } = *self.0.get(at)?
        else {
            return None;
        };
        let next = at + 1;
        let is_next_ones =
            !self.is_glued(next) && self.is_glued(next + 1) && self.is_number(next + 1);
        // `$20 USD` names the currency twice; in `$20 euro adapter` the second currency belongs to
        // the product.
        let is_code = self
            .word_at(next)
            .is_some_and(|word| word.chars().count() == CODE_CHARS);
        let has_suffix = self.is_currency(next) && !is_next_ones && (!has_prefix || is_code);
        // `$20k` and `5W` are other prices or no prices.
        if !has_suffix && self.is_glued(next) && self.word_at(next).is_some() {
            return None;
        }
        Some(PriceAmount {
            amount,
            has_currency: has_prefix || has_suffix,
            next: next + usize::from(has_suffix),
        })
    }

    /// Returns the index of the token after the longest of these phrases at `at`.
    fn any_of(&self, phrases: &[&str], at: usize) -> Option<usize> {
        let stands = |phrase: &&&str| {
            phrase
                .split(' ')
                .zip(at..)
                .all(|(word, at)| self.word_at(at) == Some(word))
        };
        phrases
            .iter()
            .filter(stands)
            .map(|phrase| at + phrase.split(' ').count())
            .max()
    }

    /// Returns the index of the first word that leads to the limit at `at`.
    fn with_leads(&self, at: usize, first_free: usize) -> usize {
        let leads = (first_free..at)
            .rev()
            .take_while(|before| self.is_one_of(PRICE_MARKERS, *before))
            .count();
        at - leads
    }

    fn word_at(&self, at: usize) -> Option<&str> {
        match &self.0.get(at)?.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is_one_of(&self, words: &[&str], at: usize) -> bool {
        self.word_at(at).is_some_and(|word| words.contains(&word))
    }

    fn is_currency(&self, at: usize) -> bool {
        self.is_one_of(CURRENCIES, at) || self.word_at(at).is_some_and(is_sign)
    }

    fn is_number(&self, at: usize) -> bool {
        self.0
            .get(at)
            .is_some_and(|token| matches!(token.kind, TokenKind::Number(_)))
    }

    /// Returns true if this token follows the one before it directly.
    fn is_glued(&self, at: usize) -> bool {
        at > 0
            && self
                .0
                .get(at)
                .is_some_and(|token| token.begin == self.0[at - 1].end)
    }
}

const fn limits_of(amount: f64, is_most: bool) -> PriceLimits {
    if is_most {
        PriceLimits::up_to(amount)
    } else {
        PriceLimits {
            min: Some(amount),
            max: None,
        }
    }
}

fn is_sign(word: &str) -> bool {
    word.chars()
        .all(|character| CURRENCY_SIGNS.contains(character))
}

fn split_tokens(text: &str) -> Vec<QueryToken> {
    let mut tokens: Vec<QueryToken> = Vec::new();
    let mut begin = 0;
    while let Some(character) = text[begin..].chars().next() {
        let rest = &text[begin..];
        let (kind, bytes) = match character {
            _ if character.is_ascii_digit() => match price::amount_at_start(rest) {
                Some((amount, bytes)) => (Some(TokenKind::Number(amount)), bytes),
                None => (Some(TokenKind::Break), 1),
            },
            _ if character.is_alphabetic() => {
                let bytes = rest
                    .find(|character| !is_of_word(character))
                    .unwrap_or(rest.len());
                (Some(TokenKind::Word(fold(&rest[..bytes]))), bytes)
            }
            _ if CURRENCY_SIGNS.contains(character) => (
                Some(TokenKind::Word(character.to_string())),
                character.len_utf8(),
            ),
            _ => (
                separator_kind(&text[..begin], character),
                character.len_utf8(),
            ),
        };
        tokens.extend(kind.map(|kind| QueryToken {
            kind,
            begin,
            end: begin + bytes,
        }));
        begin += bytes;
    }
    tokens
}

/// Blanks, and the marks of `max.`, `Preis:`, `jusqu'à` and `au-dessous` part words; `-5` and `.5`
/// are no prices.
fn separator_kind(before: &str, character: char) -> Option<TokenKind> {
    let is_of_phrase = before.ends_with(char::is_alphabetic) && ".:'’-‑".contains(character);
    (!is_of_phrase && !character.is_whitespace()).then_some(TokenKind::Break)
}

/// Letters, and accents that are written apart from them.
fn is_of_word(character: char) -> bool {
    character.is_alphabetic() || ('\u{300}'..='\u{36f}').contains(&character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the remaining text and both limits.
    fn typed(text: &str) -> Option<(String, Option<f64>, Option<f64>)> {
        parse_typed_price(text).map(|typed| (typed.text, typed.limits.min, typed.limits.max))
    }

    fn most(words: &str, max: f64) -> Option<(String, Option<f64>, Option<f64>)> {
        Some((words.into(), None, Some(max)))
    }

    fn least(words: &str, min: f64) -> Option<(String, Option<f64>, Option<f64>)> {
        Some((words.into(), Some(min), None))
    }

    fn both(words: &str, min: f64, max: f64) -> Option<(String, Option<f64>, Option<f64>)> {
        Some((words.into(), Some(min), Some(max)))
    }

    #[test]
    fn highest_prices_are_parsed_in_six_languages() {
        for (text, expected) in [
            ("mug under 20 EUR", most("mug", 20.0)),
            ("headphones below $50", most("headphones", 50.0)),
            ("no more than US$ 1,299.50 laptop", most("laptop", 1299.5)),
            (
                "a gift for less than 15 euros, please",
                most("a gift , please", 15.0),
            ),
            ("Tea up to 5€", most("Tea", 5.0)),
            ("under $20 USD tea", most("tea", 20.0)),
            ("under $20 euro adapter", most("euro adapter", 20.0)),
            ("Lampe bis 30 €", most("Lampe", 30.0)),
            ("Lampe für höchstens 1.299,00 Euro", most("Lampe", 1299.0)),
            ("Schuhe Größe 42 bis 100 €", most("Schuhe Größe 42", 100.0)),
            ("nicht teurer als 9 Franken", most("", 9.0)),
            ("lampe moins de 15 €", most("lampe", 15.0)),
            ("tasse jusqu’à 1 299 euros", most("tasse", 1299.0)),
            ("tasse 20€ max", most("tasse", 20.0)),
            ("taza menos de 20 euros", most("taza", 20.0)),
            ("taza roja hasta 20 dólares", most("taza roja", 20.0)),
            ("tazza sotto i 20 euro", most("tazza", 20.0)),
            ("tazza al massimo 20 euro", most("tazza", 20.0)),
            ("kubek do 50 zł", most("kubek", 50.0)),
            (
                "kubek poniżej 50 złotych niebieski",
                most("kubek niebieski", 50.0),
            ),
        ] {
            assert_eq!(typed(text), expected, "{text}");
        }
    }

    #[test]
    fn lowest_prices_and_ranges_are_parsed() {
        for (text, expected) in [
            ("lamp over 100 dollars", least("lamp", 100.0)),
            ("not under $5 tea", least("tea", 5.0)),
            ("Lampe ab 30 €", least("Lampe", 30.0)),
            ("lampe à partir de 30 €", least("lampe", 30.0)),
            ("lampe au-dessus de 30 €", least("lampe", 30.0)),
            ("lámpara más de 30 euros", least("lámpara", 30.0)),
            ("lampada oltre 30 euro", least("lampada", 30.0)),
            ("lampa powyżej 30 zł", least("lampa", 30.0)),
            ("lamp $50 or more", least("lamp", 50.0)),
            ("lamp between $10 and $20", both("lamp", 10.0, 20.0)),
            ("lamp from 20 to 10 dollars", both("lamp", 10.0, 20.0)),
            ("Lampe zwischen 10 und 20 €", both("Lampe", 10.0, 20.0)),
            ("lampe entre 10 et 20 euros", both("lampe", 10.0, 20.0)),
            ("lámpara de 10 € a 20 €", both("lámpara", 10.0, 20.0)),
            ("lampada tra i 10 e i 20 euro", both("lampada", 10.0, 20.0)),
            ("lampa od 10 do 20 zł", both("lampa", 10.0, 20.0)),
            ("lamp over $10 and under $20", both("lamp and", 10.0, 20.0)),
            (
                "tea under 5 EUR or coffee under 9 EUR",
                most("tea or coffee", 9.0),
            ),
        ] {
            assert_eq!(typed(text), expected, "{text}");
        }
    }

    #[test]
    fn other_numbers_and_bare_prices_stay_words() {
        for text in [
            "",
            "lamp under 5 W",
            "shoes up to 45",
            "2 TB",
            "2 TB disk below 100 mm",
            "between 10 and 20 cm",
            "de 2 a 4 personas",
            "mug 20 EUR",
            "euro adapter",
            "under the sea €",
            "under -5 EUR",
            "under .5 EUR",
            "under $20k",
            "over 5m dollars",
            "weights under 20 pounds",
            "air max 90 $120",
            "what do euros buy, 20 €?",
        ] {
            assert_eq!(typed(text), None, "{text}");
        }
        assert_eq!(typed("air max 90 under $120"), most("air max 90", 120.0));
    }

    proptest! {
        #[test]
        fn parsing_never_adds_text(text in "\\PC{0,60}|((under|bis|over|do|from|and|to|between|for|max|[0-9.,]{1,5}|€|\\$|EUR|zł|é|-)[ .]?){0,12}") {
            if let Some(typed) = parse_typed_price(&text) {
                prop_assert!(typed.text.len() < text.len());
                prop_assert!(typed.limits != PriceLimits::default());
                prop_assert!(typed.text.split_whitespace().all(|word| text.contains(word)));
            }
        }

        #[test]
        fn text_without_a_currency_is_unchanged(text in "((under|bis|moins de|menos de|sotto|do|over|from|and|between|for|max|[0-9]{1,4}|lamp|W|TB|,|-) ?){0,12}") {
            prop_assert_eq!(parse_typed_price(&text), None);
        }
    }
}
