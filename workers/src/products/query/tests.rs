//! Tests of the translation of queries.

use super::*;

struct NoAttributes;

impl ProductAttributes for NoAttributes {
    fn has_name(&self, _: &str) -> bool {
        false
    }

    fn has_word(&self, _: &str, _: &str) -> bool {
        false
    }
}

fn vocabulary() -> ShopVocabulary {
    let mut vocabulary = ShopVocabulary::default();
    for word in [
        "red",
        "shoe",
        "shoes",
        "running",
        "headphones",
        "500",
        "ml",
        "laufschuhe",
        "for",
    ] {
        vocabulary.add(word);
    }
    vocabulary
}

fn questions(text: &str) -> Vec<IndexQuery> {
    let query = ProductQuery {
        text: text.into(),
        ..ProductQuery::default()
    };
    ParsedQuery::read(&query, &vocabulary(), &NoAttributes)
        .index_queries()
        .collect()
}

fn expressions(text: &str) -> Vec<String> {
    questions(text)
        .into_iter()
        .map(|question| question.ranking)
        .collect()
}

#[test]
fn words_become_groups_and_later_queries_need_fewer() {
    assert_eq!(
        expressions("show me a red sofa"),
        [r#"((("red" OR "red")))"#]
    );
    let asked = expressions("red shoe running");
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].matches("AND").count(), 2);
    assert_eq!(asked[1].matches(" AND ").count(), 3);
}

#[test]
fn number_of_index_queries_is_bounded() {
    let words = [
        "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india",
        "juliett", "kilo",
    ];
    let mut vocabulary = ShopVocabulary::default();
    words.iter().for_each(|word| vocabulary.add(word));
    for count in 1..=words.len() {
        let words = &words[..count];
        let query = ProductQuery {
            text: words.join(" "),
            ..ProductQuery::default()
        };
        let request = ParsedQuery::read(&query, &vocabulary, &NoAttributes);
        let questions: Vec<IndexQuery> = request.index_queries().collect();
        assert!(
            (1..=4).contains(&questions.len()),
            "{count}: {}",
            questions.len()
        );
        for question in &questions {
            assert!(
                question.ranking.len() < 2_000,
                "{count}: {}",
                question.ranking
            );
        }
        // No more is left out than half of the groups.
        let last = questions
            .last()
            .unwrap()
            .matching
            .rsplit(" OR (")
            .next()
            .unwrap()
            .matches(" AND ")
            .count();
        assert_eq!(last + 1, count.min(GROUPS_MAX).div_ceil(2), "{count}");
    }
}

#[test]
fn purpose_words_need_not_be_in_the_title() {
    let asked = &questions("running shoes for headphones")[0];
    assert_eq!(asked.matching.matches(" AND ").count(), 2);
    assert!(!asked.named.contains("headphones"), "{}", asked.named);
    assert_eq!(asked.named.matches(" AND ").count(), 1);
    assert!(questions("for headphones")[0].named.contains("headphones"));
}

#[test]
fn mixed_joined_and_misspelt_words_match_shop_words() {
    assert_eq!(
        expressions("head phones"),
        [r#"((("headphones" OR "headphones")))"#]
    );
    assert_eq!(expressions("hedphones"), [r#"((("headphones")))"#]);
    assert!(expressions("500ml")[0].contains(r#""500""#));
    assert!(expressions("schuhe").last().unwrap().contains("laufschuhe"));
}

#[test]
fn unknown_words_match_nothing_and_no_words_match_all() {
    let read = |text: &str| {
        let query = ProductQuery {
            text: text.into(),
            ..ProductQuery::default()
        };
        let request = ParsedQuery::read(&query, &vocabulary(), &NoAttributes);
        (request.matches_nothing, request.is_empty())
    };
    assert_eq!(read("quantum spaceship"), (true, true));
    assert_eq!(read("  ?! "), (false, true));
    assert_eq!(read("for"), (false, false));
}
