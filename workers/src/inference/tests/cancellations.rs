//! Tests of cancellations before and during the model call.

use std::time::Duration;

use switchboard_backends::{
    relay::{CancelOutcome, ClaimStore, QueueSlots},
    testing::SLACK,
};
use switchboard_schemas::{
    conversation::{FinishReason, ReplyStatus},
    conversation_job::ReplyJob,
    reply_event::{Frame, ReplyEnd},
};
use tokio::time::Instant;

use super::{finished, world::World};
use crate::testing::{Raw, Script, eventually, says};

/// Promised time from a cancellation to the end of the model call.
const CANCELLED_WITHIN: Duration = Duration::from_secs(1);

#[tokio::test]
async fn reply_cancelled_before_its_turn_calls_no_model() {
    for (is_queued, expected) in [
        (true, CancelOutcome::Ended),
        (false, CancelOutcome::Requested),
    ] {
        let world = World::new(vec![says("Hello")], false).await;
        let job = world.job("hi");
        if is_queued {
            let reply = job.turn.reply_id();
            assert!(world.relay().reserve_slot(&reply, 1).await.unwrap());
        }
        assert_eq!(cancel(&world, &job).await, expected);
        assert!(finished(&world.run(&job).await));
        assert!(world.provider.bodies().is_empty());
        assert_eq!(
            world.record(&job).await.unwrap().end.status,
            ReplyStatus::Cancelled
        );
        assert_eq!(
            world.messages(&job).await.len(),
            1,
            "the question has no reply"
        );
    }
}

async fn cancel(world: &World, job: &ReplyJob) -> CancelOutcome {
    let end = Frame::only(ReplyEnd::cancelled_in_queue(1));
    let cancelled = world.relay().cancel_reply(&job.turn.reply_id(), &end).await;
    cancelled.unwrap()
}

#[tokio::test]
async fn cancellation_stops_the_reply_and_keeps_its_text() {
    let world = World::new(vec![Script::raw(vec![Raw::text("Hel"), Raw::Hang])], false).await;
    let job = world.job("hi");
    let cancel = async {
        eventually("text is in the log", async || {
            world.logged_text(&job).await == "Hel"
        })
        .await;
        cancel(&world, &job).await;
        Instant::now()
    };
    // The idle timeout of the tests is shorter than a heartbeat interval and must not end the reply
    // first.
    let inference = world.patient();
    let (end, cancelled_at) = tokio::join!(World::run_on(&inference, &job), cancel);
    assert!(finished(&end) && cancelled_at.elapsed() < CANCELLED_WITHIN + SLACK);
    eventually("the provider connection is closed", async || {
        world.provider.open_streams() == 0
    })
    .await;
    let record = world.record(&job).await.unwrap();
    assert_eq!(
        (record.end.status, record.end.finish_reason),
        (ReplyStatus::Cancelled, Some(FinishReason::Cancelled))
    );
    assert_eq!(world.messages(&job).await[1].content, "Hel");
}
