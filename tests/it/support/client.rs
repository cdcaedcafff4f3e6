//! A client of the HTTP APIs that checks whether each response arrived completely.

use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder, Response, header::HeaderMap};
use serde_json::{Value, json};

use super::{Events, PATIENCE, Reply};

const REQUEST_PATIENCE: Duration = Duration::from_secs(120);
/// Interval between two reads of a conversation that is not settled; hundreds may be read in
/// parallel.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// An API client with a base URL and, usually, a key.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: Option<String>,
}

/// A complete response without streaming.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Client {
    /// Creates a client without a key.
    pub(crate) fn new(base: &str) -> Self {
        super::background();
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(REQUEST_PATIENCE)
            // A pooled connection to a killed process would fail the next request.
            .pool_max_idle_per_host(0)
            .build()
            .unwrap();
        Self {
            http,
            base: base.to_owned(),
            key: None,
        }
    }

    /// Returns the same client with a key.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..self.clone()
        }
    }

    /// Creates a request with the key.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    /// Sends a GET request to a service that may be unavailable.
    pub(crate) async fn try_get(&self, path: &str) -> Option<Answer> {
        let response = self
            .request(Method::GET, path)
            .timeout(Duration::from_secs(5))
            .send()
            .await
            .ok()?;
        Answer::read(response).await
    }

    /// Sends a POST request with a JSON body.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        send(self.request(Method::POST, path).json(body)).await
    }

    /// Sends a PATCH request with a JSON body.
    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        send(self.request(Method::PATCH, path).json(body)).await
    }

    /// Sends a PUT request with a JSON body.
    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        send(self.request(Method::PUT, path).json(body)).await
    }

    /// Sends a DELETE request to a service that may be unavailable.
    pub(crate) async fn try_delete(&self, path: &str) -> Option<Answer> {
        let response = self.request(Method::DELETE, path).send().await.ok()?;
        Answer::read(response).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        send(self.request(Method::DELETE, path)).await
    }

    /// Sends a message to an agent and returns the complete text reply.
    pub(crate) async fn chat(&self, agent: &str, session: &str, message: &str) -> Reply {
        let body = json!({"message": message, "sessionId": session});
        Reply::read(self.open_chat(agent, &body).await).await
    }

    /// Sends a message to an agent and returns the response with an unread body.
    pub(crate) async fn open_chat(&self, agent: &str, body: &Value) -> Response {
        let path = format!("/api/public/agents/{agent}/chat");
        self.request(Method::POST, &path)
            .json(body)
            .send()
            .await
            .unwrap()
    }

    /// Sends a message to an agent and reads at least `bytes` bytes of its reply, which stays open.
    pub(crate) async fn begin_chat(
        &self,
        agent: &str,
        session: &str,
        message: &str,
        bytes: usize,
    ) -> (Reply, Response) {
        let body = json!({"message": message, "sessionId": session});
        let mut response = self.open_chat(agent, &body).await;
        let mut reply = Reply::begin(&response);
        reply.read_at_least(&mut response, bytes).await;
        (reply, response)
    }

    /// Cancels a reply.
    pub(crate) async fn cancel(&self, message: &str) -> Answer {
        let path = format!("/api/public/messages/{message}/cancel");
        self.post(&path, &json!({})).await
    }

    /// Sends a message to an agent and returns the reply as JSON.
    pub(crate) async fn chat_json(&self, agent: &str, session: &str, message: &str) -> Answer {
        let body = json!({"message": message, "sessionId": session});
        let path = format!("/api/public/agents/{agent}/chat");
        send(
            self.request(Method::POST, &path)
                .header("accept", "application/json")
                .json(&body),
        )
        .await
    }

    /// Sends a message to an agent and returns the reply as events.
    pub(crate) async fn chat_events(&self, agent: &str, session: &str, message: &str) -> Events {
        let body = json!({"message": message, "sessionId": session});
        let path = format!("/api/public/agents/{agent}/chat");
        let request = self
            .request(Method::POST, &path)
            .header("accept", "text/event-stream")
            .json(&body);
        Events::read(request.send().await.unwrap()).await
    }

    /// Sends a message to a team and returns the complete text reply.
    pub(crate) async fn team_chat(&self, team: &str, session: &str, message: &str) -> Reply {
        let body = json!({"message": message, "sessionId": session});
        let path = format!("/api/public/teams/{team}/chat");
        Reply::read(
            self.request(Method::POST, &path)
                .json(&body)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    /// Returns the conversation of a session.
    pub(crate) async fn history(&self, agent: &str, session: &str) -> Value {
        let answer = self
            .get(&format!(
                "/api/public/agents/{agent}/conversations/{session}?limit=100"
            ))
            .await;
        answer.assert_status(200);
        answer.json()
    }

    /// Returns the conversation of a session once it has `messages` messages and no running reply.
    /// Processes may be unavailable meanwhile.
    pub(crate) async fn settled_history(
        &self,
        agent: &str,
        session: &str,
        messages: usize,
    ) -> Value {
        let path = format!("/api/public/agents/{agent}/conversations/{session}?limit=100");
        let mut last = String::new();
        let began = Instant::now();
        while began.elapsed() < PATIENCE * 2 {
            if let Some(answer) = self.try_get(&path).await {
                if answer.status == 200 {
                    let history = answer.json();
                    let total = history["totalMessages"].as_u64().unwrap_or_default();
                    if total >= messages as u64 && history["activeMessageId"].is_null() {
                        return history;
                    }
                }
                last = answer.text;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        panic!("{session} has not settled with {messages} messages: {last}");
    }

    /// Returns a message by its id.
    pub(crate) async fn message(&self, id: &str) -> Value {
        let answer = self.get(&format!("/api/public/messages/{id}")).await;
        answer.assert_status(200);
        answer.json()
    }
}

impl Answer {
    /// Reads a response to its end; `None` if it was cut.
    pub(crate) async fn read(response: Response) -> Option<Self> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Some(Self {
            status,
            headers,
            text: response.text().await.ok()?,
        })
    }

    /// Returns the body, which must be JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text))
    }

    /// Returns a header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Asserts the status; a failure shows the body.
    #[track_caller]
    pub(crate) fn assert_status(&self, status: u16) {
        assert_eq!(self.status, status, "{}", self.text);
    }

    /// Asserts an error body with this status and code in the common format.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, code: Option<&str>) -> Value {
        self.assert_status(status);
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{}",
            self.text
        );
        let body = self.json();
        assert_eq!(body["code"].as_str(), code, "{body}");
        assert_eq!(body["status"], status, "{body}");
        for field in ["type", "title", "detail", "requestId"] {
            assert!(
                body[field].as_str().is_some_and(|text| !text.is_empty()),
                "{field} of {body}"
            );
        }
        let request_id = self
            .header("x-request-id")
            .expect("X-Request-Id on every response");
        assert!(request_id.starts_with("req_"), "{request_id}");
        assert_eq!(body["requestId"], request_id);
        body
    }
}

/// Sends a request and returns its complete response.
pub(crate) async fn send(request: RequestBuilder) -> Answer {
    Answer::read(request.send().await.unwrap())
        .await
        .expect("the answer arrives whole")
}
