//! Tests of conversations and configuration through the routes, over embedded backends.

use serde_json::{Value, json};
use switchboard_schemas::{
    conversation::{Conversation, Message, MessageAuthor},
    conversation_job::ConversationJob,
    ids::MessageId,
    reply_event::{IngressEnvelope, PatchOutcome},
    time::Timestamp,
    topics::Topic,
};

use crate::testing::{Answer, World, org_id};

const PATH: &str = "/conversations/s";

async fn put_messages(world: &World, count: u64) {
    let id = world.put_conversation(org_id()).await;
    let message = |position| Message {
        id: MessageId::new_in(&id),
        position,
        content: format!("message {position}"),
        attachments: Vec::new(),
        created_at: Timestamp::from_micros(1_700_000_000_000_000),
        author: MessageAuthor::User,
    };
    for position in 0..count {
        world.store_message(&id, &message(position)).await;
    }
    world
        .edit_conversation(&id, |conversation| conversation.message_count = count)
        .await;
}

/// Sends a change that the owning worker answers with `outcome`.
async fn patch(world: &World, body: Value, outcome: PatchOutcome) -> Answer {
    let path = World::agent_path(PATH);
    let request = world.send("PATCH", &path, body.to_string());
    let worker = async {
        world.published().await;
        let ConversationJob::Patch(job) = world.jobs(Topic::Jobs).remove(0) else {
            panic!("a patch job is expected")
        };
        world.push(IngressEnvelope::Patch(job.event_id.clone(), outcome));
    };
    tokio::join!(request, worker).0
}

#[tokio::test]
async fn page_read_while_a_reply_ends_lists_it_or_names_it() {
    let world = World::new().await;
    put_messages(&world, 2).await;
    // The turn ends after its conversation was read and before its messages are.
    let is_running = |conversation: Option<Conversation>| {
        conversation.map(|conversation| Conversation {
            message_count: 1,
            active_message_id: Some(MessageId::new_in(&conversation.id).reply()),
            ..conversation
        })
    };
    world.store.faults.alter("conversation", is_running);
    let page = world.send("GET", &World::agent_path(PATH), "").await.json();
    assert!(page["activeMessageId"].is_string());
    assert_eq!(
        (&page["messageCount"], &page["totalMessages"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(page["messages"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn concurrently_deleted_conversation_is_not_found() {
    let world = World::new().await;
    world.put_conversation(org_id()).await;
    let answer = patch(&world, json!({ "rating": 4 }), PatchOutcome::NotFound).await;
    assert_eq!(answer.problem().1, "CONVERSATION_NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn applied_change_is_found_in_the_store_without_the_relay() {
    let world = World::new().await;
    let id = world.put_conversation(org_id()).await;
    world.relay.faults.set_down(true);
    let path = World::agent_path(PATH);
    let request = world.send("PATCH", &path, r#"{"rating":4}"#);
    let worker = async {
        world.published().await;
        world
            .edit_conversation(&id, |conversation| {
                conversation.metadata.insert("rating".into(), json!(4));
            })
            .await;
    };
    assert_eq!(tokio::join!(request, worker).0.status, 200);
    let answer = world.send("PATCH", &path, r#"{"rating":1}"#).await;
    assert_eq!(answer.problem(), (503, "UNAVAILABLE".to_owned()));
}
