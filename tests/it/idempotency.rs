//! Idempotency keys: a retried request is one message.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, OrganizationDocument, Reply, Script, shop_saying, shop_with};

async fn send(client: &Client, agent: &str, key: &str, body: &Value) -> Reply {
    let path = format!("/api/public/agents/{agent}/chat");
    let request = client
        .request(Method::POST, &path)
        .header("idempotency-key", key)
        .json(body);
    Reply::read(request.send().await.unwrap()).await
}

#[tokio::test]
async fn retry_returns_the_same_message_without_a_model_call() {
    let organization = shop_saying("once").await;
    let urls = organization.service().public_urls();
    let body = json!({"message": "hi", "sessionId": "s"});
    let mut ids = vec![];
    for number in 0..3 {
        let client = organization.client_at(&urls[number % urls.len()]);
        let reply = send(&client, organization.shop(), "key-1", &body).await;
        assert_eq!(reply.complete(), "once");
        ids.push(reply.required_header("x-message-id"));
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(organization.requests().len(), 1);
    let history = organization.history("s").await;
    assert_eq!(history["totalMessages"], 2);
}

#[tokio::test]
async fn concurrent_retries_read_the_same_running_reply() {
    let script = Script::counts(15, Duration::from_millis(50));
    let organization = shop_with(script.clone()).await;
    let urls = organization.service().public_urls();
    let body = json!({"message": "hi", "sessionId": "s"});
    let (one, two) = (
        organization.client_at(&urls[0]),
        organization.client_at(urls.last().unwrap()),
    );
    let (one, two) = tokio::join!(
        send(&one, organization.shop(), "key-2", &body),
        send(&two, organization.shop(), "key-2", &body)
    );
    assert_eq!(
        (one.complete(), two.complete()),
        (script.text.clone(), script.text)
    );
    assert_eq!(
        one.required_header("x-message-id"),
        two.required_header("x-message-id")
    );
    assert_eq!(organization.requests().len(), 1);
}

#[tokio::test]
async fn different_payload_under_the_same_key_is_refused() {
    let organization = shop_saying("ok").await;
    let client = organization.client();
    let first = json!({"message": "hi", "sessionId": "s", "stream": true});
    send(&client, organization.shop(), "key-3", &first)
        .await
        .complete();
    for other in [
        json!({"message": "ho", "sessionId": "s"}),
        json!({"message": "hi", "sessionId": "t"}),
        json!({"message": "hi", "sessionId": "s", "metadata": {"a": 1}}),
    ] {
        let answer = send(&client, organization.shop(), "key-3", &other)
            .await
            .into_answer();
        answer.assert_problem(422, Some("IDEMPOTENCY_KEY_REUSED"));
    }
    let without_stream = json!({"message": "hi", "sessionId": "s"});
    send(&client, organization.shop(), "key-3", &without_stream)
        .await
        .complete();
}

#[tokio::test]
async fn malformed_key_is_refused() {
    let organization = shop_saying("ok").await;
    let body = json!({"message": "hi", "sessionId": "s"});
    let long = "k".repeat(256);
    for key in ["", &long, "a\tb"] {
        let answer = send(&organization.client(), organization.shop(), key, &body)
            .await
            .into_answer();
        let problem = answer.assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], "Idempotency-Key");
    }
    send(
        &organization.client(),
        organization.shop(),
        &"k".repeat(255),
        &body,
    )
    .await
    .complete();
}

#[tokio::test]
async fn key_is_scoped_to_its_api_key_and_route() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .agent("second", json!({}))
        .key("other", &[])
        .apply_to_shared()
        .await;
    let (client, other) = (organization.client(), organization.client_with("other"));
    let body = json!({"message": "hi", "sessionId": "s"});
    let first = send(&client, organization.shop(), "key-4", &body)
        .await
        .required_header("x-message-id");
    let requests = [
        (&other, organization.shop()),
        (&client, organization.agent("second")),
    ];
    for (client, agent) in requests {
        let reply = send(client, agent, "key-4", &body).await;
        reply.complete();
        assert_ne!(reply.required_header("x-message-id"), first);
    }
    assert_eq!(
        send(&client, organization.shop(), "key-4", &body)
            .await
            .required_header("x-message-id"),
        first
    );
}
