//! Detects refusals of prompts that are longer than the model's context. Nothing else of a refusal
//! is read.

use std::{pin::pin, time::Duration};

use futures::StreamExt;
use serde_json::Value;
use tokio::time::timeout;

use super::{CallError, openai::body_pieces};

/// Timeout of reading the body of a refusal.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest body that is read.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Found in codes and types: `context_length_exceeded` (OpenAI), `exceed_context_size_error`
/// (llama.cpp).
const LENGTH_CODES: [&str; 2] = ["context_length", "context_size"];
/// Found in messages of servers whose code is a number (vLLM) or not specific.
const LENGTH_PHRASES: [&str; 5] = [
    "maximum context",
    "context length",
    "context size",
    "context window",
    "prompt is too long",
];

/// Returns `TooLong` if the response says so, else the same error.
pub(super) async fn explain_refusal(error: CallError, response: reqwest::Response) -> CallError {
    let CallError::Refused {
        status: status @ (400 | 413),
    } = error
    else {
        return error;
    };
    let body = timeout(BODY_TIMEOUT, read_body(response))
        .await
        .unwrap_or_default();
    if is_about_length(&body) {
        CallError::TooLong { status }
    } else {
        error
    }
}

/// Reads the body as far as it arrives.
async fn read_body(response: reqwest::Response) -> Vec<u8> {
    let mut pieces = pin!(body_pieces(response, BODY_BYTES_MAX));
    let mut body = Vec::new();
    while let Some(Ok(piece)) = pieces.next().await {
        body.extend_from_slice(&piece);
    }
    body
}

fn is_about_length(body: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    let error = body.get("error").unwrap_or(&body);
    let contains_any = |field: &Value, words: &[&str]| {
        let text = field.as_str().unwrap_or_default().to_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    contains_any(&error["code"], &LENGTH_CODES)
        || contains_any(&error["type"], &LENGTH_CODES)
        || contains_any(&error["message"], &LENGTH_PHRASES)
        || contains_any(error, &LENGTH_PHRASES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_refusal_is_recognized_in_any_wording() {
        for body in [
            r#"{"error":{"message":"too many","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            r#"{"error":{"code":400,"message":"too much","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}"#,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            r#"{"error":"Input exceeds the context window"}"#,
        ] {
            assert!(is_about_length(body.as_bytes()), "{body}");
        }
        for body in [
            r#"{"error":{"message":"unknown field \"tools\"","type":"invalid_request_error","code":null}}"#,
            r#"{"error":{"message":"max_tokens is too large","type":"invalid_request_error","code":400}}"#,
            "maximum context",
            "[]",
            "null",
            "",
        ] {
            assert!(!is_about_length(body.as_bytes()), "{body}");
        }
    }
}
