//! A bounded cache of embeddings by text, in front of all sources; callers set how long they wait.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use moka::sync::Cache;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::{
    BATCH_TEXTS_MAX, EmbeddingError, EmbeddingSource, EmbeddingVector, TEXT_CHARS_MAX, normalized,
};

/// Bytes of a cache entry beside its vector and its text.
const ENTRY_OVERHEAD_BYTES: usize = 128;
/// Pause of a source after a failure.
const SOURCE_PAUSE: Duration = Duration::from_secs(10);
/// Longest computation, even if no caller waits for it.
const COMPUTE_MAX: Duration = Duration::from_secs(180);
/// Sources whose failures are remembered.
const PAUSED_SOURCES_MAX: u64 = 10_000;

/// A cache of embeddings; clones share it.
#[derive(Clone)]
pub(crate) struct EmbeddingCache {
    kept: Cache<CacheKey, EmbeddingVector>,
    /// Sources that failed lately, or that still compute a late batch.
    paused: Cache<Arc<str>, ()>,
    tasks: TaskTracker,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CacheKey {
    source: Arc<str>,
    text: String,
}

impl EmbeddingCache {
    /// Creates a cache of at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let kept = Cache::builder()
            .max_capacity(bytes_max)
            .weigher(|key: &CacheKey, vector: &EmbeddingVector| {
                let bytes = key.text.len() + size_of_val(&**vector) + ENTRY_OVERHEAD_BYTES;
                u32::try_from(bytes).unwrap_or(u32::MAX)
            })
            .build();
        let paused = Cache::builder()
            .max_capacity(PAUSED_SOURCES_MAX)
            .time_to_live(SOURCE_PAUSE)
            .build();
        Self {
            kept,
            paused,
            tasks: TaskTracker::new(),
        }
    }

    /// Returns the vectors of `texts` in their order. Fails if they are not available within
    /// `wait`; vectors that are computed later are cached for the next caller.
    pub(crate) async fn embed_all(
        &self,
        source: &Arc<dyn EmbeddingSource>,
        texts: &[String],
        wait: Duration,
    ) -> Result<Vec<EmbeddingVector>, EmbeddingError> {
        let name: Arc<str> = source.name().into();
        let keys: Vec<CacheKey> = texts
            .iter()
            .map(|text| CacheKey {
                source: name.clone(),
                text: truncated(text),
            })
            .collect();
        let known: Vec<Option<EmbeddingVector>> =
            keys.iter().map(|key| self.kept.get(key)).collect();
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
        source: &Arc<dyn EmbeddingSource>,
        name: Arc<str>,
        missing: BTreeSet<String>,
        wait: Duration,
    ) -> Result<HashMap<String, EmbeddingVector>, EmbeddingError> {
        if self.paused.contains_key(&name) {
            return Err(EmbeddingError::Paused);
        }
        let (kept, paused, source) = (self.kept.clone(), self.paused.clone(), source.clone());
        let task_name = name.clone();
        // A separate task, so that it continues after the caller gave up. Otherwise a team whose
        // texts take longer than any caller waits would never get vectors.
        let task = self.tasks.spawn(async move {
            let computed = timeout(
                COMPUTE_MAX,
                compute_batches(&kept, &*source, &task_name, missing),
            )
            .await;
            let computed = computed.unwrap_or(Err(EmbeddingError::TimedOut));
            match &computed {
                Ok(_) => paused.invalidate(&task_name),
                Err(_) => paused.insert(task_name, ()),
            }
            computed
        });
        match timeout(wait, task).await {
            Ok(computed) => computed.unwrap_or(Err(EmbeddingError::Malformed)),
            Err(_) => {
                self.paused.insert(name, ());
                Err(EmbeddingError::TimedOut)
            }
        }
    }
}

/// Computes the vectors batch by batch; batches before an error are cached.
async fn compute_batches(
    kept: &Cache<CacheKey, EmbeddingVector>,
    source: &dyn EmbeddingSource,
    name: &Arc<str>,
    missing: BTreeSet<String>,
) -> Result<HashMap<String, EmbeddingVector>, EmbeddingError> {
    let missing: Vec<String> = missing.into_iter().collect();
    // Returned as well, because a small cache may evict a vector before it is read.
    let mut fresh = HashMap::with_capacity(missing.len());
    for batch in missing.chunks(BATCH_TEXTS_MAX) {
        let vectors = source.embed(batch).await?;
        let dimensions = vectors.first().map_or(0, Vec::len);
        if vectors.len() != batch.len() || vectors.iter().any(|vector| vector.len() != dimensions) {
            return Err(EmbeddingError::Malformed);
        }
        for (text, vector) in batch.iter().zip(vectors) {
            let vector = normalized(vector).ok_or(EmbeddingError::Malformed)?;
            kept.insert(
                CacheKey {
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

fn truncated(text: &str) -> String {
    // Some providers reject an empty text and with it the whole batch.
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

    /// A source whose vectors contain the length of the text.
    #[derive(Default)]
    struct Lengths {
        texts: AtomicUsize,
        gate: Option<Semaphore>,
        fails: bool,
    }

    #[async_trait]
    impl EmbeddingSource for Lengths {
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

    fn source(lengths: Lengths) -> (Arc<Lengths>, Arc<dyn EmbeddingSource>) {
        let lengths = Arc::new(lengths);
        (lengths.clone(), lengths)
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[tokio::test]
    async fn each_text_is_embedded_once_and_order_is_kept() {
        let (vectors, (lengths, source)) =
            (EmbeddingCache::new(1 << 20), source(Lengths::default()));
        let found = vectors
            .embed_all(&source, &texts(&["bb", "a", "bb", ""]), WAIT)
            .await
            .unwrap();
        assert!(found[0] == found[2] && found[0] != found[1]);
        assert!(
            (cosine(&found[1], &found[1]) - 1.0).abs() < 1e-6,
            "of length 1"
        );
        vectors
            .embed_all(&source, &texts(&["a", "bb"]), WAIT)
            .await
            .unwrap();
        assert_eq!(lengths.texts.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn batches_and_texts_are_bounded_even_with_a_small_cache() {
        let (vectors, (_, source)) = (EmbeddingCache::new(1), source(Lengths::default()));
        let many: Vec<String> = (0..150).map(|length| "x".repeat(length * 10 + 1)).collect();
        let found = vectors.embed_all(&source, &many, WAIT).await.unwrap();
        assert_eq!(found.len(), 150);
        assert_eq!(found[149], found[120], "both are cut to the same length");
    }

    #[tokio::test]
    async fn late_vectors_are_cached_for_the_next_caller() {
        let gate = Some(Semaphore::new(0));
        let (vectors, (lengths, source)) = (
            EmbeddingCache::new(1 << 20),
            source(Lengths {
                gate,
                ..Lengths::default()
            }),
        );
        let late = vectors
            .embed_all(&source, &texts(&["new"]), Duration::from_millis(20))
            .await;
        assert_eq!(late, Err(EmbeddingError::TimedOut));
        assert_eq!(
            vectors.embed_all(&source, &texts(&["new"]), WAIT).await,
            Err(EmbeddingError::Paused)
        );
        lengths.gate.as_ref().unwrap().add_permits(1);
        eventually("the late vector is kept", async || {
            vectors
                .embed_all(&source, &texts(&["new"]), WAIT)
                .await
                .is_ok()
        })
        .await;
        assert_eq!(lengths.texts.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn failed_source_is_not_asked_for_a_while() {
        let (lengths, source) = source(Lengths {
            fails: true,
            ..Lengths::default()
        });
        let vectors = EmbeddingCache::new(1);
        let failed = vectors.embed_all(&source, &texts(&["new"]), WAIT).await;
        assert_eq!(failed, Err(EmbeddingError::Model("broken".into())));
        assert_eq!(
            vectors.embed_all(&source, &texts(&["new"]), WAIT).await,
            Err(EmbeddingError::Paused)
        );
        assert_eq!(lengths.texts.load(Ordering::SeqCst), 1);
    }
}
