//! Bodies of requests as the document shows them. The handlers read them by hand, so that each field's error is the
//! contract's own.

#![expect(
    dead_code,
    reason = "these types are read by the generator of the document alone"
)]

use serde_json::{Map, Value};
use switchboard_schemas::{
    client_text::{SessionId, VisitorId},
    ids::AgentId,
};
use utoipa::{
    ToSchema,
    openapi::{
        Object, ObjectBuilder,
        schema::{SchemaType, Type},
    },
};

use crate::http::fields::METADATA_KEYS_MAX;

/// A message to an agent. Unknown fields are ignored.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ChatRequest {
    /// What the visitor says, not blank; at most the agent's `maxMessageLength` Unicode characters.
    #[schema(min_length = 1, pattern = r"\S")]
    message: String,
    /// Groups messages into one conversation.
    session_id: SessionId,
    /// Recognizes a visitor across sessions.
    #[schema(nullable, required = false)]
    visitor_id: Option<VisitorId>,
    /// For lead capture.
    #[schema(format = Email, max_length = 254)]
    visitor_email: Option<String>,
    /// At most 1024 bytes.
    #[schema(max_length = 1024)]
    visitor_name: Option<String>,
    #[schema(schema_with = metadata, required = false)]
    metadata: Option<Map<String, Value>>,
    /// `false` asks for one JSON document, whatever `Accept` says.
    stream: Option<bool>,
}

/// A message to a team. Unknown fields are ignored.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct TeamChatRequest {
    /// What the visitor says, not blank; at most the smallest `maxMessageLength` of the team's agents.
    #[schema(min_length = 1, pattern = r"\S")]
    message: String,
    /// Groups messages into one conversation.
    session_id: SessionId,
    /// The team's conversation of this session, for clients that check what they go on with. Any other is refused.
    #[schema(nullable)]
    conversation_id: Option<String>,
    /// Recognizes a visitor across sessions.
    visitor_id: Option<VisitorId>,
    /// For lead capture.
    #[schema(format = Email, max_length = 254)]
    visitor_email: Option<String>,
    /// At most 1024 bytes.
    #[schema(max_length = 1024)]
    visitor_name: Option<String>,
    #[schema(schema_with = metadata, required = false)]
    metadata: Option<Map<String, Value>>,
    /// `false` asks for one JSON document, whatever `Accept` says.
    stream: Option<bool>,
}

/// What a page shows to get a token. Unknown fields are ignored.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct VisitorTokenRequest {
    /// The agent that the visitor talks to.
    #[schema(value_type = String, pattern = r"\S")]
    agent_id: AgentId,
    /// The secret that came with the visitor's last token; without it a new visitor comes.
    visitor_secret: Option<String>,
    /// Believed only together with its secret.
    visitor_id: Option<VisitorId>,
}

/// Changes of a conversation, all or nothing; a field that is left out stays, and `null` clears a text.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ConversationChanges {
    /// The visitor's address.
    #[schema(format = Email, max_length = 254)]
    visitor_email: Option<String>,
    /// The visitor's name, at most 1024 bytes.
    #[schema(max_length = 1024)]
    visitor_name: Option<String>,
    /// From 1 to 5.
    #[schema(minimum = 1, maximum = 5, nullable = false)]
    rating: Option<f64>,
    /// What the visitor thinks of it, at most 16 KiB.
    #[schema(max_length = 16384)]
    feedback: Option<String>,
    #[schema(schema_with = metadata, required = false)]
    metadata: Option<Map<String, Value>>,
}

/// What was changed.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Changed {
    /// Always true: a change that was not made is an error.
    success: bool,
    /// The fields that were supplied, with their values.
    updated: ConversationChanges,
}

/// What a client gets that does not wait.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Accepted {
    /// Where the reply will be found.
    message_id: switchboard_schemas::ids::MessageId,
    /// Its conversation.
    conversation_id: switchboard_schemas::ids::ConversationId,
    /// `queued`.
    status: switchboard_schemas::conversation::ReplyStatus,
}

/// Any values, and `null` for none; the generator cannot say how many keys.
fn metadata() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::Array(vec![Type::Object, Type::Null]))
        .max_properties(Some(METADATA_KEYS_MAX))
        .description(Some(
            "Anything else to keep with the conversation, merged key by key: at most 50 keys and 16 KiB. `visitorId`, \
             `visitorEmail`, `visitorName`, `source`, `ipAddress`, `rating` and `feedback` are left out of it.",
        ))
        .build()
}
