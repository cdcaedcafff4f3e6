//! What analytics is told, with ids that a repeat of the work makes again.

use switchboard_backends::{
    bus::{BusError, MessageBus, OutgoingRecord},
    store::ReplyRecord,
};
use switchboard_schemas::{
    conversation_job::{DeleteJob, PatchJob, ReplyJob},
    ids::EventId,
    message_event::{
        AssistantMessageFact, ConversationUpdatedFact, EventActor, EventBody, MessageEvent,
        UserMessageFact,
    },
    time::Timestamp,
    topics::Topic,
    versioned,
};

use crate::{config::WorkersConfig, trace};

/// What a deletion clears for readers that do not know of deletions.
const PERSONAL_KEYS: [&str; 5] = [
    "visitorId",
    "visitorEmail",
    "visitorName",
    "ipAddress",
    "feedback",
];

/// Publishes one event under its conversation.
pub(crate) async fn publish(
    bus: &dyn MessageBus,
    config: &WorkersConfig,
    event: &MessageEvent,
) -> Result<(), BusError> {
    let payload = versioned::encode(event).map_err(|error| BusError::Fatal(error.to_string()))?;
    let record = OutgoingRecord {
        topic: Topic::Messages,
        key: event.conversation_id.as_str().to_owned(),
        payload: payload.into(),
        headers: trace::headers(),
    };
    bus.publish(record, config.publish_timeout()).await
}

/// A user message entered the history.
pub(crate) fn user_message(job: &ReplyJob, position: u64) -> MessageEvent {
    let turn = &job.turn;
    let fact = UserMessageFact {
        message_id: turn.message_id.clone(),
        position,
        content: turn.content.clone(),
        session_id: turn.session_id.clone(),
        visitor_id: turn.visitor.id.clone(),
        source: turn.source,
        key_id: turn.key_id.clone(),
        accepted_at: turn.accepted_at,
    };
    let id = EventId::of(turn.message_id.as_str(), "message.user");
    of_turn(
        job,
        id,
        turn.accepted_at,
        EventActor::Visitor,
        EventBody::UserMessage(Box::new(fact)),
    )
}

/// A reply reached its final state.
pub(crate) fn assistant_message(job: &ReplyJob, record: &ReplyRecord, text: &str) -> MessageEvent {
    let (end, head) = (&record.end, record.head.as_ref());
    let fact = AssistantMessageFact {
        message_id: job.turn.reply_id(),
        in_reply_to: job.turn.message_id.clone(),
        position: record.position,
        content: text.to_owned(),
        status: end.status,
        finish_reason: end.finish_reason,
        failure: end.failure.map(|failure| name(&failure)),
        model: head.map(|head| head.model.clone()).unwrap_or_default(),
        prompt_tokens: end.usage.prompt_tokens,
        completion_tokens: end.usage.completion_tokens,
        usage_estimated: end.usage.estimated,
        response_time_ms: end.response_time_ms,
        first_text_ms: record.first_text_ms,
        attempt: record.attempt,
        routing_reason: job.routed.as_ref().map(|routed| routed.reason.clone()),
        routing: job.routed.as_ref().and_then(|routed| routed.facts.clone()),
        ui_spec: head.and_then(|head| head.ui_spec.clone()),
    };
    let id = EventId::of(job.turn.reply_id().as_str(), "message.assistant");
    of_turn(
        job,
        id,
        record.finished_at,
        EventActor::Agent,
        EventBody::AssistantMessage(Box::new(fact)),
    )
}

/// Metadata changed.
pub(crate) fn conversation_updated(job: &PatchJob) -> MessageEvent {
    MessageEvent {
        event_id: job.event_id.clone(),
        occurred_at: job.accepted_at,
        org_id: job.org_id.clone(),
        conversation_id: job.conversation_id.clone(),
        actor: if job.actor == "visitor" {
            EventActor::Visitor
        } else {
            EventActor::Api
        },
        agent_id: job.agent_id.clone(),
        team_id: None,
        request_id: job.request_id.clone(),
        body: EventBody::ConversationUpdated(Box::new(ConversationUpdatedFact {
            changes: job.changes.clone(),
            deleted: false,
        })),
    }
}

/// The conversation was deleted; none where no agent can be named, and so nothing was told of it.
pub(crate) fn conversation_deleted(job: &DeleteJob) -> Option<MessageEvent> {
    let cleared = PERSONAL_KEYS.map(|key| (key.to_owned(), serde_json::Value::Null));
    Some(MessageEvent {
        event_id: job.event_id.clone(),
        occurred_at: job.accepted_at,
        org_id: job.org_id.clone(),
        conversation_id: job.conversation_id.clone(),
        actor: EventActor::Api,
        agent_id: job.agent_id.clone()?,
        team_id: job.team_id.clone(),
        request_id: job.request_id.clone(),
        body: EventBody::ConversationUpdated(Box::new(ConversationUpdatedFact {
            changes: cleared.into_iter().collect(),
            deleted: true,
        })),
    })
}

fn of_turn(
    job: &ReplyJob,
    event_id: EventId,
    occurred_at: Timestamp,
    actor: EventActor,
    body: EventBody,
) -> MessageEvent {
    MessageEvent {
        event_id,
        occurred_at,
        org_id: job.turn.org_id.clone(),
        conversation_id: job.turn.conversation_id.clone(),
        actor,
        agent_id: job.agent_id.clone(),
        team_id: job.routed.as_ref().map(|routed| routed.team_id.clone()),
        request_id: job.turn.request_id.clone(),
        body,
    }
}

/// The name that a value has on the wire.
pub(crate) fn name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
