//! `GET /api/public/messages/{messageId}`, `/stream` and `/cancel`: reads, follows or cancels one
//! reply.

use std::{convert::identity, time::Duration};

use axum::{
    Extension, Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::HeaderMap;
use switchboard_backends::relay::CancelOutcome;
use switchboard_schemas::ids::RequestId;
use tokio::time::{Instant, sleep};

use crate::{
    chat::message_lookup::{AuthorizedMessage, MessagePath},
    http::{ApiError, ApiResult, ArrivedAt, origin::OriginHeader, query::QueryTexts},
    openapi::problems::{MessageCancelProblems, MessageReadProblems, MessageStreamProblems},
    reply::{
        ResponseContext,
        cancellation::cancel_reply,
        headers::mark_generated,
        respond,
        resume::{LastEventIdHeader, ResumePosition, ResumeQuery},
        shape::ReplyShape,
        stream::ReplyStream,
        view::ReplyView,
    },
    state::AppState,
};

/// Wait for the final state of a canceled reply before its current state is returned; workers see
/// the request within a second.
const CANCEL_WAIT: Duration = Duration::from_secs(2);
const CANCEL_POLL: Duration = Duration::from_millis(100);

/// Returns a reply in its current state.
#[utoipa::path(
    get,
    path = "/api/public/messages/{messageId}",
    operation_id = "getMessage",
    tag = "Messages",
    summary = "Read a reply",
    description = "Needs the scope `chat`. Also while it is being made: `content` is the text so far.",
    params(MessagePath),
    responses((status = 200, description = "The reply so far.", body = ReplyView), MessageReadProblems),
)]
pub(crate) async fn get_message(
    State(state): State<AppState>,
    found: AuthorizedMessage,
) -> ApiResult<Response> {
    Ok(document(&found.to_view(&state).await?))
}

fn document(view: &ReplyView) -> Response {
    let mut response = Json(view).into_response();
    mark_generated(response.headers_mut());
    response
}

/// Streams a reply from a byte offset, stored or live.
#[utoipa::path(
    get,
    path = "/api/public/messages/{messageId}/stream",
    operation_id = "streamMessage",
    tag = "Messages",
    summary = "Follow a reply from a byte offset",
    description = "Needs the scope `chat`. Live or stored, as text or as events; it always ends.",
    params(MessagePath, ResumeQuery, LastEventIdHeader, OriginHeader),
    responses(
        (status = 200, description = "The rest of the reply.", content((String = "text/plain"), (String = "text/event-stream"))),
        MessageStreamProblems,
    ),
)]
pub(crate) async fn stream_message(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    QueryTexts(query): QueryTexts<ResumeQuery>,
    last_event_id: LastEventIdHeader,
    headers: HeaderMap,
    found: AuthorizedMessage,
) -> ApiResult<Response> {
    found.check_origin(&state, &headers).await?;
    let shape = ReplyShape::for_stream(&headers);
    let position = ResumePosition::parse(&query, &last_event_id, shape == ReplyShape::Events)?;
    let is_final = found.is_final();
    let reply_stream = ReplyStream::for_reader(state, found.org, found.reply)
        .resume_at(&position, is_final)
        .await?;
    respond(
        reply_stream,
        shape,
        ResponseContext {
            attachments: Vec::new(),
            request_id,
            arrived,
            map_error: identity,
        },
    )
    .await
}

/// Cancels a reply and returns its resulting state.
#[utoipa::path(
    post,
    path = "/api/public/messages/{messageId}/cancel",
    operation_id = "cancelMessage",
    tag = "Messages",
    summary = "Stop a reply",
    description = "Needs the scope `chat`. The text so far stays; a reply that is final already stays as it is.",
    params(MessagePath, OriginHeader),
    responses((status = 200, description = "State of the reply after the cancellation.", body = ReplyView), MessageCancelProblems),
)]
pub(crate) async fn cancel_message(
    State(state): State<AppState>,
    headers: HeaderMap,
    found: AuthorizedMessage,
) -> ApiResult<Response> {
    found.check_origin(&state, &headers).await?;
    let mut found = found;
    if let Some(accepted_at) = found.open_since() {
        let outcome = cancel_reply(&state, Some(&found.org), &found.reply, accepted_at).await;
        let outcome = outcome.map_err(|error| {
            tracing::warn!(%error, message.id = %found.reply, "reply not canceled");
            ApiError::unavailable("the reply cannot be canceled at the moment")
        })?;
        let deadline = Instant::now() + CANCEL_WAIT;
        let is_known =
            |found: &AuthorizedMessage| found.is_final() || outcome == CancelOutcome::Ended;
        while !is_known(&found) && Instant::now() < deadline {
            sleep(CANCEL_POLL).await;
            found = found.reload(&state).await?;
        }
    }
    Ok(document(&found.to_view(&state).await?))
}
