//! The OpenAI chat completions protocol of the scripted model.

use std::{io, sync::Arc, time::Duration};

use axum::{
    Json,
    body::{Body, Bytes},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Dialect, End, Raw, RecordedRequest, Script, responses};

/// Pause before a cut, which could overtake the piece before it.
const CUT_DELAY: Duration = Duration::from_millis(20);

/// Returns the response to the `number`-th call of a model, counted from 1.
pub(super) fn answer(
    script: &Script,
    number: usize,
    request: &RecordedRequest,
    open: Arc<()>,
) -> Response {
    if let Some((status, headers, body)) = &script.answer {
        let mut response = body.clone().into_response();
        *response.status_mut() = StatusCode::from_u16(*status).unwrap();
        for (name, value) in headers {
            let value = value.parse().unwrap();
            response.headers_mut().insert(*name, value);
        }
        return response;
    }
    if let Some(pieces) = &script.raw {
        let pieces = pieces.iter().map(|piece| (piece.clone(), true));
        return streamed(script, pieces.collect(), request, open);
    }
    if let (false, End::Finish(reason)) = (request.streams, script.end) {
        let choice = json!({"index": 0, "message": {"role": "assistant", "content": script.text}, "finish_reason": reason});
        return Json(json!({
            "id": "chatcmpl-scripted", "object": "chat.completion", "created": 1,
            "model": request.model, "choices": [choice], "usage": script.usage()
        }))
        .into_response();
    }
    let script = script.for_call(number, request.assistant_prefix());
    let role = Raw::Delta(json!({"role": "assistant", "content": ""}));
    let texts = script.chunks().into_iter().map(|text| (text, true));
    let end = script.end_pieces().into_iter().map(|piece| (piece, false));
    let pieces = [(role, false)].into_iter().chain(texts).chain(end);
    streamed(&script, pieces.collect(), request, open)
}

/// Streams pieces, each in its own packet; true marks those that are paced.
fn streamed(
    script: &Script,
    pieces: Vec<(Raw, bool)>,
    request: &RecordedRequest,
    open: Arc<()>,
) -> Response {
    let (delay, gate, model) = (script.delay, script.gate.clone(), request.model.clone());
    let dialect = request.dialect;
    let body = stream::iter(pieces).then(move |(piece, is_paced)| {
        // The count of open streams falls when the caller disconnects, which tests observe.
        let (gate, model, _open) = (gate.clone(), model.clone(), open.clone());
        async move {
            if is_paced {
                sleep(delay).await;
                if let Some(gate) = gate {
                    gate.pass().await;
                }
            }
            bytes_of(piece, &model, dialect).await
        }
    });
    let body = Body::from_stream(body);
    ([("content-type", "text/event-stream")], body).into_response()
}

async fn bytes_of(piece: Raw, model: &str, dialect: Dialect) -> io::Result<Bytes> {
    if dialect == Dialect::Responses
        && let Some(events) = responses::events_of(&piece)
    {
        let events: Vec<_> = events
            .iter()
            .map(|data| format!("data: {data}\n\n"))
            .collect();
        return Ok(events.concat().into());
    }
    let chunk = |delta: Value, reason: Option<&str>| {
        event(&json!({
            "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]
        }))
    };
    Ok(match piece {
        Raw::Delta(delta) => chunk(delta, None),
        Raw::Finish(reason) => chunk(json!({}), Some(reason)),
        Raw::Event(data) => event(&data),
        Raw::Bytes(bytes) => bytes.into(),
        Raw::Hang => std::future::pending().await,
        Raw::Cut => {
            sleep(CUT_DELAY).await;
            return Err(io::Error::other("cut by script"));
        }
    })
}

fn event(data: &Value) -> Bytes {
    format!("data: {data}\n\n").into()
}
