//! What speaks for each member, as numbers: words, concepts, and vectors where there are any.

use super::{
    concepts::{self, Concept, Mention},
    language::Languages,
    lexical,
    profile::Profile,
};
use crate::embedding::{Vector, cosine};
use std::collections::BTreeMap;

/// More of one kind says no more.
const WORDS_MAX: f64 = 3.0;
/// Texts that are no member's matter.
pub(super) const NOBODYS_TEXTS: [&str; 20] = [
    "hello, how are you?",
    "is anybody there?",
    "I want to talk to a real person",
    "are you a robot?",
    "tell me a joke",
    "what is the weather like tomorrow?",
    "who won the football match?",
    "help me with my homework",
    "haha, okay, good night",
    "buy followers and backlinks, first page of search engines",
    "earn money from home with crypto",
    "asdf qwerty bla bla",
    "what is the meaning of life?",
    "you are stupid",
    "my sink is blocked, can you send a plumber?",
    "my washing machine is broken",
    "give me a recipe for pancakes",
    "which restaurant nearby do you recommend?",
    "translate this sentence",
    "write a poem",
];
/// A sentence in each language of the lexicon; the first in English. A model that finds them alike knows the language.
pub(super) const PROBES: [(&str, &str); 8] = [
    ("en", "Good morning, where is the blue bicycle that I bought from you last week?"),
    ("de", "Guten Morgen, wo ist das blaue Fahrrad, das ich letzte Woche bei Ihnen gekauft habe?"),
    ("fr", "Bonjour, où est le vélo bleu que je vous ai acheté la semaine dernière ?"),
    ("es", "Buenos días, ¿dónde está la bicicleta azul que les compré la semana pasada?"),
    ("it", "Buongiorno, dov'è la bicicletta blu che ho comprato da voi la settimana scorsa?"),
    ("pl", "Dzień dobry, gdzie jest niebieski rower, który kupiłem u was w zeszłym tygodniu?"),
    ("pt", "Bom dia, onde está a bicicleta azul que comprei a vocês na semana passada?"),
    ("nl", "Goedemorgen, waar is de blauwe fiets die ik vorige week bij jullie heb gekocht?"),
];
/// Cosine from which two sentences of the same meaning show that the model knows the other language.
const KNOWS_MIN: f32 = 0.75;

/// What speaks for one member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// Words in common, weighted by how telling they are.
    pub(super) words: f32,
    /// Concepts in common, likewise.
    pub(super) concepts: f32,
    /// Cosine to the piece of it that is most alike.
    pub(super) piece: f32,
    /// Cosine to all of it.
    pub(super) whole: f32,
    /// The same two for what the lexicon makes of both in English.
    pub(super) english_piece: f32,
    /// All of it, in English.
    pub(super) english_whole: f32,
}

/// What is known of a message.
#[derive(Clone, Debug)]
pub(super) struct Findings {
    /// Of each member, in their order.
    pub(super) members: Vec<Evidence>,
    /// Mentions of what is nobody's matter.
    pub(super) asides: f32,
    /// Cosine to the nearest text that is nobody's matter.
    pub(super) nobodys: f32,
    /// What the numbers stand on.
    pub(super) ground: Ground,
    /// Of each member, its own words that were met.
    pub(super) topics: Vec<Vec<String>>,
}

/// What numbers stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// Words and concepts only.
    Words,
    /// And vectors of a model that knows the languages of both sides.
    Vectors,
    /// And vectors of a model that knows only what the lexicon could put into English.
    EnglishOnly,
}

/// The vectors of one message and its team.
pub(super) struct MessageVectors {
    message: Vector,
    english: Vector,
    members: Vec<MemberVectors>,
    nobodys: Vec<Vector>,
    probes: Vec<Vector>,
}

struct MemberVectors {
    pieces: Vec<Vector>,
    english_pieces: Vec<Vector>,
    whole: Vector,
    english_whole: Vector,
}

/// Everything that is to be a vector, in the order in which [`MessageVectors::of`] takes it apart.
pub(super) fn texts(message: &str, profiles: &[&Profile]) -> Vec<String> {
    let mut texts = vec![message.to_owned(), in_english(message)];
    texts.extend(NOBODYS_TEXTS.iter().map(|text| (*text).to_owned()));
    texts.extend(PROBES.iter().map(|(_, text)| (*text).to_owned()));
    for profile in profiles {
        texts.extend([profile.whole.clone(), profile.english_whole.clone()]);
        texts.extend(profile.pieces.iter().chain(&profile.english_pieces).cloned());
    }
    texts
}

impl MessageVectors {
    /// Takes the vectors of [`texts`] apart; none if there are too few.
    pub(super) fn of(vectors: Vec<Vector>, profiles: &[&Profile]) -> Option<Self> {
        let mut vectors = vectors.into_iter();
        let (message, english) = (vectors.next()?, vectors.next()?);
        let mut take = |count: usize| -> Option<Vec<Vector>> {
            let taken: Vec<Vector> = vectors.by_ref().take(count).collect();
            (taken.len() == count).then_some(taken)
        };
        let (nobodys, probes) = (take(NOBODYS_TEXTS.len())?, take(PROBES.len())?);
        let members = profiles.iter().map(|profile| {
            let [whole, english_whole] = <[Vector; 2]>::try_from(take(2)?).ok()?;
            let pieces = take(profile.pieces.len())?;
            Some(MemberVectors { english_pieces: take(pieces.len())?, whole, english_whole, pieces })
        });
        Some(Self { members: members.collect::<Option<_>>()?, message, english, nobodys, probes })
    }

    /// Whether the model knows a language that the text may be in.
    fn knows(&self, text: &str) -> bool {
        let languages = Languages::of_text(text);
        PROBES.iter().zip(&self.probes).any(|((code, _), probe)| {
            Languages::of_code(code).meets(languages) && cosine(&self.probes[0], probe) >= KNOWS_MIN
        })
    }
}

/// Gathers what speaks for each member.
pub(super) fn gather(message: &str, profiles: &[&Profile], vectors: Option<&MessageVectors>) -> Findings {
    let words: Vec<_> = profiles.iter().map(|profile| &profile.member).collect();
    let fits = lexical::fits(message, &words);
    let mentions = concepts::mentions(message);
    let ground = vectors.map_or(Ground::Words, |vectors| {
        let known = vectors.knows(message) && profiles.first().is_none_or(|profile| vectors.knows(&profile.whole));
        if known { Ground::Vectors } else { Ground::EnglishOnly }
    });
    let evidence = |(index, profile): (usize, &&Profile)| {
        let mut evidence = vectors.map(|vectors| alike(vectors, index)).unwrap_or_default();
        evidence.words = narrow(fits[index].score.min(WORDS_MAX));
        evidence.concepts = narrow(shared(&mentions, profile, profiles).min(WORDS_MAX));
        evidence
    };
    let nearest = |vector: &Vector, vectors: &[Vector]| highest(vector, vectors);
    Findings {
        members: profiles.iter().enumerate().map(evidence).collect(),
        asides: narrow(f64::from(u32::try_from(concepts::asides(message)).unwrap_or(u32::MAX)).min(WORDS_MAX)),
        nobodys: vectors.map_or(0.0, |vectors| nearest(&vectors.message, &vectors.nobodys)),
        ground,
        topics: fits.into_iter().map(|fit| fit.topics).collect(),
    }
}

fn alike(vectors: &MessageVectors, index: usize) -> Evidence {
    let member = &vectors.members[index];
    Evidence {
        piece: highest(&vectors.message, &member.pieces),
        whole: cosine(&vectors.message, &member.whole),
        english_piece: highest(&vectors.english, &member.english_pieces),
        english_whole: cosine(&vectors.english, &member.english_whole),
        ..Evidence::default()
    }
}

fn highest(vector: &Vector, others: &[Vector]) -> f32 {
    others.iter().map(|other| cosine(vector, other)).fold(0.0, f32::max)
}

/// Concepts that the message and the member have; what fewer members have says more.
fn shared(mentions: &BTreeMap<Concept, Mention>, profile: &Profile, profiles: &[&Profile]) -> f64 {
    let of = |(concept, mention): (&Concept, &Mention)| {
        let own = profile.concepts.get(concept)?;
        let having = profiles.iter().filter(|other| other.concepts.contains_key(concept)).count();
        Some(mention.weight.min(own.weight) / f64::from(u32::try_from(having).ok()?))
    };
    mentions.iter().filter_map(of).sum()
}

fn in_english(message: &str) -> String {
    let gloss = concepts::gloss(&concepts::mentions(message));
    if gloss.is_empty() { message.to_owned() } else { gloss }
}

#[expect(clippy::cast_possible_truncation, reason = "small figures, of which a few digits matter")]
const fn narrow(value: f64) -> f32 {
    value as f32
}
