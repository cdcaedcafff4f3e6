//! Request bodies of the chat routes. Their fields are raw values: validation happens in the
//! documented order, and each error names its field.

use serde::Deserialize;
use serde_json::Value;
use switchboard_schemas::client_text::{SessionId, VisitorId};
use utoipa::ToSchema;

use crate::{files::references::AttachmentReference, openapi::metadata_schema::metadata_schema};

/// A message. Unknown fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChatRequest {
    /// Text of the message, not blank; at most `maxMessageLength` Unicode characters of the agent,
    /// or of the strictest agent of a team.
    #[serde(default)]
    #[schema(value_type = String, required = true, min_length = 1, pattern = r"\S")]
    pub(super) message: Value,
    /// Groups messages into one conversation.
    #[serde(default)]
    #[schema(value_type = SessionId, required = true)]
    pub(super) session_id: Value,
    /// Recognizes a visitor across sessions.
    #[serde(default)]
    #[schema(value_type = Option<VisitorId>, nullable, required = false)]
    pub(super) visitor_id: Value,
    /// E-mail address of the visitor, for lead capture.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Email, max_length = 254)]
    pub(super) visitor_email: Value,
    /// Name of the visitor, at most 1024 bytes.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 1024)]
    pub(super) visitor_name: Value,
    /// Contact data for a form that comes before the first message: a value for each field of the
    /// agent's `leadForm`, and `consent: true`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(super) lead: Value,
    /// Uploaded files that belong to the message; its text may be empty beside them.
    #[serde(default)]
    #[schema(value_type = Option<Vec<AttachmentReference>>, max_items = 5)]
    pub(super) attachments: Value,
    #[serde(default)]
    #[schema(schema_with = metadata_schema, required = false)]
    pub(super) metadata: Value,
    /// `false` requests one JSON document, regardless of `Accept`.
    #[serde(default)]
    #[schema(value_type = Option<bool>)]
    pub(super) stream: Value,
}

/// A message to a team. Unknown fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TeamChatRequest {
    #[serde(flatten)]
    request: ChatRequest,
    /// The team's conversation of this session, for clients that verify it. Any other is rejected.
    #[serde(default)]
    #[schema(value_type = Option<String>, nullable)]
    conversation_id: Value,
}

#[cfg(fuzzing)]
impl ChatRequest {
    pub(crate) const fn metadata(&self) -> &Value {
        &self.metadata
    }
}

impl TeamChatRequest {
    /// Returns the fields that both routes have, and `conversationId`.
    pub(crate) fn into_parts(self) -> (ChatRequest, Value) {
        (self.request, self.conversation_id)
    }
}
