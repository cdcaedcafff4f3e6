//! What every message is held against, whatever the team, by the vectors of one source: sentences of no matter, sentences of
//! known matters, and the names of these.
//!
//! Cosines of different models lie differently: about 0 between strangers for one, about 0.8 for another. They are read on
//! the scale of the model itself, which is how it finds sentences to be alike that have nothing in common: 0 is as alike as
//! these are, and 1 is a standard deviation more. So the weights of one model serve another.

use super::{
    language::Languages,
    sayings::{self, Saying},
};
use crate::embedding::{Vector, cosine};

/// A sentence in each language of the lexicon; the first in English. A model that finds them alike knows the language.
const PROBES: [(&str, &str); 8] = [
    (
        "en",
        "Good morning, where is the blue bicycle that I bought from you last week?",
    ),
    (
        "de",
        "Guten Morgen, wo ist das blaue Fahrrad, das ich letzte Woche bei Ihnen gekauft habe?",
    ),
    (
        "fr",
        "Bonjour, où est le vélo bleu que je vous ai acheté la semaine dernière ?",
    ),
    (
        "es",
        "Buenos días, ¿dónde está la bicicleta azul que les compré la semana pasada?",
    ),
    (
        "it",
        "Buongiorno, dov'è la bicicletta blu che ho comprato da voi la settimana scorsa?",
    ),
    (
        "pl",
        "Dzień dobry, gdzie jest niebieski rower, który kupiłem u was w zeszłym tygodniu?",
    ),
    (
        "pt",
        "Bom dia, onde está a bicicleta azul que comprei a vocês na semana passada?",
    ),
    (
        "nl",
        "Goedemorgen, waar is de blauwe fiets die ik vorige week bij jullie heb gekocht?",
    ),
];
/// Cosine from which two sentences of the same meaning show that the model knows the other language.
const KNOWS_COSINE_MIN: f32 = 0.75;
/// The same on the model's own scale: all cosines of some models are high.
const KNOWS_MIN: f32 = 3.0;
/// More alike says no more.
const ALIKE_MAX: f32 = 8.0;
/// Keeps the scale finite for a model that finds everything the same.
const DEVIATION_MIN: f32 = 1e-3;
/// How much less a saying counts than the nearest: at this distance, in deviations, a power of e.
const NEIGHBOURS_WIDTH: f64 = 0.5;
/// The nearest of a crowd, by which it is told how near a text is to everything.
const CROWD_NEAREST: usize = 10;
/// Of so many names one stands for all where the usual nearness is taken.
const SAMPLE_EVERY: usize = 8;

/// The vectors of one source.
pub(super) struct Background {
    scale: Scale,
    known: Languages,
    nobodys: Vec<Vector>,
    sayings: Vec<Vector>,
    /// The names of the matters that have sayings.
    names: Vec<Vector>,
    /// How near a name is to everything, mostly.
    nearness: Nearness,
}

/// How near a text is to everything that may be asked. A text that is near to all says little by being near to a message,
/// so that this is taken from its cosines (cross-domain similarity local scaling, Conneau et al., "Word translation
/// without parallel data", section 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Nearness {
    /// To what visitors say.
    pub(super) sayings: f32,
    /// To the names of matters.
    pub(super) names: f32,
}

/// What a model finds between sentences that have nothing in common.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    mean: f32,
    deviation: f32,
}

/// A matter that a message may be about.
pub(super) struct Guess<'a> {
    /// Its name.
    pub(super) name: &'a Vector,
    /// How likely; all guesses together 1.
    pub(super) weight: f32,
}

impl Background {
    /// Everything that is to be a vector, in the order in which [`Background::of`] takes it.
    pub(super) fn texts() -> Vec<String> {
        let said = |sayings: &[Saying]| {
            sayings
                .iter()
                .map(|saying| saying.text.clone())
                .collect::<Vec<_>>()
        };
        let mut texts: Vec<String> = PROBES.iter().map(|(_, text)| (*text).to_owned()).collect();
        texts.extend(said(sayings::of_nobody()));
        texts.extend(said(sayings::all()));
        texts.extend(sayings::matters().iter().map(|matter| matter.name.clone()));
        texts
    }

    /// Takes the vectors of [`Background::texts`] apart; none if there are too few.
    pub(super) fn of(vectors: Vec<Vector>) -> Option<Self> {
        let mut vectors = vectors.into_iter();
        let mut take = |count: usize| -> Option<Vec<Vector>> {
            let taken: Vec<Vector> = vectors.by_ref().take(count).collect();
            (taken.len() == count).then_some(taken)
        };
        let (probes, nobodys) = (take(PROBES.len())?, take(sayings::of_nobody().len())?);
        let (sayings, names) = (take(sayings::all().len())?, take(sayings::matters().len())?);
        let scale = Scale::of(&nobodys);
        let known = PROBES.iter().zip(&probes).filter_map(|((code, _), probe)| {
            let alike = cosine(&probes[0], probe);
            (alike >= KNOWS_COSINE_MIN && scale.read(alike) >= KNOWS_MIN)
                .then(|| Languages::of_code(code))
        });
        let known = known.fold(Languages::default(), Languages::and);
        let background = Self {
            scale,
            known,
            nobodys,
            sayings,
            names,
            nearness: Nearness::default(),
        };
        Some(Self {
            nearness: background.usual_nearness(),
            ..background
        })
    }

    /// How near a text is to everything, beside what names usually are.
    pub(super) fn nearness(&self, text: &Vector) -> Nearness {
        let Nearness { sayings, names } = self.nearness;
        Nearness {
            sayings: crowd(text, &self.sayings) - sayings,
            names: crowd(text, &self.names) - names,
        }
    }

    fn usual_nearness(&self) -> Nearness {
        let of = |all: &[Vector]| {
            let each: Vec<f32> = self
                .names
                .iter()
                .step_by(SAMPLE_EVERY)
                .map(|name| crowd(name, all))
                .collect();
            mean(&each).unwrap_or_default()
        };
        Nearness {
            sayings: of(&self.sayings),
            names: of(&self.names),
        }
    }

    /// What it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        let vectors = self.nobodys.iter().chain(&self.sayings).chain(&self.names);
        vectors.map(|vector| size_of_val(&**vector)).sum()
    }

    /// Whether the model knows one of the languages.
    pub(super) const fn knows(&self, languages: Languages) -> bool {
        self.known.meets(languages)
    }

    /// Whether the model was taught English and no other language.
    pub(super) fn knows_english_only(&self) -> bool {
        self.known == Languages::of_code("en")
    }

    /// How its cosines are read.
    pub(super) const fn scale(&self) -> Scale {
        self.scale
    }

    /// Sentences that are nobody's matter.
    pub(super) fn nobodys(&self) -> &[Vector] {
        &self.nobodys
    }

    /// How alike a message is to each of [`sayings::all`].
    pub(super) fn said(&self, asked: &Vector) -> Vec<f32> {
        self.sayings
            .iter()
            .map(|saying| cosine(asked, saying))
            .collect()
    }

    /// The matters whose sayings are nearest, each once; of what [`Background::said`] gives.
    pub(super) fn guesses(&self, said: &[f32]) -> Vec<Guess<'_>> {
        let near = said
            .iter()
            .zip(sayings::all())
            .map(|(alike, known)| (f64::from(*alike), known.matter));
        let (likely, _) = sayings::likely(near, NEIGHBOURS_WIDTH * f64::from(self.scale.deviation));
        let guess = |(matter, weight): (usize, f64)| {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a share, of which a few digits matter"
            )]
            let weight = weight as f32;
            Some(Guess {
                name: self.names.get(matter)?,
                weight,
            })
        };
        likely.into_iter().filter_map(guess).collect()
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
        let squares: Vec<f32> = cosines
            .iter()
            .map(|cosine| (cosine - mean).powi(2))
            .collect();
        Self {
            mean,
            deviation: self::mean(&squares)
                .unwrap_or_default()
                .sqrt()
                .max(DEVIATION_MIN),
        }
    }

    /// A cosine in deviations from that of strangers.
    pub(super) fn read(self, cosine: f32) -> f32 {
        ((cosine - self.mean) / self.deviation).clamp(-ALIKE_MAX, ALIKE_MAX)
    }

    /// The cosine of strangers.
    pub(super) const fn mean(self) -> f32 {
        self.mean
    }
}

/// How alike a text is to the nearest of a crowd, on average.
fn crowd(text: &Vector, crowd: &[Vector]) -> f32 {
    let nearest = highest(crowd.iter().map(|other| cosine(text, other)), CROWD_NEAREST);
    mean(&nearest).unwrap_or_default()
}

/// The highest of some values, the highest first.
pub(super) fn highest(values: impl Iterator<Item = f32>, count: usize) -> Vec<f32> {
    let mut values: Vec<f32> = values.collect();
    values.sort_unstable_by(|left, right| right.total_cmp(left));
    values.truncate(count);
    values
}

/// The mean; none of nothing.
#[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
pub(super) fn mean(values: &[f32]) -> Option<f32> {
    if values.is_empty() {
        None
    } else {
        Some(values.iter().sum::<f32>() / values.len() as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedding::unit;

    /// A direction for each text, so that no two are alike.
    fn background() -> (Background, Vec<Vector>) {
        let count = Background::texts().len();
        let direction = |place: usize| {
            (0..count)
                .map(|other| if other == place { 1.0 } else { 0.0 })
                .collect()
        };
        let vectors: Vec<Vector> = (0..count).map(direction).collect();
        (Background::of(vectors.clone()).unwrap(), vectors)
    }

    #[test]
    fn a_message_that_is_a_saying_is_guessed_to_be_of_its_matter() {
        let (background, _) = background();
        let place = sayings::all().len() / 2;
        let guesses = background.guesses(&background.said(&background.sayings[place]));
        let likely = guesses
            .iter()
            .max_by(|left, right| left.weight.total_cmp(&right.weight))
            .unwrap();
        assert_eq!(likely.name, &background.names[sayings::all()[place].matter]);
        assert!(
            likely.weight > 0.99
                && (guesses.iter().map(|guess| guess.weight).sum::<f32>() - 1.0).abs() < 1e-4
        );
    }

    #[test]
    fn a_text_that_is_near_to_everything_is_known_as_such() {
        let count = Background::texts().len();
        let mut vectors: Vec<Vector> = (0..count)
            .map(|place| [1.0, place as f32 / 1e4].into())
            .collect();
        vectors
            .iter_mut()
            .for_each(|vector| *vector = unit(vector.to_vec()).unwrap());
        let background = Background::of(vectors).unwrap();
        let (near, far) = (
            background.nearness(&[1.0, 0.0].into()),
            background.nearness(&[0.0, 1.0].into()),
        );
        assert!(
            near.sayings > far.sayings && near.names > far.names,
            "{near:?} {far:?}"
        );
        assert!(
            near.sayings.abs() < 0.1,
            "names of this crowd are near to everything too"
        );
    }

    #[test]
    fn a_model_that_finds_no_two_sentences_alike_knows_english_only_and_too_few_vectors_are_none() {
        let (background, mut vectors) = background();
        assert!(
            background.knows(Languages::of_code("en"))
                && !background.knows(Languages::of_code("de"))
        );
        vectors.pop();
        assert!(Background::of(vectors).is_none());
    }

    #[test]
    fn cosines_are_read_in_deviations_from_those_of_strangers() {
        let strangers: Vec<Vector> = vec![[1.0, 0.0].into(), [0.0, 1.0].into(), [0.6, 0.8].into()];
        let scale = Scale::of(&strangers);
        assert!(
            scale.read(scale.mean()).abs() < 1e-6
                && scale.read(1.0) > 1.0
                && scale.read(-1.0) < -1.0
        );
    }
}
