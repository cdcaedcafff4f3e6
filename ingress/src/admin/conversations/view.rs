//! Conversations and messages as administrators see them.

use serde::Serialize;
use serde_json::{Map, Value};
use switchboard_backends::store::ReplyRecord;
use switchboard_schemas::{
    client_text::SessionId,
    conversation::{
        ContextTruncation, Conversation, ConversationOwner, FinishReason, Message, MessageAuthor,
        ReplyFacts, ReplyStatus, TokenUsage,
    },
    file::Attachment,
    ids::{AgentId, ConversationId, MessageId, TeamId},
    provider::ProviderError,
    reply_event::ReplyFailure,
    routing::RoutingFacts,
    time::Timestamp,
};
use utoipa::ToSchema;

use crate::admin::pages::Page;

/// A conversation without its messages.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct ConversationView {
    /// The id of the conversation.
    pub(super) id: ConversationId,
    /// The id of the visitor's session.
    pub(super) session_id: SessionId,
    /// The id of the agent; `null` for a conversation with a team.
    #[schema(required)]
    pub(super) agent_id: Option<AgentId>,
    /// The id of the team; `null` for a conversation with an agent.
    #[schema(required)]
    pub(super) team_id: Option<TeamId>,
    /// The number of messages, including replies.
    message_count: u64,
    /// The id of the reply that is being written.
    #[schema(required)]
    active_message_id: Option<MessageId>,
    /// The time of the first message.
    created_at: Timestamp,
    /// The time of the last change.
    updated_at: Timestamp,
    /// The visitor, the rating, the feedback and keys of the client.
    metadata: Map<String, Value>,
}

/// A conversation with a page of its messages.
#[derive(Serialize, ToSchema)]
pub(in crate::admin) struct ConversationDetailView {
    #[serde(flatten)]
    pub(super) conversation: ConversationView,
    /// The messages, oldest first.
    pub(super) messages: Page<MessageView>,
}

/// A message of a conversation.
#[derive(Serialize, ToSchema)]
pub(in crate::admin) struct MessageView {
    /// The id of the message.
    pub(super) id: MessageId,
    /// The text of the message.
    content: String,
    /// The files that were sent with the message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(super) attachments: Vec<Attachment>,
    /// The time of acceptance of a visitor's message, or of the end of a reply.
    pub(super) timestamp: Timestamp,
    #[serde(flatten)]
    pub(super) author: AuthorView,
    /// The end of the reply to this message, if the reply has no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) unanswered: Option<UnansweredView>,
}

/// The author of a message.
#[derive(Serialize, ToSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum AuthorView {
    /// A visitor.
    User,
    /// An agent.
    Assistant(Box<ReplyFactsView>),
}

/// The facts about a reply.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplyFactsView {
    /// The id of the agent that replied.
    agent_id: AgentId,
    /// The name of the agent at that time.
    pub(super) agent_name: String,
    /// The final state.
    pub(super) status: ReplyStatus,
    /// The reason for which the provider stopped.
    #[schema(required)]
    finish_reason: Option<FinishReason>,
    /// The tokens that were used.
    pub(super) usage: TokenUsage,
    /// Milliseconds from acceptance to the end.
    pub(super) response_time: u64,
    /// The model that wrote the reply.
    pub(super) model: String,
    /// The reason for which a team chose the agent.
    #[schema(required)]
    pub(super) routing_reason: Option<String>,
    /// The facts on which that choice is based.
    #[schema(required)]
    routing: Option<RoutingFacts>,
    /// The products or other data that were shown with the text.
    #[schema(required, value_type = Option<Object>)]
    ui_spec: Option<Value>,
    /// The earlier messages that did not fit into the context window; `null` if all did.
    #[schema(required)]
    left_out: Option<ContextTruncation>,
    /// The summary that replaced earlier messages.
    #[schema(required)]
    summary: Option<String>,
    /// The steps of the reply whose times are known.
    timeline: Vec<TimelineStep>,
}

/// A step of a reply.
#[derive(Serialize, ToSchema)]
struct TimelineStep {
    /// The step.
    step: StepName,
    /// Milliseconds since the acceptance of the message.
    ms: u64,
}

/// The name of a step of a reply.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum StepName {
    Accepted,
    Routed,
    Queued,
    Claimed,
    #[serde(rename = "asked")]
    ModelCalled,
    FirstText,
    Done,
}

/// The end of a reply without text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnansweredView {
    /// The final state.
    pub(super) status: ReplyStatus,
    /// The reason of a failure.
    #[schema(required)]
    failure: Option<ReplyFailure>,
    /// Error of the provider, if it is the reason.
    #[schema(required)]
    provider_error: Option<ProviderError>,
    /// Milliseconds from acceptance to the end.
    response_time: u64,
    /// The time of the end.
    at: Timestamp,
}

impl ConversationView {
    pub(super) fn new(conversation: &Conversation) -> Self {
        let (agent_id, team_id) = match &conversation.owner {
            ConversationOwner::Agent(agent) => (Some(agent.clone()), None),
            ConversationOwner::Team(team) => (None, Some(team.clone())),
        };
        Self {
            id: conversation.id.clone(),
            session_id: conversation.session_id.clone(),
            agent_id,
            team_id,
            message_count: conversation.message_count,
            active_message_id: conversation.active_message_id.clone(),
            created_at: conversation.created_at,
            updated_at: conversation.updated_at,
            metadata: conversation.metadata.clone(),
        }
    }
}

impl MessageView {
    pub(super) fn new(message: &Message) -> Self {
        Self {
            id: message.id.clone(),
            content: message.content.clone(),
            attachments: message.attachments.clone(),
            timestamp: message.created_at,
            author: match &message.author {
                MessageAuthor::User => AuthorView::User,
                MessageAuthor::Assistant(facts) => {
                    AuthorView::Assistant(Box::new(ReplyFactsView::new(facts)))
                }
            },
            unanswered: None,
        }
    }
}

impl ReplyFactsView {
    fn new(facts: &ReplyFacts) -> Self {
        Self {
            agent_id: facts.agent_id.clone(),
            agent_name: facts.agent_name.clone(),
            status: facts.status,
            finish_reason: facts.finish_reason,
            usage: facts.usage,
            response_time: facts.response_time_ms,
            model: facts.model.clone(),
            routing_reason: facts.routing_reason.clone(),
            routing: facts.routing.clone(),
            ui_spec: facts.ui_spec.clone(),
            left_out: facts.truncation,
            summary: facts.summary.as_ref().map(|summary| summary.text.clone()),
            timeline: timeline(facts),
        }
    }
}

impl UnansweredView {
    /// Creates the view of a reply's record.
    pub(super) fn new(record: &ReplyRecord) -> Self {
        Self {
            status: record.end.status,
            failure: record.end.failure,
            provider_error: record.end.provider_error.clone(),
            response_time: record.end.response_time_ms,
            at: record.finished_at,
        }
    }
}

fn timeline(facts: &ReplyFacts) -> Vec<TimelineStep> {
    let steps = facts.steps.unwrap_or_default();
    let times = [
        (StepName::Accepted, Some(0)),
        (StepName::Routed, steps.routed_ms),
        (StepName::Queued, steps.queued_ms),
        (StepName::Claimed, steps.claimed_ms),
        (StepName::ModelCalled, steps.asked_ms),
        (StepName::FirstText, steps.first_text_ms),
        (StepName::Done, Some(facts.response_time_ms)),
    ];
    let known = times
        .into_iter()
        .filter_map(|(step, ms)| Some(TimelineStep { step, ms: ms? }));
    known.collect()
}
