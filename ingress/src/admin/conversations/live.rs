//! `…/conversations/{id}/messages/{messageId}/stream`: the reply that is being made, as events, for a person who is signed in
//! and has no key. The same reader as behind the public API.

use std::convert::identity;

use axum::{
    Extension,
    extract::{Path, RawQuery, State},
    response::Response,
};
use http::HeaderMap;
use switchboard_schemas::{
    ids::{MessageId, RequestId},
    organization::Organization,
};

use super::find;
use crate::{
    admin::{
        administrator::{Action, Administrator},
        things::{not_found, organization},
    },
    chat::message_lookup::AuthorizedMessage,
    http::{ApiResult, ArrivedAt},
    reply::{
        ResponseContext, respond, resume::ResumePosition, shape::ReplyShape, stream::ReplyStream,
    },
    state::AppState,
};

/// Follows the reply from a byte on, to its end.
pub(in crate::admin) async fn stream(
    State(state): State<AppState>,
    administrator: Administrator,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    Path((org, id, message)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let Organization { id: org, .. } =
        organization(&state, &administrator, &org, Action::ReadConversations).await?;
    let conversation = find(&state, &org, &id).await?;
    let reply: MessageId = message.parse().map_err(|_| not_found("message"))?;
    if reply.conversation() != conversation.id {
        return Err(not_found("message"));
    }
    let found = AuthorizedMessage::find(&state, &org, reply).await?;
    let position = ResumePosition::parse(query.as_deref().unwrap_or_default(), &headers, true)?;
    let is_final = found.is_final();
    let follower = ReplyStream::reading(state, found.org, found.reply)
        .resume(&position, is_final)
        .await?;
    respond(
        follower,
        ReplyShape::Events,
        ResponseContext {
            request_id,
            arrived,
            told: identity,
        },
    )
    .await
}
