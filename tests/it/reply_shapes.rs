//! The same reply in its three shapes, and the answer for those who do not wait.

use serde_json::json;

use crate::support::{End, Organization, PATIENCE, Reply, Script, SharedService, eventually};

#[tokio::test]
async fn json_holds_the_whole_reply_and_its_facts() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("three short words")).await;
    let client = organization.client();
    let answer = client.chat_json(organization.shop(), "s", "hi").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let body = answer.json();
    assert_eq!(body["content"], "three short words");
    assert_eq!(body["status"], "completed");
    assert_eq!(body["finishReason"], "stop");
    assert_eq!(body["agentId"], organization.shop());
    assert_eq!(body["agentName"], "Agent shop");
    assert_eq!(body["usage"]["promptTokens"], 11);
    assert_eq!(body["usage"]["completionTokens"], 3);
    assert!(body["responseTime"].is_number() && body["createdAt"].is_string(), "{body}");
    assert!(body.get("uiSpec").is_none() && body.get("routingReason").is_none(), "{body}");
    let stored = client.message(body["messageId"].as_str().unwrap()).await;
    assert_eq!(stored["content"], body["content"]);
    assert_eq!(answer.header("x-model"), Some(organization.model.as_str()));
}

#[tokio::test]
async fn stream_false_in_the_body_wins_over_the_accept_header() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let path = format!("/api/public/agents/{}/chat", organization.shop());
    let body = json!({"message": "hi", "sessionId": "s", "stream": false});
    let request =
        organization.client().request(reqwest::Method::POST, &path).header("accept", "text/plain").json(&body);
    let reply = Reply::read(request.send().await.unwrap()).await;
    assert!(reply.required_header("content-type").starts_with("application/json"));
    assert_eq!(reply.into_answer().json()["content"], "ok");
}

#[tokio::test]
async fn events_tell_the_reply_from_start_to_done() {
    let service = SharedService::get().await;
    let text = "Grüße aus 東京, with many chunks";
    let organization = Organization::with_agent(&service, Script::says(text).chunk_chars(2)).await;
    let events = organization.client().chat_events(organization.shop(), "s", "hi").await;
    assert_eq!(events.status, 200);
    assert!(events.headers["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    assert_eq!(events.names(), ["start", "delta", "done"]);
    assert_eq!(events.text(), text);
    let start = events.only("start");
    assert_eq!(start["agentId"], organization.shop());
    assert_eq!(start["model"], organization.model);
    assert!(start["generation"].is_number(), "{start}");
    assert_eq!(start["messageId"], events.headers["x-message-id"].to_str().unwrap());
    assert_eq!(start["conversationId"], events.headers["x-conversation-id"].to_str().unwrap());
    let done = events.only("done");
    assert_eq!(done["status"], "completed");
    assert_eq!(done["finishReason"], "stop");
    assert_eq!(done["length"], text.len());
    let last_delta = events.events.iter().rev().find(|(name, ..)| name == "delta").unwrap();
    assert_eq!(last_delta.1, format!("{}.{}", start["generation"], text.len()));
    assert!(events.ended_cleanly);
}

#[tokio::test]
async fn a_failure_ends_an_event_stream_cleanly_with_an_error_event() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("half a rep").ends(End::Cut)).await;
    let events = organization.client().chat_events(organization.shop(), "s", "hi").await;
    assert_eq!(events.names().last(), Some(&"error"), "{:?}", events.events);
    assert_eq!(events.only("error")["code"], "MODEL_ERROR");
    assert!(events.ended_cleanly);
}

#[tokio::test]
async fn who_does_not_wait_gets_202_and_finds_the_reply_later() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("done in the background")).await;
    let client = organization.client();
    let path = format!("/api/public/agents/{}/chat", organization.shop());
    let body = json!({"message": "hi", "sessionId": "s"});
    let request = client.request(reqwest::Method::POST, &path).header("prefer", "respond-async").json(&body);
    let reply = Reply::read(request.send().await.unwrap()).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    assert_eq!(reply.header("preference-applied"), Some("respond-async"));
    let id = reply.required_header("x-message-id");
    assert_eq!(reply.required_header("location"), format!("/api/public/messages/{id}"));
    let body = reply.into_answer().json();
    assert_eq!((body["messageId"].as_str(), body["status"].as_str()), (Some(id.as_str()), Some("queued")));
    let stored = eventually("the reply is completed", PATIENCE, async || {
        let message = client.message(&id).await;
        assert!(message["status"].is_string(), "it is known from the first moment on: {message}");
        (message["status"] == "completed").then_some(message)
    })
    .await;
    assert_eq!(stored["content"], "done in the background");
}
