//! Following a running reply in the admin API, and the timeline of a finished one.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Client, Events, Organization, OrganizationDocument, PATIENCE, Script, eventually, shop_with,
};

async fn transcript(admin: &Client, organization: &Organization, messages: u64) -> Value {
    let listed = admin
        .get(&organization.admin_path("/conversations"))
        .await
        .json();
    let path = organization.admin_path(&format!(
        "/conversations/{}",
        listed["items"][0]["id"].as_str().unwrap()
    ));
    eventually("the messages are there", PATIENCE, async || {
        let transcript = admin.get(&path).await.json();
        (transcript["messages"]["total"] == messages).then_some(transcript)
    })
    .await
}

#[tokio::test]
async fn running_reply_is_followed_to_its_end_on_any_ingress() {
    let script = Script::counts(40, Duration::from_millis(50));
    let organization = shop_with(script.clone()).await;
    let service = organization.service();
    let (reply, response) = organization.begin_chat("s", "go", 12).await;
    let running = transcript(&service.admin(), &organization, 1).await;
    let message = running["activeMessageId"].as_str().unwrap();
    let path = format!(
        "/conversations/{}/messages/{message}/stream",
        running["id"].as_str().unwrap()
    );
    let url = service.admin_urls().pop().unwrap();
    let admin = Client::new(&url).with_key(crate::support::ADMIN_TOKEN);
    let following = admin
        .request(Method::GET, &organization.admin_path(&path))
        .send()
        .await
        .unwrap();
    let (reply, events) = tokio::join!(reply.continue_reading(response), Events::read(following));
    assert_eq!(reply.complete(), script.text);
    assert_eq!(events.text(), script.text);
    assert_eq!(events.only("done")["status"], "completed");
    let elsewhere = path.replace(
        running["id"].as_str().unwrap(),
        &format!("conv_{}", "0".repeat(26)),
    );
    admin
        .get(&organization.admin_path(&elsewhere))
        .await
        .assert_problem(404, Some("NOT_FOUND"));
}

#[tokio::test]
async fn reply_timeline_lists_its_steps_in_order() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team(
            "front",
            json!({"routing": "round-robin", "members": [{"agent": "shop"}]}),
        )
        .apply_to_shared()
        .await;
    // The model is slow, so that the first token arrives well after the request.
    organization.script(Script::says("one two three").paced(Duration::from_millis(200)));
    organization.team_chat("s", "hi").await.complete();
    let transcript = transcript(&organization.service().admin(), &organization, 2).await;
    let reply = &transcript["messages"]["items"][1];
    let timeline = reply["timeline"].as_array().unwrap();
    let steps: Vec<&str> = timeline
        .iter()
        .map(|step| step["step"].as_str().unwrap())
        .collect();
    assert_eq!(
        steps,
        [
            "accepted",
            "routed",
            "queued",
            "claimed",
            "asked",
            "firstText",
            "done"
        ],
        "{reply}"
    );
    let ms: Vec<u64> = timeline
        .iter()
        .map(|step| step["ms"].as_u64().unwrap())
        .collect();
    assert_eq!(
        (ms[0], ms[6]),
        (0, reply["responseTime"].as_u64().unwrap()),
        "{reply}"
    );
    assert!(ms.is_sorted(), "{reply}");
    // A busy machine notices the first text late, so that both pauses are measured from the
    // request.
    assert!(ms[5] - ms[4] >= 200 && ms[6] - ms[4] >= 400, "{reply}");
}

#[tokio::test]
async fn unanswered_message_shows_the_reason() {
    let organization = shop_with(Script::refuses(400)).await;
    let answer = organization.chat_json("s", "hi").await;
    answer.assert_problem(502, Some("MODEL_ERROR"));
    let transcript = transcript(&organization.service().admin(), &organization, 1).await;
    let question = &transcript["messages"]["items"][0];
    let unanswered = &question["unanswered"];
    assert_eq!(
        (&unanswered["status"], &unanswered["failure"]),
        (&json!("failed"), &json!("model_error")),
        "{question}"
    );
}
