//! An accepted message on its way through the bus: everything that a worker needs and nothing that it can look up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    client_text::{SessionId, VisitorId},
    ids::{ConversationId, IngressId, KeyId, MessageId, OrgId, RequestId},
    time::Timestamp,
};

/// One user message and its circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// Tenant.
    pub org_id: OrgId,
    /// Conversation, the key of every record of this turn.
    pub conversation_id: ConversationId,
    /// The user message; the reply's id follows from it.
    pub message_id: MessageId,
    /// The request that brought it.
    pub request_id: RequestId,
    /// The key that was used.
    pub key_id: Option<KeyId>,
    /// The client's name of the conversation.
    pub session_id: SessionId,
    /// User text.
    pub content: String,
    /// Who wrote.
    #[serde(default)]
    pub visitor: Visitor,
    /// What the client attached.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Where it came from.
    pub source: MessageSource,
    /// Client address, already cut to what may be kept.
    pub ip_address: Option<String>,
    /// When the ingress accepted it.
    pub accepted_at: Timestamp,
    /// The ingress whose connection waits; none when nobody does.
    pub reply_to: Option<IngressId>,
    /// Names this one attempt to publish: a publish that was answered with 503 is voided by it.
    pub publish_nonce: String,
}

impl Turn {
    /// The assistant message that answers this turn.
    pub fn reply_id(&self) -> MessageId {
        self.message_id.reply()
    }
}

/// What a client says of its visitor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Visitor {
    /// Across sessions.
    pub id: Option<VisitorId>,
    /// For leads.
    pub email: Option<String>,
    /// Display name.
    pub name: Option<String>,
}

/// Where a message came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Source")]
pub enum MessageSource {
    /// A program.
    Api,
    /// The chat widget.
    Widget,
}
