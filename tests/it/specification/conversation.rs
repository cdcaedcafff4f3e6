//! Section "Conversation".

use serde_json::Value;

use crate::support::{Script, ScriptedModel, shop_saying};

#[tokio::test]
async fn conversation_has_exactly_nine_typed_fields() {
    let organization = shop_saying("ok").await;
    let reply = organization.chat("s", "hi").await;
    let conversation = organization.history("s").await;
    assert_eq!(
        conversation["id"],
        reply.required_header("x-conversation-id")
    );
    assert_eq!(conversation["sessionId"], "s");
    assert_eq!(conversation["agentId"], organization.shop());
    assert_eq!(conversation["agentName"], "Agent shop");
    assert!(conversation["messages"].is_array(), "{conversation}");
    assert_eq!(conversation["messageCount"], 2);
    assert!(conversation["metadata"].is_object(), "{conversation}");
    let times = ["createdAt", "updatedAt"].map(|field| iso_8601(&conversation[field]));
    assert!(times[0] <= times[1], "{conversation}");
}

pub(super) fn iso_8601(value: &Value) -> chrono::DateTime<chrono::FixedOffset> {
    let text = value.as_str().unwrap_or_else(|| panic!("no text: {value}"));
    chrono::DateTime::parse_from_rfc3339(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test]
async fn same_session_and_agent_share_one_conversation() {
    let organization = shop_saying("ok").await;
    let first = organization
        .chat("s", "one")
        .await
        .required_header("x-conversation-id");
    let second = organization
        .chat("s", "two")
        .await
        .required_header("x-conversation-id");
    let other = organization
        .chat("t", "three")
        .await
        .required_header("x-conversation-id");
    assert_eq!(first, second);
    assert_ne!(first, other);
    assert_eq!(organization.history("s").await["messageCount"], 4);
}

#[tokio::test]
async fn agent_keeps_the_full_history_as_context() {
    let organization = shop_saying("unused").await;
    let (client, model) = (organization.client(), ScriptedModel::get());
    let mut expected = vec![];
    for turn in 1..=5 {
        organization.script(Script::says(&format!("answer {turn}")));
        client
            .chat(organization.shop(), "five", &format!("question {turn}"))
            .await
            .complete();
        let requests = model.requests(&organization.model);
        assert_eq!(requests.len(), turn, "one model call per chat");
        expected.push(("user".to_owned(), format!("question {turn}")));
        let messages: Vec<_> = requests[turn - 1]
            .messages
            .iter()
            .filter(|(role, _)| role != "system")
            .cloned()
            .collect();
        assert_eq!(messages, expected);
        expected.push(("assistant".to_owned(), format!("answer {turn}")));
    }
}
