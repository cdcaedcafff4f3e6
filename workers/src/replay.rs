//! Replays recorded conversations through the router by intent, to try a change of a team's texts
//! before it is made. Each message is decided with the recorded past, not with the past that the
//! changed texts would have led to.

use std::{fmt, time::Duration};

use switchboard_schemas::{
    ids::AgentId,
    routing::RoutingStage,
    team::RoutingStrategy,
    time::{Timestamp, whole_millis},
};

use crate::{
    config::WorkersConfig,
    model::openai::ModelClient,
    routing::{
        candidates::{RoutingCandidate, RoutingCandidates},
        choice::{self, RoutingStep},
        intent::{IntentRequest, IntentRouter},
        past::{AGENT_CHANGES_MAX, ConversationPast, PastMessage},
    },
};

/// Longest wait for the embeddings of one message and its team; no visitor waits for a replay.
const EMBEDDING_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// A team as the replay shall see it.
#[derive(Clone, Debug)]
pub struct TriedTeam {
    /// Members that can answer, in the team's order.
    pub members: Vec<TriedMember>,
    /// Agent that answers if no member matches.
    pub default_agent: Option<AgentId>,
}

/// A member of the replayed team.
#[derive(Clone, Debug)]
pub struct TriedMember {
    /// Id of the member's agent.
    pub agent_id: AgentId,
    /// Slug of the agent.
    pub slug: String,
    /// Display name of the agent.
    pub name: String,
    /// Public description of the agent.
    pub description: String,
    /// Topics that the team assigns to the member.
    pub specialization: String,
}

/// A message of a recorded conversation.
#[derive(Clone)]
pub struct RecordedMessage {
    /// Id of the message.
    pub id: String,
    /// The agent that wrote it; none for the visitor.
    pub by: Option<AgentId>,
    /// Text of the message.
    pub text: String,
    /// Time at which it was written.
    pub at: Timestamp,
}

/// The replayed decision about one message.
#[derive(Clone, Debug)]
pub struct ReplayedDecision {
    /// Id of the visitor's message.
    pub message_id: String,
    /// The agent that answered it.
    pub from: AgentId,
    /// The agent that would answer it now; none if no agent can.
    pub to: Option<AgentId>,
    /// Reason of the decision, in words for a customer.
    pub reason: String,
    /// The stage that would decide.
    pub stage: RoutingStage,
    /// True if a model would be asked, which may decide otherwise.
    pub asks_model: bool,
}

/// The router by intent without a model to ask.
pub struct RoutingReplay {
    intent: IntentRouter,
}

impl fmt::Debug for RecordedMessage {
    /// Formats everything but the text, which is personal data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("id", &self.id)
            .field("by", &self.by)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl ReplayedDecision {
    /// Returns true if another agent would answer and no model would be asked.
    pub fn changes(&self) -> bool {
        !self.asks_model && self.differs()
    }

    /// Returns true if another agent would answer, even if that is only a guess in place of a
    /// model.
    pub fn differs(&self) -> bool {
        self.to.as_ref() != Some(&self.from)
    }
}

impl RoutingReplay {
    /// Creates a replay. Fails if the embedding model cannot be loaded.
    pub fn new(config: &WorkersConfig) -> anyhow::Result<Self> {
        let config = patient(config);
        Ok(Self {
            intent: IntentRouter::new(ModelClient::new(&config)?, &config)?,
        })
    }

    /// Decides every answered message of a conversation again and returns the decisions, oldest
    /// first.
    pub async fn conversation(
        &self,
        team: &TriedTeam,
        messages: &[RecordedMessage],
    ) -> Vec<ReplayedDecision> {
        let candidates = candidates(team);
        let lines: Vec<PastMessage> = messages.iter().map(line).collect();
        let mut replayed = Vec::new();
        for (place, pair) in messages.windows(2).enumerate() {
            // A failed turn has no answer to compare with.
            let [
                RecordedMessage { by: None, .. },
                RecordedMessage { by: Some(from), .. },
            ] = pair
            else {
                continue;
            };
            let past = ConversationPast::from_messages(&lines[..place], pair[0].at);
            replayed.push(self.message(&candidates, &pair[0], from, &past).await);
        }
        replayed
    }

    async fn message(
        &self,
        candidates: &RoutingCandidates,
        message: &RecordedMessage,
        from: &AgentId,
        past: &ConversationPast,
    ) -> ReplayedDecision {
        let (mut made, mut asks_model) = (None, false);
        match choice::choose_agent(RoutingStrategy::Intent, candidates, past.last.as_ref()) {
            RoutingStep::Decided(decision) => made = Some(decision),
            RoutingStep::ByIntent(current) => {
                let question = IntentRequest {
                    message: &message.text,
                    members: &candidates.members,
                    current,
                    recent: &past.recent,
                    last_agent_text: past.last_agent_text(),
                    may_change: past.agent_changes < AGENT_CHANGES_MAX,
                    embedding: None,
                    model: None,
                };
                let decided = self.intent.decide(&question).await;
                asks_model = decided.is_guess;
                made = choice::decision_by_intent(candidates, decided);
            }
            RoutingStep::RoundRobin | RoutingStep::Random | RoutingStep::NoAgent => {}
        }
        let stage = made
            .as_ref()
            .and_then(|made| made.facts.as_ref())
            .map(|facts| facts.stage);
        ReplayedDecision {
            message_id: message.id.clone(),
            from: from.clone(),
            reason: made.as_ref().map_or_else(
                || "nobody can answer".to_owned(),
                |made| made.reason.clone(),
            ),
            to: made.map(|made| made.agent_id),
            stage: stage.unwrap_or(RoutingStage::Strategy),
            asks_model,
        }
    }
}

/// Returns the configuration with a longer wait for embeddings, so that equal messages are always
/// decided by the same stage.
fn patient(config: &WorkersConfig) -> WorkersConfig {
    let embedding_timeout_ms = whole_millis(EMBEDDING_TIMEOUT);
    WorkersConfig {
        embedding_timeout_ms,
        ..config.clone()
    }
}

fn candidates(team: &TriedTeam) -> RoutingCandidates {
    let candidate = |member: &TriedMember| RoutingCandidate {
        agent_id: member.agent_id.clone(),
        slug: member.slug.clone(),
        name: member.name.clone(),
        description: member.description.clone(),
        specialization: member.specialization.clone(),
    };
    RoutingCandidates {
        members: team.members.iter().map(candidate).collect(),
        default_agent: team.default_agent.clone(),
        agents: Vec::new(),
    }
}

fn line(recorded: &RecordedMessage) -> PastMessage {
    PastMessage {
        by: recorded.by.clone(),
        text: recorded.text.clone(),
        at: recorded.at,
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::{ids::OrgId, secret::InstallationSecret};

    use super::*;

    fn agent(slug: &str) -> AgentId {
        let secret = InstallationSecret::from_bytes([1; 32]);
        AgentId::derive(&secret, &OrgId::derive(&secret, "o"), slug)
    }

    fn team(members: &[(&str, &str)]) -> TriedTeam {
        let member = |(slug, specialization): &(&str, &str)| TriedMember {
            agent_id: agent(slug),
            slug: (*slug).to_owned(),
            name: (*slug).to_owned(),
            description: String::new(),
            specialization: (*specialization).to_owned(),
        };
        TriedTeam {
            members: members.iter().map(member).collect(),
            default_agent: Some(agent("general")),
        }
    }

    fn conversation(lines: &[(Option<&str>, &str)]) -> Vec<RecordedMessage> {
        let recorded = |(place, (by, text)): (usize, &(Option<&str>, &str))| RecordedMessage {
            id: format!("m{place}"),
            by: by.map(agent),
            text: (*text).to_owned(),
            at: Timestamp::now(),
        };
        lines.iter().enumerate().map(recorded).collect()
    }

    async fn replay(team: &TriedTeam, lines: &[(Option<&str>, &str)]) -> Vec<ReplayedDecision> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        RoutingReplay::new(&WorkersConfig::default())
            .unwrap()
            .conversation(team, &conversation(lines))
            .await
    }

    #[test]
    fn replay_waits_longer_for_embeddings() {
        let config = WorkersConfig {
            routing_budget_ms: 7,
            ..WorkersConfig::default()
        };
        let patient = patient(&config);
        assert_eq!(
            (patient.embedding_timeout_ms, patient.routing_budget_ms),
            (600_000, 7)
        );
    }

    #[tokio::test]
    async fn guess_in_place_of_a_model_is_no_change() {
        let team = team(&[
            ("billing", "Invoices, refunds and payments"),
            ("technical", "Crashes and error messages"),
        ]);
        let mut differed = 0;
        for by in ["billing", "technical"] {
            let lines = [
                (None, "the thing from last week does it again, what now?"),
                (Some(by), "Here you are."),
            ];
            let replayed = replay(&team, &lines).await;
            assert!(
                replayed[0].asks_model && !replayed[0].changes(),
                "{replayed:?}"
            );
            differed += usize::from(replayed[0].differs());
        }
        assert!(differed > 0, "at most one of them equals the guess");
    }

    const ASKED: &str = "I want a refund for my last invoice";

    #[tokio::test]
    async fn changed_team_texts_reroute_a_message_with_a_reason() {
        let before = team(&[
            ("billing", "Invoices, refunds and payments"),
            ("technical", "Crashes and error messages"),
        ]);
        let after = team(&[
            ("billing", "Crashes and error messages"),
            ("technical", "Invoices, refunds and payments"),
        ]);
        let lines = [(None, ASKED), (Some("billing"), "Here you are.")];
        let same = replay(&before, &lines).await;
        assert!(!same[0].changes(), "{same:?}");
        let changed = replay(&after, &lines).await;
        assert_eq!(
            (changed[0].message_id.as_str(), changed[0].to.as_ref()),
            ("m0", Some(&agent("technical")))
        );
        assert!(
            changed[0].changes() && changed[0].reason.contains("refunds"),
            "{changed:?}"
        );
    }

    #[tokio::test]
    async fn unanswered_messages_are_skipped_in_a_replay() {
        let team = team(&[
            ("billing", "Invoices, refunds and payments"),
            ("technical", "Crashes and error messages"),
        ]);
        let lines = [
            (None, ASKED),
            (None, ASKED),
            (Some("technical"), "Which one?"),
            (None, "42"),
            (Some("technical"), "ok"),
        ];
        let replayed = replay(&team, &lines).await;
        let ids: Vec<&str> = replayed
            .iter()
            .map(|message| message.message_id.as_str())
            .collect();
        assert_eq!(ids, ["m1", "m3"]);
        assert_eq!(
            replayed[1].to,
            Some(agent("technical")),
            "a number stays with who had the conversation"
        );
        assert_eq!(replayed[1].stage, RoutingStage::Continuity);
    }
}
