//! How alike a message and each member are, by the vectors of their texts.
//!
//! Cosines of different models lie differently: about 0 between strangers for one, about 0.8 for another. They are read on
//! the scale of the model itself, which is how it finds sentences to be alike that have nothing in common: 0 is as alike as
//! these are, and 1 is a standard deviation more. So the weights of one model serve another.

use super::{
    evidence::Ground,
    language::Languages,
    profile::Profile,
    reading,
    sayings::{self, Saying},
};
use crate::embedding::{Vector, cosine};

/// A sentence in each language of the lexicon; the first in English. A model that finds them alike knows the language.
const PROBES: [(&str, &str); 8] = [
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
const KNOWS_COSINE_MIN: f32 = 0.75;
/// The same on the model's own scale: all cosines of some models are high.
const KNOWS_MIN: f32 = 3.0;
/// A sentence that is nobody's matter is some member's after all, if it is as alike to a piece of it.
const MEMBERS_MIN: f32 = 4.0;
/// More alike says no more.
const ALIKE_MAX: f32 = 8.0;
/// Sayings that are averaged: one may be near by chance.
const NEAREST_SAYINGS: usize = 3;
/// Keeps the scale finite for a model that finds everything the same.
const DEVIATION_MIN: f32 = 1e-3;

/// How alike a message and a member are, on the model's own scale.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alike {
    /// The piece of it that is most alike.
    pub(super) piece: f32,
    /// All of it.
    pub(super) whole: f32,
    /// The sentence of those who mean its matters that is most alike.
    pub(super) saying: f32,
    /// The mean of the nearest of these.
    pub(super) sayings: f32,
}

/// The vectors of one message and its team.
pub(super) struct MessageVectors {
    message: Vector,
    english: Vector,
    members: Vec<MemberVectors>,
    nobodys: Vec<Vector>,
    ground: Ground,
    scale: Scale,
}

struct MemberVectors {
    whole: Vector,
    english_whole: Vector,
    pieces: Vec<Vector>,
    english_pieces: Vec<Vector>,
    sayings: Vec<Vector>,
}

/// What a model finds between sentences that have nothing in common.
#[derive(Clone, Copy)]
struct Scale {
    mean: f32,
    deviation: f32,
}

/// Everything that is to be a vector, in the order in which [`MessageVectors::of`] takes it apart.
pub(super) fn texts(message: &str, profiles: &[&Profile]) -> Vec<String> {
    let mut texts = vec![message.to_owned(), reading::in_english(message)];
    let said = |sayings: &[Saying]| sayings.iter().map(|saying| saying.text.clone()).collect::<Vec<_>>();
    texts.extend(said(sayings::of_nobody()));
    texts.extend(PROBES.iter().map(|(_, text)| (*text).to_owned()));
    for profile in profiles {
        texts.extend([profile.whole.clone(), profile.english_whole.clone()]);
        texts.extend(profile.pieces.iter().chain(&profile.english_pieces).cloned());
        texts.extend(said(&profile.sayings));
    }
    texts
}

impl MessageVectors {
    /// Takes the vectors of [`texts`] apart; none if there are too few.
    pub(super) fn of(vectors: Vec<Vector>, message: &str, profiles: &[&Profile]) -> Option<Self> {
        let mut vectors = vectors.into_iter();
        let mut take = |count: usize| -> Option<Vec<Vector>> {
            let taken: Vec<Vector> = vectors.by_ref().take(count).collect();
            (taken.len() == count).then_some(taken)
        };
        let [asked, english] = <[Vector; 2]>::try_from(take(2)?).ok()?;
        let (nobodys, probes) = (take(sayings::of_nobody().len())?, take(PROBES.len())?);
        let members = profiles.iter().map(|profile| {
            let [whole, english_whole] = <[Vector; 2]>::try_from(take(2)?).ok()?;
            let (pieces, english_pieces) = (take(profile.pieces.len())?, take(profile.english_pieces.len())?);
            Some(MemberVectors { whole, english_whole, pieces, english_pieces, sayings: take(profile.sayings.len())? })
        });
        let members = members.collect::<Option<_>>()?;
        let scale = Scale::of(&nobodys);
        let knows = |text: &str| knows(&probes, scale, reading::languages(text));
        let known = knows(message) && profiles.first().is_none_or(|profile| knows(&profile.whole));
        let ground = if known { Ground::Vectors } else { Ground::EnglishOnly };
        Some(Self { message: asked, english, members, nobodys, ground, scale })
    }

    /// What the vectors are good for.
    pub(super) const fn ground(&self) -> Ground {
        self.ground
    }

    /// How alike the message is to a member.
    pub(super) fn alike(&self, index: usize) -> Alike {
        let member = &self.members[index];
        let asked = self.asked();
        let (pieces, whole) = match self.ground {
            Ground::EnglishOnly => (&member.english_pieces, &member.english_whole),
            Ground::Words | Ground::Vectors => (&member.pieces, &member.whole),
        };
        let sayings = nearest(asked, &member.sayings);
        Alike {
            piece: self.scale.read(highest(asked, pieces)),
            whole: self.scale.read(cosine(asked, whole)),
            saying: self.scale.read(sayings.first().copied().unwrap_or(self.scale.mean)),
            sayings: self.scale.read(mean(&sayings).unwrap_or(self.scale.mean)),
        }
    }

    /// How alike the message is to the nearest sentence that is nobody's matter, and no member's either.
    pub(super) fn alike_nobodys(&self) -> f32 {
        let is_members = |nobodys: &&Vector| {
            let alike =
                |member: &MemberVectors| self.scale.read(highest(nobodys, &member.english_pieces)) >= MEMBERS_MIN;
            !self.members.iter().any(alike)
        };
        let nobodys = self.nobodys.iter().filter(is_members).map(|nobodys| cosine(self.asked(), nobodys));
        self.scale.read(nobodys.fold(self.scale.mean, f32::max))
    }

    const fn asked(&self) -> &Vector {
        match self.ground {
            Ground::EnglishOnly => &self.english,
            Ground::Words | Ground::Vectors => &self.message,
        }
    }
}

impl Scale {
    fn of(strangers: &[Vector]) -> Self {
        let pairs = strangers.iter().enumerate().flat_map(|(place, left)| {
            let others = strangers[place + 1..].iter();
            others.map(move |right| cosine(left, right))
        });
        let cosines: Vec<f32> = pairs.collect();
        let mean = mean(&cosines).unwrap_or_default();
        let squares: Vec<f32> = cosines.iter().map(|cosine| (cosine - mean).powi(2)).collect();
        Self { mean, deviation: self::mean(&squares).unwrap_or_default().sqrt().max(DEVIATION_MIN) }
    }

    fn read(self, cosine: f32) -> f32 {
        ((cosine - self.mean) / self.deviation).clamp(-ALIKE_MAX, ALIKE_MAX)
    }
}

/// Whether the model knows a language that a text may be in.
fn knows(probes: &[Vector], scale: Scale, languages: Languages) -> bool {
    PROBES.iter().zip(probes).any(|((code, _), probe)| {
        let alike = cosine(&probes[0], probe);
        Languages::of_code(code).meets(languages) && alike >= KNOWS_COSINE_MIN && scale.read(alike) >= KNOWS_MIN
    })
}

/// The highest cosines, the highest first.
fn nearest(vector: &Vector, others: &[Vector]) -> Vec<f32> {
    let mut cosines: Vec<f32> = others.iter().map(|other| cosine(vector, other)).collect();
    cosines.sort_by(|left, right| right.total_cmp(left));
    cosines.truncate(NEAREST_SAYINGS);
    cosines
}

fn highest(vector: &Vector, others: &[Vector]) -> f32 {
    others.iter().map(|other| cosine(vector, other)).fold(-1.0, f32::max)
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
fn mean(values: &[f32]) -> Option<f32> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f32>() / values.len() as f32) }
}
