//! Records accepted messages for clients that learn the message id before the reply starts, and
//! writes the 202 response.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::json;
use switchboard_backends::store::AcceptedReply;
use switchboard_schemas::{conversation::ReplyStatus, ids::MessageId};

use super::{
    headers,
    shape::{RESPOND_ASYNC, ReplyShape},
};
use crate::{
    http::ApiResult,
    jobs::publish::{TurnJob, publish_turn},
    state::AppState,
};

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Publishes `job`, and records its acceptance in the store where the client receives the message
/// id at once. The store is used so that the id survives a loss of Redis and is known to every
/// ingress.
pub(crate) async fn publish_recorded(
    state: &AppState,
    shape: ReplyShape,
    job: &TurnJob,
) -> ApiResult<()> {
    let turn = job.turn();
    let publish = publish_turn(state, job);
    let record = || async move {
        let accepted = AcceptedReply {
            org_id: turn.org_id.clone(),
            user_message_id: turn.message_id.clone(),
            owner: job.owner(),
            accepted_at: turn.accepted_at,
        };
        state.backends.store.accept(&accepted).await
    };
    match shape {
        ReplyShape::Text | ReplyShape::Json => publish.await,
        ReplyShape::Events => {
            let (recorded, published) = tokio::join!(record(), publish);
            // The open stream needs no record; only a second reader on another process would.
            if let Err(error) = recorded {
                tracing::warn!(%error, message.id = %turn.message_id, "acceptance not recorded");
            }
            published
        }
        ReplyShape::Later => {
            // Recorded first: a 202 without a record would point to an unknown message.
            record().await?;
            publish.await
        }
    }
}

/// Builds the 202 response of an asynchronous request.
pub(super) fn later(reply: &MessageId) -> Response {
    let mut headers = headers::of_acceptance(reply, "application/json");
    headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static(RESPOND_ASYNC));
    if let Ok(location) = HeaderValue::from_str(&format!("/api/public/messages/{reply}")) {
        headers.insert(header::LOCATION, location);
    }
    let status = ReplyStatus::Queued;
    let body =
        json!({ "messageId": reply, "conversationId": reply.conversation(), "status": status });
    (StatusCode::ACCEPTED, headers, Json(body)).into_response()
}
