//! Section "1. POST /api/public/agents/{agentId}/chat".

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Answer, Organization, Reply, Script, shop_saying, shop_with, shop_with_settings,
};

async fn chat(organization: &Organization, body: Value) -> Answer {
    Answer::read(organization.open_chat(&body).await)
        .await
        .unwrap()
}

#[tokio::test]
async fn visitor_id_is_kept_across_sessions() {
    let organization = shop_saying("ok").await;
    for session in ["monday", "tuesday"] {
        let answer = chat(
            &organization,
            json!({"message": "hi", "sessionId": session, "visitorId": "v-7"}),
        )
        .await;
        answer.assert_status(200);
        let history = organization.history(session).await;
        assert_eq!(history["metadata"]["visitorId"], "v-7");
    }
}

#[tokio::test]
async fn body_is_streamed_text_plain_in_chunked_encoding() {
    let organization = shop_saying("Hello from the shop.").await;
    let reply = organization.chat("s", "hi").await;
    assert_eq!(reply.complete(), "Hello from the shop.");
    assert!(
        reply
            .required_header("content-type")
            .starts_with("text/plain"),
        "{:?}",
        reply.headers
    );
    assert_eq!(reply.required_header("transfer-encoding"), "chunked");
    assert_eq!(reply.header("content-length"), None);
}

#[tokio::test]
async fn each_chunk_is_a_portion_of_the_reply_as_generated() {
    let organization = shop_with(Script::counts(20, Duration::from_millis(100))).await;
    let began = Instant::now();
    let reply = organization.chat("s", "count").await;
    let whole = began.elapsed();
    reply.complete();
    let first = reply.chunks[0].0 - began;
    assert!(reply.chunks.len() >= 10, "{} chunks", reply.chunks.len());
    assert!(first < whole / 2, "first after {first:?} of {whole:?}");
}

#[tokio::test]
async fn x_message_id_is_the_id_of_the_assistant_message() {
    let organization = shop_saying("ok").await;
    let reply = organization.chat("s", "hi").await;
    let history = organization.history("s").await;
    assert_eq!(history["messages"][1]["role"], "assistant");
    assert_eq!(
        history["messages"][1]["id"],
        reply.required_header("x-message-id")
    );
}

#[tokio::test]
async fn response_is_streamed_by_default() {
    let organization = shop_with(Script::counts(5, Duration::from_millis(100))).await;
    let body = json!({"message": "hi", "sessionId": "s"});
    let path = organization.path("/chat");
    let request = organization
        .client()
        .request(Method::POST, &path)
        .header("accept", "*/*")
        .json(&body);
    let reply = Reply::read(request.send().await.unwrap()).await;
    reply.complete();
    assert!(reply.chunks.len() > 1, "{:?}", reply.chunks);
}

#[tokio::test]
async fn x_ui_spec_contains_the_product_grid_of_ecommerce_tools() {
    let product = json!({"title": "Lamp", "price": "$9", "image": "https://shop.example/a.jpg", "url": "https://shop.example/a"});
    let enabled = json!({"ecommerce": {"enabled": true, "products": [product]}});
    let organization = shop_with_settings(enabled).await;
    organization.script_for(
        "lamp",
        Script::in_turn(vec![Script::searches("lamp"), Script::says("One lamp.")]),
    );
    let found = organization.chat("s", "a lamp? [[lamp]]").await;
    assert_eq!(found.complete(), "One lamp.");
    let spec: serde_json::Value =
        serde_json::from_str(&found.required_header("x-ui-spec")).unwrap();
    assert_eq!(spec, json!({"type": "product-grid", "data": [product]}));
    organization.script(Script::says("Hello!"));
    let plain = organization.chat("s", "hello").await;
    assert_eq!(
        (plain.complete().as_str(), plain.header("x-ui-spec")),
        ("Hello!", None),
        "present when applicable"
    );
}
