//! Builds and publishes the message events for analytics. Their ids are derived, so that repeated
//! work repeats them.

use serde_json::{Map, Value};
use switchboard_backends::{
    bus::{BusError, MessageBus, OutgoingRecord, trace::TraceContext},
    store::ReplyRecord,
};
use switchboard_schemas::{
    conversation_job::{DeleteJob, PatchJob, ReplyJob},
    ids::EventId,
    lead::{CapturedLead, LEAD_KEY},
    message_event::{
        AssistantMessageFact, ConversationUpdatedFact, EventActor, EventBody, LeadCapturedFact,
        MessageEvent, UserMessageFact,
    },
    time::Timestamp,
    topics::Topic,
    versioned,
};

use crate::config::WorkersConfig;

/// Metadata keys that a deletion clears for consumers that do not know deletions.
const PERSONAL_KEYS: [&str; 6] = [
    "visitorId",
    "visitorEmail",
    "visitorName",
    "ipAddress",
    "feedback",
    LEAD_KEY,
];
/// Type of the event of a lead.
const LEAD_CAPTURED: &str = "lead.captured";

/// Publishes one event with its conversation as the key.
pub(crate) async fn publish_event(
    bus: &dyn MessageBus,
    config: &WorkersConfig,
    event: &MessageEvent,
) -> Result<(), BusError> {
    let payload = versioned::encode(event).map_err(|error| BusError::Fatal(error.to_string()))?;
    let record = OutgoingRecord {
        topic: Topic::Messages,
        key: event.conversation_id.as_str().to_owned(),
        payload: payload.into(),
        headers: TraceContext::current().to_headers(),
    };
    bus.publish(record, config.publish_timeout()).await
}

pub(crate) fn user_message(job: &ReplyJob, position: u64) -> MessageEvent {
    let turn = &job.turn;
    let fact = UserMessageFact {
        message_id: turn.message_id.clone(),
        position,
        content: turn.content.clone(),
        attachments: turn.attachments.clone(),
        session_id: turn.session_id.clone(),
        visitor_id: turn.visitor.id.clone(),
        source: turn.source,
        key_id: turn.key_id.clone(),
        accepted_at: turn.accepted_at,
    };
    let id = EventId::derive(turn.message_id.as_str(), "message.user");
    turn_event(
        job,
        id,
        turn.accepted_at,
        EventActor::Visitor,
        EventBody::UserMessage(Box::new(fact)),
    )
}

/// Returns the event of a reply in its final state.
pub(crate) fn assistant_message(job: &ReplyJob, record: &ReplyRecord, text: &str) -> MessageEvent {
    let (end, head) = (&record.end, record.head.as_ref());
    let fact = AssistantMessageFact {
        message_id: job.turn.reply_id(),
        in_reply_to: job.turn.message_id.clone(),
        position: record.position,
        content: text.to_owned(),
        status: end.status,
        finish_reason: end.finish_reason,
        failure: end.failure.map(|failure| serialized_name(&failure)),
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
    let id = EventId::derive(job.turn.reply_id().as_str(), "message.assistant");
    turn_event(
        job,
        id,
        record.finished_at,
        EventActor::Agent,
        EventBody::AssistantMessage(Box::new(fact)),
    )
}

/// Returns the event of metadata that a message has changed.
pub(crate) fn message_metadata_changed(
    job: &ReplyJob,
    changes: Map<String, Value>,
) -> MessageEvent {
    let turn = &job.turn;
    let id = EventId::derive(turn.message_id.as_str(), "conversation.updated");
    let fact = ConversationUpdatedFact {
        changes,
        deleted: false,
    };
    turn_event(
        job,
        id,
        turn.accepted_at,
        EventActor::Visitor,
        EventBody::ConversationUpdated(Box::new(fact)),
    )
}

/// Returns the event of the lead that came with a message, if one did.
pub(crate) fn message_lead(job: &ReplyJob) -> Option<MessageEvent> {
    let lead = job.turn.visitor.lead.as_deref()?.clone();
    let id = EventId::derive(job.turn.message_id.as_str(), LEAD_CAPTURED);
    Some(turn_event(
        job,
        id,
        job.turn.accepted_at,
        EventActor::Visitor,
        EventBody::LeadCaptured(Box::new(LeadCapturedFact { lead })),
    ))
}

/// Returns the events of metadata that a PATCH has changed.
pub(crate) fn events_of_patch(job: &PatchJob) -> Vec<MessageEvent> {
    let updated = conversation_updated(job);
    let lead = job.changes.get(LEAD_KEY).cloned();
    let lead = lead.and_then(|lead| serde_json::from_value::<CapturedLead>(lead).ok());
    let captured = lead.map(|lead| MessageEvent {
        event_id: EventId::derive(job.event_id.as_str(), LEAD_CAPTURED),
        body: EventBody::LeadCaptured(Box::new(LeadCapturedFact { lead })),
        ..updated.clone()
    });
    std::iter::once(updated).chain(captured).collect()
}

/// Returns the event of metadata that a PATCH has changed.
fn conversation_updated(job: &PatchJob) -> MessageEvent {
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

/// Returns the event of a deleted conversation; `None` if no agent is known, because then no event
/// ever named it.
pub(crate) fn conversation_deleted(job: &DeleteJob) -> Option<MessageEvent> {
    let cleared = PERSONAL_KEYS.map(|key| (key.to_owned(), Value::Null));
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

fn turn_event(
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

fn serialized_name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}
