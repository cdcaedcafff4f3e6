//! `GET /api/public/messages/{messageId}`, its `/stream` and its `/cancel`: one reply, read again, followed or stopped.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
};
use http::HeaderMap;
use switchboard_schemas::ids::RequestId;
use tokio::time::{Instant, sleep};

use crate::{
    error::{ApiError, ApiResult},
    messages::FoundMessage,
    observe::ArrivedAt,
    reply::{Asked, follower::Follower, respond, resume::Position, shape::ReplyShape},
    state::AppState,
};

/// How long a cancelled reply may take to its final state before it is shown as it is: a worker learns of the wish
/// within a second.
const CANCEL_WAIT: Duration = Duration::from_secs(2);
const CANCEL_POLL: Duration = Duration::from_millis(100);

/// Shows the message.
pub(crate) async fn get(State(state): State<AppState>, found: FoundMessage) -> ApiResult<Response> {
    Ok(Json(found.view(&state).await?).into_response())
}

/// Gives out the reply from a byte on, as it is stored or as it is made.
pub(crate) async fn stream(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    found: FoundMessage,
) -> ApiResult<Response> {
    found.check_origin(&state, &headers).await?;
    let shape = ReplyShape::of_stream(&headers);
    let position = Position::parse(query.as_deref().unwrap_or_default(), &headers, shape == ReplyShape::Events)?;
    let is_final = found.is_final();
    let follower = Follower::reading(state, found.org, found.reply).resume(&position, is_final).await?;
    respond(follower, shape, Asked { request_id, arrived }).await
}

/// Stops the reply, and shows what became of it.
pub(crate) async fn cancel(
    State(state): State<AppState>,
    headers: HeaderMap,
    found: FoundMessage,
) -> ApiResult<Response> {
    found.check_origin(&state, &headers).await?;
    let mut found = found;
    if !found.is_final() {
        let asked = state.backends.relay.cancel(&found.reply).await;
        asked.map_err(|error| {
            tracing::warn!(%error, message.id = %found.reply, "reply not cancelled");
            ApiError::unavailable("the reply cannot be cancelled at the moment")
        })?;
        let deadline = Instant::now() + CANCEL_WAIT;
        while !found.is_final() && Instant::now() < deadline {
            sleep(CANCEL_POLL).await;
            found = found.again(&state).await?;
        }
    }
    Ok(Json(found.view(&state).await?).into_response())
}
