//! The OpenAI chat completions protocol of the scripted model.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse, Response},
};
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};

use super::{End, Raw, RecordedRequest, Script};

/// Pause longer than any test waits.
const SILENCE: Duration = Duration::from_secs(600);

/// Streams the response to the `number`-th request that is not refused.
pub(super) fn answer(
    script: &Script,
    number: usize,
    request: &RecordedRequest,
    open: Arc<()>,
) -> Response {
    if let Some((content_type, body)) = &script.instead {
        return ([("content-type", *content_type)], body.clone()).into_response();
    }
    if let Some(pieces) = &script.raw {
        return raw(pieces.clone(), request, open);
    }
    if request.streams {
        streamed(
            &script.for_call(number, request.assistant_prefix()),
            request,
            open,
        )
    } else {
        whole(script, request)
    }
}

/// Returns an error response of this status in the format of the protocol.
pub(super) fn refusal(status: u16, retry_after_s: Option<u32>) -> Response {
    let error =
        json!({"error": {"message": "refused by script", "type": "scripted", "code": "scripted"}});
    let status = axum::http::StatusCode::from_u16(status).unwrap();
    let mut response = (status, axum::Json(error)).into_response();
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert("retry-after", seconds.into());
    }
    response
}

fn whole(script: &Script, request: &RecordedRequest) -> Response {
    let choice = json!({"index": 0, "message": {"role": "assistant", "content": script.text}, "finish_reason": "stop"});
    axum::Json(json!({
        "id": "chatcmpl-scripted", "object": "chat.completion", "created": 1, "model": request.model,
        "choices": [choice], "usage": usage(script)
    }))
    .into_response()
}

fn streamed(script: &Script, request: &RecordedRequest, open: Arc<()>) -> Response {
    let model = request.model.clone();
    let texts = script
        .chunks()
        .into_iter()
        .map(move |text| chunk(&model, json!({"content": text}), None));
    let (delay, gate) = (script.delay, script.gate.clone());
    let first = stream::iter([chunk(
        &request.model,
        json!({"role": "assistant", "content": ""}),
        None,
    )]);
    let body = first
        .chain(stream::iter(texts).then(move |event| {
            let gate = gate.clone();
            async move {
                tokio::time::sleep(delay).await;
                if let Some(gate) = gate {
                    gate.pass().await;
                }
                event
            }
        }))
        .map(Ok)
        .chain(end(script, request))
        // The count of open streams falls when the caller disconnects, which tests observe.
        .map(move |event: io::Result<Bytes>| {
            let _held = &open;
            event
        });
    (
        [("content-type", "text/event-stream")],
        Body::from_stream(body),
    )
        .into_response()
}

/// Sends each piece in its own packet, so that a split character arrives split.
fn raw(pieces: Vec<Raw>, request: &RecordedRequest, open: Arc<()>) -> Response {
    let model = request.model.clone();
    let body = stream::iter(pieces).then(move |piece| {
        let (model, _held) = (model.clone(), open.clone());
        async move {
            tokio::time::sleep(Duration::from_millis(2)).await;
            Ok(match piece {
                Raw::Delta(delta) => chunk(&model, delta, None),
                Raw::Finish(reason) => chunk(&model, json!({}), Some(reason)),
                Raw::Event(data) => event(&data),
                Raw::Bytes(bytes) => bytes.into(),
                Raw::Cut => return Err(io::Error::other("cut by script")),
            })
        }
    });
    (
        [("content-type", "text/event-stream")],
        Body::from_stream(body),
    )
        .into_response()
}

fn end(
    script: &Script,
    request: &RecordedRequest,
) -> impl Stream<Item = io::Result<Bytes>> + use<> {
    let done = || Ok(Bytes::from_static(b"data: [DONE]\n\n"));
    let events = match script.end {
        End::Finish(reason) => vec![
            Ok(chunk(&request.model, json!({}), Some(reason))),
            Ok(event(
                &json!({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1,
                "model": request.model, "choices": [], "usage": usage(script)}),
            )),
            done(),
        ],
        End::NoFinishReason => vec![done()],
        End::Nothing | End::Silence => vec![],
        End::Cut => vec![Err(io::Error::other("cut by script"))],
        End::ErrorEvent => {
            vec![Ok(event(
                &json!({"error": {"message": "overloaded by script", "type": "server_error"}}),
            ))]
        }
        End::Garbage => vec![
            Ok(Bytes::from_static(
                b"data: {\"choices\": [ this is no JSON\n\n",
            )),
            done(),
        ],
    };
    let silent = script.end == End::Silence;
    let tail = stream::once(async move {
        // A cut right after a chunk can overtake it; the chunk must arrive first.
        tokio::time::sleep(if silent {
            SILENCE
        } else {
            Duration::from_millis(20)
        })
        .await;
        Ok::<_, Infallible>(())
    })
    .filter_map(|_| async { None });
    tail.chain(stream::iter(events))
}

fn chunk(model: &str, delta: Value, finish_reason: Option<&str>) -> Bytes {
    event(&json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    }))
}

fn event(data: &Value) -> Bytes {
    format!("data: {data}\n\n").into()
}

fn usage(script: &Script) -> Value {
    json!({"prompt_tokens": 11, "completion_tokens": script.text.split_whitespace().count(), "total_tokens": 11})
}
