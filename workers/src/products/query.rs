//! Translates a query for the index: each word becomes a group of words that the shop has. Only
//! such words reach the index, so that no text of a visitor is interpreted as FTS5 syntax.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use super::{ProductQuery, index::filter_word, vocabulary::ShopVocabulary};
use crate::text::{
    folding::fold,
    stop_words::{is_conjunction, is_purpose_word, is_query_stop_word},
    tokens::{TextPart, character_pairs, letter_digit_pieces, split_parts, unify_spelling},
};

/// Characters of a query that are read.
const QUERY_CHARS_MAX: usize = 400;
/// Groups that are searched; the most common ones are dropped first.
const GROUPS_MAX: usize = 6;
/// Rarest groups of which some may be missing; each further group doubles the work of the index.
const OPTIONAL_GROUPS_MAX: usize = 4;

/// Largest number of products that one query lists.
const PRODUCTS_NAMED_MAX: usize = 4;

/// A lookup of the attributes that products have.
pub(super) trait ProductAttributes {
    /// Returns true if any product has an attribute of this name.
    fn has_name(&self, name: &str) -> bool;
    /// Returns true if any product has this word in the attribute of this name.
    fn has_word(&self, name: &str, word: &str) -> bool;
}

/// Alternative words, of which a product must have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WordGroup {
    /// The word as the visitor wrote it, if the shop has it; it counts twice.
    exact: Option<String>,
    /// Other forms of the word, or corrections of its spelling.
    others: Vec<String>,
    /// Longer words that contain it.
    compounds: Vec<String>,
    /// Number of products that have the most frequent of the words.
    products: u32,
    /// True if the word names the purpose of the product: `roses` in `gloves for roses`.
    is_purpose: bool,
}

/// The FTS5 expressions of one search.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IndexQuery {
    /// Expression that every result must match.
    pub(super) matching: String,
    /// The same expression with the weights for ranking.
    pub(super) ranking: String,
    /// Expression of results that are ranked first, because their title names the wanted thing.
    pub(super) named: String,
}

/// A query translated to words of the index.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ParsedQuery {
    groups: Vec<WordGroup>,
    /// Expressions of the attribute filters, which every result must match.
    required: Vec<String>,
    /// True if the shop has none of the words, or no value of a filter.
    pub(super) matches_nothing: bool,
}

impl ParsedQuery {
    /// Translates a query to the words of a shop.
    pub(super) fn read(
        query: &ProductQuery,
        vocabulary: &ShopVocabulary,
        attributes: &impl ProductAttributes,
    ) -> Self {
        let mut request = Self::default();
        for (name, value) in &query.attributes {
            request.add_filter(&attribute_name(name), value, vocabulary, attributes);
        }
        let text: String = query.text.chars().take(QUERY_CHARS_MAX).collect();
        let (wanted, purposes) = split_purpose(&text);
        let mut groups = groups_of(&wanted, vocabulary);
        groups.extend(
            groups_of(&purposes, vocabulary)
                .into_iter()
                .map(|group| WordGroup {
                    is_purpose: true,
                    ..group
                }),
        );
        request.matches_nothing |= !wanted.is_empty() && groups.is_empty();
        groups.sort_by_key(|group| group.products);
        groups.truncate(GROUPS_MAX);
        request.groups = groups;
        request
    }

    /// Returns true if every product within the price limits matches.
    pub(super) const fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.required.is_empty()
    }

    /// Returns the searches to try, the strictest first: all words, then also inside longer words,
    /// then fewer of the rarest words, but at least half of all. At most four searches for any
    /// number of words.
    pub(super) fn index_queries(&self) -> impl Iterator<Item = IndexQuery> {
        let all = self.groups.len();
        let wider = self.groups.iter().any(|group| !group.compounds.is_empty());
        let strict = std::iter::once(self.index_query((all, all), false));
        let compounds = wider.then(|| self.index_query((all, all), true));
        let rarest = all.min(OPTIONAL_GROUPS_MAX);
        let most = if rarest < all {
            rarest
        } else {
            all.saturating_sub(1)
        };
        let fewer = (all.div_ceil(2).max(1)..=most)
            .rev()
            .map(move |count| self.index_query((count, rarest), false));
        strict.chain(compounds).chain(fewer)
    }

    /// Returns a search for products with at least `count` of the first `of` groups and all
    /// filters.
    fn index_query(&self, (count, of): (usize, usize), with_compounds: bool) -> IndexQuery {
        let wanted = self.groups.iter().filter(|group| !group.is_purpose);
        let wanted: Vec<String> = wanted
            .map(|group| group.expression(with_compounds, false))
            .collect();
        let matching = self.matching((count, of), |group| group.expression(with_compounds, false));
        let ranking = self.matching((count, of), |group| group.expression(with_compounds, true));
        let named = if wanted.is_empty() {
            matching.clone()
        } else {
            format!("{{title}} : ({})", wanted.join(" AND "))
        };
        IndexQuery {
            matching,
            ranking,
            named,
        }
    }

    fn matching(
        &self,
        (count, of): (usize, usize),
        expression: impl Fn(&WordGroup) -> String,
    ) -> String {
        let groups: Vec<String> = self.groups[..of].iter().map(expression).collect();
        let chosen = subsets(groups.len(), count).map(|subset| {
            let chosen = groups
                .iter()
                .enumerate()
                .filter(|(index, _)| subset & (1 << index) != 0);
            let chosen: Vec<&str> = chosen.map(|(_, group)| group.as_str()).collect();
            format!("({})", chosen.join(" AND "))
        });
        let mut clauses = self.required.clone();
        if !groups.is_empty() {
            clauses.push(format!("({})", chosen.collect::<Vec<_>>().join(" OR ")));
        }
        clauses.join(" AND ")
    }

    fn add_filter(
        &mut self,
        name: &str,
        value: &str,
        vocabulary: &ShopVocabulary,
        attributes: &impl ProductAttributes,
    ) {
        let value: String = value.chars().take(QUERY_CHARS_MAX).collect();
        if attributes.has_name(name) {
            // Stop words too: only they distinguish `in stock` and `out of stock`.
            for word in all_words(&value) {
                let meant = label_words(name, &word, vocabulary, attributes);
                self.matches_nothing |= meant.is_empty();
                let meant: Vec<String> = meant
                    .iter()
                    .map(|word| quoted(&filter_word(name, word)))
                    .collect();
                self.required.push(format!("({})", meant.join(" OR ")));
            }
            return;
        }
        for word in &query_words(&value) {
            match group_of(word, vocabulary) {
                Some(group) => self.required.push(group.expression(true, false)),
                None => self.matches_nothing = true,
            }
        }
    }
}

/// Returns the normalized name of an attribute, equal for `Size type`, `size_type` and `size-type`.
pub(super) fn attribute_name(name: &str) -> String {
    unify_spelling(
        fold(name)
            .chars()
            .filter(|character| character.is_alphanumeric())
            .collect(),
    )
}

impl WordGroup {
    fn expression(&self, with_compounds: bool, to_rank: bool) -> String {
        // A word that stands twice counts twice in the ranking.
        let exact = self
            .exact
            .iter()
            .flat_map(|exact| std::iter::repeat_n(exact, if to_rank { 2 } else { 1 }));
        let compounds = self.compounds.iter().filter(|_| with_compounds);
        let words: Vec<String> = exact
            .chain(&self.others)
            .chain(compounds)
            .map(|word| quoted(word))
            .collect();
        // A group of compounds alone needs them even in a search without compounds.
        if words.is_empty() {
            self.expression(true, to_rank)
        } else {
            format!("({})", words.join(" OR "))
        }
    }
}

/// Returns the names of the products that a text lists, such as `red mug and the oak shelf`. A text
/// in which one part has a single word names one product: `red and blue shoes`.
pub(super) fn listed_products(text: &str) -> Vec<String> {
    let text: String = text.chars().take(QUERY_CHARS_MAX).collect();
    let mut names: Vec<Vec<String>> = Vec::new();
    for phrase in text.split([',', ';', '+', '&', '\n']) {
        for part in all_words(phrase).split(|word| is_conjunction(word)) {
            if part.iter().all(|word| is_query_stop_word(word)) {
                continue;
            }
            let (wanted, purposes) = split_purpose(&part.join(" "));
            if !purposes.is_empty() || wanted.len() == 1 {
                return Vec::new();
            }
            names.push(wanted);
        }
    }
    if !(2..=PRODUCTS_NAMED_MAX).contains(&names.len()) {
        return Vec::new();
    }
    names.iter().map(|words| words.join(" ")).collect()
}

/// Returns the words of a text without stop words, unless there are only stop words.
fn query_words(text: &str) -> Vec<String> {
    let (mut wanted, purposes) = split_purpose(text);
    wanted.extend(purposes);
    wanted
}

/// Returns the words of the wanted product and the words of its purpose, without stop words.
fn split_purpose(text: &str) -> (Vec<String>, Vec<String>) {
    let words = all_words(text);
    let begin = words.iter().position(|word| !is_query_stop_word(word));
    let purpose = begin.and_then(|begin| {
        Some(
            begin
                + 1
                + words[begin + 1..]
                    .iter()
                    .position(|word| is_purpose_word(word))?,
        )
    });
    let purpose = purpose.unwrap_or(words.len());
    let mut seen = HashSet::new();
    let mut new = |words: &[String], all: bool| {
        let significant = words
            .iter()
            .filter(|word| all || !is_query_stop_word(word))
            .cloned();
        significant
            .filter(|word| seen.insert(word.clone()))
            .collect::<Vec<_>>()
    };
    (
        new(&words[..purpose], begin.is_none()),
        new(&words[purpose..], false),
    )
}

/// Returns the word itself if an attribute of this name has it, otherwise the nearest words that it
/// has. Similar words are no first choice, because endings distinguish sizes and colors: the
/// stemmer of one language merges words of another.
fn label_words(
    name: &str,
    word: &str,
    vocabulary: &ShopVocabulary,
    attributes: &impl ProductAttributes,
) -> Vec<String> {
    if attributes.has_word(name, word) {
        return vec![word.to_owned()];
    }
    let near = vocabulary.similar_words(word);
    let near = near.into_iter().map(|words| {
        words
            .into_iter()
            .filter(|word| attributes.has_word(name, word))
    });
    near.map(Iterator::collect::<Vec<&str>>)
        .find(|words| !words.is_empty())
        .map_or_else(Vec::new, |words| to_strings(&words))
}

/// Returns the words of a text in order, and the character pairs of scripts without spaces.
pub(super) fn all_words(text: &str) -> Vec<String> {
    let words = split_parts(text).into_iter().flat_map(|part| match part {
        TextPart::Word { text, .. } => vec![text],
        TextPart::Unspaced(run) => character_pairs(&run),
    });
    words.collect()
}

/// Returns groups of words that the shop has. Two neighboring words that the shop writes as one
/// become one group.
fn groups_of(words: &[String], vocabulary: &ShopVocabulary) -> Vec<WordGroup> {
    let mut groups = Vec::new();
    let mut index = 0;
    while let Some(word) = words.get(index) {
        index += 1;
        let next = words.get(index);
        let joined = next.map(|next| format!("{word}{next}"));
        let is_known = |word: &str| !vocabulary.word_forms(word).is_empty();
        match joined.filter(|joined| {
            is_known(joined) && !(is_known(word) && next.is_some_and(|next| is_known(next)))
        }) {
            Some(joined) => {
                groups.extend(known_group(&joined, vocabulary));
                index += 1;
            }
            None if is_known(word) || letter_digit_pieces(word).is_empty() => {
                groups.extend(group_of(word, vocabulary))
            }
            // A model number of which the shop has only a part is another model.
            None if letter_digit_pieces(word)
                .iter()
                .any(|piece| !is_known(piece)) => {}
            None => groups.extend(
                letter_digit_pieces(word)
                    .into_iter()
                    .filter_map(|piece| group_of(piece, vocabulary)),
            ),
        }
    }
    groups
}

fn group_of(word: &str, vocabulary: &ShopVocabulary) -> Option<WordGroup> {
    known_group(word, vocabulary).or_else(|| {
        let meant = vocabulary.corrections(word);
        let compounds = if meant.is_empty() {
            to_strings(&vocabulary.compounds_with(word))
        } else {
            Vec::new()
        };
        let is_known = !meant.is_empty() || !compounds.is_empty();
        is_known.then(|| new_group(None, &meant, compounds, vocabulary))
    })
}

fn known_group(word: &str, vocabulary: &ShopVocabulary) -> Option<WordGroup> {
    let forms = vocabulary.word_forms(word);
    if forms.is_empty() {
        return None;
    }
    let exact = (vocabulary.products_with(word) > 0).then(|| word.to_owned());
    let others: Vec<&str> = forms.into_iter().filter(|form| *form != word).collect();
    Some(new_group(
        exact,
        &others,
        to_strings(&vocabulary.compounds_with(word)),
        vocabulary,
    ))
}

fn new_group(
    exact: Option<String>,
    others: &[&str],
    compounds: Vec<String>,
    vocabulary: &ShopVocabulary,
) -> WordGroup {
    let words = exact
        .iter()
        .map(String::as_str)
        .chain(others.iter().copied());
    let products = words
        .map(|word| vocabulary.products_with(word))
        .max()
        .unwrap_or_default();
    WordGroup {
        exact,
        others: to_strings(others),
        compounds,
        products,
        is_purpose: false,
    }
}

fn to_strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

/// Returns all sets of `count` elements out of `all`, as bits.
fn subsets(all: usize, count: usize) -> impl Iterator<Item = u32> {
    (0..1_u32 << all).filter(move |set| set.count_ones() as usize == count)
}
