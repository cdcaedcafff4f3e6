//! Reading the history of a conversation.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, Organization, Script, send, shop_saying, shop_with};

async fn three_turns() -> (Organization, Client) {
    let organization = shop_saying("unused").await;
    let client = organization.client();
    for turn in 1..=3 {
        organization.script(Script::says(&format!("answer {turn}")));
        organization
            .chat("paged", &format!("question {turn}"))
            .await
            .complete();
    }
    (organization, client)
}

fn contents(conversation: &Value) -> Vec<&str> {
    conversation["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn limit_and_offset_select_a_page_with_lenient_defaults() {
    let (organization, client) = three_turns().await;
    // Query, effective limit and offset, returned messages, and more to come.
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
        let path = organization.path(&format!("/conversations/paged{query}"));
        let answer = client.get(&path).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text);
        let page = answer.json();
        assert_eq!(page["limit"], limit, "{query}");
        assert_eq!(page["offset"], offset, "{query}");
        assert_eq!(page["messageCount"], returned, "{query}");
        assert_eq!(
            page["messages"].as_array().unwrap().len(),
            returned,
            "{query}"
        );
        assert_eq!(page["totalMessages"], 6, "{query}");
        assert_eq!(page["hasMore"], more, "{query}");
    }
}

#[tokio::test]
async fn joined_pages_are_the_whole_conversation() {
    let (organization, client) = three_turns().await;
    let whole = client.history(organization.shop(), "paged").await;
    let mut joined = vec![];
    for offset in 0..6 {
        let path = organization.path(&format!("/conversations/paged?limit=1&offset={offset}"));
        joined.extend(
            client.get(&path).await.json()["messages"]
                .as_array()
                .unwrap()
                .clone(),
        );
    }
    assert_eq!(Value::Array(joined), whole["messages"]);
}

#[tokio::test]
async fn conversation_of_an_inactive_agent_is_readable_and_patchable() {
    let (organization, client) = three_turns().await;
    let document = organization.changed_agent("shop", json!({"status": "inactive"}));
    organization
        .service()
        .apply(&document)
        .await
        .assert_status(200);
    crate::support::eventually(
        "the agent is inactive",
        crate::support::PATIENCE,
        async || {
            (client.chat(organization.shop(), "other", "hi").await.status == 403).then_some(())
        },
    )
    .await;
    assert_eq!(
        client.history(organization.shop(), "paged").await["messageCount"],
        6
    );
    let path = organization.path("/conversations/paged");
    assert_eq!(client.patch(&path, &json!({"rating": 4})).await.status, 200);
}

#[tokio::test]
async fn running_reply_is_named_and_listed_only_once_final() {
    let organization = shop_with(Script::counts(30, Duration::from_millis(100))).await;
    let client = organization.client();
    let (reply, response) = organization.begin_chat("s", "first", 6).await;
    let path = organization.path("/chat");
    let waiting = client
        .request(Method::POST, &path)
        .header("prefer", "respond-async");
    assert_eq!(
        send(waiting.json(&json!({"message": "second", "sessionId": "s"})))
            .await
            .status,
        202
    );
    let running = organization.history("s").await;
    assert_eq!(
        running["activeMessageId"],
        reply.required_header("x-message-id")
    );
    assert_eq!(
        contents(&running),
        ["first"],
        "neither a reply in the making nor a message that waits"
    );
    reply.continue_reading(response).await.complete();
    let after = organization.settled_history("s", 4).await;
    assert_eq!(after["messages"][2]["content"], "second");
}

#[tokio::test]
async fn failed_turn_keeps_only_its_user_message() {
    let organization = shop_with(Script::refuses(400)).await;
    assert_eq!(organization.chat("s", "unanswered").await.status, 502);
    organization.script(Script::says("answer"));
    organization.chat("s", "answered").await.complete();
    let history = organization.history("s").await;
    assert_eq!(contents(&history), ["unanswered", "answered", "answer"]);
}

#[tokio::test]
async fn first_repeated_query_parameter_wins() {
    let organization = shop_saying("ok").await;
    let client = organization.client();
    let path = organization.path("");
    organization.chat("s", "hi").await.complete();
    for (query, limit, offset) in [
        ("limit=1&limit=2", 1, 0),
        ("offset=1&offset=0", 50, 1),
        ("limit=99999999999999999999999", 100, 0),
        (
            "offset=1000000000000000000",
            50,
            1_000_000_000_000_000_000_u64,
        ),
        ("limit=%31", 1, 0),
        ("limit=+1", 50, 0),
        ("limit=1e1", 50, 0),
        ("limit[]=1", 50, 0),
        ("&&limit=2&", 2, 0),
        ("=&limit", 50, 0),
    ] {
        let answer = client.get(&format!("{path}/conversations/s?{query}")).await;
        let page = answer.json();
        assert_eq!(
            (answer.status, &page["limit"], &page["offset"]),
            (200, &json!(limit), &json!(offset)),
            "{query}"
        );
    }
}
