//! Processes that die: what was accepted is answered once, what was said is kept, and nothing is cut silently.

use std::time::Duration;

use serde_json::json;

use crate::support::{Answer, Organization, PATIENCE, Reply, Script, ScriptedModel, TestService, eventually};

/// Kills whatever runs models: the whole product when it is one process.
async fn kill_and_restart_workers(service: &TestService) {
    for name in service.inference_processes() {
        service.with_process(&name, |process| process.kill());
    }
    for name in service.inference_processes() {
        service.restart(&name).await;
    }
}

async fn wait_for_final(organization: &Organization, service: &TestService, message: &str) -> serde_json::Value {
    let client = organization.client_at(&service.public_urls()[0]);
    eventually("the reply is final", PATIENCE * 2, async || {
        let answer = client.try_get(&format!("/api/public/messages/{message}")).await?;
        let message = (answer.status == 200).then(|| answer.json())?;
        ["completed", "incomplete", "failed"].contains(&message["status"].as_str()?).then_some(message)
    })
    .await
}

#[tokio::test]
async fn history_and_configuration_survive_a_kill_of_every_process() {
    let service = TestService::start().await;
    let organization = Organization::with_agent(&service, Script::says("remembered ☕")).await;
    organization.client().chat(organization.shop(), "s", "before").await.complete();
    let names: Vec<_> = service.ops_urls().into_iter().map(|(name, _)| name).collect();
    for name in &names {
        service.with_process(name, |process| process.kill());
    }
    for name in &names {
        service.restart(name).await;
    }
    let client = organization.client();
    let history = client.history(organization.shop(), "s").await;
    assert_eq!(history["messages"][1]["content"], "remembered ☕");
    client.chat(organization.shop(), "s", "after").await.complete();
    let request = ScriptedModel::get().requests(&organization.model).pop().unwrap();
    let told: Vec<_> = request.messages.iter().skip(1).map(|(_, text)| text.as_str()).collect();
    assert_eq!(told, ["before", "remembered ☕", "after"]);
}

#[tokio::test]
async fn a_job_that_was_accepted_is_finished_after_a_kill() {
    let service = TestService::start().await;
    let organization = Organization::with_agent(&service, Script::counts(30, Duration::from_millis(100))).await;
    let path = format!("/api/public/agents/{}/chat", organization.shop());
    let mut accepted = vec![];
    for number in 0..5 {
        let body = json!({"message": format!("job {number}"), "sessionId": format!("s{number}")});
        let request = organization.client().request(reqwest::Method::POST, &path);
        let request = request.header("prefer", "respond-async").json(&body);
        let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
        assert_eq!(answer.status, 202, "{}", answer.text);
        accepted.push(answer.json()["messageId"].as_str().unwrap().to_owned());
    }
    kill_and_restart_workers(&service).await;
    for (number, message) in accepted.iter().enumerate() {
        let message = wait_for_final(&organization, &service, message).await;
        // Where a word was out before the kill and its log lives on, that text is kept and never begun anew.
        let kept = message["status"] == "incomplete" && !message["content"].as_str().unwrap().is_empty();
        assert!(message["status"] == "completed" || kept, "{message}");
        let client = organization.client_at(&service.public_urls()[0]);
        let history = client.history(organization.shop(), &format!("s{number}")).await;
        assert_eq!(history["totalMessages"], 2, "no row twice");
    }
}

#[tokio::test]
async fn a_worker_killed_in_mid_reply_leaves_no_double_row_and_no_clean_end_with_missing_text() {
    let service = TestService::start().await;
    let script = Script::counts(60, Duration::from_millis(50));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let client = organization.client();
    let mut response = client.open_chat(organization.shop(), &json!({"message": "go", "sessionId": "s"})).await;
    let mut reply = Reply::begin(&response);
    reply.read_at_least(&mut response, 60).await;
    kill_and_restart_workers(&service).await;
    let reply = reply.continue_reading(response).await;
    let stored = wait_for_final(&organization, &service, &reply.required_header("x-message-id")).await;
    let content = stored["content"].as_str().unwrap();
    if reply.ended_cleanly {
        assert_eq!(reply.text(), content, "a clean end means complete and stored");
        assert_eq!(stored["status"], "completed");
    }
    let client = organization.client_at(&service.public_urls()[0]);
    let history = client.history(organization.shop(), "s").await;
    assert_eq!(history["totalMessages"], 2, "one question, one answer: {history}");
    assert_eq!(history["messages"][1]["content"], content);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_finishes_open_replies_and_exits_with_0() {
    let service = TestService::start().await;
    let script = Script::counts(30, Duration::from_millis(80));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let client = organization.client();
    let mut response = client.open_chat(organization.shop(), &json!({"message": "go", "sessionId": "s"})).await;
    let mut reply = Reply::begin(&response);
    reply.read_at_least(&mut response, 12).await;
    let names: Vec<_> = service.ops_urls().into_iter().map(|(name, _)| name).collect();
    for name in &names {
        service.with_process(name, |process| process.signal("TERM"));
    }
    let reply = reply.continue_reading(response).await;
    assert_eq!(reply.complete(), script.text);
    for name in &names {
        let drain = PATIENCE + Duration::from_secs(10);
        let status = tokio::task::block_in_place(|| service.with_process(name, |process| process.wait(drain)));
        assert_eq!(status.code(), Some(0), "{name}: {status}");
    }
}
