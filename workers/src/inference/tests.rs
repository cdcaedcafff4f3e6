//! Tests of single turns on the embedded backends: displayed text, stored records and published
//! events.

mod agents;
mod cancellations;
mod deletion;
mod files;
mod long_conversations;
mod metadata;
mod playground;
mod relay_outages;
mod removals;
mod shopping;
mod world;

pub(crate) use agents::shop;

use std::time::Duration;

use serde_json::json;
use switchboard_backends::{
    bus::{BusEvent, MessageBus},
    relay::{ClaimOutcome, ClaimTask, QueueSlots},
    testing::Fault,
};
use switchboard_schemas::{
    conversation::ReplyStatus,
    ids::{ConversationId, MessageId},
    reply_event::{Frame, FrameBody, IngressEnvelope, ReplyFailure, ReplySignal},
    time::Timestamp,
    topics::Topic,
};
use tokio::time::timeout;

use self::world::World;
use crate::{
    config::WorkersConfig,
    job_loop::JobEnd,
    testing::{Raw, Script, eventually, quick, says},
};

fn finished(end: &JobEnd) -> bool {
    matches!(end, JobEnd::Finished)
}

#[tokio::test]
async fn message_is_displayed_stored_and_announced_in_order() {
    let mut world = World::new(vec![says("Hello").chunk_chars(3)], false).await;
    let job = world.job("hi");
    assert!(finished(&world.run(&job).await));

    let frames = world.pushed(&job).await;
    assert!(
        matches!(&frames[0].body, FrameBody::Head(head) if head.model == "m" && head.agent_name == "Shop")
    );
    assert_eq!(World::text_of(&frames), "Hello");
    let FrameBody::End(end) = &frames.last().unwrap().body else {
        panic!("no end")
    };
    assert_eq!(
        (end.status, end.length, end.failure),
        (ReplyStatus::Completed, 5, None)
    );

    let messages = world.messages(&job).await;
    assert_eq!(
        messages
            .iter()
            .map(|message| message.content.as_str())
            .collect::<Vec<_>>(),
        ["hi", "Hello"]
    );
    let record = world.record(&job).await.unwrap();
    assert_eq!(
        (record.position, record.end.sha256.as_str()),
        (Some(1), end.sha256.as_str())
    );
    let events = world.events(2).await;
    assert_eq!(
        events
            .iter()
            .map(|event| event["type"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["message.user", "message.assistant"]
    );
    assert_eq!(events[1]["content"], json!("Hello"));
    assert_eq!(
        world.store.faults.call_count("settle_turn"),
        0,
        "the relay decided"
    );
}

#[tokio::test]
async fn page_conversation_is_linked_to_its_session() {
    let world = World::new(vec![says("Hello"), says("Hello")], false).await;
    let own = world.job("hi");
    world.run(&own).await;
    let mut job = world.job("hi");
    let (org, agent, session) = (
        job.turn.org_id.clone(),
        job.agent_id.clone(),
        job.turn.session_id.clone(),
    );
    let id = ConversationId::of_visitor(&org, &agent, &"vis_ada".parse().unwrap(), &session);
    (job.turn.message_id, job.turn.conversation_id) = (MessageId::new_in(&id), id.clone());
    assert!(finished(&world.run(&job).await));
    let store = &world.inference.backends.store;
    assert_eq!(
        store
            .linked_conversations(&org, &agent, &session)
            .await
            .unwrap(),
        std::slice::from_ref(&id)
    );
    assert_eq!(
        store
            .conversation(&org, &id)
            .await
            .unwrap()
            .unwrap()
            .session_id,
        session
    );
    assert_eq!(
        (
            world.messages(&own).await.len(),
            world.messages(&job).await.len()
        ),
        (2, 2)
    );
}

#[tokio::test]
async fn repeated_record_calls_no_model_and_stores_nothing() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world.run(&job).await;
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.provider.bodies().len(), 1);
    assert_eq!(world.messages(&job).await.len(), 2);
}

#[tokio::test]
async fn uncached_history_is_read_from_the_store() {
    let world = World::new(vec![says("first"), says("second")], false).await;
    world.run(&world.job("one")).await;
    world.inference.histories.clear();
    world.run(&world.job("two")).await;
    assert_eq!(
        world.provider.bodies()[1]["messages"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

#[tokio::test]
async fn voided_publish_is_finished_without_a_trace() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world
        .relay()
        .void_publish(&job.turn.reply_id(), &job.turn.publish_nonce)
        .await
        .unwrap();
    assert!(finished(&world.run(&job).await));
    assert!(world.messages(&job).await.is_empty() && world.provider.bodies().is_empty());
}

#[tokio::test]
async fn reply_failing_before_text_has_an_end_and_no_head() {
    let mut world = World::new(vec![Script::refuses(400)], false).await;
    let job = world.job("hi");
    assert!(finished(&world.run(&job).await));
    let frames = world.pushed(&job).await;
    let [
        Frame {
            body: FrameBody::End(end),
            ..
        },
    ] = &frames[..]
    else {
        panic!("more than an end: {frames:?}")
    };
    assert_eq!(
        (end.status, end.failure),
        (ReplyStatus::Failed, Some(ReplyFailure::ModelError))
    );
    assert_eq!(world.messages(&job).await.len(), 1);
    assert_eq!(world.events(2).await[1]["status"], json!("failed"));
}

#[tokio::test]
async fn missing_agent_fails_the_turn() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job_for(world.other_agent(), "hi");
    assert!(finished(&world.run(&job).await));
    assert_eq!(
        world.record(&job).await.unwrap().end.failure,
        Some(ReplyFailure::AgentUnavailable)
    );
}

#[tokio::test]
async fn turn_that_waited_too_long_fails_without_a_model_call() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world
        .relay
        .faults
        .alter("claim_reply", |claim| match claim {
            ClaimOutcome::Granted {
                token,
                task,
                message_count,
                ..
            } => ClaimOutcome::Granted {
                token,
                task,
                message_count,
                queue_wait: Some(Duration::from_secs(601)),
            },
            refused => refused,
        });
    world.run(&job).await;
    assert_eq!(
        world.record(&job).await.unwrap().end.failure,
        Some(ReplyFailure::DeadlineExceeded)
    );
    assert!(world.provider.bodies().is_empty());
}

#[tokio::test]
async fn clock_of_the_ingress_does_not_decide_on_lateness() {
    let world = World::new(vec![says("Hello")], false).await;
    let mut job = world.job("hi");
    job.turn.accepted_at = Timestamp::from_micros(job.turn.accepted_at.micros() - 7_200_000_000);
    world.run(&job).await;
    assert_eq!(world.messages(&job).await[1].content, "Hello");
}

#[tokio::test]
async fn handed_off_reply_continues_in_the_same_generation() {
    let mut world = World::new(
        vec![Script::raw(vec![Raw::text("Hel"), Raw::Hang]), says("lo")],
        true,
    )
    .await;
    let job = world.job("hi");
    assert!(matches!(
        world.hand_off_after(&job, "Hel").await,
        JobEnd::RetryAfter(_)
    ));
    assert!(finished(&world.run(&job).await));

    assert_eq!(
        world.provider.bodies()[1]["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()["content"],
        json!("Hel")
    );
    let frames = world.pushed(&job).await;
    assert_eq!(World::text_of(&frames), "Hello");
    let generations: std::collections::BTreeSet<_> = frames
        .iter()
        .filter(|frame| frame.seq > 0)
        .map(|frame| frame.generation)
        .collect();
    assert_eq!(generations.len(), 1);
    let record = world.record(&job).await.unwrap();
    assert_eq!(
        (record.end.status, record.attempt, record.end.length),
        (ReplyStatus::Completed, 2, 5)
    );
    assert_eq!(world.messages(&job).await.len(), 2);
}

#[tokio::test]
async fn handed_off_reply_without_continuation_is_incomplete() {
    let world = World::new(
        vec![Script::raw(vec![Raw::text("Hel"), Raw::Hang]), says("lo")],
        false,
    )
    .await;
    let job = world.job("hi");
    world.hand_off_after(&job, "Hel").await;
    assert!(finished(&world.run(&job).await));
    assert_eq!(
        world.provider.bodies().len(),
        1,
        "displayed text was restarted"
    );
    let record = world.record(&job).await.unwrap();
    assert_eq!(
        (record.end.status, record.end.length),
        (ReplyStatus::Incomplete, 3)
    );
}

#[tokio::test]
async fn nothing_is_displayed_before_the_store_recovers() {
    let mut world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world.store.faults.set_down_for(Duration::from_millis(400));
    world.inference.histories.clear();
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.messages(&job).await.len(), 2);
    assert_eq!(World::text_of(&world.pushed(&job).await), "Hello");
}

#[tokio::test]
async fn finalized_reply_is_stored_by_the_next_holder() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world.store.faults.inject("finish_turn", Fault::Refuse);
    world
        .hand_off_when(&job, async || {
            world.store.faults.call_count("finish_turn") > 0
        })
        .await;
    world.store.faults.clear("finish_turn");
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.provider.bodies().len(), 1);
    let record = world.record(&job).await.unwrap();
    assert_eq!(
        (record.end.status, record.attempt),
        (ReplyStatus::Completed, 2)
    );
    assert_eq!(world.messages(&job).await[1].content, "Hello");
}

#[tokio::test]
async fn stored_reply_ends_before_its_event_is_published() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world.refuse_events();
    let end = world
        .hand_off_when(&job, async || world.has_settled_end(&job).await)
        .await;
    assert!(
        matches!(end, JobEnd::RetryAfter(_)),
        "completed before its event was published"
    );
    world.accept_events();
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.provider.bodies().len(), 1);
    let events = world.events(2).await;
    assert_eq!(
        (&events[0]["type"], &events[1]["content"]),
        (&json!("message.user"), &json!("Hello"))
    );
}

#[tokio::test]
async fn late_event_is_awaited() {
    let world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world.refuse_events();
    let back = async {
        eventually("the client has its end", async || {
            world.has_settled_end(&job).await
        })
        .await;
        world.accept_events();
    };
    let (end, ()) = tokio::join!(world.run(&job), back);
    assert!(finished(&end));
    assert_eq!(world.events(2).await[1]["status"], json!("completed"));
}

#[tokio::test]
async fn exhausted_reply_fails_and_becomes_a_dead_letter() {
    let mut world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    world
        .relay
        .faults
        .alter("claim_reply", |claim| match claim {
            ClaimOutcome::Granted {
                token,
                message_count,
                queue_wait,
                ..
            } => ClaimOutcome::Granted {
                token,
                task: ClaimTask::GiveUp,
                message_count,
                queue_wait,
            },
            refused => refused,
        });
    let JobEnd::DeadLetter(cause) = world.run(&job).await else {
        panic!("not a dead letter")
    };
    assert_eq!(cause.class, "attempts-exhausted");
    assert!(world.provider.bodies().is_empty());
    let frames = world.pushed(&job).await;
    let FrameBody::End(end) = &frames[0].body else {
        panic!("no end")
    };
    assert_eq!(
        (end.status, end.failure),
        (ReplyStatus::Failed, Some(ReplyFailure::AttemptsExhausted))
    );
}

#[tokio::test]
async fn reply_patch_and_deletion_need_no_events_if_they_are_off() {
    let config = WorkersConfig {
        publish_events: false,
        ..quick()
    };
    let world = World::with(vec![says("Hello")], false, shop(), config).await;
    world.refuse_events();
    let job = world.job("hi");
    assert!(finished(&world.run(&job).await));
    assert_eq!(world.messages(&job).await.len(), 2);
    for end in [
        world.run_patch(&world.patch(&job)).await,
        world.run_deletion(&world.deletion(&job)).await,
    ] {
        assert!(finished(&end));
    }
}

#[tokio::test]
async fn conversation_runs_through_bus_and_loop() {
    let mut world = World::new(vec![says("Hello")], false).await;
    let job = world.job("hi");
    let mut consumer = world
        .bus
        .consume("watch", &[Topic::Messages])
        .await
        .unwrap();
    let running = world.start_worker();
    world.publish(&job).await;
    let assistant = async {
        loop {
            if let BusEvent::Record(record) = consumer.next().await.unwrap()
                && String::from_utf8_lossy(&record.payload).contains("message.assistant")
            {
                break;
            }
        }
    };
    timeout(Duration::from_secs(60), assistant)
        .await
        .expect("the reply is announced");
    assert_eq!(World::text_of(&world.pushed(&job).await), "Hello");
    running.stop().await;
}

/// Returns true for an envelope with the end of a reply.
fn is_end(envelope: &IngressEnvelope) -> bool {
    matches!(
        envelope,
        IngressEnvelope::Reply(
            _,
            ReplySignal::Frame(Frame {
                body: FrameBody::End(_),
                ..
            })
        )
    )
}
