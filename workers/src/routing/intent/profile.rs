//! What a member says of itself, in the pieces that a message is held against.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    bag::Bag,
    concepts::{self, Aside, Concept, Mention},
    inquiry,
    language::Languages,
    lexical::Member,
    reading,
    sayings::{self, Saying},
};

/// Words between two phrases of a list, in the languages of the lexicon.
const JOINING_WORDS: [&str; 11] = [
    " and ", " or ", " & ", " und ", " oder ", " sowie ", " et ", " ou ", " oraz ", " y ", " e ",
];
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
    /// What it mentions that is nobody's matter elsewhere.
    pub(super) asides: BTreeSet<Aside>,
    /// What visitors say who mean what it mentions.
    pub(super) sayings: Vec<&'static Saying>,
    /// The words of all that, in English.
    pub(super) bags: Bags,
    /// Its texts.
    pub(super) texts: Arc<Texts>,
    /// The same, read in English.
    pub(super) english: Arc<Texts>,
    /// The same in English, the pieces as they would be [asked about](inquiry).
    pub(super) inquiries: Arc<Texts>,
}

/// What a message's vector is held against.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Texts {
    /// All of it.
    pub(super) whole: String,
    /// The specialization.
    pub(super) matters: String,
    /// Name, phrases of the specialization and parts of the description.
    pub(super) pieces: Vec<String>,
}

/// English words of a member.
pub(super) struct Bags {
    /// Of its texts.
    pub(super) own: Bag,
    /// Of the names of what it mentions.
    pub(super) concepts: Bag,
    /// Of what visitors say who mean that.
    pub(super) sayings: Bag,
}

impl Profile {
    /// Cuts the texts into pieces.
    pub(super) fn of(name: &str, description: &str, specialization: &str) -> Self {
        let phrases: Vec<String> = self::pieces(specialization).collect();
        let member = Member::of(&[specialization, description, name].join("\n"), &phrases);
        let mut pieces = vec![name.to_owned()];
        pieces.extend(phrases);
        pieces.extend(self::pieces(description));
        pieces.truncate(PIECES_MAX);
        let whole = format!("{name}. {description} {specialization}");
        let texts = Arc::new(Texts {
            whole,
            matters: specialization.to_owned(),
            pieces,
        });
        let english = Arc::new(texts.in_english(reading::languages(&texts.whole)));
        let inquiries = Arc::new(english.asked_about());
        let concepts = concepts::mentions(&texts.whole);
        let asides = concepts::asides(&texts.whole);
        let sayings = sayings::of(&concepts);
        let bags = Bags::of(&english.whole, &concepts, &sayings);
        Self {
            member,
            concepts,
            asides,
            sayings,
            bags,
            texts,
            english,
            inquiries,
        }
    }
}

impl Texts {
    fn in_english(&self, languages: Languages) -> Self {
        let read = |text: &String| reading::part_in_english(text, languages);
        Self {
            whole: read(&self.whole),
            matters: read(&self.matters),
            pieces: self.pieces.iter().map(read).collect(),
        }
    }

    fn asked_about(&self) -> Self {
        let pieces = self
            .pieces
            .iter()
            .map(|piece| inquiry::about(piece))
            .collect();
        Self {
            whole: self.whole.clone(),
            matters: self.matters.clone(),
            pieces,
        }
    }

    /// All of them, in the order of the fields.
    pub(super) fn each(&self) -> impl Iterator<Item = &str> {
        [self.whole.as_str(), self.matters.as_str()]
            .into_iter()
            .chain(self.pieces.iter().map(String::as_str))
    }
}

impl Bags {
    fn of(english: &str, concepts: &BTreeMap<Concept, Mention>, sayings: &[&Saying]) -> Self {
        let names: Vec<Bag> = concepts
            .keys()
            .map(|concept| Bag::of(&concepts::in_english(*concept)))
            .collect();
        Self {
            own: Bag::of(english),
            concepts: Bag::union(&names),
            sayings: Bag::union(sayings.iter().map(|saying| &saying.words)),
        }
    }
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let list = JOINING_WORDS
        .iter()
        .fold(text.to_owned(), |list, word| list.replace(word, ","));
    let pieces: Vec<String> = list
        .split([',', ';', '.', ':', '\n', '/', '(', ')'])
        .map(|piece| piece.trim().to_owned())
        .collect();
    pieces
        .into_iter()
        .filter(|piece| piece.chars().count() >= PIECE_CHARS_MIN)
}
