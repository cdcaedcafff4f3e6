//! The 202 response of asynchronous requests.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use switchboard_schemas::{
    conversation::ReplyStatus,
    ids::{ConversationId, MessageId},
};
use utoipa::ToSchema;

use super::{headers, shape::RESPOND_ASYNC};

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Body of the 202 response: the ids under which the reply can be read.
#[derive(Serialize, ToSchema)]
#[schema(as = Accepted)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AcceptedMessage {
    /// Id of the reply.
    message_id: MessageId,
    /// Conversation of the reply.
    conversation_id: ConversationId,
    /// State of the reply: `queued`.
    status: ReplyStatus,
}

/// Builds the 202 response of an asynchronous request.
pub(super) fn accepted_response(reply: &MessageId) -> Response {
    let mut headers = headers::accepted_headers(reply, "application/json");
    headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static(RESPOND_ASYNC));
    if let Ok(location) = HeaderValue::from_str(&format!("/api/public/messages/{reply}")) {
        headers.insert(header::LOCATION, location);
    }
    let body = AcceptedMessage {
        message_id: reply.clone(),
        conversation_id: reply.conversation(),
        status: ReplyStatus::Queued,
    };
    (StatusCode::ACCEPTED, headers, Json(body)).into_response()
}
