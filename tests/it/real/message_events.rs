//! The topic for analytics holds what clients saw.

use serde_json::json;
use switchboard_schemas::{
    message_event::{Fact, MessageEvent},
    versioned::decode,
};

use super::kafka;
use crate::support::{Organization, PATIENCE, Script, SharedService, TestService, eventually};

async fn events_of(service: &TestService, conversation: &str, count: usize) -> Vec<MessageEvent> {
    let topic = kafka::topic(service, "chat.messages");
    eventually("the events are on the topic", PATIENCE, async || {
        let records = kafka::read_all(&topic);
        let ours = records.iter().filter(|record| record.key == conversation.as_bytes());
        let mut events: Vec<MessageEvent> = ours.map(|record| decode(&record.payload).unwrap()).collect();
        // At least once: a repeat has the same id.
        let mut seen = std::collections::HashSet::new();
        events.retain(|event| seen.insert(event.event_id.clone()));
        (events.len() >= count).then_some(events)
    })
    .await
}

#[tokio::test]
async fn each_message_is_on_the_topic_as_it_was_streamed_and_in_order() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("unused")).await;
    let client = organization.client();
    let mut expected = vec![];
    let mut conversation = String::new();
    for turn in 1..=3 {
        organization.script(Script::says(&format!("answer {turn} ☕ «ok»")).chunk_chars(1));
        let reply = client.chat(organization.shop(), "s", &format!("question {turn}")).await;
        conversation = reply.required_header("x-conversation-id");
        expected.push(format!("question {turn}"));
        expected.push(reply.complete());
    }
    let events = events_of(&service, &conversation, 6).await;
    let contents: Vec<_> = events.iter().map(content).collect();
    assert_eq!(contents, expected);
    for event in &events {
        assert_eq!(event.org_id.as_str(), organization.id);
        assert_eq!(event.agent_id.as_str(), organization.shop());
    }
}

#[tokio::test]
async fn a_rating_is_on_the_topic_behind_the_messages() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let client = organization.client();
    let reply = client.chat(organization.shop(), "s", "hi").await;
    reply.complete();
    let path = format!("/api/public/agents/{}/conversations/s", organization.shop());
    assert_eq!(client.patch(&path, &json!({"rating": 5, "metadata": {"plan": "pro"}})).await.status, 200);
    let events = events_of(&service, &reply.required_header("x-conversation-id"), 3).await;
    let Fact::ConversationUpdated(update) = &events[2].fact else { panic!("{:?}", events[2]) };
    assert_eq!(update.changes["rating"], 5);
}

fn content(event: &MessageEvent) -> &str {
    match &event.fact {
        Fact::UserMessage(fact) => &fact.content,
        Fact::AssistantMessage(fact) => &fact.content,
        Fact::ConversationUpdated(_) => panic!("nobody changed anything"),
    }
}
