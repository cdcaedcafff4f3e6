//! Trials: what an editor lets a draft answer before it is saved. A trial passes through the same workers as a visitor's
//! message, and nothing of it is stored, listed or told to analytics.
//!
//! Its record on the bus only names it. What it runs on, which can be large and is nobody's business a day later, lies in
//! the relay under that name, and goes away by itself. It holds no secret: a draft names its providers by their ids.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    agent::Agent,
    chat_job::ChatJob,
    ids::{AgentId, IngressId, MessageId, OrgId, RequestId},
    routing::RoutingFacts,
    team::Team,
    versioned::Record,
};

/// A record of [`crate::topics::Topic::Route`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RoutingJob {
    /// A message that a team is to answer.
    Message(Box<ChatJob>),
    /// A question who of a team would answer.
    Trial(TeamTrialJob),
}

impl Record for RoutingJob {
    const VERSION: u32 = 1;
}

/// A question who of a team would answer. At most one answer; a lost one is asked for again by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TeamTrialJob {
    /// Names the trial, and what it runs on.
    pub trial_id: MessageId,
    /// Tenant.
    pub org_id: OrgId,
    /// The request that asks.
    pub request_id: RequestId,
    /// The ingress that waits.
    pub reply_to: IngressId,
}

impl Record for TeamTrialJob {
    const VERSION: u32 = RoutingJob::VERSION;
}

/// What the trial of an agent runs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTrial {
    /// The agent, as it would be saved.
    pub agent: Agent,
    /// What was said before, oldest first.
    pub past: Vec<Said>,
}

/// What the trial of a team runs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamTrial {
    /// The team, as it would be saved.
    pub team: Team,
    /// The message.
    pub message: String,
    /// What was said before, oldest first.
    pub past: Vec<Said>,
}

/// One message of a trial's past.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "role",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum Said {
    /// By whoever tries.
    User {
        /// The text.
        content: String,
    },
    /// By an agent.
    Assistant {
        /// Which one.
        agent_id: AgentId,
        /// The text.
        content: String,
        /// What it showed.
        #[serde(default)]
        ui_spec: Option<Value>,
    },
}

/// Who of a team would answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TeamVerdict {
    /// This agent.
    Chosen(Box<Chosen>),
    /// Nobody of the team can answer.
    Nobody,
    /// What the trial runs on is not there any more.
    Forgotten,
}

/// The agent that would answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chosen {
    /// The agent.
    pub agent_id: AgentId,
    /// Why it, in words a customer can read.
    pub reason: String,
    /// What the decision stood on.
    pub facts: Option<RoutingFacts>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{inference_job::ConversationJob, versioned::decode};

    #[test]
    fn a_worker_that_knows_no_trials_takes_none_for_a_message() {
        let id = "0".repeat(26);
        let trial = json!({
            "version": 1, "trialId": format!("msg_{id}{id}"), "orgId": format!("org_{id}"),
            "requestId": format!("req_{id}"), "replyTo": format!("ing_{id}"),
        });
        assert!(decode::<ChatJob>(trial.to_string().as_bytes()).is_err());
        assert!(matches!(
            decode::<RoutingJob>(trial.to_string().as_bytes()),
            Ok(RoutingJob::Trial(_))
        ));
        let other = json!({ "version": 1, "kind": "another", "agentId": format!("agt_{id}") });
        assert!(decode::<ConversationJob>(other.to_string().as_bytes()).is_err());
    }
}
