//! Playground runs: an editor's test messages to a draft agent or team, of which nothing is stored.
//!
//! A run passes through the same workers as a visitor's message, but is never stored, listed or
//! published to analytics. Its record on the bus carries only an id. The input, which can be large,
//! is kept in the relay under that id for a few minutes. It contains no secrets: a draft refers to
//! its providers by id.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    agent::Agent,
    file::Attachment,
    ids::{AgentId, IngressId, MessageId, OrgId, RequestId},
    routing::RoutingFacts,
    team::Team,
};

/// A request to report which member of a draft team would answer. It gets at most one response; a
/// lost one is not retried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TeamTrialJob")]
pub struct TeamPlaygroundJob {
    /// Id of the run, under which its input is kept.
    #[serde(rename = "trialId")]
    pub run_id: MessageId,
    /// Organization of the editor.
    pub org_id: OrgId,
    /// HTTP request that started the run.
    pub request_id: RequestId,
    /// Ingress process that waits for the response.
    pub reply_to: IngressId,
}

/// The input of a playground run of one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentPlaygroundRun {
    /// The draft agent under test.
    pub agent: Agent,
    /// Earlier messages of the run, oldest first.
    pub past: Vec<PlaygroundMessage>,
}

/// The input of a playground run of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamPlaygroundRun {
    /// The draft team under test.
    pub team: Team,
    /// Text of the test message.
    pub message: String,
    /// Earlier messages of the run, oldest first.
    pub past: Vec<PlaygroundMessage>,
}

/// An earlier message of a playground run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "role",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum PlaygroundMessage {
    /// A message of the editor.
    User {
        /// Text of the message.
        content: String,
        /// Files that were sent with it.
        #[serde(default)]
        attachments: Vec<Attachment>,
    },
    /// A reply of an agent.
    Assistant {
        /// The agent that replied.
        agent_id: AgentId,
        /// Text of the reply.
        content: String,
        /// Structured data shown with the reply.
        #[serde(default)]
        ui_spec: Option<Value>,
    },
}

/// The routing result of a team's playground run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlaygroundRouting {
    /// This member would answer.
    #[serde(rename = "chosen")]
    Agent(Box<RoutedAgent>),
    /// No member of the team can answer.
    #[serde(rename = "nobody")]
    NoAgent,
    /// The input of the run is no longer available.
    #[serde(rename = "forgotten")]
    Expired,
}

/// The team member that would answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutedAgent {
    /// Id of the member.
    pub agent_id: AgentId,
    /// Reason for the choice, in words for customers.
    pub reason: String,
    /// Details of the decision.
    pub facts: Option<RoutingFacts>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{conversation_job::ConversationJob, routing_job::RoutingJob, versioned::decode};

    #[test]
    fn older_worker_does_not_parse_a_playground_run_as_a_message() {
        let id = "0".repeat(26);
        let run = json!({
            "version": 1, "trialId": format!("msg_{id}{id}"), "orgId": format!("org_{id}"),
            "requestId": format!("req_{id}"), "replyTo": format!("ing_{id}"),
        });
        assert!(decode::<crate::routing_job::TeamMessageJob>(run.to_string().as_bytes()).is_err());
        assert!(matches!(
            decode::<RoutingJob>(run.to_string().as_bytes()),
            Ok(RoutingJob::Playground(_))
        ));
        let other = json!({ "version": 1, "kind": "another", "agentId": format!("agt_{id}") });
        assert!(decode::<ConversationJob>(other.to_string().as_bytes()).is_err());
    }
}
