//! A reply as JSON shows it, to those who waited for it and to those who ask for it by its id.

use serde::Serialize;
use serde_json::Value;
use switchboard_backends::store::ReplyRecord;
use switchboard_schemas::{
    conversation::{FinishReason, ReplyStatus, TokenUsage},
    ids::{AgentId, ConversationId, MessageId},
    reply_event::{ReplyEnd, ReplyHead},
    time::Timestamp,
};
use utoipa::ToSchema;

use super::assembly::ReplyAssembly;
use crate::{openapi::event_stream::UiSpec, state::AppState};

/// A reply, as far as it is known.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reply)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplyView {
    message_id: MessageId,
    conversation_id: ConversationId,
    /// Always `assistant`.
    #[schema(pattern = "^assistant$")]
    role: &'static str,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<AgentId>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_name: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    routing_reason: Option<String>,
    /// The text so far.
    pub(crate) content: String,
    #[schema(nullable = false, value_type = Option<UiSpec>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ui_spec: Option<Value>,
    status: ReplyStatus,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<FinishReason>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    /// Milliseconds.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    response_time: Option<u64>,
    created_at: Timestamp,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    // Told as a wide number: the usual 32 bits of generated clients have a sign.
    #[schema(nullable = false, value_type = Option<u64>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
}

impl ReplyView {
    /// A reply of which no more is known than this.
    pub(crate) fn new(reply: MessageId, status: ReplyStatus, created_at: Timestamp) -> Self {
        Self {
            conversation_id: reply.conversation(),
            message_id: reply,
            role: "assistant",
            agent_id: None,
            agent_name: None,
            routing_reason: None,
            content: String::new(),
            ui_spec: None,
            status,
            finish_reason: None,
            usage: None,
            response_time: None,
            created_at,
            model: None,
            generation: None,
        }
    }

    /// A reply in its final state.
    pub(crate) fn of_record(reply: MessageId, record: &ReplyRecord, content: String) -> Self {
        let mut view = Self::new(reply, record.end.status, record.finished_at);
        view.content = content;
        if let Some(head) = &record.head {
            view.take_head(head);
            view.generation = Some(record.generation);
        }
        view.take_end(&record.end);
        view
    }

    /// Adds what its frames have told.
    pub(crate) fn take_assembly(&mut self, assembly: &ReplyAssembly) {
        if let Some(head) = assembly.head() {
            self.take_head(head);
            self.generation = assembly.known_generation();
        }
        self.ui_spec = assembly.ui_spec().cloned();
    }

    /// Adds how it ended.
    pub(crate) fn take_end(&mut self, end: &ReplyEnd) {
        self.finish_reason = end.finish_reason;
        self.usage = Some(end.usage);
        self.response_time = Some(end.response_time_ms);
    }

    /// Names `agent`, unless the reply itself has said who answers.
    pub(crate) async fn name_agent(&mut self, state: &AppState, agent: Option<&AgentId>) {
        let (None, Some(id)) = (&self.agent_id, agent) else {
            return;
        };
        self.agent_id = Some(id.clone());
        self.agent_name = state
            .catalog
            .agent(id)
            .await
            .ok()
            .flatten()
            .map(|agent| agent.name.clone());
    }

    fn take_head(&mut self, head: &ReplyHead) {
        self.agent_id = Some(head.agent_id.clone());
        self.agent_name = Some(head.agent_name.clone());
        self.routing_reason.clone_from(&head.routing_reason);
        self.ui_spec.clone_from(&head.ui_spec);
        self.model = Some(head.model.clone());
    }
}
