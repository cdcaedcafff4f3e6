//! Why a provider refused: whether the prompt is longer than its context. Nothing else of what it wrote is read.

use std::{pin::pin, time::Duration};

use futures::StreamExt;
use serde_json::Value;
use tokio::time::timeout;

use super::{CallError, openai::pieces};

/// How long the words of a refusal are waited for.
const WORDS_WAIT: Duration = Duration::from_secs(2);
/// Longest refusal that is read.
const WORDS_BYTES_MAX: usize = 64 << 10;
/// In codes and types: `context_length_exceeded` (OpenAI), `exceed_context_size_error` (llama.cpp).
const CODES: [&str; 2] = ["context_length", "context_size"];
/// In messages of servers whose code is a number (vLLM), or says no more than that the request is bad.
const WORDS: [&str; 5] = [
    "maximum context",
    "context length",
    "context size",
    "context window",
    "prompt is too long",
];

/// The same error, or that the prompt is too long if the response says so.
pub(super) async fn explained(error: CallError, response: reqwest::Response) -> CallError {
    let CallError::Refused {
        status: status @ (400 | 413),
    } = error
    else {
        return error;
    };
    let body = timeout(WORDS_WAIT, beginning(response))
        .await
        .unwrap_or_default();
    if is_about_length(&body) {
        CallError::TooLong { status }
    } else {
        error
    }
}

/// What came of it, also where the end never did.
async fn beginning(response: reqwest::Response) -> Vec<u8> {
    let mut pieces = pin!(pieces(response, WORDS_BYTES_MAX));
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
    let says = |field: &Value, words: &[&str]| {
        let said = field.as_str().unwrap_or_default().to_lowercase();
        words.iter().any(|word| said.contains(word))
    };
    says(&error["code"], &CODES)
        || says(&error["type"], &CODES)
        || says(&error["message"], &WORDS)
        || says(error, &WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_length_is_told_from_others_whoever_words_it() {
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
