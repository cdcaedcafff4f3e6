//! What a member says of itself, in the pieces that a message is held against.

use std::collections::BTreeMap;

use super::{
    concepts::{self, Concept, Mention},
    lexical::Member,
};

/// Words between two phrases of a list, in the languages of the lexicon.
const JOINING_WORDS: [&str; 11] =
    [" and ", " or ", " & ", " und ", " oder ", " sowie ", " et ", " ou ", " oraz ", " y ", " e "];
/// Shortest piece that says something, in characters.
const PIECE_CHARS_MIN: usize = 3;
/// Pieces of one member: longer texts are cut.
const PIECES_MAX: usize = 60;

/// A member, ready to be compared.
pub(super) struct Profile {
    /// Its words.
    pub(super) member: Member,
    /// What it mentions.
    pub(super) concepts: BTreeMap<Concept, Mention>,
    /// Name, phrases of the specialization and parts of the description.
    pub(super) pieces: Vec<String>,
    /// The same for readers that know English only.
    pub(super) english_pieces: Vec<String>,
    /// All of it.
    pub(super) whole: String,
    /// All of it for readers that know English only.
    pub(super) english_whole: String,
}

impl Profile {
    /// Cuts the texts into pieces.
    pub(super) fn of(name: &str, description: &str, specialization: &str) -> Self {
        let mut pieces = vec![name.to_owned()];
        pieces.extend(self::pieces(specialization));
        let phrases = pieces.split_off(1);
        let member = Member::of(&[specialization, description, name].join("\n"), &phrases);
        pieces.extend(phrases);
        pieces.extend(self::pieces(description));
        pieces.truncate(PIECES_MAX);
        let whole = format!("{name}. {description} {specialization}");
        let concepts = concepts::mentions(&whole);
        Self {
            member,
            english_pieces: pieces.iter().map(|piece| in_english(piece)).collect(),
            english_whole: in_english(&whole),
            pieces,
            whole,
            concepts,
        }
    }
}

/// As it is, if it is English; else what the lexicon knows of it, and all of it where that is nothing.
fn in_english(text: &str) -> String {
    if super::language::Languages::of_text(text) == super::language::Languages::of_code("en") {
        return text.to_owned();
    }
    let gloss = concepts::gloss(&concepts::mentions(text));
    if gloss.is_empty() { text.to_owned() } else { gloss }
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let list = JOINING_WORDS.iter().fold(text.to_owned(), |list, word| list.replace(word, ","));
    let pieces: Vec<String> =
        list.split([',', ';', '.', ':', '\n', '/', '(', ')']).map(|piece| piece.trim().to_owned()).collect();
    pieces.into_iter().filter(|piece| piece.chars().count() >= PIECE_CHARS_MIN)
}
