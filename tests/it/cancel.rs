//! Canceling a reply.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    Answer, Client, Events, OrganizationDocument, PATIENCE, Reply, SLACK, Script, eventually,
    shop_saying, shop_with,
};

#[tokio::test]
async fn cancel_stops_the_model_within_a_second_and_keeps_the_text() {
    let script = Script::counts(200, Duration::from_millis(50));
    let organization = shop_with(script.clone()).await;
    let client = organization.client();
    let (reply, response) = organization.begin_chat("s", "go", 12).await;
    let message = reply.required_header("x-message-id");
    let asked = Instant::now();
    // Any ingress can cancel, not only the streaming one.
    let answer = organization.client_at(organization.service().public_urls().last().unwrap());
    let answer = answer.cancel(&message).await;
    answer.assert_status(200);
    eventually("the model call stops", PATIENCE, async || {
        let open = organization
            .requests()
            .iter()
            .any(|request| request.is_open());
        (!open).then_some(())
    })
    .await;
    assert!(
        asked.elapsed() < Duration::from_secs(1) + SLACK,
        "{:?}",
        asked.elapsed()
    );
    let reply = reply.continue_reading(response).await;
    assert!(
        !reply.ended_cleanly,
        "in text, everything but completed breaks the transfer"
    );
    let stored = eventually("the reply is cancelled", PATIENCE, async || {
        let message = client.message(&message).await;
        (message["status"] == "cancelled").then_some(message)
    })
    .await;
    let content = stored["content"].as_str().unwrap();
    assert!(
        content.starts_with(&reply.text())
            && script.text.starts_with(content)
            && content != script.text
    );
}

#[tokio::test]
async fn cancel_of_a_final_reply_returns_it_unchanged() {
    let organization = shop_saying("done").await;
    let client = organization.client();
    let reply = organization.chat("s", "hi").await;
    reply.complete();
    let path = format!(
        "/api/public/messages/{}/cancel",
        reply.required_header("x-message-id")
    );
    for _ in 0..2 {
        let answer = client.post(&path, &json!({})).await;
        assert_eq!(
            (answer.status, &answer.json()["status"]),
            (200, &json!("completed"))
        );
    }
    for unknown in [&format!("msg_{}", "0".repeat(52)), "msg_x", "%20"] {
        client
            .cancel(unknown)
            .await
            .assert_problem(404, Some("MESSAGE_NOT_FOUND"));
    }
}

#[tokio::test]
async fn canceled_reply_is_a_success_in_json() {
    let organization = shop_with(Script::counts(200, Duration::from_millis(50))).await;
    let client = organization.client();
    let (agent, other) = (organization.shop().to_owned(), client.clone());
    let waiting = client.chat_json(&agent, "s", "go");
    let cancelling = async {
        let message = eventually("the reply is running", PATIENCE, async || {
            let path = format!("/api/public/agents/{agent}/conversations/s");
            let answer = other.get(&path).await;
            if answer.status != 200 {
                return None;
            }
            answer.json()["activeMessageId"].as_str().map(str::to_owned)
        })
        .await;
        other.cancel(&message).await
    };
    let (answer, cancelled) = tokio::join!(waiting, cancelling);
    cancelled.assert_status(200);
    answer.assert_status(200);
    let body = answer.json();
    assert_eq!(
        (&body["status"], &body["finishReason"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
}

#[tokio::test]
async fn queued_message_is_visible_and_canceled_without_a_model_call() {
    let (script, gate) = Script::says("first last").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let urls = organization.service().public_urls();
    let (client, other) = (
        organization.client_at(&urls[0]),
        organization.client_at(urls.last().unwrap()),
    );
    gate.open(1);
    let (running, response) = client.begin_chat(organization.shop(), "s", "go", 5).await;
    let waiting = accepted_later(&client, organization.shop()).await;
    assert_eq!(other.message(&waiting).await["status"], "queued");
    let path = format!("/api/public/messages/{waiting}/stream");
    let follow = client
        .request(reqwest::Method::GET, &path)
        .header("accept", "text/event-stream");
    let following = async { Events::read(follow.send().await.unwrap()).await };
    let (events, cancelled) = tokio::join!(following, other.cancel(&waiting));
    // All of this happens before its turn: the gate still holds the reply before it.
    assert_eq!(
        (cancelled.status, &cancelled.json()["status"]),
        (200, &json!("cancelled"))
    );
    assert_eq!(events.only("done")["status"], "cancelled");
    assert_eq!(client.message(&waiting).await["status"], "cancelled");
    gate.open(10);
    running.continue_reading(response).await.complete();
    let history = client.settled_history(organization.shop(), "s", 3).await;
    let roles: Vec<_> = history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(
        roles,
        ["user", "assistant", "user"],
        "it stands there without an answer"
    );
    assert_eq!(organization.requests().len(), 1);
}

#[tokio::test]
async fn agent_setting_cancels_replies_on_client_disconnect() {
    let organization = OrganizationDocument::new().shop(json!({"onDisconnect": "cancel"}));
    let organization = organization.apply_to_shared().await;
    for accept in ["text/plain", "text/event-stream"] {
        organization.script(Script::counts(200, Duration::from_millis(50)));
        let client = organization.client();
        let path = format!("/api/public/agents/{}/chat", organization.agent("shop"));
        let body = json!({"message": "go", "sessionId": accept});
        let request = client
            .request(reqwest::Method::POST, &path)
            .header("accept", accept)
            .json(&body);
        let mut response = request.send().await.unwrap();
        let mut reply = Reply::begin(&response);
        reply.read_at_least(&mut response, 200).await;
        let message = reply.required_header("x-message-id");
        drop(response);
        let stored = eventually("the reply is cancelled", PATIENCE, async || {
            let message = client.message(&message).await;
            (message["status"] == "cancelled").then_some(message)
        })
        .await;
        assert!(
            !stored["content"].as_str().unwrap().is_empty(),
            "the text so far is kept"
        );
    }
}

async fn accepted_later(client: &Client, agent: &str) -> String {
    let path = format!("/api/public/agents/{agent}/chat");
    let request = client
        .request(reqwest::Method::POST, &path)
        .header("prefer", "respond-async");
    let request = request.json(&json!({"message": "wait", "sessionId": "s"}));
    let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
    answer.assert_status(202);
    answer.json()["messageId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn text_reply_canceled_before_the_first_byte_is_a_conflict() {
    let organization = shop_with(Script::silent()).await;
    let (client, agent) = (organization.client(), organization.shop());
    let cancelling = async {
        let message = eventually("the reply is running", PATIENCE, async || {
            let answer = client
                .get(&format!("/api/public/agents/{agent}/conversations/s"))
                .await;
            let active = (answer.status == 200)
                .then(|| answer.json()["activeMessageId"].as_str().map(str::to_owned));
            active.flatten()
        })
        .await;
        client.cancel(&message).await
    };
    let (reply, cancelled) = tokio::join!(client.chat(agent, "s", "go"), cancelling);
    assert_eq!(
        (cancelled.status, &cancelled.json()["status"]),
        (200, &json!("cancelled"))
    );
    reply.into_answer().assert_problem(409, Some("CONFLICT"));
}

#[tokio::test]
async fn canceled_event_stream_ends_with_done() {
    let organization = shop_with(Script::counts(200, Duration::from_millis(50))).await;
    let client = organization.client();
    let path = organization.path("/chat");
    let body = json!({"message": "go", "sessionId": "s"});
    let request = client
        .request(reqwest::Method::POST, &path)
        .header("accept", "text/event-stream")
        .json(&body);
    let response = request.send().await.unwrap();
    let message = response.headers()["x-message-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let cancelling = async {
        eventually("the reply is running", PATIENCE, async || {
            (client.message(&message).await["content"].as_str()?.len() > 12).then_some(())
        })
        .await;
        client.cancel(&message).await
    };
    let (events, cancelled) = tokio::join!(Events::read(response), cancelling);
    cancelled.assert_status(200);
    assert_eq!(events.only("done")["status"], "cancelled");
    assert!(events.ended_cleanly && !events.text().is_empty());
}
