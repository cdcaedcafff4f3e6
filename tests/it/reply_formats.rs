//! The three response formats of a reply, and asynchronous requests.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    End, Events, OrganizationDocument, PATIENCE, Reply, Script, eventually, shop_saying, shop_with,
};

#[tokio::test]
async fn json_contains_the_whole_reply_and_its_metadata() {
    let organization = shop_saying("three short words").await;
    let client = organization.client();
    let answer = organization.chat_json("s", "hi").await;
    answer.assert_status(200);
    let body = answer.json();
    assert_eq!(body["content"], "three short words");
    assert_eq!(body["status"], "completed");
    assert_eq!(body["finishReason"], "stop");
    assert_eq!(body["agentId"], organization.shop());
    assert_eq!(body["agentName"], "Agent shop");
    assert_eq!(body["usage"]["promptTokens"], 11);
    assert_eq!(body["usage"]["completionTokens"], 3);
    assert!(
        body["responseTime"].is_number() && body["createdAt"].is_string(),
        "{body}"
    );
    assert!(
        body.get("uiSpec").is_none() && body.get("routingReason").is_none(),
        "{body}"
    );
    let stored = client.message(body["messageId"].as_str().unwrap()).await;
    assert_eq!(stored["content"], body["content"]);
    assert_eq!(answer.header("x-model"), Some(organization.model.as_str()));
}

#[tokio::test]
async fn stream_false_in_the_body_overrides_the_accept_header() {
    let organization = shop_saying("ok").await;
    let path = organization.path("/chat");
    let body = json!({"message": "hi", "sessionId": "s", "stream": false});
    let request = organization
        .client()
        .request(reqwest::Method::POST, &path)
        .header("accept", "text/plain")
        .json(&body);
    let reply = Reply::read(request.send().await.unwrap()).await;
    assert!(
        reply
            .required_header("content-type")
            .starts_with("application/json")
    );
    assert_eq!(reply.into_answer().json()["content"], "ok");
}

#[tokio::test]
async fn events_carry_the_reply_from_start_to_done() {
    let text = "Grüße aus 東京, with many chunks";
    let organization = shop_with(Script::says(text).chunk_chars(2)).await;
    let events = organization.chat_events("s", "hi").await;
    assert_eq!(events.status, 200);
    assert!(
        events.headers["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/event-stream")
    );
    assert_eq!(events.names(), ["start", "delta", "done"]);
    assert_eq!(events.text(), text);
    let start = events.only("start");
    assert_eq!(start["agentId"], organization.shop());
    assert_eq!(start["model"], organization.model);
    assert!(start["generation"].is_number(), "{start}");
    assert_eq!(
        start["messageId"],
        events.headers["x-message-id"].to_str().unwrap()
    );
    assert_eq!(
        start["conversationId"],
        events.headers["x-conversation-id"].to_str().unwrap()
    );
    let done = events.only("done");
    assert_eq!(done["status"], "completed");
    assert_eq!(done["finishReason"], "stop");
    assert_eq!(done["length"], text.len());
    let last_delta = events
        .events
        .iter()
        .rev()
        .find(|(name, ..)| name == "delta")
        .unwrap();
    assert_eq!(
        last_delta.1,
        format!("{}.{}", start["generation"], text.len())
    );
    assert!(events.ended_cleanly);
}

#[tokio::test]
async fn failure_ends_an_event_stream_with_an_error_event() {
    let organization = shop_with(Script::says("half a rep").ends(End::Cut)).await;
    let events = organization.chat_events("s", "hi").await;
    assert_eq!(events.names().last(), Some(&"error"), "{:?}", events.events);
    let error = events.only("error");
    assert_eq!(
        (&error["code"], &error["status"]),
        (&json!("MODEL_ERROR"), &json!(502))
    );
    assert_eq!(
        error["requestId"],
        events.headers["x-request-id"].to_str().unwrap()
    );
    assert!(events.ended_cleanly);
}

#[tokio::test]
async fn asynchronous_request_gets_202_and_the_reply_later() {
    let organization = shop_saying("done in the background").await;
    let client = organization.client();
    let path = organization.path("/chat");
    let body = json!({"message": "hi", "sessionId": "s"});
    let request = client
        .request(reqwest::Method::POST, &path)
        .header("prefer", "respond-async")
        .json(&body);
    let reply = Reply::read(request.send().await.unwrap()).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    assert_eq!(reply.header("preference-applied"), Some("respond-async"));
    let id = reply.required_header("x-message-id");
    assert_eq!(
        reply.required_header("location"),
        format!("/api/public/messages/{id}")
    );
    let conversation = reply.required_header("x-conversation-id");
    let body = reply.into_answer().json();
    assert_eq!(body["conversationId"], conversation);
    assert_eq!(
        (body["messageId"].as_str(), body["status"].as_str()),
        (Some(id.as_str()), Some("queued"))
    );
    let stored = eventually("the reply is completed", PATIENCE, async || {
        let message = client.message(&id).await;
        assert!(
            message["status"].is_string(),
            "it is known from the first moment on: {message}"
        );
        (message["status"] == "completed").then_some(message)
    })
    .await;
    assert_eq!(stored["content"], "done in the background");
}

#[tokio::test]
async fn event_stream_starts_at_acceptance_and_sends_keepalives() {
    let organization = shop_with(Script::silent()).await;
    let path = organization.path("/chat");
    let body = json!({"message": "hi", "sessionId": "s"});
    let request = organization
        .client()
        .request(reqwest::Method::POST, &path)
        .header("accept", "text/event-stream");
    let response = request.json(&body).send().await.unwrap();
    assert_eq!(
        response.status(),
        200,
        "headers that waited for the model would say that it failed"
    );
    let headers = response.headers();
    assert!(
        headers.contains_key("x-message-id") && headers.contains_key("x-conversation-id"),
        "{headers:?}"
    );
    assert!(
        !headers.contains_key("x-model"),
        "what is not known yet is not sent: {headers:?}"
    );
    let stream = Reply::read(response).await;
    let comments: Vec<_> = stream
        .chunks
        .iter()
        .filter(|(_, chunk)| chunk.starts_with(b":"))
        .collect();
    let longest = comments
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .max()
        .expect("comments while nothing happens");
    assert!(longest < Duration::from_secs(13), "{longest:?}");
    assert!(
        stream.ended_cleanly && stream.text().contains("MODEL_TIMEOUT"),
        "{}",
        stream.text()
    );
}

#[tokio::test]
async fn team_reply_in_json_and_events_has_the_routing_reason() {
    let member =
        json!({"routing": "random", "members": [{"agent": "shop", "specialization": "all"}]});
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team("front", member)
        .apply_to_shared()
        .await;
    let path = organization.team_path();
    let ask = async |accept: &str| {
        let request = organization
            .client()
            .request(reqwest::Method::POST, &path)
            .header("accept", accept);
        request
            .json(&json!({"message": "hi", "sessionId": "s"}))
            .send()
            .await
            .unwrap()
    };
    let whole = Reply::read(ask("application/json").await)
        .await
        .into_answer()
        .json();
    let events = Events::read(ask("text/event-stream").await).await;
    for response in [&whole, events.only("start")] {
        assert_eq!(
            (&response["agentId"], &response["agentName"]),
            (&json!(organization.shop()), &json!("Agent shop"))
        );
        assert!(
            response["routingReason"]
                .as_str()
                .is_some_and(|reason| !reason.is_empty()),
            "{response}"
        );
    }
}

#[tokio::test]
async fn message_is_read_by_id_with_status_and_usage() {
    let organization = shop_with(Script::counts(30, Duration::from_millis(100))).await;
    let client = organization.client();
    let (reply, response) = organization.begin_chat("s", "hi", 12).await;
    let id = reply.required_header("x-message-id");
    let running = client.message(&id).await;
    assert_eq!(
        (&running["messageId"], &running["status"]),
        (&json!(id), &json!("in_progress"))
    );
    let text = reply.continue_reading(response).await.complete();
    assert!(
        text.starts_with(running["content"].as_str().unwrap()),
        "{running}"
    );
    let done = client.message(&id).await;
    assert_eq!(
        (&done["status"], &done["content"]),
        (&json!("completed"), &json!(text))
    );
    assert_eq!(done["usage"]["completionTokens"], 30, "{done}");
}
