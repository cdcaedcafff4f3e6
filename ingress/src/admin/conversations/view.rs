//! How conversations and messages are shown to the people who answer for them.

use serde_json::{Value, json};
use switchboard_backends::store::ReplyRecord;
use switchboard_schemas::conversation::{
    Conversation, ConversationOwner, Message, MessageAuthor, ReplyFacts,
};

/// A conversation without its messages.
pub(super) fn summary(conversation: &Conversation) -> Value {
    let (agent, team) = match &conversation.owner {
        ConversationOwner::Agent(agent) => (Some(agent), None),
        ConversationOwner::Team(team) => (None, Some(team)),
    };
    json!({
        "id": conversation.id,
        "sessionId": conversation.session_id,
        "agentId": agent,
        "teamId": team,
        "messageCount": conversation.message_count,
        "activeMessageId": conversation.active_message_id,
        "createdAt": conversation.created_at,
        "updatedAt": conversation.updated_at,
        "metadata": conversation.metadata,
    })
}

/// A message, with all that is known of how it came about.
pub(super) fn message(message: &Message) -> Value {
    let mut shown =
        json!({ "id": message.id, "content": message.content, "timestamp": message.created_at });
    match &message.author {
        MessageAuthor::User => shown["role"] = "user".into(),
        MessageAuthor::Assistant(facts) => {
            shown["role"] = "assistant".into();
            shown["agentId"] = json!(facts.agent_id);
            shown["agentName"] = json!(facts.agent_name);
            shown["status"] = json!(facts.status);
            shown["finishReason"] = json!(facts.finish_reason);
            shown["usage"] = json!(facts.usage);
            shown["responseTime"] = json!(facts.response_time_ms);
            shown["model"] = json!(facts.model);
            shown["routingReason"] = json!(facts.routing_reason);
            shown["routing"] = json!(facts.routing);
            shown["uiSpec"] = json!(facts.ui_spec);
            shown["leftOut"] = json!(facts.truncation);
            shown["summary"] = json!(facts.summary.as_ref().map(|summary| &summary.text));
            shown["timeline"] = timeline(facts);
        }
    }
    shown
}

/// What became of the answer to a message, where it has no text that could stand in the history.
pub(super) fn unanswered(record: &ReplyRecord) -> Value {
    let end = &record.end;
    json!({ "status": end.status, "failure": end.failure, "responseTime": end.response_time_ms, "at": record.finished_at })
}

/// The way of a reply, each step with its milliseconds since the acceptance; those that are known.
fn timeline(facts: &ReplyFacts) -> Value {
    let steps = facts.steps.unwrap_or_default();
    let known = [
        ("accepted", Some(0)),
        ("routed", steps.routed_ms),
        ("queued", steps.queued_ms),
        ("claimed", steps.claimed_ms),
        ("asked", steps.asked_ms),
        ("firstText", steps.first_text_ms),
        ("done", Some(facts.response_time_ms)),
    ];
    let known = known
        .into_iter()
        .filter_map(|(step, ms)| Some(json!({ "step": step, "ms": ms? })));
    known.collect()
}
