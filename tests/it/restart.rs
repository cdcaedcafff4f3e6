//! Process crashes and restarts: accepted messages are answered once, and no text is lost or cut
//! silently.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    Organization, OrganizationDocument, PATIENCE, Reply, Script, TestService, eventually,
};

#[tokio::test]
async fn history_and_configuration_survive_a_kill_of_every_process() {
    let service = TestService::start().await;
    let organization = Organization::with_agent(&service, Script::says("remembered ☕")).await;
    organization.chat("s", "before").await.complete();
    let names: Vec<_> = service
        .ops_urls()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    service.kill_and_restart(&names).await;
    let history = organization.history("s").await;
    assert_eq!(history["messages"][1]["content"], "remembered ☕");
    organization.chat("s", "after").await.complete();
    let request = organization.requests().pop().unwrap();
    assert_eq!(request.texts()[1..], ["before", "remembered ☕", "after"]);
}

#[tokio::test]
async fn queued_messages_are_answered_after_a_kill() {
    const WAITING: usize = 3;
    let service = TestService::start().await;
    // Long enough for the gauge of waiting jobs, which is updated every five seconds.
    let script = Script::counts(80, Duration::from_millis(100));
    let organization = OrganizationDocument::new()
        .continuing()
        .shop(json!({}))
        .apply(&service)
        .await;
    organization.script(script.clone().continues_prefix());
    let (client, agent) = (organization.client(), organization.shop());
    let mut running = client
        .open_chat(agent, &json!({"message": "first", "sessionId": "s"}))
        .await;
    Reply::begin(&running).read_at_least(&mut running, 6).await;
    // Their requests die with an embedded process, but their replies must not be lost.
    let path = format!("/api/public/agents/{agent}/chat");
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..WAITING {
        let body = json!({"message": format!("waiting {number}"), "sessionId": "s"});
        let request = client.request(reqwest::Method::POST, &path).json(&body);
        waiting.spawn(async move { request.send().await.map(drop) });
    }
    eventually("the others wait", PATIENCE, async || {
        let queued: f64 = service
            .metric("switchboard_jobs_queued")
            .await
            .iter()
            .map(|(_, value)| value)
            .sum();
        (queued >= WAITING as f64).then_some(())
    })
    .await;
    service.kill_and_restart_workers().await;
    let client = organization.client_at(&service.public_urls()[0]);
    let history = client.settled_history(agent, "s", 2 * (1 + WAITING)).await;
    assert_eq!(
        history["totalMessages"],
        2 * (1 + WAITING),
        "no row twice: {history}"
    );
    for answer in history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .step_by(2)
    {
        assert_eq!(
            (&answer["status"], answer["content"].as_str()),
            (&json!("completed"), Some(&script.text[..]))
        );
    }
}

#[tokio::test]
async fn worker_kill_leaves_no_duplicate_row_or_silent_truncation() {
    let service = TestService::start().await;
    let script = Script::counts(60, Duration::from_millis(50));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let client = organization.client();
    let (reply, response) = client.begin_chat(organization.shop(), "s", "go", 60).await;
    service.kill_and_restart_workers().await;
    let reply = reply.continue_reading(response).await;
    let client = organization.client_at(&service.public_urls()[0]);
    let history = client.settled_history(organization.shop(), "s", 2).await;
    assert_eq!(
        history["totalMessages"], 2,
        "one question, one answer: {history}"
    );
    let stored = &history["messages"][1];
    assert_eq!(stored["id"], reply.required_header("x-message-id"));
    if reply.ended_cleanly {
        assert_eq!(
            stored["content"],
            reply.text(),
            "a clean end means complete and stored"
        );
        assert_eq!(stored["status"], "completed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_finishes_open_replies_and_exits_with_0() {
    let service = TestService::start().await;
    let script = Script::counts(30, Duration::from_millis(80));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let (reply, response) = organization.begin_chat("s", "go", 12).await;
    let names: Vec<_> = service
        .ops_urls()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    for name in &names {
        service.with_process(name, |process| process.signal("TERM"));
    }
    let reply = reply.continue_reading(response).await;
    assert_eq!(reply.complete(), script.text);
    for name in &names {
        let drain = PATIENCE + Duration::from_secs(10);
        let status = tokio::task::block_in_place(|| {
            service.with_process(name, |process| process.wait(drain))
        });
        assert_eq!(status.code(), Some(0), "{name}: {status}");
    }
}
