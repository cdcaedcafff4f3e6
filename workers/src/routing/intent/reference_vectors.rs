//! Reference vectors of one source that every message is compared with: out-of-scope utterances, example utterances of known
//! concepts, and the names of these concepts.
//!
//! Cosines of unrelated texts differ between models: about 0 for one, about 0.8 for another. They are standardized by the
//! cosines of unrelated sentences of the same model: 0 is their mean and 1 is one standard deviation more. The weights for
//! one model therefore fit another.

use super::{
    example_utterances::{self, ExampleUtterance},
    language::LanguageSet,
};
use crate::embedding::{EmbeddingVector, cosine};

/// A sentence in each language of the lexicon, the first in English. A model knows a language if its vector is similar.
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
/// Cosine of translated sentences from which the model knows the other language.
const KNOWS_COSINE_MIN: f32 = 0.75;
/// The same threshold in standard deviations, because all cosines of some models are high.
const KNOWS_MIN: f32 = 3.0;
/// Largest standardized cosine that counts.
const ALIKE_MAX: f32 = 8.0;
/// Smallest standard deviation, which keeps the scale finite for a model with equal cosines.
const DEVIATION_MIN: f32 = 1e-3;
/// Distance to the nearest utterance, in standard deviations, at which another one counts 1/e of it.
const NEIGHBOURS_WIDTH: f64 = 0.5;
/// Nearest reference texts whose mean cosine is the hubness of a text.
const CROWD_NEAREST: usize = 10;
/// Sampling interval of the names from which the usual hubness is computed.
const SAMPLE_EVERY: usize = 8;

/// The reference vectors of one source.
pub(super) struct ReferenceVectors {
    scale: CosineScale,
    known: LanguageSet,
    nobodys: Vec<EmbeddingVector>,
    sayings: Vec<EmbeddingVector>,
    /// Names of the concepts that have example utterances.
    names: Vec<EmbeddingVector>,
    /// The usual hubness of a name.
    nearness: TextHubness,
}

/// The hubness of a text: its mean cosine to the nearest reference texts. It is subtracted from the cosines of the text,
/// because a text that is similar to everything is no evidence (cross-domain similarity local scaling, Conneau et al., "Word
/// translation without parallel data", section 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TextHubness {
    /// Hubness among example utterances.
    pub(super) sayings: f32,
    /// Hubness among names of concepts.
    pub(super) names: f32,
}

/// Mean and standard deviation of a model's cosines between unrelated sentences.
#[derive(Clone, Copy)]
pub(super) struct CosineScale {
    mean: f32,
    deviation: f32,
}

/// A concept that a message may be about.
pub(super) struct ConceptGuess<'a> {
    /// Vector of its name.
    pub(super) name: &'a EmbeddingVector,
    /// Probability; the sum over all guesses is 1.
    pub(super) weight: f32,
}

impl ReferenceVectors {
    /// Returns all reference texts, in the order that [`ReferenceVectors::of`] expects.
    pub(super) fn texts() -> Vec<String> {
        let said = |sayings: &[ExampleUtterance]| {
            sayings
                .iter()
                .map(|saying| saying.text.clone())
                .collect::<Vec<_>>()
        };
        let mut texts: Vec<String> = PROBES.iter().map(|(_, text)| (*text).to_owned()).collect();
        texts.extend(said(example_utterances::of_nobody()));
        texts.extend(said(example_utterances::all()));
        texts.extend(
            example_utterances::matters()
                .iter()
                .map(|matter| matter.name.clone()),
        );
        texts
    }

    /// Creates the reference from the vectors of [`ReferenceVectors::texts`]; none if there are too few.
    pub(super) fn of(vectors: Vec<EmbeddingVector>) -> Option<Self> {
        let mut vectors = vectors.into_iter();
        let mut take = |count: usize| -> Option<Vec<EmbeddingVector>> {
            let taken: Vec<EmbeddingVector> = vectors.by_ref().take(count).collect();
            (taken.len() == count).then_some(taken)
        };
        let (probes, nobodys) = (
            take(PROBES.len())?,
            take(example_utterances::of_nobody().len())?,
        );
        let (sayings, names) = (
            take(example_utterances::all().len())?,
            take(example_utterances::matters().len())?,
        );
        let scale = CosineScale::of(&nobodys);
        let known = PROBES.iter().zip(&probes).filter_map(|((code, _), probe)| {
            let alike = cosine(&probes[0], probe);
            (alike >= KNOWS_COSINE_MIN && scale.read(alike) >= KNOWS_MIN)
                .then(|| LanguageSet::of_code(code))
        });
        let known = known.fold(LanguageSet::default(), LanguageSet::and);
        let background = Self {
            scale,
            known,
            nobodys,
            sayings,
            names,
            nearness: TextHubness::default(),
        };
        Some(Self {
            nearness: background.usual_nearness(),
            ..background
        })
    }

    /// Returns the hubness of a text, relative to that of names.
    pub(super) fn nearness(&self, text: &EmbeddingVector) -> TextHubness {
        let TextHubness { sayings, names } = self.nearness;
        TextHubness {
            sayings: crowd(text, &self.sayings) - sayings,
            names: crowd(text, &self.names) - names,
        }
    }

    fn usual_nearness(&self) -> TextHubness {
        let of = |all: &[EmbeddingVector]| {
            let each: Vec<f32> = self
                .names
                .iter()
                .step_by(SAMPLE_EVERY)
                .map(|name| crowd(name, all))
                .collect();
            mean(&each).unwrap_or_default()
        };
        TextHubness {
            sayings: of(&self.sayings),
            names: of(&self.names),
        }
    }

    /// Returns its approximate memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let vectors = self.nobodys.iter().chain(&self.sayings).chain(&self.names);
        vectors.map(|vector| size_of_val(&**vector)).sum()
    }

    /// Returns true if the model knows one of the languages.
    pub(super) const fn knows(&self, languages: LanguageSet) -> bool {
        self.known.meets(languages)
    }

    /// Returns true if the model knows English and no other language.
    pub(super) fn knows_english_only(&self) -> bool {
        self.known == LanguageSet::of_code("en")
    }

    /// Returns the scale of its cosines.
    pub(super) const fn scale(&self) -> CosineScale {
        self.scale
    }

    /// Returns the vectors of out-of-scope utterances.
    pub(super) fn nobodys(&self) -> &[EmbeddingVector] {
        &self.nobodys
    }

    /// Returns the standardized similarity of a message to each of [`example_utterances::all`].
    pub(super) fn said(&self, asked: &EmbeddingVector) -> Vec<f32> {
        self.sayings
            .iter()
            .map(|saying| cosine(asked, saying))
            .collect()
    }

    /// Returns the concepts of the nearest utterances, each once, from the similarities of [`ReferenceVectors::said`].
    pub(super) fn guesses(&self, said: &[f32]) -> Vec<ConceptGuess<'_>> {
        let near = said
            .iter()
            .zip(example_utterances::all())
            .map(|(alike, known)| (f64::from(*alike), known.matter));
        let (likely, _) =
            example_utterances::likely(near, NEIGHBOURS_WIDTH * f64::from(self.scale.deviation));
        let guess = |(matter, weight): (usize, f64)| {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a share, of which a few digits matter"
            )]
            let weight = weight as f32;
            Some(ConceptGuess {
                name: self.names.get(matter)?,
                weight,
            })
        };
        likely.into_iter().filter_map(guess).collect()
    }
}

impl CosineScale {
    fn of(strangers: &[EmbeddingVector]) -> Self {
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

    /// Returns a cosine in standard deviations from the mean of unrelated sentences.
    pub(super) fn read(self, cosine: f32) -> f32 {
        ((cosine - self.mean) / self.deviation).clamp(-ALIKE_MAX, ALIKE_MAX)
    }

    /// Returns the mean cosine of unrelated sentences.
    pub(super) const fn mean(self) -> f32 {
        self.mean
    }
}

/// Returns the mean cosine of a text to the nearest texts of a crowd.
fn crowd(text: &EmbeddingVector, crowd: &[EmbeddingVector]) -> f32 {
    let nearest = highest(crowd.iter().map(|other| cosine(text, other)), CROWD_NEAREST);
    mean(&nearest).unwrap_or_default()
}

/// Returns the `count` highest values, the highest first.
pub(super) fn highest(values: impl Iterator<Item = f32>, count: usize) -> Vec<f32> {
    let mut values: Vec<f32> = values.collect();
    values.sort_unstable_by(|left, right| right.total_cmp(left));
    values.truncate(count);
    values
}

/// Returns the mean; none for no values.
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
    use crate::embedding::normalized;

    /// A direction for each text, so that no two are alike.
    fn background() -> (ReferenceVectors, Vec<EmbeddingVector>) {
        let count = ReferenceVectors::texts().len();
        let direction = |place: usize| {
            (0..count)
                .map(|other| if other == place { 1.0 } else { 0.0 })
                .collect()
        };
        let vectors: Vec<EmbeddingVector> = (0..count).map(direction).collect();
        (ReferenceVectors::of(vectors.clone()).unwrap(), vectors)
    }

    #[test]
    fn example_utterance_determines_its_concept() {
        let (background, _) = background();
        let place = example_utterances::all().len() / 2;
        let guesses = background.guesses(&background.said(&background.sayings[place]));
        let likely = guesses
            .iter()
            .max_by(|left, right| left.weight.total_cmp(&right.weight))
            .unwrap();
        assert_eq!(
            likely.name,
            &background.names[example_utterances::all()[place].matter]
        );
        assert!(
            likely.weight > 0.99
                && (guesses.iter().map(|guess| guess.weight).sum::<f32>() - 1.0).abs() < 1e-4
        );
    }

    #[test]
    fn text_near_to_everything_has_high_hubness() {
        let count = ReferenceVectors::texts().len();
        let mut vectors: Vec<EmbeddingVector> = (0..count)
            .map(|place| [1.0, place as f32 / 1e4].into())
            .collect();
        vectors
            .iter_mut()
            .for_each(|vector| *vector = normalized(vector.to_vec()).unwrap());
        let background = ReferenceVectors::of(vectors).unwrap();
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
    fn languages_of_a_model_are_detected() {
        let (background, mut vectors) = background();
        assert!(
            background.knows(LanguageSet::of_code("en"))
                && !background.knows(LanguageSet::of_code("de"))
        );
        vectors.pop();
        assert!(ReferenceVectors::of(vectors).is_none());
    }

    #[test]
    fn cosines_are_standardized() {
        let strangers: Vec<EmbeddingVector> =
            vec![[1.0, 0.0].into(), [0.0, 1.0].into(), [0.6, 0.8].into()];
        let scale = CosineScale::of(&strangers);
        assert!(
            scale.read(scale.mean()).abs() < 1e-6
                && scale.read(1.0) > 1.0
                && scale.read(-1.0) < -1.0
        );
    }
}
