//! Metadata that patches and messages change.

use serde_json::{Value, json};
use switchboard_backends::store::ConversationReader;
use switchboard_schemas::{reply_event::PatchOutcome, time::Timestamp};

use super::{finished, world::World};
use crate::testing::says;

#[tokio::test]
async fn metadata_patch_is_stored_announced_and_answered() {
    let mut world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    let patch = world.patch(&job);
    assert!(finished(&world.run_patch(&patch).await));
    assert_eq!(world.patch_answer().await, PatchOutcome::NotFound);

    world.run(&job).await;
    assert!(finished(&world.run_patch(&patch).await));
    assert_eq!(world.patch_answer().await, PatchOutcome::Applied);
    let events = world.events(3).await;
    assert_eq!(
        (&events[2]["type"], &events[2]["changes"]),
        (&json!("conversation.updated"), &json!({"rating": 5}))
    );
}

#[tokio::test]
async fn metadata_that_a_message_changes_is_announced_once() {
    let world = World::new(vec![says("Hello")], false).await;
    for (content, page) in [("hi", "/a"), ("again", "/a"), ("more", "/b")] {
        let mut job = world.job(content);
        job.turn.visitor.email = Some("ada@example.com".into());
        job.turn.metadata.insert("page".into(), page.into());
        assert!(finished(&world.run(&job).await));
    }
    let events = world.events(8).await;
    let changes: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event["type"].as_str().unwrap_or_default(),
                &event["changes"],
            )
        })
        .collect();
    let (user, reply) = (
        ("message.user", &Value::Null),
        ("message.assistant", &Value::Null),
    );
    let first = json!({"visitorEmail": "ada@example.com", "page": "/a"});
    let (first, last) = (
        ("conversation.updated", &first),
        ("conversation.updated", &json!({"page": "/b"})),
    );
    assert_eq!(
        changes,
        [user, first, reply, user, reply, user, last, reply]
    );
}

#[tokio::test]
async fn later_change_counts_although_its_clock_is_behind() {
    let world = World::new(vec![says("Hello")], false).await;
    let mut job = world.job("hi");
    let patch = world.patch(&job);
    job.turn.metadata.insert("rating".into(), 1.into());
    job.turn.accepted_at = Timestamp::from_micros(patch.accepted_at.micros() + 7_200_000_000);
    world.run(&job).await;
    assert!(finished(&world.run_patch(&patch).await));
    let mut later = world.job("again");
    later.turn.metadata.insert("plan".into(), "pro".into());
    world.run(&later).await;
    let (org, id) = (&job.turn.org_id, &job.turn.conversation_id);
    let conversation = world.store.inner().conversation(org, id).await.unwrap();
    let metadata = conversation.unwrap().metadata;
    assert_eq!(metadata["rating"], json!(5));
    assert_eq!(metadata["plan"], json!("pro"));
}
