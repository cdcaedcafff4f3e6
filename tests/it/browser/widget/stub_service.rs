//! The widget against a stub service: rich content, hostile fields and broken connections.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Json, Router,
    extract::Request,
    http::{HeaderMap, Method, StatusCode, header},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};

use super::page::{Visitor, document, served, tag};
use crate::support::{Browser, Page, SharedService, TestService};

const AGENT: &str = "agt_stub";

#[derive(Clone)]
pub(super) struct Stub {
    /// Fields of the token response besides the token.
    pub(super) configuration: Value,
    /// Events of a reply for the first connection.
    pub(super) events: String,
    /// Events sent to a resumed connection; if empty, the first events again.
    pub(super) rest: Option<String>,
    /// Positions from which connections were resumed.
    pub(super) resumed: Arc<AtomicUsize>,
}

pub(super) fn event(name: &str, id: &str, data: &Value) -> String {
    format!("event: {name}\nid: {id}\ndata: {data}\n\n")
}

/// Returns the events of a complete reply with this text, after the given events.
pub(super) fn reply(before: &str, text: &str) -> String {
    let start = event(
        "start",
        "0.0",
        &json!({"messageId": "msg_stub", "conversationId": "conv_stub", "generation": 0}),
    );
    let delta = event(
        "delta",
        &format!("0.{}", text.len()),
        &json!({"text": text, "offset": 0}),
    );
    let done = event(
        "done",
        &format!("0.{}", text.len()),
        &json!({"status": "completed", "length": text.len()}),
    );
    format!("{start}{before}{delta}{done}")
}

impl Stub {
    /// Starts a stub service that sends these events.
    pub(super) fn says(events: String) -> Self {
        Self {
            configuration: json!({}),
            events,
            rest: None,
            resumed: Arc::default(),
        }
    }

    /// Opens a page with the real widget script that uses this service.
    pub(super) async fn visitor(self, service: &TestService) -> Visitor {
        let stub = Page::answer(self.router());
        let attribute = format!(r#"data-base-url="{}""#, stub.origin());
        let page = served(
            document(&tag(&service.public_urls()[0], AGENT, &attribute)),
            None,
        );
        Visitor::at(page, Browser::open().await).await
    }

    fn router(self) -> Router {
        let Self {
            configuration,
            events,
            rest,
            resumed,
        } = self;
        let mut answer = json!({
            "token": "svt_stub", "expiresAt": "2999-01-01T00:00:00Z", "visitorSecret": "svs_stub",
            "configuration": {"name": "Stub", "welcomeMessage": "", "placeholderText": "", "widget": {"enableMarkdown": true}}
        });
        answer
            .as_object_mut()
            .unwrap()
            .extend(configuration.as_object().unwrap().clone());
        let again = rest.unwrap_or_else(|| events.clone());
        Router::new()
            .route(
                "/api/widget/token",
                post(move || async move { Json(answer) }),
            )
            .route(
                "/api/public/agents/agt_stub/chat",
                post(move || async move { stream(events) }),
            )
            .route(
                "/api/public/messages/msg_stub/stream",
                get(move |headers: HeaderMap| async move {
                    let position = headers
                        .get("last-event-id")
                        .and_then(|id| id.to_str().ok()?.split_once('.')?.1.parse().ok());
                    resumed.store(position.unwrap_or_default(), Ordering::SeqCst);
                    stream(again)
                }),
            )
            .fallback(async || StatusCode::NOT_FOUND)
            .layer(from_fn(async |request: Request, next: Next| {
                let is_preflight = request.method() == Method::OPTIONS;
                allow_every_page(if is_preflight {
                    Response::default()
                } else {
                    next.run(request).await
                })
            }))
    }
}

fn stream(events: String) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
}

fn allow_every_page(mut response: Response) -> Response {
    for name in [
        "access-control-allow-origin",
        "access-control-allow-headers",
        "access-control-allow-methods",
    ] {
        let value = if name.ends_with("headers") {
            "authorization, content-type, idempotency-key, last-event-id, accept"
        } else {
            "*"
        };
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

#[tokio::test]
async fn products_are_cards_with_pictures_prices_and_links() {
    let service = SharedService::get().await;
    let spec = json!({"type": "product-grid", "data": [
        {"title": "Green tea", "price": "$9", "image": "", "url": "https://shop.example/tea"},
        {"title": "Teapot", "price": "$29", "image": "", "url": ""},
    ]});
    let visitor = Stub::says(reply(&event("ui", "0.0", &spec), "Here you are."))
        .visitor(&service)
        .await;
    visitor.opens().await;
    visitor.says("tea?").await;
    visitor.is_answered("Here you are.").await;
    let cards = "all('.card').map(card => [card.tagName, card.href ?? null, card.querySelector('.title').innerText, card.querySelector('.price').innerText])";
    let expected = json!([
        ["A", "https://shop.example/tea", "Green tea", "$9"],
        ["DIV", null, "Teapot", "$29"]
    ]);
    assert_eq!(visitor.read(cards).await, expected);
}

#[tokio::test]
async fn broken_connection_resumes_without_repeating_bytes() {
    let service = SharedService::get().await;
    // The first connection ends mid-reply, the second starts one character too early.
    let start = event(
        "start",
        "0.0",
        &json!({"messageId": "msg_stub", "generation": 0}),
    );
    let begun = start + &event("delta", "0.5", &json!({"text": "né ü", "offset": 0}));
    let rest = event("delta", "0.12", &json!({"text": "ü again", "offset": 4}))
        + &event("done", "0.12", &json!({"status": "completed"}));
    let stub = Stub {
        rest: Some(rest),
        ..Stub::says(begun)
    };
    let resumed = Arc::clone(&stub.resumed);
    let visitor = stub.visitor(&service).await;
    visitor.opens().await;
    visitor.says("hi").await;
    visitor.is_answered("né ü again").await;
    assert_eq!(resumed.load(Ordering::SeqCst), 5, "it said what it has");
}

#[tokio::test]
async fn regenerated_reply_replaces_the_shown_text() {
    let service = SharedService::get().await;
    let start = event(
        "start",
        "0.0",
        &json!({"messageId": "msg_stub", "generation": 0}),
    );
    let begun = start + &event("delta", "0.3", &json!({"text": "old", "offset": 0}));
    let again = event(
        "start",
        "1.0",
        &json!({"messageId": "msg_stub", "generation": 1}),
    ) + &event("delta", "1.3", &json!({"text": "new", "offset": 0}))
        + &event("done", "1.3", &json!({"status": "completed"}));
    let visitor = Stub {
        rest: Some(again),
        ..Stub::says(begun)
    }
    .visitor(&service)
    .await;
    visitor.opens().await;
    visitor.says("hi").await;
    visitor.is_answered("new").await;
}

#[tokio::test]
async fn regenerated_equal_paragraphs_are_announced_again() {
    let service = SharedService::get().await;
    let start = event(
        "start",
        "0.0",
        &json!({"messageId": "msg_stub", "generation": 0}),
    );
    let begun = start
        + &event(
            "delta",
            "0.12",
            &json!({"text": "One.\n\nTwo.\n\n", "offset": 0}),
        );
    // During regeneration, dots replace the paragraphs.
    let lost = event(
        "error",
        "",
        &json!({"status": 503, "code": "REPLY_RESTARTED", "detail": ""}),
    );
    let again = event(
        "start",
        "1.0",
        &json!({"messageId": "msg_stub", "generation": 1}),
    ) + &event(
        "delta",
        "1.18",
        &json!({"text": "One.\n\nTwo.\n\nThree.", "offset": 0}),
    ) + &event("done", "1.18", &json!({"status": "completed"}));
    let visitor = Stub {
        rest: Some(again),
        ..Stub::says(begun + &lost)
    }
    .visitor(&service)
    .await;
    visitor.opens().await;
    visitor.says("count").await;
    visitor
        .reads(
            "all('.row.assistant .bubble p').map(part => part.innerText)",
            json!(["One.", "Two.", "Three."]),
        )
        .await;
    visitor
        .sees("the end", "!$('.send.stop') && !$('.dots')")
        .await;
    visitor
        .reads(
            "$('[aria-live]')?.innerText.replace(/\\s+/g, ' ')",
            json!("One. Two. Three."),
        )
        .await;
}
