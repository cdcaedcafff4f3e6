//! Reading a conversation.

use serde_json::{Value, json};

use crate::support::{Client, Organization, Script, SharedService};

async fn three_turns(service: &SharedService) -> (Organization, Client) {
    let organization = Organization::with_agent(service, Script::says("unused")).await;
    let client = organization.client();
    for turn in 1..=3 {
        organization.script(Script::says(&format!("answer {turn}")));
        client.chat(organization.shop(), "paged", &format!("question {turn}")).await.complete();
    }
    (organization, client)
}

fn contents(conversation: &Value) -> Vec<&str> {
    conversation["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_conversation_has_the_fields_of_the_specification() {
    let service = SharedService::get().await;
    let (organization, client) = three_turns(&service).await;
    let conversation = client.history(organization.shop(), "paged").await;
    assert!(conversation["id"].as_str().unwrap().starts_with("conv_"));
    assert_eq!(conversation["sessionId"], "paged");
    assert_eq!(conversation["agentId"], organization.shop());
    assert_eq!(conversation["agentName"], "Agent shop");
    assert_eq!(conversation["messageCount"], 6);
    assert!(conversation["metadata"].is_object());
    for field in ["createdAt", "updatedAt"] {
        let text = conversation[field].as_str().unwrap();
        assert!(chrono::DateTime::parse_from_rfc3339(text).is_ok(), "{field}: {text}");
    }
    assert!(conversation.get("activeMessageId").is_none_or(Value::is_null), "{conversation}");
}

#[tokio::test]
async fn messages_stand_oldest_first_with_their_fields() {
    let service = SharedService::get().await;
    let (organization, client) = three_turns(&service).await;
    let conversation = client.history(organization.shop(), "paged").await;
    assert_eq!(contents(&conversation), ["question 1", "answer 1", "question 2", "answer 2", "question 3", "answer 3"]);
    let mut last = String::new();
    for (number, message) in conversation["messages"].as_array().unwrap().iter().enumerate() {
        assert!(message["id"].as_str().unwrap().starts_with("msg_"));
        let assistant = number % 2 == 1;
        assert_eq!(message["role"], if assistant { "assistant" } else { "user" });
        assert_eq!(message["tokens"].is_number(), assistant, "{message}");
        assert_eq!(message["responseTime"].is_number(), assistant, "{message}");
        let timestamp = message["timestamp"].as_str().unwrap().to_owned();
        assert!(timestamp >= last, "{timestamp} after {last}");
        last = timestamp;
    }
}

#[tokio::test]
async fn limit_and_offset_choose_a_page_and_bad_ones_become_the_defaults() {
    let service = SharedService::get().await;
    let (organization, client) = three_turns(&service).await;
    // Query, limit and offset in force, messages returned, whether there are more.
    let table = [
        ("", 50, 0, 6, false),
        ("?limit=2", 2, 0, 2, true),
        ("?limit=2&offset=2", 2, 2, 2, true),
        ("?limit=2&offset=4", 2, 4, 2, false),
        ("?limit=4&offset=5", 4, 5, 1, false),
        ("?offset=6", 50, 6, 0, false),
        ("?offset=1000000", 50, 1_000_000, 0, false),
        ("?limit=100", 100, 0, 6, false),
        ("?limit=101", 100, 0, 6, false),
        ("?limit=1000000000", 100, 0, 6, false),
        ("?limit=0", 50, 0, 6, false),
        ("?limit=-1", 50, 0, 6, false),
        ("?limit=abc", 50, 0, 6, false),
        ("?limit=10.5", 50, 0, 6, false),
        ("?limit=", 50, 0, 6, false),
        ("?offset=-1", 50, 0, 6, false),
        ("?offset=abc", 50, 0, 6, false),
        ("?offset=1.5", 50, 0, 6, false),
    ];
    for (query, limit, offset, returned, more) in table {
        let path = format!("/api/public/agents/{}/conversations/paged{query}", organization.shop());
        let answer = client.get(&path).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text);
        let page = answer.json();
        assert_eq!(page["limit"], limit, "{query}");
        assert_eq!(page["offset"], offset, "{query}");
        assert_eq!(page["messageCount"], returned, "{query}");
        assert_eq!(page["messages"].as_array().unwrap().len(), returned, "{query}");
        assert_eq!(page["totalMessages"], 6, "{query}");
        assert_eq!(page["hasMore"], more, "{query}");
    }
}

#[tokio::test]
async fn pages_joined_are_the_whole_conversation() {
    let service = SharedService::get().await;
    let (organization, client) = three_turns(&service).await;
    let whole = client.history(organization.shop(), "paged").await;
    let mut joined = vec![];
    for offset in 0..6 {
        let path = format!("/api/public/agents/{}/conversations/paged?limit=1&offset={offset}", organization.shop());
        joined.extend(client.get(&path).await.json()["messages"].as_array().unwrap().clone());
    }
    assert_eq!(Value::Array(joined), whole["messages"]);
}

#[tokio::test]
async fn a_session_without_messages_is_not_found() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let path = format!("/api/public/agents/{}/conversations/never", organization.shop());
    organization.client().get(&path).await.assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    let answer = organization.client().patch(&path, &json!({"rating": 5})).await;
    answer.assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
}

#[tokio::test]
async fn a_conversation_of_an_inactive_agent_can_still_be_read_and_patched() {
    let service = SharedService::get().await;
    let (organization, client) = three_turns(&service).await;
    let document = organization.changed_agent("shop", json!({"status": "inactive"}));
    assert_eq!(service.admin().post("/api/admin/apply", &document).await.status, 200);
    crate::support::eventually("the agent is inactive", crate::support::PATIENCE, async || {
        (client.chat(organization.shop(), "other", "hi").await.status == 403).then_some(())
    })
    .await;
    assert_eq!(client.history(organization.shop(), "paged").await["messageCount"], 6);
    let path = format!("/api/public/agents/{}/conversations/paged", organization.shop());
    assert_eq!(client.patch(&path, &json!({"rating": 4})).await.status, 200);
}
