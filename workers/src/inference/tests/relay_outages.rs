//! Tests of turns while the relay is unavailable, loses its state or grants the claim to another
//! worker.

use serde_json::json;

use super::{finished, world::World};
use crate::{
    job_loop::JobEnd,
    testing::{Act, Piece, complete, eventually},
};

#[tokio::test]
async fn reply_is_stored_and_announced_without_the_relay() {
    let world = World::new(vec![complete(&["Hello"])], false).await;
    let job = world.job("hi");
    world.relay.faults.set_down(true);
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.messages(&job).await[1].content, "Hello");
    assert_eq!(world.events(2).await[1]["type"], json!("message.assistant"));
}

#[tokio::test]
async fn inherited_job_waits_without_the_relay() {
    let world = World::new(vec![complete(&["Hello"])], false).await;
    let job = world.job("hi");
    world.relay.faults.set_down(true);
    assert!(matches!(
        world.run_inherited(&job).await,
        JobEnd::RetryAfter(_)
    ));
    assert!(world.messages(&job).await.is_empty());
    world.relay.faults.set_down(false);
    assert!(finished(&world.run_inherited(&job).await));
    assert_eq!(world.messages(&job).await[1].content, "Hello");
}

#[tokio::test]
async fn relay_that_lost_its_state_gets_the_whole_reply_again() {
    let world = World::new(
        vec![
            Act::Stream(vec![Piece::Text("Hel"), Piece::Hang]),
            complete(&["lo"]),
        ],
        true,
    )
    .await;
    let job = world.job("hi");
    let forget = async {
        eventually("text is in the log", async || {
            world.logged_text(&job).await == "Hel"
        })
        .await;
        world.lose_relay_data();
        eventually("it was written again", async || {
            world.logged_text(&job).await.starts_with("Hel")
        })
        .await;
    };
    let inference = world.patient_for(2_500);
    let (end, ()) = tokio::join!(World::run_on(&inference, &job), forget);
    assert!(finished(&end));
    assert_eq!(world.messages(&job).await[1].content, "Hello");
    assert!(world.has_settled_end(&job).await);
}

#[tokio::test]
async fn fenced_worker_writes_nothing_more() {
    let world = World::new(
        vec![Act::Stream(vec![Piece::Text("Hel"), Piece::Hang])],
        false,
    )
    .await;
    let job = world.job("hi");
    let overtake = async {
        eventually("text is in the log", async || {
            world.logged_text(&job).await == "Hel"
        })
        .await;
        world.fence_worker();
    };
    let inference = world.patient();
    let (end, ()) = tokio::join!(World::run_on(&inference, &job), overtake);
    assert!(matches!(end, JobEnd::RetryAfter(_)));
    assert!(world.record(&job).await.is_none());
}
