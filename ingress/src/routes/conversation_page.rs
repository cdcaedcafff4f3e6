//! JSON view of one page of a conversation, and the query that selects the page.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_schemas::{
    agent::Agent,
    client_text::SessionId,
    conversation::{Conversation, FinishReason, Message, MessageAuthor, ReplyStatus},
    file::Attachment,
    ids::{AgentId, ConversationId, MessageId},
    time::Timestamp,
};
use utoipa::{IntoParams, ToSchema};

use crate::{http::query::whole_number, openapi::event_stream::UiSpec};

const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 100;

/// The page of the messages of a conversation.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessagePageQuery {
    /// Messages to return: 50 by default, at most 100. Larger numbers count as 100, other values as
    /// 50.
    #[param(
        value_type = u32,
        required = false,
        minimum = 1,
        maximum = 100,
        default = 50,
        example = 20
    )]
    limit: Option<String>,
    /// Messages to skip, oldest first. A value that is not a whole number counts as 0.
    #[param(value_type = u64, required = false, minimum = 0, default = 0, example = 0)]
    offset: Option<String>,
}

/// Range of messages in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessagePage {
    pub(super) limit: u32,
    pub(super) offset: u64,
}

impl MessagePage {
    /// Returns the range that a query selects. Values that are not whole numbers are ignored, and
    /// the limit is capped.
    pub(super) fn from_query(query: &MessagePageQuery) -> Self {
        let number = |text: &Option<String>| text.as_deref().and_then(whole_number);
        let limit = number(&query.limit)
            .filter(|limit| *limit >= 1)
            .unwrap_or(LIMIT_DEFAULT.into());
        Self {
            limit: u32::try_from(limit).unwrap_or(LIMIT_MAX).min(LIMIT_MAX),
            offset: number(&query.offset).unwrap_or_default(),
        }
    }
}

/// A conversation and a page of its messages.
#[derive(Serialize, ToSchema)]
#[schema(as = Conversation)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversationView<'a> {
    id: &'a ConversationId,
    session_id: &'a SessionId,
    agent_id: &'a AgentId,
    agent_name: &'a str,
    /// Messages of this page, oldest first.
    messages: Vec<MessageView<'a>>,
    /// Number of messages on this page.
    message_count: usize,
    /// Number of messages in the conversation.
    total_messages: u64,
    limit: u32,
    offset: u64,
    /// True if more messages follow this page.
    has_more: bool,
    /// The reply in progress, if any.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    active_message_id: Option<&'a MessageId>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Visitor data and metadata that clients attached.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

impl<'a> ConversationView<'a> {
    /// Creates the view of a page that contains `messages`.
    pub(super) fn new(
        agent: &'a Agent,
        conversation: &'a Conversation,
        messages: &'a [Message],
        page: MessagePage,
    ) -> Self {
        let returned = messages.len() as u64;
        let metadata = conversation
            .metadata
            .iter()
            .filter(|(_, value)| !value.is_null());
        Self {
            id: &conversation.id,
            session_id: &conversation.session_id,
            agent_id: &agent.id,
            agent_name: &agent.name,
            messages: messages.iter().map(MessageView::new).collect(),
            message_count: messages.len(),
            total_messages: conversation.message_count,
            limit: page.limit,
            offset: page.offset,
            has_more: returned > 0
                && page.offset.saturating_add(returned) < conversation.message_count,
            active_message_id: conversation.active_message_id.as_ref(),
            created_at: conversation.created_at,
            updated_at: conversation.updated_at,
            metadata: metadata
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        }
    }
}

/// A message of a visitor or an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = Message)]
#[serde(tag = "role", rename_all = "lowercase")]
enum MessageView<'a> {
    User(UserMessageView<'a>),
    Assistant(AssistantMessageView<'a>),
}

/// A message of a visitor.
#[derive(Serialize, ToSchema)]
#[schema(as = UserMessage)]
struct UserMessageView<'a> {
    id: &'a MessageId,
    content: &'a str,
    /// Files that were sent with the message.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    attachments: &'a [Attachment],
    timestamp: Timestamp,
}

/// A reply of an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = AssistantMessage)]
#[serde(rename_all = "camelCase")]
struct AssistantMessageView<'a> {
    id: &'a MessageId,
    content: &'a str,
    timestamp: Timestamp,
    /// Number of tokens in the reply.
    tokens: u64,
    /// Duration of the reply in milliseconds.
    response_time: u64,
    status: ReplyStatus,
    agent_id: &'a AgentId,
    agent_name: &'a str,
    model: &'a str,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<FinishReason>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    routing_reason: Option<&'a str>,
    #[schema(nullable = false, value_type = Option<UiSpec>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ui_spec: Option<&'a Value>,
}

impl<'a> MessageView<'a> {
    fn new(message: &'a Message) -> Self {
        let (id, content, timestamp) = (&message.id, message.content.as_str(), message.created_at);
        match &message.author {
            MessageAuthor::User => Self::User(UserMessageView {
                id,
                content,
                attachments: &message.attachments,
                timestamp,
            }),
            MessageAuthor::Assistant(facts) => Self::Assistant(AssistantMessageView {
                id,
                content,
                timestamp,
                tokens: facts.usage.completion_tokens,
                response_time: facts.response_time_ms,
                status: facts.status,
                agent_id: &facts.agent_id,
                agent_name: &facts.agent_name,
                model: &facts.model,
                finish_reason: facts.finish_reason,
                routing_reason: facts.routing_reason.as_deref(),
                ui_spec: facts.ui_spec.as_ref(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::query::parse_query;

    #[test]
    fn page_is_parsed_from_whole_numbers_only() {
        for (query, limit, offset) in [
            ("", 50, 0),
            ("limit=1&offset=7", 1, 7),
            ("limit=100", 100, 0),
            ("limit=101", 100, 0),
            ("limit=99999999999999999999999", 100, 0),
            ("limit=0", 50, 0),
            ("limit=-1", 50, 0),
            ("limit=abc&offset=x", 50, 0),
            ("limit=10.5&offset=1.5", 50, 0),
            ("limit=&offset=-1", 50, 0),
            ("limit&xlimit=3&offset=18446744073709551616", 50, u64::MAX),
        ] {
            assert_eq!(
                MessagePage::from_query(&parse_query(query).unwrap()),
                MessagePage { limit, offset },
                "{query}"
            );
        }
    }
}
