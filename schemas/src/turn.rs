//! Turns: accepted user messages on their way through the bus, with everything that a worker cannot
//! look up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    client_text::{SessionId, VisitorId},
    file::Attachment,
    ids::{ConversationId, IngressId, KeyId, MessageId, OrgId, RequestId},
    lead::CapturedLead,
    time::Timestamp,
};

/// A user message and its context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// Id of the conversation, the key of every record of this turn.
    pub conversation_id: ConversationId,
    /// Id of the user message, from which the id of the reply follows.
    pub message_id: MessageId,
    /// HTTP request of the message.
    pub request_id: RequestId,
    /// API key of the request.
    pub key_id: Option<KeyId>,
    /// Session id chosen by the client.
    pub session_id: SessionId,
    /// Text of the user message; may be empty beside attachments.
    pub content: String,
    /// Files that were sent with the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Visitor data sent by the client.
    #[serde(default)]
    pub visitor: Visitor,
    /// Metadata sent by the client.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Channel of the message.
    pub source: MessageSource,
    /// Client address, truncated to the part that may be stored.
    pub ip_address: Option<String>,
    /// Time at which the ingress accepted the message.
    pub accepted_at: Timestamp,
    /// Ingress process that waits for the reply; absent if none does.
    pub reply_to: Option<IngressId>,
    /// Nonce of this publish. A publish that was answered with 503 is voided by it.
    pub publish_nonce: String,
}

impl Turn {
    /// Returns the id of the reply to this turn.
    pub fn reply_id(&self) -> MessageId {
        self.message_id.reply()
    }
}

/// Visitor data sent by the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Visitor {
    /// Id of the visitor across sessions.
    pub id: Option<VisitorId>,
    /// E-mail address, for leads.
    pub email: Option<String>,
    /// Display name of the visitor.
    pub name: Option<String>,
    /// Lead that the visitor submitted with the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<Box<CapturedLead>>,
}

/// The channel of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Source")]
pub enum MessageSource {
    /// A program that calls the API.
    Api,
    /// The embeddable chat widget.
    Widget,
}
