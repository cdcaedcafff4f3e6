//! Section "Message".

use serde_json::Value;

use super::conversation::iso_8601;
use crate::support::shop_saying;

async fn two_turns() -> Vec<Value> {
    let organization = shop_saying("three short words").await;
    for message in ["one", "two"] {
        organization.chat("s", message).await.complete();
    }
    organization.history("s").await["messages"]
        .as_array()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn message_has_a_unique_id() {
    let messages = two_turns().await;
    let mut ids: Vec<_> = messages
        .iter()
        .map(|message| message["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[tokio::test]
async fn role_is_user_or_assistant() {
    let roles: Vec<_> = two_turns()
        .await
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
}

#[tokio::test]
async fn content_is_the_text_of_the_message() {
    let contents: Vec<_> = two_turns()
        .await
        .iter()
        .map(|message| message["content"].clone())
        .collect();
    assert_eq!(
        contents,
        ["one", "three short words", "two", "three short words"]
    );
}

#[tokio::test]
async fn timestamp_is_iso_8601() {
    let times: Vec<_> = two_turns()
        .await
        .iter()
        .map(|message| iso_8601(&message["timestamp"]))
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test]
async fn tokens_is_a_number_on_assistant_messages_only() {
    for message in two_turns().await {
        let expected = if message["role"] == "assistant" {
            Some(3)
        } else {
            None
        };
        assert_eq!(message["tokens"].as_u64(), expected, "{message}");
    }
}

#[tokio::test]
async fn response_time_is_in_milliseconds_on_assistant_messages_only() {
    for message in two_turns().await {
        assert_eq!(
            message["responseTime"].is_number(),
            message["role"] == "assistant",
            "{message}"
        );
        assert!(
            message["responseTime"]
                .as_u64()
                .is_none_or(|milliseconds| milliseconds < 30_000),
            "{message}"
        );
    }
}
