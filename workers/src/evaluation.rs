//! Evaluation of routing by intent for `make eval-routing`: decides labeled messages and compares.
//! Compiled for that only.
//!
//! A set is a team with labeled messages and dialogues (`tests/routing/`). In a dialogue each
//! message is decided from the labeled agent of the message before, not from the router's own
//! mistake, so that every turn is judged by itself.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    ids::{AgentId, OrgId},
    secret::InstallationSecret,
};

use crate::{
    config::WorkersConfig,
    model::{ModelEndpoint, PromptMessage, PromptRole, openai::ModelClient},
    routing::{
        candidates::RoutingCandidate,
        intent::{ConversationHolder, IntentDecision, IntentRequest, IntentRouter},
    },
};

/// Messages in the prompt of a model, the same number as in the product.
const RECENT_MESSAGES: usize = 6;

/// One team with labeled messages of its visitors.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabeledSet {
    /// Style in which its visitors write.
    pub manner: WritingStyle,
    /// The team with its texts.
    pub team: LabeledTeam,
    /// Messages that open a conversation.
    pub messages: Vec<LabeledMessage>,
    /// Labeled conversations of several turns.
    pub dialogues: Vec<LabeledDialogue>,
}

/// The style in which visitors describe their request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WritingStyle {
    /// Visitors name their request in ordinary words.
    Plain,
    /// Visitors describe what happened, mostly in other words than the team's.
    Roundabout,
}

/// A team with the texts of its administrator.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabeledTeam {
    /// Slug of the team.
    pub slug: String,
    /// Display name of the team.
    pub name: String,
    /// ISO 639-1 code of the language of the descriptions.
    pub language: String,
    /// Slug of the agent that is expected if a message is out of scope.
    pub default_agent: String,
    /// The members in the team's order.
    pub members: Vec<LabeledMember>,
}

/// A member with the texts of its administrator.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabeledMember {
    /// Slug of the member.
    pub slug: String,
    /// Display name of the member.
    pub name: String,
    /// Public description of the member.
    pub description: String,
    /// Topics that the team assigns to the member.
    pub specialization: String,
}

/// A message with the agent that should answer it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabeledMessage {
    /// ISO 639-1 code of its language.
    pub language: String,
    /// Text of the message.
    pub text: String,
    /// Slug of a member or of the default agent.
    pub expect: String,
}

/// A conversation with labeled messages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabeledDialogue {
    /// ISO 639-1 code of its language.
    pub language: String,
    /// Messages of visitor and agent, oldest first.
    pub turns: Vec<DialogueMessage>,
}

/// One message of a dialogue.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum DialogueMessage {
    /// A message of the visitor.
    Visitor {
        /// Text of the message.
        visitor: String,
        /// Slug of a member or of the default agent.
        expect: String,
        /// Role of the message in the dialogue.
        kind: VisitorMessageKind,
    },
    /// A message of the agent.
    Agent {
        /// Text of the message.
        agent: String,
    },
}

/// The role of a visitor's message in a dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VisitorMessageKind {
    /// The first message of a dialogue.
    Opening,
    /// An answer to the agent's question.
    Slot,
    /// A further question about the same topic.
    FollowUp,
    /// An aside that belongs to no other member.
    Digression,
    /// A message about another member's topic.
    Change,
}

/// One decision compared with its label.
#[derive(Debug)]
pub struct EvaluatedDecision {
    /// Style in which visitors of the team write.
    pub manner: WritingStyle,
    /// Slug of the team.
    pub team: String,
    /// ISO 639-1 code of the message's language.
    pub language: String,
    /// Role of the message in its dialogue; none for a single message.
    pub kind: Option<VisitorMessageKind>,
    /// True if the labeled agent was chosen.
    pub is_right: bool,
    /// True if the local stage was sure or a model confirmed the choice.
    pub is_sure: bool,
    /// True if the default agent was chosen.
    pub chose_default: bool,
    /// True if the message is out of scope, so that the default agent is expected.
    pub expects_nobody: bool,
    /// True if the conversation changed agents.
    pub moved: bool,
    /// True if the labeled member had the highest score of all members, whichever agent was chosen.
    pub is_first: bool,
    /// Score of the choice in the local stage, from 0 to 1.
    pub share: f32,
    /// Name of the stage that decided.
    pub stage: &'static str,
    /// Time that the decision took.
    pub took: Duration,
}

/// The models that the evaluated router can use.
#[derive(Clone, Debug, Default)]
pub struct AvailableModels {
    /// Directory of an embedding model.
    pub embedding_model_dir: Option<String>,
    /// Base URL and name of an embedding model behind an API.
    pub embeddings: Option<(String, String)>,
    /// Base URL and name of a model.
    pub model: Option<(String, String)>,
}

/// A router under evaluation.
pub struct RoutingEvaluation {
    intent: IntentRouter,
    embeddings: Option<ModelEndpoint>,
    model: Option<ModelEndpoint>,
}

impl RoutingEvaluation {
    /// Creates a router. Fails if the embedding model cannot be loaded.
    pub fn new(means: &AvailableModels) -> anyhow::Result<Self> {
        // Embeddings of a team are computed once and then cached; the evaluation does not measure
        // the cold start.
        let config = WorkersConfig {
            embedding_model_dir: means.embedding_model_dir.clone().unwrap_or_default(),
            embedding_timeout_ms: 180_000,
            ..WorkersConfig::default()
        };
        let intent = IntentRouter::new(ModelClient::new(&config)?, &config)?;
        let endpoint = |(base_url, model): (String, String)| ModelEndpoint {
            base_url,
            api_key: None,
            model,
            api: switchboard_schemas::provider::ProviderApi::ChatCompletions,
            continues_prefix: false,
            vision: false,
            first_token_timeout: None,
            reach: crate::outgoing::AddressReach::Any,
        };
        Ok(Self {
            intent,
            embeddings: means.embeddings.clone().map(endpoint),
            model: means.model.clone().map(endpoint),
        })
    }

    /// Decides every message of a set and compares the decisions with the labels.
    pub async fn run(&self, set: &LabeledSet) -> Vec<EvaluatedDecision> {
        let members = candidates(&set.team);
        let mut outcomes = Vec::new();
        for (place, asked) in messages_of(set).iter().enumerate() {
            let question = self.question(&members, asked);
            if place == 0 {
                // The first decision computes the team's vectors.
                self.intent.decide(&question).await;
            }
            outcomes.push(outcome(set, asked, &self.intent.decide(&question).await));
        }
        outcomes
    }

    fn question<'a>(
        &self,
        members: &'a [RoutingCandidate],
        asked: &'a MessageInContext<'_>,
    ) -> IntentRequest<'a> {
        let said = asked
            .said
            .last()
            .filter(|last| last.role == PromptRole::Assistant);
        IntentRequest {
            message: asked.message,
            members,
            current: asked.current,
            recent: &asked.said[asked.said.len().saturating_sub(RECENT_MESSAGES)..],
            last_agent_text: said.map(|last| last.content.as_str()),
            may_change: true,
            embedding: self.embeddings.clone(),
            model: self.model.clone(),
        }
    }
}

/// A visitor's message with the conversation before it.
struct MessageInContext<'a> {
    language: &'a str,
    message: &'a str,
    expect: &'a str,
    kind: Option<VisitorMessageKind>,
    current: ConversationHolder,
    said: Vec<PromptMessage>,
}

/// Returns every message of a set, those of dialogues with the messages before them.
fn messages_of(set: &LabeledSet) -> Vec<MessageInContext<'_>> {
    let single = set.messages.iter().map(|message| MessageInContext {
        language: &message.language,
        message: &message.text,
        expect: &message.expect,
        kind: None,
        current: ConversationHolder::Nobody,
        said: Vec::new(),
    });
    single
        .chain(
            set.dialogues
                .iter()
                .flat_map(|dialogue| turns(set, dialogue)),
        )
        .collect()
}

fn turns<'a>(set: &LabeledSet, dialogue: &'a LabeledDialogue) -> Vec<MessageInContext<'a>> {
    let (mut current, mut said, mut turns) = (ConversationHolder::Nobody, Vec::new(), Vec::new());
    for turn in &dialogue.turns {
        match turn {
            DialogueMessage::Agent { agent } => {
                said.push(PromptMessage::text(PromptRole::Assistant, agent.clone()))
            }
            DialogueMessage::Visitor {
                visitor,
                expect,
                kind,
            } => {
                let (language, said_before) = (&dialogue.language, said.clone());
                turns.push(MessageInContext {
                    language,
                    message: visitor,
                    expect,
                    kind: Some(*kind),
                    current,
                    said: said_before,
                });
                current = place(set, expect)
                    .map_or(ConversationHolder::Default, ConversationHolder::Member);
                said.push(PromptMessage::text(PromptRole::User, visitor.clone()));
            }
        }
    }
    turns
}

fn outcome(
    set: &LabeledSet,
    asked: &MessageInContext<'_>,
    decided: &IntentDecision,
) -> EvaluatedDecision {
    let expected = place(set, asked.expect);
    let before = match asked.current {
        ConversationHolder::Member(member) => Some(member),
        ConversationHolder::Nobody | ConversationHolder::Default => None,
    };
    let scores = decided.scores.iter().enumerate();
    let first = scores
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map(|(member, _)| member);
    EvaluatedDecision {
        manner: set.manner,
        team: set.team.slug.clone(),
        language: asked.language.to_owned(),
        kind: asked.kind,
        is_right: decided.member == expected,
        is_sure: !decided.is_guess,
        chose_default: decided.member.is_none(),
        is_first: first == expected,
        expects_nobody: expected.is_none(),
        moved: decided.member != before,
        share: share(decided),
        stage: decided.stage.name(),
        took: decided.took,
    }
}

/// Returns the score of the chosen agent; the default agent has the rest of the members' scores.
fn share(decided: &IntentDecision) -> f32 {
    decided.member.map_or_else(
        || 1.0 - decided.scores.iter().sum::<f32>(),
        |member| decided.scores[member],
    )
}

fn place(set: &LabeledSet, slug: &str) -> Option<usize> {
    set.team
        .members
        .iter()
        .position(|member| member.slug == slug)
}

fn candidates(team: &LabeledTeam) -> Vec<RoutingCandidate> {
    let secret = InstallationSecret::from_bytes([1; 32]);
    let org = OrgId::derive(&secret, &team.slug);
    let candidate = |member: &LabeledMember| RoutingCandidate {
        agent_id: AgentId::derive(&secret, &org, &member.slug),
        slug: member.slug.clone(),
        name: member.name.clone(),
        description: member.description.clone(),
        specialization: member.specialization.clone(),
    };
    team.members.iter().map(candidate).collect()
}
