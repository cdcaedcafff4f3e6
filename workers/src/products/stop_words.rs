//! Words that say nothing of a product, in the languages that most visitors write.

/// Folded.
#[rustfmt::skip]
const STOP_WORDS: [&str; 144] = [
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

/// Before what a thing is for, or has besides.
const PURPOSE_WORDS: [&str; 15] = [
    "avec", "con", "for", "fuer", "fur", "met", "mit", "para", "per", "pour", "voor", "with",
    "without", "для", "с",
];

/// Whether what follows `word` says what the thing before it is for.
pub(super) fn is_purpose_word(word: &str) -> bool {
    PURPOSE_WORDS.contains(&word)
}

/// Whether `word` says nothing of a product.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(&word)
}
