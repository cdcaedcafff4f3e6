//! Text embeddings: texts as vectors, of which those of similar meaning have a high cosine.
//!
//! Two sources implement [`EmbeddingSource`]: a provider's `/v1/embeddings` ([`provider`]) and a
//! model in this process ([`sentence_transformer`]). [`EmbeddingCache`] stores computed vectors and
//! pauses a source that fails or is slow, so callers must be able to work without embeddings.

mod cache;
mod language_fit;
pub(crate) mod provider;
pub(crate) mod sentence_transformer;

use std::sync::Arc;

use async_trait::async_trait;

pub(crate) use cache::EmbeddingCache;

/// Most texts in one call of a source.
pub(crate) const BATCH_TEXTS_MAX: usize = 64;
/// Characters of a text that are embedded; most models truncate longer texts anyway.
pub(crate) const TEXT_CHARS_MAX: usize = 1000;
/// Products of a cosine that are summed in parallel.
const LANES: usize = 8;

/// An embedding of length 1, so that the dot product of two is their cosine.
pub(crate) type EmbeddingVector = Arc<[f32]>;

/// A source of embeddings.
#[async_trait]
pub(crate) trait EmbeddingSource: Send + Sync {
    /// Returns the name of the model and its location. EmbeddingCache of different sources cannot
    /// be compared.
    fn name(&self) -> &str;

    /// Returns the vectors of at most [`BATCH_TEXTS_MAX`] texts in their order, all of one
    /// dimension and of any length.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError>;

    /// Returns the languages that the model knows. A source whose tokenizer is not here counts as
    /// multilingual.
    fn languages(&self) -> ModelLanguages {
        ModelLanguages::Many
    }

    /// Returns true if the model knows the language of a text.
    fn knows_language(&self, _text: &str) -> bool {
        true
    }
}

/// The languages that an embedding model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelLanguages {
    /// English only.
    English,
    /// English and others.
    Many,
}

/// An error of a source of embeddings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EmbeddingError {
    /// The source failed lately and is not asked for a while.
    #[error("the source of embeddings failed lately")]
    Paused,
    /// The source did not respond in time.
    #[error("embeddings did not come in time")]
    TimedOut,
    /// The call of the provider failed.
    #[error("embeddings: {0}")]
    Provider(#[from] crate::model::CallError),
    /// The model in this process could not compute them.
    #[error("embedding model: {0}")]
    Model(String),
    /// The source returned too few vectors, vectors of several dimensions, or values that are not
    /// numbers.
    #[error("the source returned malformed vectors")]
    Malformed,
}

/// Returns the cosine of two embeddings: 1 for the same direction, about 0 for unrelated texts.
/// Returns 0 if the dimensions differ.
pub(crate) fn cosine(left: &EmbeddingVector, right: &EmbeddingVector) -> f32 {
    if left.len() != right.len() {
        return 0.0;
    }
    // Separate lanes let the compiler use vector instructions; one message needs thousands of
    // cosines.
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

/// Returns the vector scaled to length 1; `None` for a vector of length 0 or with values that are
/// not finite.
pub(crate) fn normalized(vector: Vec<f32>) -> Option<EmbeddingVector> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    let is_sound = length.is_finite() && length > 0.0;
    is_sound.then(|| vector.into_iter().map(|value| value / length).collect())
}
