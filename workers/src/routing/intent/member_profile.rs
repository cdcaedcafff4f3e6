//! The texts of a member, split into the pieces that messages are compared with.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    concepts::{self, ConceptIndex, ConceptMention, OutOfScopeTopic},
    example_utterances::{self, ExampleUtterance},
    language::LanguageSet,
    lexical::MemberWords,
    question_frame, translation,
    word_bag::WordBag,
};

/// Words between two phrases of a list, in eight languages.
const JOINING_WORDS: [&str; 11] = [
    " and ", " or ", " & ", " und ", " oder ", " sowie ", " et ", " ou ", " oraz ", " y ", " e ",
];
/// Shortest piece that is compared, in characters.
const PIECE_CHARS_MIN: usize = 3;
/// Most pieces of one member.
const PIECES_MAX: usize = 60;

/// A member's texts, prepared for comparison with messages.
pub(super) struct MemberProfile {
    /// The words of its texts.
    pub(super) member: MemberWords,
    /// Concepts that its texts mention.
    pub(super) concepts: BTreeMap<ConceptIndex, ConceptMention>,
    /// Topics in its texts that are out of scope for other members.
    pub(super) asides: BTreeSet<OutOfScopeTopic>,
    /// Example utterances about its concepts.
    pub(super) sayings: Vec<&'static ExampleUtterance>,
    /// English words of its texts, concepts and example utterances.
    pub(super) bags: MemberBags,
    /// Its texts as written.
    pub(super) texts: Arc<MemberTexts>,
    /// Its texts, translated to English word by word.
    pub(super) english: Arc<MemberTexts>,
    /// The translated texts with pieces in the form of a [question](question_frame).
    pub(super) inquiries: Arc<MemberTexts>,
}

/// The texts of a member whose vectors are compared with messages.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct MemberTexts {
    /// Name, description and specialization.
    pub(super) whole: String,
    /// The text of the specialization.
    pub(super) matters: String,
    /// The name, the phrases of the specialization and the parts of the description.
    pub(super) pieces: Vec<String>,
}

/// English words about a member.
pub(super) struct MemberBags {
    /// Words of its texts.
    pub(super) own: WordBag,
    /// Words in the names of its concepts.
    pub(super) concepts: WordBag,
    /// Words of the example utterances about its concepts.
    pub(super) sayings: WordBag,
}

impl MemberProfile {
    /// Creates the profile of a member.
    pub(super) fn of(name: &str, description: &str, specialization: &str) -> Self {
        let phrases: Vec<String> = self::pieces(specialization).collect();
        let member = MemberWords::of(&[specialization, description, name].join("\n"), &phrases);
        let mut pieces = vec![name.to_owned()];
        pieces.extend(phrases);
        pieces.extend(self::pieces(description));
        pieces.truncate(PIECES_MAX);
        let whole = format!("{name}. {description} {specialization}");
        let texts = Arc::new(MemberTexts {
            whole,
            matters: specialization.to_owned(),
            pieces,
        });
        let english = Arc::new(texts.in_english(translation::languages(&texts.whole)));
        let inquiries = Arc::new(english.asked_about());
        let concepts = concepts::mentions(&texts.whole);
        let asides = concepts::asides(&texts.whole);
        let sayings = example_utterances::of(&concepts);
        let bags = MemberBags::of(&english.whole, &concepts, &sayings);
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

impl MemberTexts {
    fn in_english(&self, languages: LanguageSet) -> Self {
        let read = |text: &String| translation::part_in_english(text, languages);
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
            .map(|piece| question_frame::about(piece))
            .collect();
        Self {
            whole: self.whole.clone(),
            matters: self.matters.clone(),
            pieces,
        }
    }

    /// Returns all texts in the order of the fields.
    pub(super) fn each(&self) -> impl Iterator<Item = &str> {
        [self.whole.as_str(), self.matters.as_str()]
            .into_iter()
            .chain(self.pieces.iter().map(String::as_str))
    }
}

impl MemberBags {
    fn of(
        english: &str,
        concepts: &BTreeMap<ConceptIndex, ConceptMention>,
        sayings: &[&ExampleUtterance],
    ) -> Self {
        let names: Vec<WordBag> = concepts
            .keys()
            .map(|concept| WordBag::of(&concepts::in_english(*concept)))
            .collect();
        Self {
            own: WordBag::of(english),
            concepts: WordBag::union(&names),
            sayings: WordBag::union(sayings.iter().map(|saying| &saying.words)),
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
