//! HTTP routes of the demo model, and the pace of its streams.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    middleware::{self, Next},
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::{get, post},
};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    DEMO_MODEL, WORD_INTERVAL,
    conversation::DemoConversation,
    protocol::{ChatRequest, DemoAnswer, ResponseEnvelope, error_body},
};

/// Largest request body in bytes; the longest history of a worker fits many times.
const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Returns the routes, open to holders of `token`; replies break off when `stop` is cancelled.
pub(super) fn router(token: &str, stop: CancellationToken) -> Router {
    let expected: Arc<str> = format!("Bearer {token}").into();
    Router::new()
        .route("/v1/models", get(list_models))
        .route("/v1/chat/completions", post(complete_chat))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .layer(middleware::from_fn_with_state(expected, check_token))
        .with_state(stop)
}

async fn check_token(
    State(expected): State<Arc<str>>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    if headers
        .get(AUTHORIZATION)
        .is_some_and(|value| value.as_bytes() == expected.as_bytes())
    {
        next.run(request).await
    } else {
        error_response(
            StatusCode::UNAUTHORIZED,
            "invalid_api_key",
            "not the token of this demo model",
        )
    }
}

async fn list_models() -> Json<Value> {
    Json(
        json!({ "object": "list", "data": [{ "id": DEMO_MODEL, "object": "model", "owned_by": "switchboard" }] }),
    )
}

async fn complete_chat(State(stop): State<CancellationToken>, body: Bytes) -> Response {
    let request = match serde_json::from_slice::<ChatRequest>(&body) {
        Ok(request) => request,
        Err(error) => {
            return error_response(
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                &error.to_string(),
            );
        }
    };
    // A caller that wants JSON is a program: an error sends it to its fallback faster than prose
    // that it cannot parse.
    if request.wants_structured_output() {
        return error_response(
            StatusCode::BAD_REQUEST,
            "unsupported",
            "the demo model writes prose only",
        );
    }
    let answer = DemoAnswer::new(&request, &DemoConversation::from_request(&request));
    let envelope = ResponseEnvelope::new(&request);
    if request.is_streaming() {
        stream_events(envelope.stream_chunks(&answer), stop)
    } else {
        Json(envelope.full_body(&answer)).into_response()
    }
}

/// Sends the chunks as server-sent events, at a reader's pace.
fn stream_events(chunks: Vec<Value>, stop: CancellationToken) -> Response {
    let last = chunks.len();
    let events = chunks
        .into_iter()
        .map(|chunk| chunk.to_string())
        .chain(["[DONE]".to_owned()])
        .enumerate();
    let paced = stream::iter(events).then(move |(index, data)| async move {
        // The first words and the closing events are sent at once; the text between them is paced.
        if index > 1 && index < last {
            sleep(WORD_INTERVAL).await;
        }
        Ok::<_, Infallible>(Event::default().data(data))
    });
    Sse::new(paced.take_until(stop.cancelled_owned())).into_response()
}

fn error_response(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(error_body(code, message))).into_response()
}
