//! What a team that chooses by intent would decide about messages that were answered already: for trying a change of its
//! texts before it is made. Each message is decided where it stood, with the past as it was and not as it would have become.

use std::{fmt, time::Duration};

use switchboard_schemas::{
    ids::AgentId, routing::RoutingStage, team::RoutingStrategy, time::Timestamp,
};

use crate::{
    config::WorkersConfig,
    model::openai::ModelClient,
    routing::{
        candidates::{Candidate, Candidates},
        choice::{self, Choice},
        intent::{Intent, Question},
        past::{Line, Past, SWITCHES_MAX},
    },
};

/// How long a replay waits for embeddings of one message and its team: no visitor waits beside it.
const EMBEDDING_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// A team as it is to be tried.
#[derive(Clone, Debug)]
pub struct TriedTeam {
    /// Who can answer, in the team's order.
    pub members: Vec<TriedMember>,
    /// Answers where no member matches.
    pub default_agent: Option<AgentId>,
}

/// A member as it is to be tried.
#[derive(Clone, Debug)]
pub struct TriedMember {
    /// Agent.
    pub agent_id: AgentId,
    /// Its name in documents.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// What the team says of it.
    pub specialization: String,
}

/// A message of a recorded conversation.
#[derive(Clone)]
pub struct Recorded {
    /// Its id.
    pub id: String,
    /// The agent that wrote it; none for the visitor.
    pub by: Option<AgentId>,
    /// The text.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

/// What would be decided about one message.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The visitor's message.
    pub message_id: String,
    /// Who answered it.
    pub from: AgentId,
    /// Who would; none if nobody could.
    pub to: Option<AgentId>,
    /// Why.
    pub reason: String,
    /// Which stage would decide.
    pub stage: RoutingStage,
    /// Whether a model would be asked, which may decide otherwise.
    pub asks_model: bool,
}

/// The router by intent without a model to ask.
pub struct Replay {
    intent: Intent,
}

impl fmt::Debug for Recorded {
    /// Without the text: it is a person's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("id", &self.id)
            .field("by", &self.by)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl Replayed {
    /// Whether it is decided without a model that somebody else would answer.
    pub fn changes(&self) -> bool {
        !self.asks_model && self.differs()
    }

    /// Whether somebody else would answer, if only by a guess in place of a model.
    pub fn differs(&self) -> bool {
        self.to.as_ref() != Some(&self.from)
    }
}

impl Replay {
    /// Errors: the embedding model cannot be loaded.
    pub fn new(config: &WorkersConfig) -> anyhow::Result<Self> {
        let config = patient(config);
        Ok(Self {
            intent: Intent::new(ModelClient::new(&config)?, &config)?,
        })
    }

    /// Decides every answered message of a conversation again, oldest first.
    pub async fn conversation(&self, team: &TriedTeam, messages: &[Recorded]) -> Vec<Replayed> {
        let candidates = candidates(team);
        let lines: Vec<Line> = messages.iter().map(line).collect();
        let mut replayed = Vec::new();
        for (place, pair) in messages.windows(2).enumerate() {
            // A turn that failed has no answer, and nothing to be compared with.
            let [Recorded { by: None, .. }, Recorded { by: Some(from), .. }] = pair else {
                continue;
            };
            let past = Past::of(&lines[..place], pair[0].at);
            replayed.push(self.message(&candidates, &pair[0], from, &past).await);
        }
        replayed
    }

    async fn message(
        &self,
        candidates: &Candidates,
        message: &Recorded,
        from: &AgentId,
        past: &Past,
    ) -> Replayed {
        let (mut made, mut asks_model) = (None, false);
        match choice::choose(RoutingStrategy::Intent, candidates, past.last.as_ref()) {
            Choice::Made(decision) => made = Some(decision),
            Choice::ByIntent(current) => {
                let question = Question {
                    message: &message.text,
                    members: &candidates.members,
                    current,
                    recent: &past.recent,
                    agent_said: past.agent_said(),
                    may_change: past.switches < SWITCHES_MAX,
                    embedding: None,
                    model: None,
                };
                let decided = self.intent.decide(&question).await;
                asks_model = decided.is_guess;
                made = choice::recorded(candidates, decided);
            }
            Choice::NextInTurn | Choice::Any | Choice::Nobody => {}
        }
        let stage = made
            .as_ref()
            .and_then(|made| made.facts.as_ref())
            .map(|facts| facts.stage);
        Replayed {
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

/// With what the service makes do without when it comes late, so that the same words are decided by the same means.
fn patient(config: &WorkersConfig) -> WorkersConfig {
    let embedding_timeout_ms = u64::try_from(EMBEDDING_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    WorkersConfig {
        embedding_timeout_ms,
        ..config.clone()
    }
}

fn candidates(team: &TriedTeam) -> Candidates {
    let candidate = |member: &TriedMember| Candidate {
        agent_id: member.agent_id.clone(),
        slug: member.slug.clone(),
        name: member.name.clone(),
        description: member.description.clone(),
        specialization: member.specialization.clone(),
    };
    Candidates {
        members: team.members.iter().map(candidate).collect(),
        default_agent: team.default_agent.clone(),
        agents: Vec::new(),
    }
}

fn line(recorded: &Recorded) -> Line {
    Line {
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

    fn conversation(lines: &[(Option<&str>, &str)]) -> Vec<Recorded> {
        let recorded = |(place, (by, text)): (usize, &(Option<&str>, &str))| Recorded {
            id: format!("m{place}"),
            by: by.map(agent),
            text: (*text).to_owned(),
            at: Timestamp::now(),
        };
        lines.iter().enumerate().map(recorded).collect()
    }

    async fn replay(team: &TriedTeam, lines: &[(Option<&str>, &str)]) -> Vec<Replayed> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Replay::new(&WorkersConfig::default())
            .unwrap()
            .conversation(team, &conversation(lines))
            .await
    }

    #[test]
    fn embeddings_are_waited_for_as_no_visitor_would() {
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
    async fn a_guess_in_place_of_a_model_is_no_change() {
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
        assert!(differed > 0, "it is the guess of one of them at most");
    }

    const ASKED: &str = "I want a refund for my last invoice";

    #[tokio::test]
    async fn a_message_goes_to_whom_the_changed_team_names_and_the_reason_says_why() {
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
    async fn later_messages_are_decided_from_whom_they_were_with_and_unanswered_ones_not_at_all() {
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
