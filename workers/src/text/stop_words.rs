//! Stop words in the languages that most visitors write: those of any message, and those of product
//! queries.

use std::{collections::HashSet, sync::LazyLock};

use super::folding::fold;

/// Stop words of messages, one language a line after its ISO 639-1 code.
const MESSAGE_STOP_WORDS: &str = include_str!("stop_words.txt");

static MESSAGE_STOP_WORD_SET: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let lines = MESSAGE_STOP_WORDS.lines();
    let words = lines.filter_map(|line| Some(line.split_once(": ")?.1));
    words.flat_map(str::split_whitespace).map(fold).collect()
});

/// Words that say nothing about a product.
#[rustfmt::skip]
const QUERY_STOP_WORDS: [&str; 144] = [
    "a", "al", "an", "and", "any", "are", "au", "auf", "aus", "aux", "avec", "avez", "bei", "can", "che", "com",
    "con", "da", "dans", "das", "de", "dei", "del", "della", "dem", "den", "der", "des", "di", "die", "do", "does",
    "dos", "du", "e", "ein", "eine", "einem", "einen", "einer", "el", "em", "en", "est", "et", "few", "for", "from",
    "fuer", "fur", "gibt", "give", "ha", "haben", "habt", "has", "hast", "have", "het", "i", "ich", "il", "im",
    "in", "is", "ist", "it", "je", "la", "las", "le", "les", "lo", "looking", "los", "me", "mein", "mi", "mich",
    "mir", "mit", "moi", "my", "nach", "need", "nel", "o", "of", "on", "or", "os", "para", "per", "please", "por",
    "pour", "que", "quiero", "se", "search", "show", "sie", "some", "son", "suche", "sur", "that", "the", "there",
    "they", "this", "to", "um", "un", "una", "und", "une", "uno", "unos", "van", "voglio", "von", "voor", "vous",
    "want", "was", "we", "what", "which", "wir", "with", "would", "y", "you", "your", "zu", "zum", "zur", "для",
    "есть", "и", "на", "с", "что",
];

/// Prepositions before the purpose or an extra of a product.
const PURPOSE_WORDS: [&str; 15] = [
    "avec", "con", "for", "fuer", "fur", "met", "mit", "para", "per", "pour", "voor", "with",
    "without", "для", "с",
];

/// Conjunctions between two products that a query names.
const CONJUNCTIONS: [&str; 15] = [
    "and", "e", "ed", "en", "et", "i", "lub", "o", "oder", "or", "oraz", "ou", "u", "und", "y",
];

/// Returns true for a folded word that is a stop word of messages in any language.
pub(crate) fn is_message_stop_word(word: &str) -> bool {
    MESSAGE_STOP_WORD_SET.contains(word)
}

/// Returns true for a folded word that is a stop word of product queries.
pub(crate) fn is_query_stop_word(word: &str) -> bool {
    QUERY_STOP_WORDS.contains(&word)
}

/// Returns true for a word after which a query names the purpose of a product.
pub(crate) fn is_purpose_word(word: &str) -> bool {
    PURPOSE_WORDS.contains(&word)
}

/// Returns true for a folded word that connects two products of a query.
pub(crate) fn is_conjunction(word: &str) -> bool {
    CONJUNCTIONS.contains(&word)
}
