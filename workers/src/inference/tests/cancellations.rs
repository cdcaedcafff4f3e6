//! Tests of cancellations before and during the model call.

use switchboard_backends::relay::{CancelOutcome, ClaimStore, QueueSlots};
use switchboard_schemas::{
    conversation::ReplyStatus,
    conversation_job::ReplyJob,
    reply_event::{Frame, ReplyEnd},
};

use super::{finished, world::World};
use crate::testing::says;

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
