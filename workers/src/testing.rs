//! A scripted model provider for the tests of this crate.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Json, Router, body::Body, extract::State, response::Response, routing::post};
use futures::stream;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::config::WorkersConfig;

/// Response of the provider to one request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Answers with a status, a type and a body.
    Answer(u16, &'static [(&'static str, &'static str)], &'static str),
    /// Streams these pieces.
    Stream(Vec<Piece>),
}

/// A piece of a stream.
#[derive(Clone)]
pub(crate) enum Piece {
    /// An event with a chunk of text.
    Text(&'static str),
    /// Any event.
    Event(Value),
    /// Bytes as they are.
    Raw(&'static str),
    /// Silence without an end.
    Hang,
}

/// Returns a stream of text with a regular end.
pub(crate) fn complete(text: &[&'static str]) -> Act {
    let mut pieces: Vec<_> = text.iter().map(|text| Piece::Text(text)).collect();
    pieces.push(Piece::Event(
        json!({"choices":[{"delta":{},"finish_reason":"stop"}]}),
    ));
    pieces.push(Piece::Event(
        json!({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}),
    ));
    pieces.push(Piece::Raw("data: [DONE]\n\n"));
    Act::Stream(pieces)
}

/// A running provider; the last act is repeated.
pub(crate) struct Provider {
    /// Its base URL.
    pub(crate) base_url: String,
    requests: Arc<Mutex<Vec<Value>>>,
    open: Arc<AtomicUsize>,
    _server: JoinSet<()>,
}

impl Provider {
    pub(crate) async fn start(acts: Vec<Act>) -> Self {
        // Concurrent tests may install it; either provider is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (requests, open) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(AtomicUsize::new(0)),
        );
        let script = (Arc::new(acts), requests.clone(), open.clone());
        let router = Router::new()
            .route("/v1/chat/completions", post(answer))
            .route("/v1/embeddings", post(answer))
            .with_state(script);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            base_url,
            requests,
            open,
            _server: server,
        }
    }

    /// Returns the number of streams that are still read.
    pub(crate) fn open_streams(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Returns the bodies of all requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

type Script = (Arc<Vec<Act>>, Arc<Mutex<Vec<Value>>>, Arc<AtomicUsize>);

/// Guard that counts a stream as long as it is read.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn answer(
    State((acts, requests, open)): State<Script>,
    Json(request): Json<Value>,
) -> Response {
    let number = {
        let mut requests = requests.lock().unwrap();
        requests.push(request);
        requests.len() - 1
    };
    match acts[number.min(acts.len() - 1)].clone() {
        Act::Answer(status, headers, body) => {
            let response = headers.iter().fold(
                Response::builder().status(status),
                |built, (name, value)| built.header(*name, *value),
            );
            response.body(Body::from(body)).unwrap()
        }
        Act::Stream(pieces) => {
            let body = stream::unfold(
                (pieces.into_iter(), Open::new(open)),
                |(mut pieces, open)| async move {
                    let bytes = match pieces.next()? {
                        Piece::Text(text) => {
                            event(&json!({"choices":[{"delta":{"content":text}}]}))
                        }
                        Piece::Event(chunk) => event(&chunk),
                        Piece::Raw(raw) => raw.to_owned(),
                        Piece::Hang => std::future::pending().await,
                    };
                    Some((Ok::<_, std::convert::Infallible>(bytes), (pieces, open)))
                },
            );
            Response::builder()
                .header("content-type", "text/event-stream")
                .body(Body::from_stream(body))
                .unwrap()
        }
    }
}

fn event(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

/// Returns settings with short time-outs.
pub(crate) fn quick() -> WorkersConfig {
    WorkersConfig {
        first_token_timeout_ms: 700,
        first_token_total_ms: 3_000,
        token_idle_timeout_ms: 700,
        provider_retry_delay_min_ms: 1,
        provider_retry_delay_max_ms: 10,
        store_retry_delay_min_ms: 5,
        store_retry_delay_max_ms: 50,
        parked_delay_ms: 50,
        drain_ms: 500,
        ..WorkersConfig::default()
    }
}

/// Waits until `done` returns true. Panics after ten seconds.
pub(crate) async fn eventually(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !done().await {
        assert!(
            tokio::time::Instant::now() < deadline,
            "did not happen in time: {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
