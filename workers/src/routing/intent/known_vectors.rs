//! What the vectors of a source need once, and what each member needs once: kept, so that a message costs its own vector only.

use std::{hash::Hash, sync::Arc, time::Duration};

use moka::sync::Cache;

use super::{
    background::Background,
    meaning::{self, MemberVectors, MessageVectors},
    profile::{Profile, Texts},
};
use crate::{
    config::WorkersConfig,
    embedding::{Embedder, EmbeddingError, Vector, Vectors},
};

/// A member's texts, and the source of their vectors.
type MemberKey = (Arc<str>, Arc<Texts>);

/// Vectors of everything that more than one message needs; clones share it.
#[derive(Clone)]
pub(super) struct KnownVectors {
    vectors: Vectors,
    backgrounds: Cache<String, Arc<Background>>,
    members: Cache<MemberKey, Arc<MemberVectors>>,
    wait: Duration,
}

impl KnownVectors {
    /// Nothing is known yet.
    pub(super) fn new(config: &WorkersConfig) -> Self {
        Self {
            vectors: Vectors::new(config.embedding_cache_bytes_max),
            backgrounds: within(config.embedding_cache_bytes_max, Background::bytes),
            members: within(config.embedding_cache_bytes_max, MemberVectors::bytes),
            wait: Duration::from_millis(config.embedding_timeout_ms),
        }
    }

    /// Begins to compute what every message is held against, and does not wait for it.
    pub(super) async fn warm_up(&self, source: &Arc<dyn Embedder>) {
        let begun = self
            .vectors
            .of(source, &Background::texts(), Duration::ZERO)
            .await;
        tracing::debug!(
            source = source.name(),
            is_known = begun.is_ok(),
            "routing prepares its vectors"
        );
    }

    /// The vectors of a message and its team. None: the source gave something else than was asked. Errors: they are not
    /// there in time, or the source fails.
    pub(super) async fn of_message(
        &self,
        source: &Arc<dyn Embedder>,
        message: &str,
        profiles: &[&Profile],
    ) -> Result<Option<MessageVectors>, EmbeddingError> {
        let Some(background) = self.background(source).await? else {
            return Ok(None);
        };
        let ground = meaning::ground(&background, message, profiles);
        let asked = meaning::asked(message, ground);
        let name: Arc<str> = source.name().into();
        let key = |profile: &&Profile| -> MemberKey {
            (name.clone(), meaning::member_texts(profile, ground).clone())
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
        // In one call, so that a team whose vectors are not known yet is waited for once.
        let mut vectors = self
            .vectors
            .of(source, &texts, self.wait)
            .await?
            .into_iter();
        let Some(asked) = vectors.next() else {
            return Ok(None);
        };
        let member =
            |((known, key), profile): ((Option<Arc<MemberVectors>>, MemberKey), &&Profile)| {
                known.or_else(|| {
                    let own: Vec<Vector> = vectors.by_ref().take(key.1.each().count()).collect();
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
        source: &Arc<dyn Embedder>,
    ) -> Result<Option<Arc<Background>>, EmbeddingError> {
        if let Some(known) = self.backgrounds.get(source.name()) {
            return Ok(Some(known));
        }
        let found = self
            .vectors
            .of(source, &Background::texts(), self.wait)
            .await?;
        let background = Background::of(found).map(Arc::new);
        if let Some(background) = &background {
            tracing::info!("routing knows what messages are held against, and decides by meaning");
            self.backgrounds
                .insert(source.name().to_owned(), background.clone());
        }
        Ok(background)
    }
}

/// A cache of so many bytes.
fn within<K, V>(bytes_max: u64, bytes: fn(&V) -> usize) -> Cache<K, Arc<V>>
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
