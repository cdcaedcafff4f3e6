//! From what somebody asked for to what the index is asked: each word becomes a group of words that are in the shop, and
//! only such words reach the index, so that no text can have a meaning in its language.

use std::collections::HashSet;

use super::{
    ProductQuery,
    index::filter_word,
    stop_words::{is_purpose_word, is_stop_word},
    vocabulary::Vocabulary,
    words::{Part, fold, in_one_spelling, pairs, parts, pieces},
};

/// Characters of a query that are read.
const QUERY_CHARS_MAX: usize = 400;
/// Groups that are asked for; the most common ones are left out first.
const GROUPS_MAX: usize = 6;
/// Groups of which some may be missing, the most telling ones: each further one doubles what the index has to join.
const MISSING_OF_MAX: usize = 4;

/// What products say of themselves by name.
pub(super) trait Labels {
    /// Whether any product has an attribute of this name.
    fn has_name(&self, name: &str) -> bool;
    /// Whether any product has this word in the attribute of this name.
    fn has_word(&self, name: &str, word: &str) -> bool;
}

/// Words of which a product must have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// As it was written, if the shop has it so; counts twice.
    exact: Option<String>,
    /// The word in other forms, or what it was taken for.
    others: Vec<String>,
    /// Longer words that contain it.
    compounds: Vec<String>,
    /// Products that have the most frequent of them.
    products: u32,
    /// Whether it only says what the thing is for: `roses` in `gloves for roses`.
    is_aside: bool,
}

/// A question to the index.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// What every product found must match.
    pub(super) matching: String,
    /// The same as it puts products in order.
    pub(super) ranking: String,
    /// What those match besides that are shown first: their title names the thing.
    pub(super) named: String,
}

/// A query in words of the index.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    groups: Vec<Group>,
    /// Groups and filter words that every product found must have.
    required: Vec<String>,
    /// Whether there were words, and the shop has none of them.
    pub(super) is_hopeless: bool,
}

impl Request {
    /// Reads a query in the words of a shop.
    pub(super) fn read(
        query: &ProductQuery,
        vocabulary: &Vocabulary,
        labels: &impl Labels,
    ) -> Self {
        let mut request = Self::default();
        for (name, value) in &query.attributes {
            request.require(&attribute_name(name), value, vocabulary, labels);
        }
        let text: String = query.text.chars().take(QUERY_CHARS_MAX).collect();
        let (things, asides) = wished(&text);
        let mut groups = groups_of(&things, vocabulary);
        groups.extend(
            groups_of(&asides, vocabulary)
                .into_iter()
                .map(|group| Group {
                    is_aside: true,
                    ..group
                }),
        );
        request.is_hopeless |= !things.is_empty() && groups.is_empty();
        groups.sort_by_key(|group| group.products);
        groups.truncate(GROUPS_MAX);
        request.groups = groups;
        request
    }

    /// Whether every product that passes the price is found.
    pub(super) const fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.required.is_empty()
    }

    /// What the index is asked, the strictest first: all words, then also inside longer words, then fewer of the most telling
    /// ones, but never fewer than half of all. At most four questions, however many words there are.
    pub(super) fn questions(&self) -> impl Iterator<Item = Question> {
        let all = self.groups.len();
        let wider = self.groups.iter().any(|group| !group.compounds.is_empty());
        let strict = std::iter::once(self.question((all, all), false));
        let compounds = wider.then(|| self.question((all, all), true));
        let telling = all.min(MISSING_OF_MAX);
        let most = if telling < all {
            telling
        } else {
            all.saturating_sub(1)
        };
        let fewer = (all.div_ceil(2).max(1)..=most)
            .rev()
            .map(move |count| self.question((count, telling), false));
        strict.chain(compounds).chain(fewer)
    }

    /// Products that have at least `count` of the first `of` groups, and everything that is required.
    fn question(&self, (count, of): (usize, usize), with_compounds: bool) -> Question {
        let things = self.groups.iter().filter(|group| !group.is_aside);
        let things: Vec<String> = things
            .map(|group| group.expression(with_compounds, false))
            .collect();
        let matching = self.matching((count, of), |group| group.expression(with_compounds, false));
        let ranking = self.matching((count, of), |group| group.expression(with_compounds, true));
        let named = if things.is_empty() {
            matching.clone()
        } else {
            format!("{{title}} : ({})", things.join(" AND "))
        };
        Question {
            matching,
            ranking,
            named,
        }
    }

    fn matching(
        &self,
        (count, of): (usize, usize),
        expression: impl Fn(&Group) -> String,
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

    fn require(&mut self, name: &str, value: &str, vocabulary: &Vocabulary, labels: &impl Labels) {
        let value: String = value.chars().take(QUERY_CHARS_MAX).collect();
        if labels.has_name(name) {
            // All of them: `in stock` and `out of stock` differ in nothing else.
            for word in all_words(&value) {
                let meant = label_words(name, &word, vocabulary, labels);
                self.is_hopeless |= meant.is_empty();
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
                None => self.is_hopeless = true,
            }
        }
    }
}

/// The name of an attribute as the index knows it, one word however it is written: `Size type`, `size_type`, `size-type`.
pub(super) fn attribute_name(name: &str) -> String {
    in_one_spelling(
        fold(name)
            .chars()
            .filter(|character| character.is_alphanumeric())
            .collect(),
    )
}

impl Group {
    fn expression(&self, with_compounds: bool, to_rank: bool) -> String {
        // A word that stands twice counts twice where products are put in order.
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
        // A group of compounds alone says nothing where they are not asked for.
        if words.is_empty() {
            self.expression(true, to_rank)
        } else {
            format!("({})", words.join(" OR "))
        }
    }
}

/// The words of a text without those that say nothing, unless there are no others.
fn query_words(text: &str) -> Vec<String> {
    let (mut things, asides) = wished(text);
    things.extend(asides);
    things
}

/// Likewise, what is wished for and what it is for apart.
fn wished(text: &str) -> (Vec<String>, Vec<String>) {
    let words = all_words(text);
    let begin = words.iter().position(|word| !is_stop_word(word));
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
        let telling = words
            .iter()
            .filter(|word| all || !is_stop_word(word))
            .cloned();
        telling
            .filter(|word| seen.insert(word.clone()))
            .collect::<Vec<_>>()
    };
    (
        new(&words[..purpose], begin.is_none()),
        new(&words[purpose..], false),
    )
}

/// The word itself, if an attribute of this name has it. Endings tell sizes and colours apart (`grey` and `green` are one
/// to [`super::words::stem`]), so that other words are taken for it only where nobody has it.
fn label_words(
    name: &str,
    word: &str,
    vocabulary: &Vocabulary,
    labels: &impl Labels,
) -> Vec<String> {
    if labels.has_word(name, word) {
        return vec![word.to_owned()];
    }
    let near = vocabulary.mistaken_for(word);
    let near = near
        .into_iter()
        .map(|words| words.into_iter().filter(|word| labels.has_word(name, word)));
    near.map(Iterator::collect::<Vec<&str>>)
        .find(|words| !words.is_empty())
        .map_or_else(Vec::new, |words| owned(&words))
}

fn all_words(text: &str) -> Vec<String> {
    let words = parts(text).into_iter().flat_map(|part| match part {
        Part::Word { text, .. } => vec![text],
        Part::Dense(run) => pairs(&run),
    });
    words.collect()
}

/// Groups of words that the shop has; a word that it knows only together with the next one is one with it.
fn groups_of(words: &[String], vocabulary: &Vocabulary) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut index = 0;
    while let Some(word) = words.get(index) {
        index += 1;
        let next = words.get(index);
        let joined = next.map(|next| format!("{word}{next}"));
        let is_known = |word: &str| !vocabulary.forms(word).is_empty();
        match joined.filter(|joined| {
            is_known(joined) && !(is_known(word) && next.is_some_and(|next| is_known(next)))
        }) {
            Some(joined) => {
                groups.extend(known(&joined, vocabulary));
                index += 1;
            }
            None if is_known(word) || pieces(word).is_empty() => {
                groups.extend(group_of(word, vocabulary))
            }
            // A part of a model's number is another model.
            None if pieces(word).iter().any(|piece| !is_known(piece)) => {}
            None => groups.extend(
                pieces(word)
                    .into_iter()
                    .filter_map(|piece| group_of(piece, vocabulary)),
            ),
        }
    }
    groups
}

fn group_of(word: &str, vocabulary: &Vocabulary) -> Option<Group> {
    known(word, vocabulary).or_else(|| {
        let meant = vocabulary.misspelt(word);
        if meant.is_empty() {
            inside(word, vocabulary)
        } else {
            Some(group(None, &meant, Vec::new(), vocabulary))
        }
    })
}

fn known(word: &str, vocabulary: &Vocabulary) -> Option<Group> {
    let forms = vocabulary.forms(word);
    if forms.is_empty() {
        return None;
    }
    let exact = (vocabulary.products_with(word) > 0).then(|| word.to_owned());
    let others: Vec<&str> = forms.into_iter().filter(|form| *form != word).collect();
    Some(group(
        exact,
        &others,
        owned(&vocabulary.compounds(word)),
        vocabulary,
    ))
}

fn inside(word: &str, vocabulary: &Vocabulary) -> Option<Group> {
    let compounds = vocabulary.compounds(word);
    if compounds.is_empty() {
        None
    } else {
        Some(group(None, &[], owned(&compounds), vocabulary))
    }
}

fn group(
    exact: Option<String>,
    others: &[&str],
    compounds: Vec<String>,
    vocabulary: &Vocabulary,
) -> Group {
    let words = exact
        .iter()
        .map(String::as_str)
        .chain(others.iter().copied());
    let products = words
        .map(|word| vocabulary.products_with(word))
        .max()
        .unwrap_or_default();
    Group {
        exact,
        others: owned(others),
        compounds,
        products,
        is_aside: false,
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

/// The sets of `count` of so many things, as bits.
fn subsets(all: usize, count: usize) -> impl Iterator<Item = u32> {
    (0..1_u32 << all).filter(move |set| set.count_ones() as usize == count)
}

#[cfg(test)]
mod tests;
