//! Tests of turns while the relay is unavailable, loses its state or grants the claim to another
//! worker.

use serde_json::json;
use switchboard_backends::{
    relay::{ClaimStatus, LEASE},
    store::TurnWriter,
    testing::Fault,
};
use switchboard_schemas::{
    conversation::ReplyStatus,
    conversation_job::ReplyJob,
    reply_event::{FrameBody, ReplyEnd},
};

use super::{finished, world::World};
use crate::{
    job_loop::JobEnd,
    testing::{Raw, Script, eventually, says},
};

#[tokio::test]
async fn reply_is_stored_and_announced_without_the_relay() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world.relay.faults.set_down(true);
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.messages(&job).await[1].content, "Hello");
    assert_eq!(world.events(2).await[1]["type"], json!("message.assistant"));
}

#[tokio::test]
async fn stored_reply_is_announced_without_the_relay() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world.refuse_events();
    let is_stored = async || world.store.faults.call_count("finish_turn") > 0;
    let end = world.hand_off_when(&job, is_stored).await;
    assert!(matches!(end, JobEnd::RetryAfter(_)));
    world.accept_events();
    world.relay.faults.set_down(true);
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.provider.bodies().len(), 1);
    assert_eq!(World::replies(&world.events(2).await), ["Hello"]);
}

#[tokio::test]
async fn inherited_job_waits_without_the_relay() {
    let world = World::new(vec![says("Hello")], false).await;
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
async fn reply_stored_without_the_relay_is_not_generated_again() {
    let mut world = World::new(vec![says("one"), says("two")], false).await;
    let other_worker = world.patient();
    let first = world.job("first");
    World::run_on(&other_worker, &first).await;
    world.pushed(&first).await;
    let mut job = world.job("second");
    world.relay.faults.set_down(true);
    assert!(finished(&world.run(&job).await));
    world.relay.faults.set_down(false);
    // The ingress, which heard nothing, publishes it again. The other worker has the history of the
    // turn before in its cache, and so does the relay.
    job.attempt_min = 2;
    assert!(finished(&World::run_on(&other_worker, &job).await));
    assert_eq!(world.provider.bodies().len(), 2);
    assert_eq!(world.messages(&job).await[3].content, "two");
    let pushed = world.pushed(&job).await;
    assert!(matches!(&pushed.last().unwrap().body, FrameBody::End(end) if end.length == 3));
    assert_eq!(
        World::replies(&world.events(6).await),
        ["one", "two", "two"]
    );
}

/// Runs an attempt that dies when its reply is to be stored.
async fn die_before_storing(world: &World, job: &ReplyJob) {
    world.store.faults.inject("finish_turn", Fault::Refuse);
    let is_settled = async || world.store.faults.call_count("finish_turn") > 0;
    assert!(matches!(
        world.hand_off_when(job, is_settled).await,
        JobEnd::RetryAfter(_)
    ));
    world.store.faults.clear("finish_turn");
}

#[tokio::test]
async fn attempts_without_the_relay_store_one_text() {
    let world = World::new(vec![says("one"), says("two")], false).await;
    let job = world.job("hi");
    world.relay.faults.set_down(true);
    die_before_storing(&world, &job).await;
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.provider.bodies().len(), 2);
    assert_eq!(world.messages(&job).await[1].content, "one");
    assert_eq!(World::replies(&world.events(3).await), ["one"]);
}

#[tokio::test]
async fn inherited_job_stores_the_text_that_was_settled_before() {
    let world = World::new(vec![says("one"), says("two")], false).await;
    let job = world.job("hi");
    world.relay.faults.set_down(true);
    die_before_storing(&world, &job).await;
    world.relay.faults.set_down(false);
    assert!(finished(&world.run_inherited(&job).await));
    assert_eq!(world.messages(&job).await[1].content, "one");
    assert_eq!(World::replies(&world.events(3).await), ["one"]);
}

#[tokio::test]
async fn overtaken_attempt_tells_the_relay_the_stored_end() {
    let mut world = World::new(vec![says("one"), says("other")], false).await;
    let mut job = world.job("hi");
    world.relay.faults.set_down(true);
    die_before_storing(&world, &job).await;
    world.relay.faults.set_down(false);
    job.attempt_min = 2;
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.messages(&job).await[1].content, "one");
    let pushed = world.pushed(&job).await;
    let FrameBody::End(end) = &pushed.last().unwrap().body else {
        panic!("no end")
    };
    assert_eq!(
        (World::text_of(&pushed).as_str(), end.length),
        ("other", 3),
        "an ingress that sent the other text breaks off"
    );
}

#[tokio::test]
async fn process_suspended_while_it_finalizes_asks_the_store() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world
        .relay
        .faults
        .alter("finalize_reply", |status: ClaimStatus| {
            std::thread::sleep(LEASE);
            status
        });
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.store.faults.call_count("settle_turn"), 1);
    assert_eq!(world.messages(&job).await[1].content, "Hello");
}

#[tokio::test]
async fn attempt_restored_in_an_empty_relay_keeps_the_stored_text() {
    let hanging = Script::raw(vec![Raw::text("two"), Raw::Hang]);
    let world = World::new(vec![hanging, says("one")], false).await;
    let job = world.job("hi");
    // One worker cannot reach the relay, the other one can.
    let faults = &world.relay.faults;
    faults.inject_times("claim_reply", Fault::Refuse, 3);
    faults.inject("restore_claim", Fault::Refuse);
    let overtake = async {
        eventually("the model is called", async || {
            world.provider.bodies().len() == 1
        })
        .await;
        let overtaking = world.patient();
        assert!(finished(&World::run_on(&overtaking, &job).await));
        world.lose_relay_data();
        faults.clear("restore_claim");
    };
    let inference = world.patient_for(2_500);
    let (end, ()) = tokio::join!(World::run_on(&inference, &job), overtake);
    assert!(finished(&end), "{end:?}");
    assert_eq!(world.messages(&job).await[1].content, "one");
}

#[tokio::test]
async fn reply_without_a_claim_is_cancelled_if_the_store_says_so() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world.relay.faults.set_down(true);
    let cancel = async {
        eventually("the model is called", async || {
            world.provider.bodies().len() == 1
        })
        .await;
        // The ingress reaches the relay, where nobody has claimed the reply.
        let (org, reply) = (&job.turn.org_id, job.turn.reply_id());
        let end = ReplyEnd::cancelled_in_queue(1);
        let store = world.store.inner();
        assert!(store.settle_cancellation(org, &reply, &end).await.unwrap());
        world.store.faults.clear("settle_turn");
    };
    // Until the cancellation the end of this attempt is not settled.
    world.store.faults.inject("settle_turn", Fault::Refuse);
    tokio::join!(world.run(&job), cancel);
    let record = world.record(&job).await.unwrap();
    assert_eq!(record.end.status, ReplyStatus::Cancelled);
    assert_eq!(world.messages(&job).await.len(), 1, "no reply is stored");
}

#[tokio::test]
async fn reply_that_is_not_stored_is_not_announced() {
    let world = World::new(vec![says("one"), says("two")], false).await;
    let job = world.job("hi");
    die_before_storing(&world, &job).await;
    world.lose_relay_data();
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.messages(&job).await[1].content, "two");
    let events = world.events(3).await;
    assert_eq!(World::replies(&events), ["two"]);
}

#[tokio::test]
async fn relay_that_lost_its_state_gets_the_whole_reply_again() {
    let world = World::new(
        vec![Script::raw(vec![Raw::text("Hel"), Raw::Hang]), says("lo")],
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
    let world = World::new(vec![Script::raw(vec![Raw::text("Hel"), Raw::Hang])], false).await;
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
