//! A door for `make eval-routing`: runs labelled sets through the router by intent and counts. Compiled for that only.
//!
//! A set is a team with labelled messages and dialogues (`tests/routing/`). In a dialogue the router goes on from whom the
//! label names, not from its own mistake, so that each turn is judged by itself.

use std::time::Duration;

use serde::Deserialize;
use switchboard_schemas::{
    ids::{AgentId, OrgId},
    secret::InstallationSecret,
};

use crate::{
    config::WorkersConfig,
    model::{Endpoint, PromptMessage, Role, openai::ModelClient},
    routing::{
        candidates::Candidate,
        intent::{Current, Decided, Intent, Question},
    },
};

/// Messages that a model is shown, as the product shows them.
const RECENT_MESSAGES: usize = 6;

/// One team with what its visitors write.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// The team.
    pub team: TeamSet,
    /// Messages that open a conversation.
    pub messages: Vec<LabelledMessage>,
    /// Conversations.
    pub dialogues: Vec<Dialogue>,
}

/// A team as its administrator wrote it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TeamSet {
    /// Its name in documents.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// The language of the descriptions.
    pub language: String,
    /// Expected where no member fits.
    pub default_agent: String,
    /// The members.
    pub members: Vec<MemberSet>,
}

/// A member as its administrator wrote it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberSet {
    /// Its name in documents.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// What it is good at.
    pub specialization: String,
}

/// A message and who should answer it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledMessage {
    /// Its language.
    pub language: String,
    /// The message.
    pub text: String,
    /// Slug of a member or of the default agent.
    pub expect: String,
}

/// A conversation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialogue {
    /// Its language.
    pub language: String,
    /// What is said in turn.
    pub turns: Vec<TurnSet>,
}

/// What is said.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum TurnSet {
    /// By the visitor.
    Visitor {
        /// The message.
        visitor: String,
        /// Slug of a member or of the default agent.
        expect: String,
        /// What kind of turn it is.
        kind: Kind,
    },
    /// By the agent.
    Agent {
        /// The text.
        agent: String,
    },
}

/// What a visitor's turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The first.
    Opening,
    /// An answer to the agent's question.
    Slot,
    /// A further question about the same.
    FollowUp,
    /// An aside that is nobody else's.
    Digression,
    /// Another member's matter.
    Change,
}

/// One decision beside its label.
#[derive(Debug)]
pub struct Outcome {
    /// Slug of the team.
    pub team: String,
    /// Language of the message.
    pub language: String,
    /// What kind of turn it is; none for a single message.
    pub kind: Option<Kind>,
    /// Whether the right one was chosen.
    pub is_right: bool,
    /// Whether nobody was expected.
    pub expects_nobody: bool,
    /// Whether the conversation was taken from whom it was with.
    pub moved: bool,
    /// Name of the stage that decided.
    pub stage: &'static str,
    /// How long it took.
    pub took: Duration,
}

/// Where the evaluated router finds what it can use.
#[derive(Clone, Debug, Default)]
pub struct Means {
    /// Directory of an embedding model.
    pub embedding_model_dir: Option<String>,
    /// Base URL and name of a model.
    pub model: Option<(String, String)>,
}

/// A router and its sets.
pub struct Evaluation {
    intent: Intent,
    model: Option<Endpoint>,
}

impl Evaluation {
    /// Errors: the embedding model cannot be loaded.
    pub fn new(means: &Means) -> anyhow::Result<Self> {
        // Embeddings of a team are computed once and then kept; a cold start is no figure of this evaluation.
        let config = WorkersConfig {
            embedding_model_dir: means.embedding_model_dir.clone().unwrap_or_default(),
            embedding_timeout_ms: 60_000,
            ..WorkersConfig::default()
        };
        let intent = Intent::new(ModelClient::new(&config)?, &config)?;
        let model = means.model.clone().map(|(base_url, model)| Endpoint {
            base_url,
            api_key: None,
            model,
            continues_prefix: false,
        });
        Ok(Self { intent, model })
    }

    /// Decides every message of a set.
    pub async fn run(&self, set: &Set) -> Vec<Outcome> {
        let members = candidates(&set.team);
        let mut outcomes = Vec::new();
        // The first decision computes the team's vectors.
        self.decide(&members, "", Current::Nobody, &[]).await;
        for message in &set.messages {
            let decided = self.decide(&members, &message.text, Current::Nobody, &[]).await;
            outcomes.push(outcome(set, &message.language, None, &message.expect, Current::Nobody, &decided));
        }
        for dialogue in &set.dialogues {
            outcomes.extend(self.dialogue(set, &members, dialogue).await);
        }
        outcomes
    }

    async fn dialogue(&self, set: &Set, members: &[Candidate], dialogue: &Dialogue) -> Vec<Outcome> {
        let (mut current, mut said, mut outcomes) = (Current::Nobody, Vec::new(), Vec::new());
        for turn in &dialogue.turns {
            match turn {
                TurnSet::Agent { agent } => said.push(PromptMessage { role: Role::Assistant, content: agent.clone() }),
                TurnSet::Visitor { visitor, expect, kind } => {
                    let decided = self.decide(members, visitor, current, &said).await;
                    outcomes.push(outcome(set, &dialogue.language, Some(*kind), expect, current, &decided));
                    current = place(set, expect).map_or(Current::Default, Current::Member);
                    said.push(PromptMessage { role: Role::User, content: visitor.clone() });
                }
            }
        }
        outcomes
    }

    async fn decide(&self, members: &[Candidate], message: &str, current: Current, said: &[PromptMessage]) -> Decided {
        let question = Question {
            message,
            members,
            current,
            recent: &said[said.len().saturating_sub(RECENT_MESSAGES)..],
            agent_said: said.last().filter(|last| last.role == Role::Assistant).map(|last| last.content.as_str()),
            may_change: true,
            embedding: None,
            model: self.model.clone(),
        };
        self.intent.decide(&question).await
    }
}

fn outcome(
    set: &Set,
    language: &str,
    kind: Option<Kind>,
    expect: &str,
    current: Current,
    decided: &Decided,
) -> Outcome {
    let expected = place(set, expect);
    let before = match current {
        Current::Member(member) => Some(member),
        Current::Nobody | Current::Default => None,
    };
    Outcome {
        team: set.team.slug.clone(),
        language: language.to_owned(),
        kind,
        is_right: decided.member == expected,
        expects_nobody: expected.is_none(),
        moved: decided.member != before,
        stage: decided.stage.name(),
        took: decided.took,
    }
}

fn place(set: &Set, slug: &str) -> Option<usize> {
    set.team.members.iter().position(|member| member.slug == slug)
}

fn candidates(team: &TeamSet) -> Vec<Candidate> {
    let secret = InstallationSecret::from_bytes([1; 32]);
    let org = OrgId::derive(&secret, &team.slug);
    let candidate = |member: &MemberSet| Candidate {
        agent_id: AgentId::derive(&secret, &org, &member.slug),
        slug: member.slug.clone(),
        name: member.name.clone(),
        description: member.description.clone(),
        specialization: member.specialization.clone(),
    };
    team.members.iter().map(candidate).collect()
}
