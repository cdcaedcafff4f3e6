//! Routing by intent: chooses the member whose matter a message is. A fast local stage decides; a language model is asked
//! only where that stage is unsure.
//!
//! Reading order: [`features`] computes the features of each member from words ([`lexical`]), [`concepts`], example utterances
//! ([`example_utterances`]), the same after word-by-word [`translation`], and vectors of the pieces of a [`member_profile`]
//! ([`similarity`], [`reference_vectors`]). [`classifier`] turns features into scores, [`continuity`] recognizes a change of
//! topic, [`model_stage`] asks a model, and [`verdict`] combines them and words the reason. No stage fails: if one has no
//! result, the decision of the stage before it stands.

mod classifier;
mod concepts;
mod content_words;
mod continuity;
mod example_utterances;
#[cfg(feature = "evaluation")]
pub(crate) mod feature_export;
mod features;
mod language;
mod lexical;
mod member_profile;
mod model_stage;
mod question_frame;
mod reference_vectors;
mod similarity;
#[cfg(test)]
mod tests;
mod translation;
mod vector_caches;
mod verdict;
mod word_bag;

use std::{path::Path, sync::Arc, time::Duration};

use moka::sync::Cache;
use tokio::time::Instant;

use self::{
    features::MessageFeatures,
    member_profile::MemberProfile,
    model_stage::{ModelQuestion, ModelStage, ModelVerdict},
    vector_caches::VectorCaches,
    verdict::{RoutingVerdict, VerdictInput},
};
use super::candidates::RoutingCandidate;
use crate::{
    config::WorkersConfig,
    embedding::{
        EmbeddingError, EmbeddingSource, provider::ProviderEmbeddings,
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
    vectors: VectorCaches,
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
            Some(Arc::new(SentenceTransformer::open(Path::new(directory))?))
        };
        Ok(Self {
            model_stage: ModelStage::new(client.clone()),
            client,
            vectors: VectorCaches::new(config),
            local,
            profiles: Cache::new(PROFILES_MAX),
            budget: Duration::from_millis(config.routing_budget_ms),
        })
    }

    /// Starts to compute the reference vectors of the model in this process, if there is one. Decisions made before they are
    /// ready use words only.
    pub(crate) async fn warm_up(&self) {
        if let Some(local) = &self.local {
            self.vectors.warm_up(local).await;
        }
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
        let findings = self
            .findings(&message, &profiles, question.embedding.as_ref())
            .await;
        let shares = classifier::shares(&findings);
        let input = VerdictInput {
            question,
            message: &message,
            findings: &findings,
            shares: &shares,
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
        let scores = shares[..question.members.len()].to_vec();
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

    async fn findings(
        &self,
        message: &str,
        profiles: &[&MemberProfile],
        provider: Option<&ModelEndpoint>,
    ) -> MessageFeatures {
        let source = self.local.clone().or_else(|| {
            let provider = ProviderEmbeddings::new(self.client.clone(), provider?.clone());
            Some(Arc::new(provider) as Arc<dyn EmbeddingSource>)
        });
        let mut vectors = None;
        if let Some(source) = source {
            match self.vectors.of_message(&source, message, profiles).await {
                Ok(found) => vectors = found,
                // A source that failed is not asked for a while, so this does not log a warning for each message.
                Err(EmbeddingError::Paused) => {
                    tracing::debug!("routing without embeddings: source failed lately")
                }
                Err(error) => tracing::warn!(%error, "routing without embeddings"),
            }
        }
        features::gather(message, profiles, vectors.as_ref())
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
