//! Routing by intent: chooses the member that is responsible for a message. A fast local stage
//! decides; a language model is asked only where that stage is unsure.
//!
//! Reading order: a [`member_profile`] splits a member's texts into words and phrases. [`lexical`]
//! counts the words that a message shares with them, [`similarity`] compares embeddings, and
//! [`scores`] turns both into a score of each member and of out of scope. [`continuity`] recognizes
//! a change of topic, [`model_stage`] asks a model, and [`verdict`] combines them and words the
//! reason. No stage fails: if one has no result, the decision of the stage before it stands.

mod continuity;
mod lexical;
mod member_profile;
mod model_stage;
mod scores;
mod similarity;
#[cfg(test)]
mod tests;
mod verdict;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use moka::sync::Cache;
use tokio::time::Instant;

use self::{
    lexical::MemberWords,
    member_profile::MemberProfile,
    model_stage::{ModelQuestion, ModelStage, ModelVerdict},
    scores::MessageFeatures,
    similarity::TeamSimilarities,
    verdict::{RoutingVerdict, VerdictInput},
};
use super::candidates::RoutingCandidate;
use crate::{
    config::WorkersConfig,
    embedding::{
        EmbeddingCache, EmbeddingError, EmbeddingSource, provider::ProviderEmbeddings,
        sentence_transformer::SentenceTransformer,
    },
    model::{ModelEndpoint, PromptMessage, openai::ModelClient},
};

pub(crate) use verdict::Stage;

/// Member profiles that are cached, by their texts.
const PROFILES_MAX: u64 = 10_000;
/// Characters of a message that are compared; its topic comes early or not at all.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// The router by intent; clones share its caches.
#[derive(Clone)]
pub(crate) struct IntentRouter {
    client: ModelClient,
    vectors: EmbeddingCache,
    embedding_wait: Duration,
    local: Option<Arc<dyn EmbeddingSource>>,
    model_stage: ModelStage,
    profiles: Cache<[String; 3], Arc<MemberProfile>>,
    budget: Duration,
}

/// A message to route, with everything that the decision may depend on.
pub(crate) struct IntentRequest<'a> {
    /// The text of the visitor's message.
    pub(crate) message: &'a str,
    /// The members that can answer, in the team's order.
    pub(crate) members: &'a [RoutingCandidate],
    /// The agent that has the conversation so far.
    pub(crate) current: ConversationHolder,
    /// The end of the conversation, oldest message first.
    pub(crate) recent: &'a [PromptMessage],
    /// The last message of the agent, if the visitor has written nothing since.
    pub(crate) last_agent_text: Option<&'a str>,
    /// False if the conversation changed agents too often lately.
    pub(crate) may_change: bool,
    /// The provider of embeddings, used if no model in this process computes them.
    pub(crate) embedding: Option<ModelEndpoint>,
    /// The language model that is asked if the local stage is unsure.
    pub(crate) model: Option<ModelEndpoint>,
}

/// The agent that has a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConversationHolder {
    /// No agent, because the conversation begins.
    Nobody,
    /// The member at this index.
    Member(usize),
    /// The default agent.
    Default,
}

/// The decision about one message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IntentDecision {
    /// Index of the chosen member; none for the default agent.
    pub(crate) member: Option<usize>,
    /// The stage that decided.
    pub(crate) stage: Stage,
    /// Score of each member in their order, from 0 to 1, as computed by the local stage.
    pub(crate) scores: Vec<f32>,
    /// Reason, in words for a customer.
    pub(crate) reason: String,
    /// True if the local stage was unsure and no model confirmed the choice.
    pub(crate) is_guess: bool,
    /// Time that the decision took.
    pub(crate) took: Duration,
}

impl IntentRouter {
    /// Creates a router. Fails if the directory of the embedding model cannot be used.
    pub(crate) fn new(client: ModelClient, config: &WorkersConfig) -> anyhow::Result<Self> {
        let directory = &config.embedding_model_dir;
        let local: Option<Arc<dyn EmbeddingSource>> = if directory.is_empty() {
            None
        } else {
            let model = SentenceTransformer::open(Path::new(directory))
                .context("workers.embedding_model_dir cannot be used")?;
            Some(Arc::new(model))
        };
        Ok(Self {
            model_stage: ModelStage::new(client.clone()),
            client,
            vectors: EmbeddingCache::new(config.embedding_cache_bytes_max),
            embedding_wait: Duration::from_millis(config.embedding_timeout_ms),
            local,
            profiles: Cache::new(PROFILES_MAX),
            budget: Duration::from_millis(config.routing_budget_ms),
        })
    }

    /// Decides which member answers a message; never fails.
    pub(crate) async fn decide(&self, question: &IntentRequest<'_>) -> IntentDecision {
        let began = Instant::now();
        let message: String = question.message.chars().take(MESSAGE_CHARS_MAX).collect();
        let profiles: Vec<Arc<MemberProfile>> = question
            .members
            .iter()
            .map(|member| self.profile(member))
            .collect();
        let profiles: Vec<&MemberProfile> = profiles.iter().map(AsRef::as_ref).collect();
        let features = self
            .features(&message, &profiles, question.embedding.as_ref())
            .await;
        let scores = scores::scores(&features);
        let input = VerdictInput {
            question,
            message: &message,
            features: &features,
            scores: &scores,
        };
        let mut verdict = input.local();
        if verdict.unsure
            && let Some(decided) = self.ask_model(question, &message, began).await
        {
            verdict = input.after_model(decided);
        }
        let RoutingVerdict {
            member,
            stage,
            reason,
            unsure,
        } = verdict;
        let scores = scores[..question.members.len()].to_vec();
        IntentDecision {
            member,
            stage,
            scores,
            reason,
            is_guess: unsure,
            took: began.elapsed(),
        }
    }

    fn profile(&self, member: &RoutingCandidate) -> Arc<MemberProfile> {
        let key = [
            member.name.clone(),
            member.description.clone(),
            member.specialization.clone(),
        ];
        let make = || {
            Arc::new(MemberProfile::of(
                &member.name,
                &member.description,
                &member.specialization,
            ))
        };
        self.profiles.get_with_by_ref(&key, make)
    }

    async fn features(
        &self,
        message: &str,
        profiles: &[&MemberProfile],
        provider: Option<&ModelEndpoint>,
    ) -> MessageFeatures {
        let words: Vec<&MemberWords> = profiles.iter().map(|profile| &profile.words).collect();
        let source = self.local.clone().or_else(|| {
            let provider = ProviderEmbeddings::new(self.client.clone(), provider?.clone());
            Some(Arc::new(provider) as Arc<dyn EmbeddingSource>)
        });
        let is_known_language = source
            .as_deref()
            .is_none_or(|source| similarity::knows_languages(source, message, profiles));
        let similarities = match source {
            Some(source) if is_known_language => {
                self.similarities(&source, message, profiles).await
            }
            _ => None,
        };
        MessageFeatures {
            words: lexical::match_members(message, &words),
            message_words: lexical::content_words(message).len(),
            similarities,
            is_known_language,
        }
    }

    async fn similarities(
        &self,
        source: &Arc<dyn EmbeddingSource>,
        message: &str,
        profiles: &[&MemberProfile],
    ) -> Option<TeamSimilarities> {
        let wait = self.embedding_wait;
        match similarity::compare(source, &self.vectors, message, profiles, wait).await {
            Ok(found) => Some(found),
            // A source that failed is not asked for a while, so this does not log a warning for
            // each message.
            Err(EmbeddingError::Paused) => {
                tracing::debug!("routing without embeddings: source failed lately");
                None
            }
            Err(error) => {
                tracing::warn!(%error, "routing without embeddings");
                None
            }
        }
    }

    async fn ask_model(
        &self,
        question: &IntentRequest<'_>,
        message: &str,
        began: Instant,
    ) -> Option<ModelVerdict> {
        let endpoint = question.model.as_ref()?;
        let current = match question.current {
            ConversationHolder::Member(member) => Some(member),
            ConversationHolder::Nobody | ConversationHolder::Default => None,
        };
        let model_question = ModelQuestion {
            members: question.members,
            current,
            recent: question.recent,
            message,
        };
        let time_left = self.budget.saturating_sub(began.elapsed());
        self.model_stage
            .decide(endpoint, &model_question, time_left)
            .await
    }
}
