//! Deletion of one conversation. The worker that owns the conversation deletes it in the order of
//! its turns, so that no running reply restores anything. A running reply is cancelled, waiting
//! messages are deleted too, and a later message begins a new conversation.

use axum::Extension;
use switchboard_backends::store::ConversationReader;
use switchboard_schemas::{
    audit::AuditAction,
    conversation::{Conversation, ConversationOwner, MessageAuthor},
    conversation_job::{ConversationJob, DeleteJob},
    ids::{AgentId, EventId, RequestId, TeamId},
    time::Timestamp,
};

use super::find;
use crate::{
    admin::{
        authorization::{Admin, ResourceId},
        permissions::ActOnConversations,
        responses::DeletionResponse,
    },
    http::ApiResult,
    jobs::conversation_job::PublishedJob,
    reply::cancellation::cancel_reply,
    state::AppState,
};

/// The number of messages at the end of a team's conversation in which the last reply is searched.
const LAST_MESSAGES_MAX: u32 = 20;

/// Deletes a conversation, or accepts the deletion while its worker is busy.
pub(in crate::admin) async fn delete(
    admin: Admin<ActOnConversations>,
    ResourceId(id): ResourceId,
    Extension(request_id): Extension<RequestId>,
) -> ApiResult<DeletionResponse> {
    let conversation = find(&admin.state, admin.org(), &id).await?;
    let event_id = EventId::derive(request_id.as_str(), &id);
    let response = delete_conversation(&admin.state, &conversation, event_id, &request_id).await?;
    let subject = ("conversation", id.as_str());
    admin.record(subject, AuditAction::Delete, Vec::new()).await;
    Ok(response)
}

/// Publishes the deletion of a conversation and waits for it for a limited time. Calls with the
/// same event are one deletion.
pub(super) async fn delete_conversation(
    state: &AppState,
    conversation: &Conversation,
    event_id: EventId,
    request_id: &RequestId,
) -> ApiResult<DeletionResponse> {
    let (agent_id, team_id) = find_owner(state, conversation).await?;
    let job = DeleteJob {
        event_id: event_id.clone(),
        org_id: conversation.org_id.clone(),
        conversation_id: conversation.id.clone(),
        agent_id,
        team_id,
        request_id: request_id.clone(),
        accepted_at: Timestamp::now(),
        reply_to: state.ingress_id.clone(),
    };
    let record = ConversationJob::Delete(Box::new(job.clone()));
    let published = PublishedJob::publish(state, &record, event_id, request_id).await?;
    stop_replies(state, conversation).await;
    let outcome = published
        .wait_for_outcome(|| is_deleted(&*state.backends.store, &job))
        .await;
    Ok(outcome.map_or(DeletionResponse::Accepted, |_| DeletionResponse::Done))
}

/// Cancels the waiting replies and then the running one, which would otherwise let the next begin.
/// If that fails, the deletion waits for their ends.
async fn stop_replies(state: &AppState, conversation: &Conversation) {
    let queued = state.backends.relay.queued_replies(&conversation.id).await;
    let mut replies = queued.unwrap_or_else(|error| {
        tracing::warn!(%error, conversation.id = %conversation.id, "waiting replies not known");
        Vec::new()
    });
    replies.retain(|reply| conversation.active_message_id.as_ref() != Some(reply));
    replies.extend(conversation.active_message_id.clone());
    for reply in &replies {
        if let Err(error) =
            cancel_reply(state, Some(&conversation.org_id), reply, Timestamp::now()).await
        {
            tracing::warn!(%error, message.id = %reply, "reply of a deleted conversation not canceled");
        }
    }
}

async fn is_deleted(store: &dyn ConversationReader, job: &DeleteJob) -> bool {
    let history = store.history_state(&job.org_id, &job.conversation_id).await;
    let tombstone = history.unwrap_or_default().tombstone;
    tombstone.is_some_and(|tombstone| tombstone.event_id == job.event_id)
}

/// Returns the agent and the team for the event about the deletion. For a team, the agent is the
/// one that replied last.
async fn find_owner(
    state: &AppState,
    conversation: &Conversation,
) -> ApiResult<(Option<AgentId>, Option<TeamId>)> {
    let team = match &conversation.owner {
        ConversationOwner::Agent(agent) => return Ok((Some(agent.clone()), None)),
        ConversationOwner::Team(team) => team,
    };
    let (org, id, store) = (
        &conversation.org_id,
        &conversation.id,
        &state.backends.store,
    );
    let from = conversation
        .message_count
        .saturating_sub(u64::from(LAST_MESSAGES_MAX));
    let last = store.messages(org, id, from, LAST_MESSAGES_MAX).await?;
    let answered = last.iter().rev().find_map(|message| match &message.author {
        MessageAuthor::Assistant(facts) => Some(facts.agent_id.clone()),
        MessageAuthor::User => None,
    });
    if answered.is_some() {
        return Ok((answered, Some(team.clone())));
    }
    // Without a reply, the default agent is the most likely choice of the team.
    let stored = state.catalog.team(team).await?;
    let default_agent = stored.and_then(|team| team.default_agent.clone());
    Ok((default_agent, Some(team.clone())))
}
