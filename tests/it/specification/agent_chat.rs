//! Section "1. POST /api/public/agents/{agentId}/chat".

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Answer, Endpoint, Endpoints, Organization, Reply, Script, send, shop_saying, shop_with,
    shop_with_settings,
};

async fn chat(organization: &Organization, body: Value) -> Answer {
    Answer::read(organization.open_chat(&body).await)
        .await
        .unwrap()
}

#[tokio::test]
async fn user_message_is_sent_to_an_agent() {
    let organization = shop_saying("ok").await;
    organization.chat("s", "a question").await.complete();
    let request = organization.requests().remove(0);
    assert_eq!(request.question(), "a question");
}

#[tokio::test]
async fn message_and_session_id_are_enough() {
    let organization = shop_saying("ok").await;
    let answer = chat(&organization, json!({"message": "hi", "sessionId": "s"})).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "ok"));
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
async fn visitor_email_and_name_are_stored_with_the_conversation() {
    let organization = shop_saying("ok").await;
    let body = json!({"message": "hi", "sessionId": "s", "visitorEmail": "ada@example.org", "visitorName": "Ada Lovelace"});
    assert_eq!(chat(&organization, body).await.status, 200);
    let metadata = &organization.history("s").await["metadata"];
    assert_eq!(
        (&metadata["visitorEmail"], &metadata["visitorName"]),
        (&json!("ada@example.org"), &json!("Ada Lovelace"))
    );
}

#[tokio::test]
async fn metadata_is_arbitrary_key_value_data() {
    let organization = shop_saying("ok").await;
    let attached = json!({"page": "/cart", "items": [1, 2], "deep": {"a": null}});
    let answer = chat(
        &organization,
        json!({"message": "hi", "sessionId": "s", "metadata": attached}),
    )
    .await;
    answer.assert_status(200);
    let metadata = &organization.history("s").await["metadata"];
    for key in ["page", "items", "deep"] {
        assert_eq!(metadata[key], attached[key], "{metadata}");
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
async fn x_conversation_id_is_the_conversation_of_the_session() {
    let organization = shop_saying("ok").await;
    let reply = organization.chat("s", "hi").await;
    let history = organization.history("s").await;
    assert_eq!(history["id"], reply.required_header("x-conversation-id"));
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
async fn errors_are_the_eleven_listed_ones() {
    let endpoints = Endpoints::prepare().await;
    let listed = [
        (400, "INVALID_AGENT_ID"),
        (400, "INVALID_REQUEST_DATA"),
        (400, "INVALID_JSON"),
        (401, "MISSING_API_KEY"),
        (401, "INVALID_API_KEY"),
        (403, "AGENT_NOT_PUBLIC"),
        (403, "AGENT_INACTIVE"),
        (403, "ORG_MISMATCH"),
        (403, "DOMAIN_NOT_ALLOWED"),
        (404, "AGENT_NOT_FOUND"),
        (429, "RATE_LIMITED"),
    ];
    endpoints.assert_errors(Endpoint::AgentChat, &listed).await;
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

#[tokio::test]
async fn missing_message_or_session_id_is_400_invalid_request_data() {
    let organization = shop_saying("ok").await;
    for (body, missing) in [
        (json!({"sessionId": "s"}), "message"),
        (json!({"message": null, "sessionId": "s"}), "message"),
        (json!({"message": "hi"}), "sessionId"),
        (json!({"message": "hi", "sessionId": null}), "sessionId"),
        (json!({}), "message"),
    ] {
        let problem = chat(&organization, body)
            .await
            .assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], missing, "{problem}");
    }
    assert!(organization.requests().is_empty(), "no model was asked");
}

#[tokio::test]
async fn origin_outside_allowed_domains_is_403_domain_not_allowed() {
    let listed = json!({"allowedDomains": ["https://shop.example"]});
    let organization = shop_with_settings(listed).await;
    let path = organization.path("/chat");
    let from = async |origin: &str| {
        let request = organization
            .client()
            .request(Method::POST, &path)
            .header("origin", origin);
        send(request.json(&json!({"message": "hi", "sessionId": "s"}))).await
    };
    from("https://other.example")
        .await
        .assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
    assert_eq!(from("https://shop.example").await.status, 200);
}

#[tokio::test]
async fn same_session_id_continues_the_conversation() {
    let organization = shop_saying("ok").await;
    let first = organization.chat("s", "one").await;
    let second = organization.chat("s", "two").await;
    assert_eq!(
        first.required_header("x-conversation-id"),
        second.required_header("x-conversation-id")
    );
    assert_ne!(
        first.required_header("x-message-id"),
        second.required_header("x-message-id")
    );
}
