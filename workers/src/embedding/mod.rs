//! Texts as vectors, so that what means the same lies near, whatever its words: the ground of routing by meaning.
//!
//! Two sources stand behind one trait, [`Embedder`]: a provider's `/v1/embeddings` ([`provider`]), and a model that runs in
//! this process ([`sentence_transformer`]). [`Vectors`] keeps what was computed, and asks a source that fails or is
//! slow only now and then: whoever wants vectors must be able to do without.

pub(crate) mod provider;
pub(crate) mod sentence_transformer;
mod vectors;

use std::sync::Arc;

use async_trait::async_trait;

pub(crate) use vectors::Vectors;

/// Texts of one call of a source.
pub(crate) const BATCH_TEXTS_MAX: usize = 64;
/// Characters of a text that are looked at: more would be cut by most models anyway.
pub(crate) const TEXT_CHARS_MAX: usize = 1000;
/// Products of a cosine that are added side by side.
const LANES: usize = 8;

/// A text as a direction; of length 1, so that the product of two is their cosine.
pub(crate) type Vector = Arc<[f32]>;

/// A source of vectors.
#[async_trait]
pub(crate) trait Embedder: Send + Sync {
    /// Names the model and where it is: vectors of different sources say nothing to each other.
    fn name(&self) -> &str;

    /// The vectors of at most [`BATCH_TEXTS_MAX`] texts, in their order, of one dimension each and any length.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError>;
}

/// Why there are no vectors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EmbeddingError {
    /// The source failed lately and is left alone for a while.
    #[error("the source of embeddings failed lately")]
    Resting,
    /// They did not come in time.
    #[error("embeddings did not come in time")]
    Late,
    /// The provider did not give them.
    #[error("embeddings: {0}")]
    Provider(#[from] crate::model::CallError),
    /// The model in this process could not compute them.
    #[error("embedding model: {0}")]
    Model(String),
    /// Too few, or of several dimensions, or not of numbers.
    #[error("the source gave vectors that are none")]
    Malformed,
}

/// How alike two texts are: 1 for the same, about 0 for nothing in common. Of different models: 0.
pub(crate) fn cosine(left: &Vector, right: &Vector) -> f32 {
    if left.len() != right.len() {
        return 0.0;
    }
    // Apart in lanes, which the processor adds side by side: thousands of these are wanted for one message.
    let (lefts, rights) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest: f32 = lefts
        .remainder()
        .iter()
        .zip(rights.remainder())
        .map(|(left, right)| left * right)
        .sum();
    let mut sums = [0.0_f32; LANES];
    for (left, right) in lefts.zip(rights) {
        for (sum, (left, right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += left * right;
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// The same direction at length 1; none for what has no direction.
pub(crate) fn unit(vector: Vec<f32>) -> Option<Vector> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    let is_sound = length.is_finite() && length > 0.0;
    is_sound.then(|| vector.into_iter().map(|value| value / length).collect())
}
