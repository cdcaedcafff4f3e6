//! The 202 response of asynchronous requests.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::json;
use switchboard_schemas::{conversation::ReplyStatus, ids::MessageId};

use super::{headers, shape::RESPOND_ASYNC};

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Builds the 202 response of an asynchronous request.
pub(super) fn accepted_response(reply: &MessageId) -> Response {
    let mut headers = headers::accepted_headers(reply, "application/json");
    headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static(RESPOND_ASYNC));
    if let Ok(location) = HeaderValue::from_str(&format!("/api/public/messages/{reply}")) {
        headers.insert(header::LOCATION, location);
    }
    let status = ReplyStatus::Queued;
    let body =
        json!({ "messageId": reply, "conversationId": reply.conversation(), "status": status });
    (StatusCode::ACCEPTED, headers, Json(body)).into_response()
}
