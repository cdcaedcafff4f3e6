//! Tests of deletions: nothing is left in store, relay or memory, and analytics receives an event.

use std::time::Duration;

use serde_json::json;
use switchboard_backends::store::ConversationReader;
use switchboard_schemas::reply_event::PatchOutcome;

use super::{finished, world::World};
use crate::testing::says;

#[tokio::test]
async fn deletion_leaves_no_text_and_publishes_one_event() {
    let mut world = World::new(vec![says("Hello").chunk_chars(3)], false).await;
    let job = world.job("hi");
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.logged_text(&job).await, "Hello");

    let deletion = world.deletion(&job);
    for _ in 0..2 {
        assert!(finished(&world.run_deletion(&deletion).await));
        assert_eq!(world.patch_answer().await, PatchOutcome::Applied);
    }
    assert_eq!(world.messages(&job).await, []);
    assert_eq!(
        (world.logged_text(&job).await, world.record(&job).await),
        (String::new(), None)
    );
    // The events with texts are gone, and so is the first of two equal events of the deletion.
    let event = &world.events(1).await[0];
    assert_eq!(
        (&event["type"], &event["deleted"]),
        (&json!("conversation.updated"), &json!(true))
    );
    assert_eq!(event["changes"]["visitorEmail"], json!(null));
}

#[tokio::test]
async fn deletion_reports_absence_and_survives_a_store_outage() {
    let mut world = World::new(vec![says("one")], false).await;
    let job = world.job("hi");
    assert!(finished(&world.run_deletion(&world.deletion(&job)).await));
    assert_eq!(world.patch_answer().await, PatchOutcome::NotFound);
    assert!(finished(&world.run(&job).await));
    world.store.faults.set_down_for(Duration::from_millis(300));
    assert!(finished(&world.run_deletion(&world.deletion(&job)).await));
    assert_eq!(
        world
            .store
            .inner()
            .history_state(&job.turn.org_id, &job.turn.conversation_id)
            .await
            .unwrap()
            .message_count,
        0
    );
}

#[tokio::test]
async fn deletion_works_without_the_relay() {
    let world = World::new(vec![says("one")], false).await;
    let job = world.job("hi");
    assert!(finished(&world.run(&job).await));
    world.relay.faults.set_down(true);
    assert!(finished(&world.run_deletion(&world.deletion(&job)).await));
    assert_eq!(world.messages(&job).await, []);
}

#[tokio::test]
async fn repeated_record_of_a_deleted_turn_is_not_answered_again() {
    for relay_is_down in [false, true] {
        let world = World::new(vec![says("one"), says("two")], false).await;
        let job = world.job("hi");
        assert!(finished(&world.run(&job).await));
        assert!(finished(&world.run_deletion(&world.deletion(&job)).await));
        world.lose_relay_data();
        world.relay.faults.set_down(relay_is_down);
        assert!(finished(&world.run_inherited(&job).await));
        world.relay.faults.set_down(false);
        assert_eq!(world.provider.bodies().len(), 1);
        assert_eq!(world.messages(&job).await, []);
        // The event of the deletion alone is left.
        assert_eq!(world.events(1).await[0]["deleted"], json!(true));
    }
}
