//! A scripted model server for tests: it speaks the OpenAI protocol, follows the script registered
//! for the model's name, and records every request.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails at once if its model cannot answer"
)]

mod responses;
mod script;
mod wire;

use std::{
    collections::HashMap,
    net::TcpListener,
    sync::{Arc, Mutex, OnceLock, Weak},
};

use axum::{Json, Router, extract::State, response::Response, routing::post, serve::ListenerExt};
use serde_json::Value;
use tokio::runtime::Runtime;

pub use script::{End, Gate, Raw, Script};

/// Key of the script for all models without one of their own.
const ANY_MODEL: &str = "";

/// A scripted model server, which runs until the process ends.
pub struct ScriptedModel {
    base_url: String,
    /// Scripts and their numbers of calls.
    scripts: Mutex<HashMap<String, (Script, usize)>>,
    requests: Mutex<Vec<RecordedRequest>>,
}

/// A dialect of the OpenAI protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    ChatCompletions,
    Responses,
}

/// A request received by the model server.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// Name of the requested model.
    pub model: String,
    /// Role and text of each message.
    pub messages: Vec<(String, String)>,
    /// True if a stream was requested.
    pub streams: bool,
    /// The whole body.
    pub body: Value,
    pub(crate) dialect: Dialect,
    open: Weak<()>,
}

impl RecordedRequest {
    fn new(body: Value, dialect: Dialect, open: &Arc<()>) -> Self {
        let messages = match dialect {
            Dialect::ChatCompletions => {
                let messages = body["messages"].as_array().into_iter().flatten();
                messages
                    .map(|message| (text_of(&message["role"]), text_of(&message["content"])))
                    .collect()
            }
            Dialect::Responses => responses::messages_of(&body),
        };
        Self {
            model: text_of(&body["model"]),
            messages,
            dialect,
            streams: body["stream"] == true,
            body,
            open: Arc::downgrade(open),
        }
    }

    /// Returns the text of the last user message.
    pub fn question(&self) -> &str {
        let mut messages = self.messages.iter().rev();
        let question = messages.find(|(role, _)| role == "user");
        question.map_or("", |(_, text)| text)
    }

    /// Returns the text of each message.
    pub fn texts(&self) -> Vec<&str> {
        let texts = self.messages.iter().map(|(_, text)| text.as_str());
        texts.collect()
    }

    /// Returns the reply prefix that the caller asks to continue.
    pub fn assistant_prefix(&self) -> &str {
        let last = self.messages.last();
        let prefix = last.filter(|(role, _)| role == "assistant");
        prefix.map_or("", |(_, text)| text)
    }

    /// Returns true while the response is being sent.
    pub fn is_open(&self) -> bool {
        self.open.strong_count() > 0
    }
}

impl ScriptedModel {
    /// Returns the shared instance and starts it at the first call. Models without a script repeat
    /// the question.
    pub fn get() -> &'static Self {
        static MODEL: OnceLock<&ScriptedModel> = OnceLock::new();
        MODEL.get_or_init(|| Self::serve(HashMap::new()))
    }

    /// Starts an instance that follows one script for each call, whatever the model's name. The
    /// last one applies to all later calls.
    pub fn start(scripts: Vec<Script>) -> &'static Self {
        let script = Script::in_turn(scripts);
        Self::serve(HashMap::from([(ANY_MODEL.to_owned(), (script, 0))]))
    }

    fn serve(scripts: HashMap<String, (Script, usize)>) -> &'static Self {
        // Outlives the runtime of the test that starts the server.
        static RUNTIME: OnceLock<Runtime> = OnceLock::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let model: &Self = Box::leak(Box::new(Self {
            base_url: format!("http://{}/v1", listener.local_addr().unwrap()),
            scripts: Mutex::new(scripts),
            requests: Mutex::default(),
        }));
        let router = Router::new()
            .route("/v1/chat/completions", post(respond))
            .route("/v1/responses", post(respond_in_events))
            .route("/v1/embeddings", post(respond))
            .with_state(model);
        let runtime = RUNTIME.get_or_init(|| Runtime::new().unwrap());
        runtime.spawn(async move {
            // Providers send each token at once; otherwise the second waits for the
            // acknowledgement of the first.
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
            axum::serve(listener, router).await
        });
        model
    }

    /// Returns the address for clients.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Registers the script of model `name`, or `name/marker` for questions that contain
    /// `[[marker]]`.
    pub fn register(&self, name: &str, script: Script) {
        let mut scripts = self.scripts.lock().unwrap();
        scripts.insert(name.to_owned(), (script, 0));
    }

    /// Returns every request for the model of this name, oldest first.
    pub fn requests(&self, name: &str) -> Vec<RecordedRequest> {
        let requests = self.requests.lock().unwrap();
        let requests = requests.iter().filter(|request| request.model == name);
        requests.cloned().collect()
    }

    /// Returns the bodies of all requests, oldest first.
    pub fn bodies(&self) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .map(|request| request.body.clone())
            .collect()
    }

    /// Returns the number of responses that are being sent.
    pub fn open_streams(&self) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| request.is_open()).count()
    }
}

async fn respond(State(model): State<&'static ScriptedModel>, Json(body): Json<Value>) -> Response {
    answer_request(model, body, Dialect::ChatCompletions)
}

async fn respond_in_events(
    State(model): State<&'static ScriptedModel>,
    Json(body): Json<Value>,
) -> Response {
    answer_request(model, body, Dialect::Responses)
}

fn answer_request(model: &ScriptedModel, body: Value, dialect: Dialect) -> Response {
    let open = Arc::new(());
    let request = RecordedRequest::new(body, dialect, &open);
    model.requests.lock().unwrap().push(request.clone());
    let mut scripts = model.scripts.lock().unwrap();
    let marked = marker(request.question()).map(|marker| format!("{}/{marker}", request.model));
    let keys = [marked.as_deref(), Some(&request.model), Some(ANY_MODEL)];
    let mut keys = keys.into_iter().flatten();
    let Some(key) = keys.find(|key| scripts.contains_key(*key)) else {
        let echo = Script::says(&format!("You said: {}", request.question()));
        return wire::answer(&echo, 1, &request, open);
    };
    let (script, calls) = scripts.get_mut(key).unwrap();
    let next = script.for_call_number(*calls + 1);
    if let Some(exception) = next.exception_for(&request.body) {
        return wire::answer(exception, *calls + 1, &request, open);
    }
    *calls += 1;
    wire::answer(next, *calls, &request, open)
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
