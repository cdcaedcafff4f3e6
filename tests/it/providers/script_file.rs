//! Format of the files in `tests/providers`: what a provider sends and requires.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Raw, Script};

/// One provider with its scripts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ProviderFile {
    pub(super) name: String,
    pub(super) base_url: String,
    /// Dialect, if it is not that of chat completions.
    pub(super) api: Option<String>,
    /// Origin of the key.
    pub(super) key: String,
    /// A model for examples.
    pub(super) model: String,
    /// Facts that an operator has to know.
    #[serde(default)]
    pub(super) notes: Vec<String>,
    pub(super) scripts: Vec<ProviderScript>,
}

/// One conversation with a provider and its expected outcome.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ProviderScript {
    /// Behavior of the provider, in words.
    pub(super) name: String,
    /// Settings of the agent, over those of a shop or of a plain agent.
    #[serde(default)]
    pub(super) agent: Value,
    /// True if the agent has products, and so tools.
    #[serde(default)]
    pub(super) tools: bool,
    /// Messages that are sent, one after the other in one conversation.
    #[serde(default = "one")]
    pub(super) messages: usize,
    /// Requests that are refused.
    #[serde(default)]
    refuses: Vec<RefusedRequest>,
    /// Response to each accepted request; the last one answers all later requests.
    answers: Vec<ScriptedAnswer>,
    #[serde(flatten)]
    pub(super) expected: ExpectedOutcome,
}

/// Outcome of the last message.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ExpectedOutcome {
    /// Complete text of the reply.
    pub(super) says: Option<String>,
    /// Text that is stored of an interrupted reply.
    pub(super) cut: Option<String>,
    /// Status and code of the error, such as `502 MODEL_ERROR`.
    pub(super) fails: Option<String>,
    /// Titles of the products.
    #[serde(default)]
    pub(super) shows: Vec<String>,
    pub(super) finish_reason: Option<String>,
    /// Prompt and completion tokens.
    pub(super) usage: Option<[u64; 2]>,
    /// Seconds of `Retry-After` for the client, at least.
    pub(super) retry_after: Option<u64>,
    /// Requests that the provider received.
    pub(super) requests: Option<usize>,
    /// Fields of the last request, by their path.
    #[serde(default)]
    pub(super) sends: BTreeMap<String, Value>,
    /// Paths that the last request does not contain.
    #[serde(default)]
    pub(super) omits: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusedRequest {
    /// Path of a field that must not be sent.
    with: Option<String>,
    /// Path of a field that must be sent.
    without: Option<String>,
    /// The refusal applies only to requests that contain this path.
    only: Option<String>,
    status: u16,
    #[serde(default)]
    body: Value,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedAnswer {
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Value,
    /// Pieces of the stream: a chunk, `delta` or `finish` of one, or text: `[DONE]`, `cut`, `hang`,
    /// or lines as they are.
    #[serde(default)]
    stream: Vec<Value>,
}

const fn one() -> usize {
    1
}

/// Returns the providers in the order of their files' names.
pub(super) fn providers() -> Vec<ProviderFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/providers");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        serde_yaml_ng::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    paths.into_iter().map(read).collect()
}

/// Returns the value at a path such as `messages.2.content`.
pub(super) fn value_at<'a>(body: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(body, |value, step| {
        step.parse::<usize>()
            .ok()
            .and_then(|place| value.get(place))
            .or_else(|| value.get(step))
    })
}

impl ProviderScript {
    pub(super) fn script(&self) -> Script {
        let answers = self.answers.iter().map(|answer| {
            let refused = self.refuses.iter();
            refused.fold(answer.script(), |script, refused| {
                refused.applied_to(script)
            })
        });
        Script::in_turn(answers.collect())
    }
}

impl RefusedRequest {
    fn applied_to(&self, script: Script) -> Script {
        let (with, without, only) = (self.with.clone(), self.without.clone(), self.only.clone());
        let is_refused = move |body: &Value| {
            let contains = |path: &String| value_at(body, path).is_some();
            only.as_ref().is_none_or(contains)
                && (with.as_ref().is_some_and(contains)
                    || without.as_ref().is_some_and(|path| !contains(path)))
        };
        let json = [("content-type", "application/json")];
        script.when(
            is_refused,
            Script::answer(self.status, &json, body_text(&self.body)),
        )
    }
}

impl ScriptedAnswer {
    fn script(&self) -> Script {
        if self.stream.is_empty() {
            let mut headers = vec![("content-type", "application/json")];
            for (name, value) in &self.headers {
                headers.push((name.clone().leak(), value.as_str()));
            }
            return Script::answer(self.status.unwrap_or(200), &headers, body_text(&self.body));
        }
        Script::raw(self.stream.iter().map(piece).collect())
    }
}

fn body_text(body: &Value) -> String {
    body.as_str()
        .map_or_else(|| body.to_string(), str::to_owned)
}

fn piece(item: &Value) -> Raw {
    if let Some(text) = item.as_str() {
        return match text {
            "cut" => Raw::Cut,
            "hang" => Raw::Hang,
            "[DONE]" => Raw::bytes("data: [DONE]\n\n"),
            lines => Raw::bytes(format!("{lines}\n\n")),
        };
    }
    let is_shorthand =
        item.get("type").is_none() && (item.get("delta").is_some() || item.get("finish").is_some());
    if !is_shorthand {
        return Raw::Event(item.clone());
    }
    Raw::Event(json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": item.get("delta").cloned().unwrap_or(json!({})), "finish_reason": item.get("finish")}]
    }))
}
