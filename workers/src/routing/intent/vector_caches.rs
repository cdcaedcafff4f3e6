//! Caches the reference vectors of a source and the vectors of members, so that a message costs only its own embedding.

use std::{hash::Hash, sync::Arc, time::Duration};

use moka::sync::Cache;

use super::{
    member_profile::{MemberProfile, MemberTexts},
    reference_vectors::ReferenceVectors,
    similarity::{self, MemberVectors, MessageVectors},
};
use crate::{
    config::WorkersConfig,
    embedding::{EmbeddingCache, EmbeddingError, EmbeddingSource, EmbeddingVector},
};

/// The name of a source and the texts of a member.
type MemberKey = (Arc<str>, Arc<MemberTexts>);

/// The vectors that more than one message needs; clones share the caches.
#[derive(Clone)]
pub(super) struct VectorCaches {
    vectors: EmbeddingCache,
    backgrounds: Cache<String, Arc<ReferenceVectors>>,
    members: Cache<MemberKey, Arc<MemberVectors>>,
    wait: Duration,
}

impl VectorCaches {
    /// Creates empty caches with the bounds of `config`.
    pub(super) fn new(config: &WorkersConfig) -> Self {
        Self {
            vectors: EmbeddingCache::new(config.embedding_cache_bytes_max),
            backgrounds: bounded_cache(config.embedding_cache_bytes_max, ReferenceVectors::bytes),
            members: bounded_cache(config.embedding_cache_bytes_max, MemberVectors::bytes),
            wait: Duration::from_millis(config.embedding_timeout_ms),
        }
    }

    /// Starts to compute the reference vectors of a source without waiting for them.
    pub(super) async fn warm_up(&self, source: &Arc<dyn EmbeddingSource>) {
        let begun = self
            .vectors
            .embed_all(source, &ReferenceVectors::texts(), Duration::ZERO)
            .await;
        tracing::debug!(
            source = source.name(),
            is_known = begun.is_ok(),
            "reference vectors requested"
        );
    }

    /// Returns the vectors of a message and its team; none if the source returned too few. Fails if the source fails or does
    /// not respond in time.
    pub(super) async fn of_message(
        &self,
        source: &Arc<dyn EmbeddingSource>,
        message: &str,
        profiles: &[&MemberProfile],
    ) -> Result<Option<MessageVectors>, EmbeddingError> {
        let Some(background) = self.background(source).await? else {
            return Ok(None);
        };
        let ground = similarity::ground(&background, message, profiles);
        let asked = similarity::message_text(message, ground);
        let name: Arc<str> = source.name().into();
        let key = |profile: &&MemberProfile| -> MemberKey {
            (
                name.clone(),
                similarity::member_texts(profile, ground).clone(),
            )
        };
        let members: Vec<_> = profiles
            .iter()
            .map(key)
            .map(|key| (self.members.get(&key), key))
            .collect();
        let missing = members
            .iter()
            .filter(|(known, _)| known.is_none())
            .flat_map(|(_, (_, texts))| texts.each());
        let texts: Vec<String> = [asked.as_str()]
            .into_iter()
            .chain(missing)
            .map(Into::into)
            .collect();
        // One call, so that a message waits only once for a new team.
        let mut vectors = self
            .vectors
            .embed_all(source, &texts, self.wait)
            .await?
            .into_iter();
        let Some(asked) = vectors.next() else {
            return Ok(None);
        };
        let member = |((known, key), profile): (
            (Option<Arc<MemberVectors>>, MemberKey),
            &&MemberProfile,
        )| {
            known.or_else(|| {
                let own: Vec<EmbeddingVector> =
                    vectors.by_ref().take(key.1.each().count()).collect();
                let made = Arc::new(MemberVectors::of(&own, profile, &background)?);
                self.members.insert(key, made.clone());
                Some(made)
            })
        };
        let members: Option<Vec<_>> = members.into_iter().zip(profiles).map(member).collect();
        Ok(members.map(|members| MessageVectors::new(asked, members, background, ground)))
    }

    async fn background(
        &self,
        source: &Arc<dyn EmbeddingSource>,
    ) -> Result<Option<Arc<ReferenceVectors>>, EmbeddingError> {
        if let Some(known) = self.backgrounds.get(source.name()) {
            return Ok(Some(known));
        }
        let found = self
            .vectors
            .embed_all(source, &ReferenceVectors::texts(), self.wait)
            .await?;
        let background = ReferenceVectors::of(found).map(Arc::new);
        if let Some(background) = &background {
            tracing::info!("reference vectors computed, routing uses embeddings");
            self.backgrounds
                .insert(source.name().to_owned(), background.clone());
        }
        Ok(background)
    }
}

/// Returns a cache of at most `bytes_max` bytes.
fn bounded_cache<K, V>(bytes_max: u64, bytes: fn(&V) -> usize) -> Cache<K, Arc<V>>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    let weigher = move |_: &K, kept: &Arc<V>| u32::try_from(bytes(kept)).unwrap_or(u32::MAX);
    Cache::builder()
        .max_capacity(bytes_max)
        .weigher(weigher)
        .build()
}
