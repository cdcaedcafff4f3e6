//! Who is meant: a fast local stage, and a model only when that is unsure.
//!
//! Reading order: [`evidence`] gathers what speaks for each member: words ([`lexical`]), [`concepts`], what visitors say of
//! these ([`sayings`]), all of it also [read in English](reading), and vectors of the pieces that [`profile`] cuts
//! ([`meaning`], [`background`]). [`odds`] makes shares of it; [`continuity`] says whether a running conversation is left;
//! [`second_opinion`] asks a model; [`verdict`] puts it together and says why. Nothing here fails: each stage that gives
//! nothing leaves the decision to the one before.

mod background;
mod bag;
mod concepts;
mod continuity;
mod evidence;
#[cfg(feature = "evaluation")]
pub(crate) mod figures;
mod inquiry;
mod known_vectors;
mod language;
mod lexical;
mod meaning;
mod odds;
mod profile;
mod reading;
mod sayings;
mod second_opinion;
#[cfg(test)]
mod tests;
mod verdict;
mod words;

use std::{path::Path, sync::Arc, time::Duration};

use moka::sync::Cache;
use tokio::time::Instant;

use self::{
    evidence::Findings,
    known_vectors::KnownVectors,
    profile::Profile,
    second_opinion::{Asked, Opinion},
    verdict::{Situation, Verdict},
};
use super::candidates::Candidate;
use crate::{
    config::WorkersConfig,
    embedding::{
        Embedder, EmbeddingError, provider::ProviderEmbedder,
        sentence_transformer::SentenceTransformer,
    },
    model::{Endpoint, PromptMessage, openai::ModelClient},
};

pub(crate) use verdict::Stage;

/// Profiles that are kept, by their texts.
const PROFILES_MAX: u64 = 10_000;
/// Characters of a message that are looked at: what it is about stands early or not at all.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// The router by intent; clones share what it keeps.
#[derive(Clone)]
pub(crate) struct Intent {
    client: ModelClient,
    vectors: KnownVectors,
    local: Option<Arc<dyn Embedder>>,
    profiles: Cache<[String; 3], Arc<Profile>>,
    budget: Duration,
}

/// What is to be decided.
pub(crate) struct Question<'a> {
    /// The message.
    pub(crate) message: &'a str,
    /// Who could answer.
    pub(crate) members: &'a [Candidate],
    /// Who has the conversation.
    pub(crate) current: Current,
    /// What was said last, oldest first.
    pub(crate) recent: &'a [PromptMessage],
    /// What the agent said last, if nothing was said since.
    pub(crate) agent_said: Option<&'a str>,
    /// Whether the conversation changed hands too often.
    pub(crate) may_change: bool,
    /// Where vectors come from, if no model in this process gives them.
    pub(crate) embedding: Option<Endpoint>,
    /// Where a model is asked.
    pub(crate) model: Option<Endpoint>,
}

/// Who has a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Current {
    /// It begins.
    Nobody,
    /// This member.
    Member(usize),
    /// The default agent.
    Default,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decided {
    /// The member; none for the default agent.
    pub(crate) member: Option<usize>,
    /// Which stage decided.
    pub(crate) stage: Stage,
    /// How likely each member is meant, in their order, as the local stage sees it.
    pub(crate) scores: Vec<f32>,
    /// Why, in words a customer can read.
    pub(crate) reason: String,
    /// Whether it is no more than a guess, about which a model was not asked or gave no answer.
    pub(crate) is_guess: bool,
    /// How long it took.
    pub(crate) took: Duration,
}

impl Intent {
    /// Errors: the directory of the embedding model cannot be used.
    pub(crate) fn new(client: ModelClient, config: &WorkersConfig) -> anyhow::Result<Self> {
        let directory = &config.embedding_model_dir;
        let local: Option<Arc<dyn Embedder>> = if directory.is_empty() {
            None
        } else {
            Some(Arc::new(SentenceTransformer::open(Path::new(directory))?))
        };
        Ok(Self {
            client,
            vectors: KnownVectors::new(config),
            local,
            profiles: Cache::new(PROFILES_MAX),
            budget: Duration::from_millis(config.routing_budget_ms),
        })
    }

    /// Begins what the model in this process needs before its first decision, if there is one; decisions that come sooner
    /// stand on words.
    pub(crate) async fn warm_up(&self) {
        if let Some(local) = &self.local {
            self.vectors.warm_up(local).await;
        }
    }

    /// Decides.
    pub(crate) async fn decide(&self, question: &Question<'_>) -> Decided {
        let began = Instant::now();
        let message: String = question.message.chars().take(MESSAGE_CHARS_MAX).collect();
        let profiles: Vec<Arc<Profile>> = question
            .members
            .iter()
            .map(|member| self.profile(member))
            .collect();
        let profiles: Vec<&Profile> = profiles.iter().map(AsRef::as_ref).collect();
        let findings = self
            .findings(&message, &profiles, question.embedding.as_ref())
            .await;
        let shares = odds::shares(&findings);
        let situation = Situation {
            question,
            message: &message,
            findings: &findings,
            shares: &shares,
        };
        let mut verdict = situation.local();
        if verdict.unsure
            && let Some(opinion) = self.opinion(question, &message, began).await
        {
            verdict = situation.after(opinion);
        }
        let Verdict {
            member,
            stage,
            reason,
            unsure,
        } = verdict;
        let scores = shares[..question.members.len()].to_vec();
        Decided {
            member,
            stage,
            scores,
            reason,
            is_guess: unsure,
            took: began.elapsed(),
        }
    }

    fn profile(&self, member: &Candidate) -> Arc<Profile> {
        let key = [
            member.name.clone(),
            member.description.clone(),
            member.specialization.clone(),
        ];
        let make = || {
            Arc::new(Profile::of(
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
        profiles: &[&Profile],
        provider: Option<&Endpoint>,
    ) -> Findings {
        let source = self.local.clone().or_else(|| {
            let provider = ProviderEmbedder::new(self.client.clone(), provider?.clone());
            Some(Arc::new(provider) as Arc<dyn Embedder>)
        });
        let mut vectors = None;
        if let Some(source) = source {
            match self.vectors.of_message(&source, message, profiles).await {
                Ok(found) => vectors = found,
                // A source that failed is left alone for a while, so that this is no line for each message.
                Err(EmbeddingError::Resting) => {
                    tracing::debug!("routing by words: embeddings failed lately")
                }
                Err(error) => tracing::warn!(%error, "routing by words: no embeddings"),
            }
        }
        evidence::gather(message, profiles, vectors.as_ref())
    }

    async fn opinion(
        &self,
        question: &Question<'_>,
        message: &str,
        began: Instant,
    ) -> Option<Opinion> {
        let endpoint = question.model.as_ref()?;
        let current = match question.current {
            Current::Member(member) => Some(member),
            Current::Nobody | Current::Default => None,
        };
        let asked = Asked {
            members: question.members,
            current,
            recent: question.recent,
            message,
        };
        second_opinion::ask(
            &self.client,
            endpoint,
            &asked,
            self.budget.saturating_sub(began.elapsed()),
        )
        .await
    }
}
