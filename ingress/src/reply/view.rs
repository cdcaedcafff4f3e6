//! JSON view of a reply, for clients that waited for it and for later reads.

use serde::Serialize;
use serde_json::Value;
use switchboard_backends::store::ReplyRecord;
use switchboard_schemas::{
    conversation::{FinishReason, ReplyStatus, TokenUsage},
    file::Attachment,
    ids::{AgentId, ConversationId, MessageId},
    reply_event::{ReplyEnd, ReplyHead},
    time::Timestamp,
};
use utoipa::ToSchema;

use super::assembly::ReplyAssembly;
use crate::{openapi::event_stream::UiSpec, state::AppState};

/// A reply and its current state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reply)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplyView {
    message_id: MessageId,
    conversation_id: ConversationId,
    /// The author of a reply: always `assistant`.
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
    /// The text; partial until the reply is final.
    pub(crate) content: String,
    #[schema(nullable = false, value_type = Option<UiSpec>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ui_spec: Option<Value>,
    /// Files of the message that is answered; only in the answer to that message.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<Attachment>,
    status: ReplyStatus,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<FinishReason>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    /// Duration of the reply in milliseconds.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    response_time: Option<u64>,
    created_at: Timestamp,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    // Documented as 64-bit: the 32-bit integers of generated clients are signed.
    #[schema(nullable = false, value_type = Option<u64>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
}

impl ReplyView {
    /// Creates a view of a reply without text or metadata.
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
            attachments: Vec::new(),
            status,
            finish_reason: None,
            usage: None,
            response_time: None,
            created_at,
            model: None,
            generation: None,
        }
    }

    /// Creates the view of a final reply from its record.
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

    /// Adds the metadata that the frames contained.
    pub(crate) fn take_assembly(&mut self, assembly: &ReplyAssembly) {
        if let Some(head) = assembly.head() {
            self.take_head(head);
            self.generation = assembly.generation();
        }
        self.ui_spec = assembly.ui_spec().cloned();
    }

    /// Adds the final state.
    pub(crate) fn take_end(&mut self, end: &ReplyEnd) {
        self.status = end.status;
        self.finish_reason = end.finish_reason;
        self.usage = Some(end.usage);
        self.response_time = Some(end.response_time_ms);
    }

    /// Sets the agent to `agent` unless the reply's head has already named one.
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
