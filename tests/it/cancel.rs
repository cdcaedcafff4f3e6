//! Stopping a reply.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Organization, PATIENCE, Reply, Script, ScriptedModel, SharedService, eventually};

#[tokio::test]
async fn cancel_stops_the_model_within_a_second_and_keeps_the_text_so_far() {
    let service = SharedService::get().await;
    let script = Script::counts(200, Duration::from_millis(50));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let client = organization.client();
    let mut response = client.open_chat(organization.shop(), &json!({"message": "go", "sessionId": "s"})).await;
    let mut reply = Reply::begin(&response);
    reply.read_at_least(&mut response, 12).await;
    let message = reply.required_header("x-message-id");
    let asked = Instant::now();
    // Any ingress can do it, not only the one that streams.
    let answer = organization.client_at(service.public_urls().last().unwrap());
    let answer = answer.post(&format!("/api/public/messages/{message}/cancel"), &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    eventually("the model call stops", PATIENCE, async || {
        let open = ScriptedModel::get().requests(&organization.model).iter().any(|request| request.is_open());
        (!open).then_some(())
    })
    .await;
    // Half a second more than promised, for a machine that is busy with other tests.
    assert!(asked.elapsed() < Duration::from_millis(1_500), "{:?}", asked.elapsed());
    let reply = reply.continue_reading(response).await;
    assert!(!reply.ended_cleanly, "in text, everything but completed breaks the transfer");
    let stored = eventually("the reply is cancelled", PATIENCE, async || {
        let message = client.message(&message).await;
        (message["status"] == "cancelled").then_some(message)
    })
    .await;
    let content = stored["content"].as_str().unwrap();
    assert!(content.starts_with(&reply.text()) && script.text.starts_with(content) && content != script.text);
}

#[tokio::test]
async fn cancel_of_a_final_reply_changes_nothing_and_answers_with_it() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("done")).await;
    let client = organization.client();
    let reply = client.chat(organization.shop(), "s", "hi").await;
    reply.complete();
    let path = format!("/api/public/messages/{}/cancel", reply.required_header("x-message-id"));
    for _ in 0..2 {
        let answer = client.post(&path, &json!({})).await;
        assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("completed")));
    }
    let unknown = format!("/api/public/messages/msg_{}/cancel", "0".repeat(52));
    client.post(&unknown, &json!({})).await.assert_problem(404, Some("MESSAGE_NOT_FOUND"));
}

#[tokio::test]
async fn a_cancelled_reply_in_json_is_an_answer_and_not_an_error() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::counts(200, Duration::from_millis(50))).await;
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
        other.post(&format!("/api/public/messages/{message}/cancel"), &json!({})).await
    };
    let (answer, cancelled) = tokio::join!(waiting, cancelling);
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let body = answer.json();
    assert_eq!((&body["status"], &body["finishReason"]), (&json!("cancelled"), &json!("cancelled")));
}
