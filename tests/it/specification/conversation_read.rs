//! Section "5. GET /api/public/agents/{agentId}/conversations/{sessionId}".

use serde_json::Value;

use crate::support::{Endpoint, Endpoints, shop_saying};

/// Creates a conversation of three turns and reads it with this query.
async fn page(query: &str) -> Value {
    let organization = shop_saying("answer").await;
    let client = organization.client();
    for turn in 1..=3 {
        organization
            .chat("s", &format!("question {turn}"))
            .await
            .complete();
    }
    let answer = client
        .get(&organization.path(&format!("/conversations/s{query}")))
        .await;
    answer.assert_status(200);
    answer.json()
}

#[tokio::test]
async fn response_is_the_message_history_of_one_session() {
    let conversation = page("").await;
    let contents: Vec<_> = conversation["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(
        contents,
        [
            "question 1",
            "answer",
            "question 2",
            "answer",
            "question 3",
            "answer"
        ]
    );
    assert_eq!(conversation["sessionId"], "s");
}

#[tokio::test]
async fn limit_is_the_number_of_messages_to_return() {
    let page = page("?limit=4").await;
    assert_eq!(
        (
            page["messages"].as_array().unwrap().len(),
            &page["messageCount"]
        ),
        (4, &Value::from(4))
    );
}

#[tokio::test]
async fn offset_is_the_number_of_messages_to_skip() {
    let page = page("?offset=4").await;
    let contents: Vec<_> = page["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(contents, ["question 3", "answer"]);
}

#[tokio::test]
async fn limit_defaults_to_50_of_at_most_100_and_offset_to_0() {
    let organization = shop_saying("answer").await;
    let client = organization.client();
    for turn in 0..51 {
        organization
            .chat("s", &format!("question {turn}"))
            .await
            .complete();
    }
    let path = organization.path("/conversations/s");
    for (query, returned, first) in [
        ("", 50, 0),
        ("?limit=100", 100, 0),
        ("?offset=2", 50, 1),
        ("?limit=102", 100, 0),
    ] {
        let page = client.get(&format!("{path}{query}")).await.json();
        assert_eq!(
            page["messages"].as_array().unwrap().len(),
            returned,
            "{query}"
        );
        assert_eq!(
            page["messages"][0]["content"],
            format!("question {first}"),
            "{query}"
        );
    }
}

#[tokio::test]
async fn errors_are_the_six_listed_ones() {
    let endpoints = Endpoints::prepare().await;
    let listed = [
        (400, "INVALID_AGENT_ID"),
        (400, "INVALID_SESSION_ID"),
        (401, "MISSING_API_KEY"),
        (403, "AGENT_NOT_PUBLIC"),
        (404, "AGENT_NOT_FOUND"),
        (404, "CONVERSATION_NOT_FOUND"),
    ];
    endpoints
        .assert_errors(Endpoint::ConversationRead, &listed)
        .await;
}
