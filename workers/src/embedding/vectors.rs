//! Vectors by text: computed once, kept within a bound, and waited for no longer than the caller can.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use moka::sync::Cache;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::{BATCH_TEXTS_MAX, Embedder, EmbeddingError, TEXT_CHARS_MAX, Vector, unit};

/// Bytes that a kept vector costs beside its numbers and its text.
const ENTRY_OVERHEAD_BYTES: usize = 128;
/// How long a source that failed is not asked.
const REST: Duration = Duration::from_secs(10);
/// How long a computation may go on for which nobody waits any more.
const COMPUTE_MAX: Duration = Duration::from_secs(180);
/// Sources whose failures are remembered.
const RESTING_SOURCES_MAX: u64 = 10_000;

/// A cache of vectors in front of all sources; clones share it.
#[derive(Clone)]
pub(crate) struct Vectors {
    kept: Cache<Key, Vector>,
    /// Sources that are left alone: they failed lately, or still compute what came too late.
    resting: Cache<Arc<str>, ()>,
    tasks: TaskTracker,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    source: Arc<str>,
    text: String,
}

impl Vectors {
    /// Keeps at most so many bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let kept = Cache::builder()
            .max_capacity(bytes_max)
            .weigher(|key: &Key, vector: &Vector| {
                let bytes = key.text.len() + size_of_val(&**vector) + ENTRY_OVERHEAD_BYTES;
                u32::try_from(bytes).unwrap_or(u32::MAX)
            })
            .build();
        let resting = Cache::builder()
            .max_capacity(RESTING_SOURCES_MAX)
            .time_to_live(REST)
            .build();
        Self {
            kept,
            resting,
            tasks: TaskTracker::new(),
        }
    }

    /// The vectors of `texts` in their order, if they are there within `wait`; what comes later is kept for the next
    /// caller.
    pub(crate) async fn of(
        &self,
        source: &Arc<dyn Embedder>,
        texts: &[String],
        wait: Duration,
    ) -> Result<Vec<Vector>, EmbeddingError> {
        let name: Arc<str> = source.name().into();
        let keys: Vec<Key> = texts
            .iter()
            .map(|text| Key {
                source: name.clone(),
                text: shortened(text),
            })
            .collect();
        let known: Vec<Option<Vector>> = keys.iter().map(|key| self.kept.get(key)).collect();
        let missing = keys
            .iter()
            .zip(&known)
            .filter(|(_, vector)| vector.is_none());
        let missing: BTreeSet<String> = missing.map(|(key, _)| key.text.clone()).collect();
        let fresh = if missing.is_empty() {
            HashMap::new()
        } else {
            self.compute(source, name, missing, wait).await?
        };
        let found = keys
            .iter()
            .zip(known)
            .map(|(key, known)| known.or_else(|| fresh.get(&key.text).cloned()));
        found
            .collect::<Option<_>>()
            .ok_or(EmbeddingError::Malformed)
    }

    async fn compute(
        &self,
        source: &Arc<dyn Embedder>,
        name: Arc<str>,
        missing: BTreeSet<String>,
        wait: Duration,
    ) -> Result<HashMap<String, Vector>, EmbeddingError> {
        if self.resting.contains_key(&name) {
            return Err(EmbeddingError::Resting);
        }
        let (kept, resting, source) = (self.kept.clone(), self.resting.clone(), source.clone());
        let task_name = name.clone();
        // A task of its own, so that it goes on when it is waited for no longer: else a team whose texts take longer
        // than anybody waits would never have vectors.
        let task = self.tasks.spawn(async move {
            let computed = timeout(COMPUTE_MAX, fill(&kept, &*source, &task_name, missing)).await;
            let computed = computed.unwrap_or(Err(EmbeddingError::Late));
            match &computed {
                Ok(_) => resting.invalidate(&task_name),
                Err(_) => resting.insert(task_name, ()),
            }
            computed
        });
        match timeout(wait, task).await {
            Ok(computed) => computed.unwrap_or(Err(EmbeddingError::Malformed)),
            Err(_) => {
                self.resting.insert(name, ());
                Err(EmbeddingError::Late)
            }
        }
    }
}

/// Computes batch by batch; what came before an error is kept.
async fn fill(
    kept: &Cache<Key, Vector>,
    source: &dyn Embedder,
    name: &Arc<str>,
    missing: BTreeSet<String>,
) -> Result<HashMap<String, Vector>, EmbeddingError> {
    let missing: Vec<String> = missing.into_iter().collect();
    // Handed back too: a small cache may drop a vector before it is read.
    let mut fresh = HashMap::with_capacity(missing.len());
    for batch in missing.chunks(BATCH_TEXTS_MAX) {
        let vectors = source.embed(batch).await?;
        let dimensions = vectors.first().map_or(0, Vec::len);
        if vectors.len() != batch.len() || vectors.iter().any(|vector| vector.len() != dimensions) {
            return Err(EmbeddingError::Malformed);
        }
        for (text, vector) in batch.iter().zip(vectors) {
            let vector = unit(vector).ok_or(EmbeddingError::Malformed)?;
            kept.insert(
                Key {
                    source: name.clone(),
                    text: text.clone(),
                },
                vector.clone(),
            );
            fresh.insert(text.clone(), vector);
        }
    }
    Ok(fresh)
}

fn shortened(text: &str) -> String {
    // Some providers refuse an empty text, and with it the whole batch.
    let text = if text.trim().is_empty() { "-" } else { text };
    text.chars().take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::{embedding::cosine, testing::eventually};

    const WAIT: Duration = Duration::from_secs(5);

    /// A vector says how long its text is.
    #[derive(Default)]
    struct Lengths {
        texts: AtomicUsize,
        gate: Option<Semaphore>,
        fails: bool,
    }

    #[async_trait]
    impl Embedder for Lengths {
        fn name(&self) -> &str {
            "lengths"
        }

        #[expect(clippy::cast_precision_loss, reason = "texts are short")]
        async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
            assert!(texts.len() <= BATCH_TEXTS_MAX);
            self.texts.fetch_add(texts.len(), Ordering::SeqCst);
            if let Some(gate) = &self.gate {
                gate.acquire().await.unwrap().forget();
            }
            if self.fails {
                return Err(EmbeddingError::Model("broken".into()));
            }
            Ok(texts
                .iter()
                .map(|text| vec![text.chars().count() as f32, 1.0])
                .collect())
        }
    }

    fn source(lengths: Lengths) -> (Arc<Lengths>, Arc<dyn Embedder>) {
        let lengths = Arc::new(lengths);
        (lengths.clone(), lengths)
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[tokio::test]
    async fn vectors_come_in_the_order_of_the_texts_and_each_text_is_computed_once() {
        let (vectors, (lengths, source)) = (Vectors::new(1 << 20), source(Lengths::default()));
        let found = vectors
            .of(&source, &texts(&["bb", "a", "bb", ""]), WAIT)
            .await
            .unwrap();
        assert!(found[0] == found[2] && found[0] != found[1]);
        assert!(
            (cosine(&found[1], &found[1]) - 1.0).abs() < 1e-6,
            "of length 1"
        );
        vectors
            .of(&source, &texts(&["a", "bb"]), WAIT)
            .await
            .unwrap();
        assert_eq!(lengths.texts.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn many_and_long_texts_go_in_bounded_batches_and_cut_and_a_small_cache_is_enough() {
        let (vectors, (_, source)) = (Vectors::new(1), source(Lengths::default()));
        let many: Vec<String> = (0..150).map(|length| "x".repeat(length * 10 + 1)).collect();
        let found = vectors.of(&source, &many, WAIT).await.unwrap();
        assert_eq!(found.len(), 150);
        assert_eq!(found[149], found[120], "both are cut to the same length");
    }

    #[tokio::test]
    async fn a_slow_source_is_left_alone_until_what_it_computes_is_there_for_the_next_caller() {
        let gate = Some(Semaphore::new(0));
        let (vectors, (lengths, source)) = (
            Vectors::new(1 << 20),
            source(Lengths {
                gate,
                ..Lengths::default()
            }),
        );
        let late = vectors
            .of(&source, &texts(&["new"]), Duration::from_millis(20))
            .await;
        assert_eq!(late, Err(EmbeddingError::Late));
        assert_eq!(
            vectors.of(&source, &texts(&["new"]), WAIT).await,
            Err(EmbeddingError::Resting)
        );
        lengths.gate.as_ref().unwrap().add_permits(1);
        eventually("the late vector is kept", async || {
            vectors.of(&source, &texts(&["new"]), WAIT).await.is_ok()
        })
        .await;
        assert_eq!(lengths.texts.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_source_that_fails_is_left_alone_for_a_while() {
        let (lengths, source) = source(Lengths {
            fails: true,
            ..Lengths::default()
        });
        let vectors = Vectors::new(1);
        let failed = vectors.of(&source, &texts(&["new"]), WAIT).await;
        assert_eq!(failed, Err(EmbeddingError::Model("broken".into())));
        assert_eq!(
            vectors.of(&source, &texts(&["new"]), WAIT).await,
            Err(EmbeddingError::Resting)
        );
        assert_eq!(lengths.texts.load(Ordering::SeqCst), 1);
    }
}
