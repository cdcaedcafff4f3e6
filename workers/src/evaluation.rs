//! A door for `make eval-routing`: runs labelled sets through the router by intent and counts. Compiled for that only.
//!
//! A set is a team with labelled messages and dialogues (`tests/routing/`). In a dialogue the router goes on from whom the
//! label names, not from its own mistake, so that each turn is judged by itself.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    ids::{AgentId, OrgId},
    secret::InstallationSecret,
};

use crate::{
    config::WorkersConfig,
    model::{Endpoint, PromptMessage, PromptRole, openai::ModelClient},
    routing::{
        candidates::Candidate,
        intent::{Current, Decided, Intent, Question},
    },
};

pub use crate::routing::intent::figures::Weighed;

/// Messages that a model is shown, as the product shows them.
const RECENT_MESSAGES: usize = 6;

/// One team with what its visitors write.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// How its visitors write.
    pub manner: Manner,
    /// The team.
    pub team: TeamSet,
    /// Messages that open a conversation.
    pub messages: Vec<LabelledMessage>,
    /// Conversations.
    pub dialogues: Vec<Dialogue>,
}

/// How visitors tell what they want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// They name it, in ordinary words.
    Plain,
    /// They tell what happened, mostly in other words than the team's.
    Roundabout,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
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
    /// How visitors of the team write.
    pub manner: Manner,
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
    /// Whether of the members the right one had the largest share, whoever was chosen.
    pub is_first: bool,
    /// How likely the choice seemed to the local stage, from 0 to 1.
    pub share: f32,
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
    /// Base URL and name of an embedding model behind an API.
    pub embeddings: Option<(String, String)>,
    /// Base URL and name of a model.
    pub model: Option<(String, String)>,
}

/// A router and its sets.
pub struct Evaluation {
    intent: Intent,
    embeddings: Option<Endpoint>,
    model: Option<Endpoint>,
}

impl Evaluation {
    /// Errors: the embedding model cannot be loaded.
    pub fn new(means: &Means) -> anyhow::Result<Self> {
        // Embeddings of a team are computed once and then kept; a cold start is no figure of this evaluation.
        let config = WorkersConfig {
            embedding_model_dir: means.embedding_model_dir.clone().unwrap_or_default(),
            embedding_timeout_ms: 180_000,
            ..WorkersConfig::default()
        };
        let intent = Intent::new(ModelClient::new(&config)?, &config)?;
        let endpoint = |(base_url, model): (String, String)| Endpoint {
            base_url,
            api_key: None,
            model,
            continues_prefix: false,
        };
        Ok(Self {
            intent,
            embeddings: means.embeddings.clone().map(endpoint),
            model: means.model.clone().map(endpoint),
        })
    }

    /// What is weighed for each message of a set, with its language and the place of the member that is expected.
    pub async fn weighed(
        &self,
        set: &Set,
    ) -> Vec<(String, Option<Kind>, Option<usize>, Option<usize>, Weighed)> {
        let members = candidates(&set.team);
        let mut rows = Vec::new();
        for asked in asked(set) {
            let weighed = self.intent.weighed(&self.question(&members, &asked)).await;
            let current = match asked.current {
                Current::Member(member) => Some(member),
                Current::Nobody | Current::Default => None,
            };
            rows.push((
                asked.language.to_owned(),
                asked.kind,
                place(set, asked.expect),
                current,
                weighed,
            ));
        }
        rows
    }

    /// Decides every message of a set.
    pub async fn run(&self, set: &Set) -> Vec<Outcome> {
        let members = candidates(&set.team);
        let mut outcomes = Vec::new();
        for (place, asked) in asked(set).iter().enumerate() {
            let question = self.question(&members, asked);
            if place == 0 {
                // The first decision computes the team's vectors.
                self.intent.decide(&question).await;
            }
            outcomes.push(outcome(set, asked, &self.intent.decide(&question).await));
        }
        outcomes
    }

    fn question<'a>(&self, members: &'a [Candidate], asked: &'a Asked<'_>) -> Question<'a> {
        let said = asked
            .said
            .last()
            .filter(|last| last.role == PromptRole::Assistant);
        Question {
            message: asked.message,
            members,
            current: asked.current,
            recent: &asked.said[asked.said.len().saturating_sub(RECENT_MESSAGES)..],
            agent_said: said.map(|last| last.content.as_str()),
            may_change: true,
            embedding: self.embeddings.clone(),
            model: self.model.clone(),
        }
    }
}

/// A visitor's message where it stands.
struct Asked<'a> {
    language: &'a str,
    message: &'a str,
    expect: &'a str,
    kind: Option<Kind>,
    current: Current,
    said: Vec<PromptMessage>,
}

/// Every message of a set, and those of dialogues with what was said before.
fn asked(set: &Set) -> Vec<Asked<'_>> {
    let single = set.messages.iter().map(|message| Asked {
        language: &message.language,
        message: &message.text,
        expect: &message.expect,
        kind: None,
        current: Current::Nobody,
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

fn turns<'a>(set: &Set, dialogue: &'a Dialogue) -> Vec<Asked<'a>> {
    let (mut current, mut said, mut turns) = (Current::Nobody, Vec::new(), Vec::new());
    for turn in &dialogue.turns {
        match turn {
            TurnSet::Agent { agent } => {
                said.push(PromptMessage::text(PromptRole::Assistant, agent.clone()))
            }
            TurnSet::Visitor {
                visitor,
                expect,
                kind,
            } => {
                let (language, said_before) = (&dialogue.language, said.clone());
                turns.push(Asked {
                    language,
                    message: visitor,
                    expect,
                    kind: Some(*kind),
                    current,
                    said: said_before,
                });
                current = place(set, expect).map_or(Current::Default, Current::Member);
                said.push(PromptMessage::text(PromptRole::User, visitor.clone()));
            }
        }
    }
    turns
}

fn outcome(set: &Set, asked: &Asked<'_>, decided: &Decided) -> Outcome {
    let expected = place(set, asked.expect);
    let before = match asked.current {
        Current::Member(member) => Some(member),
        Current::Nobody | Current::Default => None,
    };
    let scores = decided.scores.iter().enumerate();
    let first = scores
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map(|(member, _)| member);
    Outcome {
        manner: set.manner,
        team: set.team.slug.clone(),
        language: asked.language.to_owned(),
        kind: asked.kind,
        is_right: decided.member == expected,
        is_first: first == expected,
        expects_nobody: expected.is_none(),
        moved: decided.member != before,
        share: share(decided),
        stage: decided.stage.name(),
        took: decided.took,
    }
}

/// The share of whom was chosen; nobody has what the members leave.
fn share(decided: &Decided) -> f32 {
    decided.member.map_or_else(
        || 1.0 - decided.scores.iter().sum::<f32>(),
        |member| decided.scores[member],
    )
}

fn place(set: &Set, slug: &str) -> Option<usize> {
    set.team
        .members
        .iter()
        .position(|member| member.slug == slug)
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
