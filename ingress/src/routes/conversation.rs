//! `GET` and `PATCH /api/public/agents/{agentId}/conversations/{sessionId}`: history and metadata
//! of a conversation.

use axum::{
    Extension, Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use switchboard_schemas::{
    conversation_job::PatchJob,
    ids::{EventId, RequestId},
    time::Timestamp,
};

use super::{
    conversation_lookup::{ConversationQuery, SessionChoice, find_conversation},
    conversation_page::{ConversationView, MessagePage, MessagePageQuery},
    conversation_patch::{ConversationChanges, ConversationPatch, ConversationUpdate, apply_patch},
};
use crate::{
    auth::authorized_agent::{AgentPath, AuthorizedAgent, ConversationAccess, SessionPath},
    http::{
        ApiResult, RateLimitAddress,
        body::{self, BodyLimits},
        query::QueryTexts,
    },
    openapi::problems::{ConversationChangeProblems, ConversationReadProblems},
    reply::headers::mark_generated,
    state::AppState,
};

/// Returns a page of a conversation's history.
#[utoipa::path(
    get,
    path = "/api/public/agents/{agentId}/conversations/{sessionId}",
    operation_id = "getConversation",
    tag = "Conversations",
    summary = "Read the history of a session",
    description = "Needs the scope `conversations`. Oldest first. `activeMessageId` names a reply that is being made.",
    params(AgentPath, SessionPath, MessagePageQuery, ConversationQuery),
    responses(
        (status = 200, description = "The conversation and a page of it.", body = ConversationView),
        ConversationReadProblems,
    ),
)]
pub(crate) async fn get_conversation(
    State(state): State<AppState>,
    QueryTexts(page): QueryTexts<MessagePageQuery>,
    QueryTexts(choice): QueryTexts<ConversationQuery>,
    address: RateLimitAddress,
    reached: AuthorizedAgent<ConversationAccess>,
) -> ApiResult<Response> {
    let page = MessagePage::from_query(&page);
    let named = SessionChoice::from_query(&choice);
    let org = reached.caller.org_id();
    let conversation = find_conversation(&state, &address, &reached, &named).await?;
    let messages = state
        .backends
        .store
        .messages(
            org,
            &conversation.id,
            page.offset,
            conversation.page_length(page.offset, page.limit),
        )
        .await?;
    let view = ConversationView::new(&reached.agent, &conversation, &messages, page);
    let mut response = Json(view).into_response();
    mark_generated(response.headers_mut());
    Ok(response)
}

/// Updates the metadata of a conversation, all fields or none.
#[utoipa::path(
    patch,
    path = "/api/public/agents/{agentId}/conversations/{sessionId}",
    operation_id = "updateConversation",
    tag = "Conversations",
    summary = "Change the metadata of a conversation",
    description = "Needs the scope `conversations`. All fields are optional; all of them are changed or none.",
    params(AgentPath, SessionPath, ConversationQuery),
    request_body(content = ConversationChanges, content_type = "application/json"),
    responses(
        (status = 200, description = "The changed metadata.", body = ConversationUpdate),
        ConversationChangeProblems,
    ),
)]
pub(crate) async fn update_conversation(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    address: RateLimitAddress,
    QueryTexts(choice): QueryTexts<ConversationQuery>,
    reached: AuthorizedAgent<ConversationAccess>,
    request: Request,
) -> ApiResult<Response> {
    let (parts, body) = request.into_parts();
    let body = body::read_body(&parts.headers, body, BodyLimits::public(&state.config)).await?;
    let changes = ConversationPatch::parse(&body, reached.agent.settings.active_lead_form())?;
    let named = SessionChoice::from_query(&choice);
    let conversation = find_conversation(&state, &address, &reached, &named).await?;
    changes.check_together(&conversation.metadata)?;
    if !changes.is_empty() {
        let job = PatchJob {
            event_id: EventId::derive(request_id.as_str(), "conversation.updated"),
            org_id: conversation.org_id,
            conversation_id: conversation.id,
            agent_id: reached.agent.id.clone(),
            request_id,
            actor: if reached.caller.visitor_id().is_some() {
                "visitor"
            } else {
                "api"
            }
            .to_owned(),
            changes: changes.to_stored(&conversation.metadata),
            accepted_at: Timestamp::now(),
            reply_to: state.ingress_id.clone(),
        };
        apply_patch(&state, job).await?;
    }
    let update = ConversationUpdate {
        success: true,
        updated: changes.supplied(),
    };
    Ok(Json(update).into_response())
}
