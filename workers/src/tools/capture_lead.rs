//! Lead form tool: shows the form with which the agent asks for contact data. The visitor fills it
//! in; a model neither knows nor writes the values.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_backends::store::ConversationStore;
use switchboard_schemas::{
    agent::Agent,
    ids::{ConversationId, OrgId},
    lead::{CapturedLead, LEAD_KEY, LeadForm, LeadTrigger},
};

use super::{AgentTool, ToolFailure, ToolOutcome, ToolSource};

const NAME: &str = "capture_lead";
/// Type of the UI.
const TYPE: &str = "lead-form";
const DESCRIPTION: &str = "Shows the visitor a form for contact data below your answer. Call it, alone, when the visitor \
    wants to be contacted, or wants something that needs contact data. Never ask for contact data in your answer, and \
    never invent any.";
const SHOWN: &str = "The form is shown below your answer. The visitor may fill it in or not; you are not told the \
    values. Invite the visitor to it in one sentence and ask for no contact data yourself.";
const CAPTURED: &str = "The visitor has filled in the form before, and the contact data are stored. No form is shown. \
    Say that the data are there, and do not ask for them again.";

static PARAMETERS: LazyLock<Value> = LazyLock::new(|| json!({"type": "object", "properties": {}}));

/// Provides the tool to agents whose lead form waits for the model.
pub(crate) struct LeadTools {
    pub(crate) store: Arc<dyn ConversationStore>,
}

struct CaptureLead {
    store: Arc<dyn ConversationStore>,
    org: OrgId,
    conversation: ConversationId,
    form: LeadForm,
}

#[async_trait]
impl ToolSource for LeadTools {
    async fn tools_for(
        &self,
        agent: &Arc<Agent>,
        conversation: &ConversationId,
    ) -> Vec<Arc<dyn AgentTool>> {
        let form = agent.settings.active_lead_form();
        let form = form.filter(|form| form.trigger == LeadTrigger::Tool);
        let tool = form.map(|form| CaptureLead {
            store: Arc::clone(&self.store),
            org: agent.org_id.clone(),
            conversation: conversation.clone(),
            form: form.clone(),
        });
        tool.into_iter()
            .map(|tool| Arc::new(tool) as Arc<dyn AgentTool>)
            .collect()
    }
}

#[async_trait]
impl AgentTool for CaptureLead {
    fn kind(&self) -> &'static str {
        "lead"
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        DESCRIPTION
    }

    fn parameters(&self) -> &Value {
        &PARAMETERS
    }

    async fn run(&self, _: Map<String, Value>) -> Result<ToolOutcome, ToolFailure> {
        let known = self.store.conversation(&self.org, &self.conversation).await;
        let known = known.map_err(|error| {
            tracing::warn!(%error, "the conversation of a lead could not be read");
            ToolFailure::Unavailable
        })?;
        let lead = known.as_ref().and_then(|it| it.metadata.get(LEAD_KEY));
        let is_captured = lead.is_some_and(|lead| CapturedLead::deserialize(lead).is_ok());
        Ok(ToolOutcome {
            text: if is_captured { CAPTURED } else { SHOWN }.to_owned(),
            ui: (!is_captured).then(|| ui_of(&self.form)),
        })
    }
}

/// Returns words of a displayed form, for a reply without text; `None` for another UI.
pub(super) fn invitation(ui: &Value) -> Option<String> {
    let text = |name: &str| ui[name].as_str().filter(|text| !text.is_empty());
    let labels = || {
        let fields = ui["fields"].as_array()?;
        let labels: Vec<_> = fields
            .iter()
            .filter_map(|it| it["label"].as_str())
            .collect();
        Some(labels.join(", "))
    };
    if ui["type"] != TYPE {
        return None;
    }
    let own = text("title")
        .or_else(|| text("text"))
        .map(ToOwned::to_owned);
    own.or_else(labels)
}

fn ui_of(form: &LeadForm) -> Value {
    json!({
        "type": TYPE, "title": form.title, "text": form.text, "consent": form.consent, "fields": form.fields,
        "version": form.version(),
    })
}
