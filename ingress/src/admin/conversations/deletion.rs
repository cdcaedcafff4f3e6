//! Deletes one conversation. The worker that owns it does it, in the order of its turns, so that no reply that is being made
//! brings anything back: one that runs is stopped first, messages that wait behind it go with the rest, and what comes
//! after the deletion begins the conversation anew.

use axum::{
    Extension, Json,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde_json::json;
use switchboard_backends::store::ConversationStore;
use switchboard_schemas::{
    audit::AuditAction,
    conversation::{Conversation, ConversationOwner, MessageAuthor},
    conversation_job::{ConversationJob, DeleteJob},
    ids::{AgentId, EventId, RequestId, TeamId},
    organization::Organization,
    time::Timestamp,
};

use super::find;
use crate::{
    admin::{
        administrator::{Action, Administrator},
        things::organization,
    },
    audit::AuditChange,
    http::ApiResult,
    jobs::conversation_job::PublishedJob,
    state::AppState,
};

/// Messages at the end of a team's conversation among which the agent that answered is looked for.
const LOOKED_AT_MAX: u32 = 20;

/// How far a deletion came while its request waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is left.
    Gone,
    /// It is accepted, and happens whatever dies; the worker has not come to it yet.
    Accepted,
}

/// Deletes it: 204 when it is gone, 202 when the deletion waits for the conversation's worker.
pub(in crate::admin) async fn remove(
    State(state): State<AppState>,
    administrator: Administrator,
    Extension(request_id): Extension<RequestId>,
    Path((org, id)): Path<(String, String)>,
) -> ApiResult<Response> {
    let Organization { id: org, .. } =
        organization(&state, &administrator, &org, Action::ActOnConversations).await?;
    let conversation = find(&state, &org, &id).await?;
    let event_id = EventId::of(request_id.as_str(), conversation.id.as_str());
    let progress = delete(&state, &conversation, event_id, &request_id).await?;
    let (subject, action) = (conversation.id.as_str(), AuditAction::Delete);
    let change = AuditChange {
        org: &org,
        kind: "conversation",
        subject,
        action,
        fields: Vec::new(),
    };
    administrator.record(&state, change).await;
    Ok(match progress {
        Progress::Gone => StatusCode::NO_CONTENT.into_response(),
        Progress::Accepted => {
            (StatusCode::ACCEPTED, Json(json!({ "state": "accepted" }))).into_response()
        }
    })
}

/// Has the conversation deleted, and waits a while for it. The same event is the same deletion.
pub(super) async fn delete(
    state: &AppState,
    conversation: &Conversation,
    event_id: EventId,
    request_id: &RequestId,
) -> ApiResult<Progress> {
    let (agent_id, team_id) = named(state, conversation).await?;
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
    let published = PublishedJob::new(
        state,
        &ConversationJob::Delete(Box::new(job.clone())),
        event_id,
        request_id,
    )
    .await?;
    stop_running(state, conversation).await;
    let outcome = published
        .outcome(|| is_deleted(&*state.backends.store, &job))
        .await;
    Ok(if outcome.is_some() {
        Progress::Gone
    } else {
        Progress::Accepted
    })
}

/// Nobody will read the reply: it need not be made to its end. Where this fails, the deletion waits for that.
async fn stop_running(state: &AppState, conversation: &Conversation) {
    let Some(reply) = &conversation.active_message_id else {
        return;
    };
    if let Err(error) = state.backends.relay.cancel(reply).await {
        tracing::warn!(%error, message.id = %reply, "the running reply of a conversation that is deleted goes on");
    }
}

async fn is_deleted(store: &dyn ConversationStore, job: &DeleteJob) -> bool {
    let standing = store
        .history_state(&job.org_id, &job.conversation_id)
        .await
        .unwrap_or_default();
    standing
        .tombstone
        .is_some_and(|tombstone| tombstone.event_id == job.event_id)
}

/// Whom the event about the deletion names: the agent, or the team and the agent of it that answered last.
async fn named(
    state: &AppState,
    conversation: &Conversation,
) -> ApiResult<(Option<AgentId>, Option<TeamId>)> {
    let team = match &conversation.owner {
        ConversationOwner::Agent(agent) => return Ok((Some(agent.clone()), None)),
        ConversationOwner::Team(team) => team,
    };
    let from = conversation
        .message_count
        .saturating_sub(u64::from(LOOKED_AT_MAX));
    let last = state
        .backends
        .store
        .messages(&conversation.org_id, &conversation.id, from, LOOKED_AT_MAX)
        .await?;
    let answered = last.iter().rev().find_map(|message| match &message.author {
        MessageAuthor::Assistant(facts) => Some(facts.agent_id.clone()),
        MessageAuthor::User => None,
    });
    if answered.is_some() {
        return Ok((answered, Some(team.clone())));
    }
    // Replies that failed were told under whoever was chosen; the default agent is the likeliest.
    let default = state
        .catalog
        .team(team)
        .await?
        .and_then(|team| team.default_agent.clone());
    Ok((default, Some(team.clone())))
}
