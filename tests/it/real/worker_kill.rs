//! Workers that are killed while they speak.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use crate::support::{
    Answer, Organization, OrganizationDocument, PATIENCE, Reply, Script, ScriptedModel, TestService, eventually,
};

const CHATS: usize = 12;

/// Opens chats, waits until each has text, kills one of the two inference workers, and reads on.
async fn kill_one_worker_in_mid_reply(service: &TestService, organization: &Organization) -> Vec<Reply> {
    let urls = service.public_urls();
    let mut open = vec![];
    for number in 0..CHATS {
        let client = organization.client_at(&urls[number % urls.len()]);
        let body = json!({"message": "go", "sessionId": format!("s{number}")});
        open.push(client.open_chat(organization.shop(), &body).await);
    }
    let mut replies = vec![];
    for mut response in open {
        let mut reply = Reply::begin(&response);
        reply.read_at_least(&mut response, 30).await;
        replies.push((reply, response));
    }
    service.with_process("inference-1", |process| process.kill());
    join_all(replies.into_iter().map(|(reply, response)| reply.continue_reading(response))).await
}

async fn assert_stored_once(organization: &Organization, number: usize, reply: &Reply) {
    let client = organization.client();
    let message = reply.required_header("x-message-id");
    let stored = eventually("the reply is final", PATIENCE, async || {
        let message = client.message(&message).await;
        ["completed", "incomplete", "failed"].contains(&message["status"].as_str()?).then_some(message)
    })
    .await;
    let content = stored["content"].as_str().unwrap();
    if reply.ended_cleanly {
        assert_eq!(reply.text(), content, "a clean end means complete and stored");
    }
    let history = client.history(organization.shop(), &format!("s{number}")).await;
    assert_eq!(history["totalMessages"], 2, "one question, one answer: {history}");
}

#[tokio::test]
async fn with_a_model_that_continues_a_prefix_the_same_transfer_goes_on() {
    let service = TestService::start().await;
    let script = Script::counts(120, Duration::from_millis(50)).continues_prefix();
    let organization = OrganizationDocument::new().continuing().agent("shop", json!({})).apply(&service).await;
    organization.script(script.clone());
    let replies = kill_one_worker_in_mid_reply(&service, &organization).await;
    for (number, reply) in replies.iter().enumerate() {
        assert_eq!(reply.complete(), script.text, "reply {number}");
        assert_stored_once(&organization, number, reply).await;
    }
    let calls = ScriptedModel::get().requests(&organization.model).len();
    assert!(calls > CHATS, "the killed worker had replies, which another one went on with");
}

#[tokio::test]
async fn with_a_model_that_cannot_continue_no_transfer_ends_cleanly_with_mixed_or_missing_text() {
    let service = TestService::start().await;
    let script = Script::counts(120, Duration::from_millis(50));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let replies = kill_one_worker_in_mid_reply(&service, &organization).await;
    for (number, reply) in replies.iter().enumerate() {
        if reply.ended_cleanly {
            assert_eq!(reply.text(), script.text, "reply {number}");
        } else {
            assert!(script.text.starts_with(&reply.text()), "reply {number} mixes texts");
        }
        assert_stored_once(&organization, number, reply).await;
    }
}

#[tokio::test]
async fn every_accepted_job_is_answered_once_although_workers_die_again_and_again() {
    const JOBS: usize = 60;
    let service = TestService::start().await;
    let script = Script::counts(10, Duration::from_millis(30));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let path = format!("/api/public/agents/{}/chat", organization.shop());
    let mut accepted = vec![];
    for number in 0..JOBS {
        let body = json!({"message": format!("job {number}"), "sessionId": format!("s{}", number % 20)});
        let request = organization.client().request(reqwest::Method::POST, &path);
        let request = request.header("prefer", "respond-async").json(&body);
        let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
        assert_eq!(answer.status, 202, "{}", answer.text);
        accepted.push(answer.json()["messageId"].as_str().unwrap().to_owned());
        if number % 20 == 19 {
            let victim = if number % 40 == 19 { "inference-1" } else { "inference-2" };
            service.restart(victim).await;
        }
    }
    for message in &accepted {
        let client = organization.client();
        let stored = eventually("the job is answered", PATIENCE * 2, async || {
            let message = client.message(message).await;
            (message["status"] == "completed").then_some(message)
        })
        .await;
        assert_eq!(stored["content"], script.text);
    }
    for session in 0..20 {
        let history = organization.client().history(organization.shop(), &format!("s{session}")).await;
        assert_eq!(history["totalMessages"], 2 * JOBS / 20, "{history}");
    }
}
