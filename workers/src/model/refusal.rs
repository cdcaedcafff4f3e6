//! Refusals of providers: reads from the body why a request was refused, which parameter it names
//! and for how long to wait.
//!
//! The words of a provider are kept for members of the organization and never logged, because they
//! can quote the prompt.

use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::Value;
use switchboard_schemas::time::Timestamp;

use super::{CallError, FailedCall, ModelEndpoint, response_body::read_body, retry_after};

/// Pause after the quota of an account is used up.
const QUOTA_PAUSE: Duration = Duration::from_secs(60 * 60);
/// Longest body that is read.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Longest message that is kept, in characters.
const MESSAGE_CHARS_MAX: usize = 500;
/// Shortest API key that is looked for in messages; a shorter one is a word of any text.
const KEY_BYTES_MIN: usize = 6;
/// Fields that repeat the request (FastAPI, Groq).
const QUOTING_FIELDS: [&str; 3] = ["input", "ctx", "failed_generation"];
/// Found in codes and types: `context_length_exceeded` (OpenAI), `exceed_context_size_error`
/// (llama.cpp).
const LENGTH_CODES: [&str; 2] = ["context_length", "context_size"];
/// Found in messages of servers whose code is a number (vLLM) or not specific.
const LENGTH_PHRASES: [&str; 14] = [
    "maximum context",
    "context length",
    "context size",
    "context window",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input token count",
    "too many input tokens",
    "too many tokens",
    "request too large",
    "reduce the length",
    "range of input length",
    "max_new_tokens` must be",
];

/// The body of a refusal.
#[derive(Debug, Default)]
pub(super) struct RefusalBody {
    /// Words of the provider, on one line.
    pub(super) message: Option<String>,
    /// Parameter that the provider names apart from its words.
    pub(super) param: Option<String>,
    /// Text in which a parameter may be named, in lower case.
    searched: String,
    error: Value,
}

impl RefusalBody {
    /// Parses a body in any of the usual forms: an error object or text, alone, inside `error` or
    /// in a list (Gemini), and FastAPI's `detail`. A body that is no JSON is its own message.
    pub(super) fn parse(body: &[u8]) -> Self {
        let Ok(parsed) = serde_json::from_slice::<Value>(body) else {
            let text = String::from_utf8_lossy(body);
            // A page of a proxy is no message.
            let message = one_line(&text).filter(|text| !text.starts_with('<'));
            return Self {
                searched: text.to_lowercase(),
                message,
                ..Self::default()
            };
        };
        let list = match parsed {
            Value::Array(list) if !list.is_empty() => list,
            other => vec![other],
        };
        let searched: Vec<_> = list
            .iter()
            .map(|body| searched_text(body.clone()))
            .collect();
        let body = &list[0];
        let choice = &body["choices"][0]["error"];
        let groq = &body["x_groq"]["error"];
        let error = [&body["error"], &body["response"]["error"], choice, groq]
            .into_iter()
            .find(|error| !error.is_null())
            .unwrap_or(body);
        let texts = [error, body].into_iter().flat_map(|error| {
            [
                &error["message"],
                &error["message"][0],
                &error["message"]["detail"][0]["msg"],
                &error["detail"][0]["msg"],
                &error["detail"],
            ]
        });
        let message = texts
            .chain([error])
            .find_map(Value::as_str)
            .and_then(one_line);
        let param = error["param"].as_str().or(body["param"].as_str());
        Self {
            param: param.map(str::to_lowercase),
            searched: searched.join(" "),
            message,
            // A text in place of an error object leaves the other fields in the body.
            error: if error.is_object() { error } else { body }.clone(),
        }
    }

    /// Returns the failure that this error stands for inside a stream or a document.
    fn into_reported(self, now: Timestamp) -> FailedCall {
        let code = &self.error["code"];
        let number = code
            .as_u64()
            .or_else(|| code.as_str()?.parse().ok())
            .or(self.error["status"].as_u64())
            .and_then(|number| u16::try_from(number).ok());
        let is_limit = ["code", "type"].iter().any(|field| {
            let text = self.error[*field].as_str().unwrap_or_default();
            ["rate_limit", "too_many_requests", "overloaded"]
                .iter()
                .any(|word| text.contains(word))
        });
        let overloaded = |status| CallError::Overloaded {
            status,
            retry_after: self.pause(now),
        };
        let error = match number {
            Some(status @ (429 | 503 | 529)) => overloaded(status),
            _ if is_limit => overloaded(429),
            _ => CallError::Reported,
        };
        FailedCall {
            error,
            message: self.message,
        }
    }

    fn pause(&self, now: Timestamp) -> Option<Duration> {
        let message = self.message.as_deref().unwrap_or_default();
        retry_after::pause_of_body(&self.error, message, now)
    }

    /// Returns true if a parameter is named: as the parameter, or as a word of the text.
    pub(super) fn names(&self, parameter: &str) -> bool {
        let is_part = |character: char| character.is_alphanumeric() || character == '_';
        let is_param = self.param.as_deref().is_some_and(|param| {
            param == parameter
                || param
                    .strip_prefix(parameter)
                    .is_some_and(|rest| rest.starts_with('.'))
        });
        is_param
            || self.searched.match_indices(parameter).any(|(at, _)| {
                let before = self.searched[..at].chars().next_back();
                let behind = self.searched[at + parameter.len()..].chars().next();
                !before.is_some_and(is_part) && !behind.is_some_and(is_part)
            })
    }

    /// Returns true if all of these words stand in the text.
    pub(super) fn contains_all(&self, words: &[&str]) -> bool {
        words.iter().all(|word| self.searched.contains(word))
    }

    /// Returns true if waiting for a moment does not help: nothing is left of the account (OpenAI),
    /// or the model is not part of it (Gemini).
    fn is_about_quota(&self) -> bool {
        self.contains_all(&["insufficient_quota"]) || self.contains_all(&["limit: 0,"])
    }

    fn is_about_length(&self) -> bool {
        let contains_any = |text: &str, words: &[&str]| {
            let text = text.to_lowercase();
            words.iter().any(|word| text.contains(word))
        };
        let field = |name: &str| self.error[name].as_str().unwrap_or_default();
        contains_any(field("code"), &LENGTH_CODES)
            || contains_any(field("type"), &LENGTH_CODES)
            || !self.error.is_null()
                && contains_any(self.message.as_deref().unwrap_or_default(), &LENGTH_PHRASES)
    }
}

/// Returns the failure that an error inside a stream or a document stands for.
pub(super) fn reported_failure(data: &[u8]) -> FailedCall {
    RefusalBody::parse(data).into_reported(Timestamp::now())
}

/// Returns the failure of a refused call with its refusal.
pub(super) async fn explain_refusal(
    error: CallError,
    endpoint: &ModelEndpoint,
    response: reqwest::Response,
) -> (FailedCall, RefusalBody) {
    let body = read_body(response, BODY_BYTES_MAX).await;
    let refusal = RefusalBody::parse(&body);
    let error = match error {
        CallError::Refused {
            status: status @ (400 | 413 | 422),
        } if refusal.is_about_length() => CallError::TooLong { status },
        CallError::Overloaded { status, .. } if refusal.is_about_quota() => CallError::Overloaded {
            status,
            retry_after: Some(QUOTA_PAUSE),
        },
        CallError::Overloaded {
            status,
            retry_after: None,
        } => CallError::Overloaded {
            status,
            retry_after: refusal.pause(Timestamp::now()),
        },
        other => other,
    };
    let message = refusal.message.clone();
    let failed = FailedCall { error, message };
    (failed.redacted_for(endpoint), refusal)
}

impl FailedCall {
    /// Removes the endpoint's key from the provider's words, then what is too long.
    pub(super) fn redacted_for(self, endpoint: &ModelEndpoint) -> Self {
        let key = endpoint.api_key.as_ref();
        let key = key.map_or("", ExposeSecret::expose_secret);
        let redacted = |message: String| {
            let message = if key.len() >= KEY_BYTES_MIN {
                message.replace(key, "…")
            } else {
                message
            };
            message.chars().take(MESSAGE_CHARS_MAX).collect()
        };
        Self {
            message: self.message.map(redacted),
            ..self
        }
    }
}

/// Returns the text in which a parameter may be named, without what quotes the request.
fn searched_text(mut body: Value) -> String {
    fn remove_quotes(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| !QUOTING_FIELDS.contains(&name.as_str()));
                fields.values_mut().for_each(remove_quotes);
            }
            Value::Array(values) => values.iter_mut().for_each(remove_quotes),
            _ => {}
        }
    }
    remove_quotes(&mut body);
    // What a provider behind a gateway said stands in a text of JSON.
    body.to_string().replace('\\', "").to_lowercase()
}

/// Returns the words of a text on one line, or `None` if there are none.
fn one_line(text: &str) -> Option<String> {
    let words: Vec<_> = text
        .split(|character: char| character.is_whitespace() || character.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    (!line.is_empty()).then_some(line)
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
            r#"[{"error":{"code":400,"message":"The input token count (200000) exceeds the maximum number of tokens allowed (131072).","status":"INVALID_ARGUMENT"}}]"#,
            r#"{"error":"Input exceeds the context window"}"#,
        ] {
            assert!(
                RefusalBody::parse(body.as_bytes()).is_about_length(),
                "{body}"
            );
        }
        for body in [
            r#"{"error":{"message":"unknown field \"tools\"","type":"invalid_request_error","code":null}}"#,
            r#"{"error":{"message":"max_tokens is too large","type":"invalid_request_error","code":400}}"#,
            "maximum context",
            "[]",
            "null",
            "",
        ] {
            assert!(
                !RefusalBody::parse(body.as_bytes()).is_about_length(),
                "{body}"
            );
        }
    }

    #[test]
    fn words_of_the_provider_are_found_in_any_form() {
        for body in [
            r#"{"error":{"message":"no\n such  model"}}"#,
            r#"{"error":"no such model"}"#,
            r#"[{"error":{"code":404,"message":"no such model"}}]"#,
            r#"{"detail":"no such model"}"#,
            r#"{"detail":[{"loc":["body","x"],"msg":"no such model"}]}"#,
            r#"{"object":"error","message":"no such model"}"#,
            "no such model",
        ] {
            let message = RefusalBody::parse(body.as_bytes()).message;
            assert_eq!(message.as_deref(), Some("no such model"), "{body}");
        }
        assert_eq!(RefusalBody::parse(b"<html>no</html>").message, None);
    }

    #[test]
    fn parameter_is_named_as_a_whole_word() {
        let named = |body: &str, parameter| RefusalBody::parse(body.as_bytes()).names(parameter);
        let dotted = r#"{"error":{"message":"no","param":"stream_options.include_usage"}}"#;
        assert!(named(dotted, "stream_options"));
        let fastapi = r#"{"detail":[{"loc":["body","reasoning_effort"],"msg":"Extra inputs are not permitted"}]}"#;
        assert!(named(fastapi, "reasoning_effort"));
        let passed_on = r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"'temperature' is deprecated\"}}"}}}"#;
        assert!(named(passed_on, "temperature"));
        let other = r#"{"error":{"message":"max_tokens_to_sample and mymax_tokens"}}"#;
        assert!(!named(other, "max_tokens"));
    }
}
