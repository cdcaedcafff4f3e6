//! A scripted model server: it speaks the OpenAI protocol, follows the script registered for the
//! model's name, and records every request.

mod script;
mod wire;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use axum::{Json, Router, extract::State, response::Response, routing::post, serve::ListenerExt};
use serde_json::Value;
use tokio::net::TcpListener;

use super::background;
pub(crate) use script::{End, Raw, Script};

/// The scripted model server of this test process.
pub(crate) struct ScriptedModel {
    base_url: String,
    scripts: Mutex<HashMap<String, RegisteredScript>>,
    requests: Mutex<Vec<RecordedRequest>>,
}

struct RegisteredScript {
    script: Script,
    refused: u32,
    calls: usize,
}

/// A request received by the model server.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    /// Name of the requested model.
    pub(crate) model: String,
    /// Role and text of each message.
    pub(crate) messages: Vec<(String, String)>,
    /// True if a stream was requested.
    pub(crate) streams: bool,
    pub(crate) body: Value,
    open: std::sync::Weak<()>,
}

impl RecordedRequest {
    /// Returns the text of the last user message.
    pub(crate) fn question(&self) -> &str {
        self.messages
            .iter()
            .rev()
            .find(|(role, _)| role == "user")
            .map_or("", |(_, text)| text)
    }

    /// Returns the text of each message.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.messages
            .iter()
            .map(|(_, text)| text.as_str())
            .collect()
    }

    /// Returns the reply prefix that the caller asks to continue.
    pub(crate) fn assistant_prefix(&self) -> &str {
        self.messages
            .last()
            .filter(|(role, _)| role == "assistant")
            .map_or("", |(_, text)| text)
    }

    /// Returns true while the response is being sent.
    pub(crate) fn is_open(&self) -> bool {
        self.open.strong_count() > 0
    }
}

impl ScriptedModel {
    /// Returns the shared instance and starts it at the first call.
    pub(crate) fn get() -> &'static Self {
        static MODEL: OnceLock<Arc<ScriptedModel>> = OnceLock::new();
        MODEL.get_or_init(|| {
            let runtime = background();
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
            let model = Arc::new(Self {
                base_url,
                scripts: Mutex::default(),
                requests: Mutex::default(),
            });
            let router = Router::new()
                .route("/v1/chat/completions", post(complete))
                .with_state(model.clone());
            runtime.spawn(async move {
                // Providers send each token at once; otherwise the second waits for the
                // acknowledgement of the first.
                let listener = TcpListener::from_std(listener).unwrap();
                axum::serve(
                    listener.tap_io(|stream| stream.set_nodelay(true).unwrap()),
                    router,
                )
                .await
            });
            model
        })
    }

    /// Returns the address for clients.
    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Registers the script of model `name`, or `name/marker` for questions that contain
    /// `[[marker]]`.
    pub(crate) fn register(&self, name: &str, script: Script) {
        self.scripts.lock().unwrap().insert(
            name.to_owned(),
            RegisteredScript {
                script,
                refused: 0,
                calls: 0,
            },
        );
    }

    /// Returns every request for the model of this name, oldest first.
    pub(crate) fn requests(&self, name: &str) -> Vec<RecordedRequest> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter(|request| request.model == name)
            .cloned()
            .collect()
    }

    fn respond(&self, body: Value) -> Response {
        let open = Arc::new(());
        let request = record(body, &open);
        self.requests.lock().unwrap().push(request.clone());
        let mut scripts = self.scripts.lock().unwrap();
        let key = marker(request.question()).map(|marker| format!("{}/{marker}", request.model));
        let key = key
            .filter(|key| scripts.contains_key(key))
            .unwrap_or_else(|| request.model.clone());
        let Some(registered) = scripts.get_mut(&key) else {
            return wire::answer(
                &Script::says(&format!("You said: {}", request.question())),
                0,
                &request,
                open,
            );
        };
        let refusals = registered.script.refusals.clone();
        if registered.refused < refusals.times {
            registered.refused += 1;
            return wire::refusal(refusals.status, refusals.retry_after_s);
        }
        let script = registered.script.of_turn(registered.calls);
        registered.calls += 1;
        if !registered.script.in_turn.is_empty() && script.refusals.times > 0 {
            return wire::refusal(script.refusals.status, script.refusals.retry_after_s);
        }
        wire::answer(script, registered.calls, &request, open)
    }
}

async fn complete(State(model): State<Arc<ScriptedModel>>, Json(body): Json<Value>) -> Response {
    model.respond(body)
}

fn record(body: Value, open: &Arc<()>) -> RecordedRequest {
    let messages = body["messages"].as_array().into_iter().flatten();
    let messages = messages
        .map(|message| (text_of(&message["role"]), text_of(&message["content"])))
        .collect();
    RecordedRequest {
        model: text_of(&body["model"]),
        messages,
        streams: body["stream"].as_bool().unwrap_or(false),
        body,
        open: Arc::downgrade(open),
    }
}

/// Returns the text of content that is a string or a list of parts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

fn marker(question: &str) -> Option<&str> {
    let (_, rest) = question.split_once("[[")?;
    Some(rest.split_once("]]")?.0)
}
