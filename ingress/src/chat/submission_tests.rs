//! Submission of messages over embedded backends: acceptance, duplicates and rejections.

use std::time::Duration;

use switchboard_schemas::{agent::OnDisconnect, conversation::ReplyStatus, topics::Topic};

use crate::testing::{Answer, World, reply_frames, reply_of};

const BODY: &str = r#"{"message":"hi","sessionId":"s"}"#;

async fn send(world: &World, key: &str, body: &'static str) -> Answer {
    send_as(world, key, body, ("accept", "*/*")).await
}

async fn send_as(world: &World, key: &str, body: &'static str, header: (&str, &str)) -> Answer {
    let authorization = format!("Bearer {}", world.key);
    let headers = [
        ("authorization", authorization.as_str()),
        ("idempotency-key", key),
        header,
    ];
    world
        .send_with("POST", &World::agent_path("/chat"), &headers, body)
        .await
}

/// Sends a message and answers the job published last.
async fn send_and_answer(world: &World, key: &str) -> Answer {
    let work = async {
        world.published().await;
        let job = world.jobs(Topic::Jobs).pop().unwrap();
        for frame in reply_frames(&["once"], ReplyStatus::Completed) {
            world.append_frame(&reply_of(&job), frame);
        }
    };
    tokio::join!(send(world, key, BODY), work).0
}

#[tokio::test]
async fn duplicate_reads_the_reply_in_the_format_it_asks_for() {
    let world = World::new().await;
    let first = send_and_answer(&world, "key").await;
    let message = first.headers["x-message-id"].to_str().unwrap();
    let json = send_as(&world, "key", BODY, ("accept", "application/json")).await;
    assert_eq!(
        (
            json.json()["messageId"].as_str(),
            json.json()["content"].as_str()
        ),
        (Some(message), Some("once"))
    );
    let events = send_as(&world, "key", BODY, ("accept", "text/event-stream")).await;
    assert_eq!(events.headers["x-message-id"], message);
    let names: Vec<_> = events
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(names, ["start", "delta", "done"]);
    let later = send_as(&world, "key", BODY, ("prefer", "respond-async")).await;
    assert_eq!(
        (later.status.as_u16(), later.json()["messageId"].as_str()),
        (202, Some(message))
    );
    assert_eq!(world.jobs(Topic::Jobs).len(), 1);
}

#[tokio::test]
async fn disconnected_duplicate_does_not_cancel_the_reply() {
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.on_disconnect = OnDisconnect::Cancel)
        .await;
    let interrupted = async {
        world.published().await;
        let job = world.jobs(Topic::Jobs).pop().unwrap();
        let mut frames = reply_frames(&["once"], ReplyStatus::Completed).into_iter();
        world.append_frame(&reply_of(&job), frames.next().unwrap());
        // The request never ends, because the reply does not.
        let repeat = tokio::time::timeout(Duration::from_millis(50), send(&world, "key", BODY));
        assert!(repeat.await.is_err());
        for frame in frames {
            world.append_frame(&reply_of(&job), frame);
        }
    };
    let (first, ()) = tokio::join!(send(&world, "key", BODY), interrupted);
    assert_eq!((first.text.as_str(), first.whole), ("once", true));
    world.background_is_done().await;
    assert!(world.cancelled_replies().is_empty());
}

#[tokio::test]
async fn message_without_recorded_acceptance_frees_its_slot() {
    let world = World::new().await;
    world.store.faults.set_down(true);
    let refused = send_as(&world, "key", BODY, ("prefer", "respond-async")).await;
    assert_eq!(refused.problem(), (503, "UNAVAILABLE".to_owned()));
    assert!(world.jobs(Topic::Jobs).is_empty() && world.has_empty_queue().await);
}

#[tokio::test]
async fn retry_of_a_refused_publish_keeps_the_message_id() {
    let world = World::new().await;
    world.bus.faults.set_down(true);
    assert_eq!(
        send(&world, "key", BODY).await.problem(),
        (503, "UNAVAILABLE".to_owned())
    );
    assert_eq!(world.voided_publishes().len(), 1);
    assert!(
        world.has_empty_queue().await,
        "a rejected message keeps a slot"
    );
    world.bus.faults.set_down(false);
    assert_eq!(send_and_answer(&world, "key").await.text, "once");
    let voided = world.voided_publishes();
    let jobs = world.jobs(Topic::Jobs);
    let switchboard_schemas::conversation_job::ConversationJob::Reply(job) = &jobs[0] else {
        panic!("no answer job")
    };
    assert!(
        !voided.contains(&job.turn.publish_nonce),
        "the new publish was voided"
    );
    world.void_refused_publishes_again().await;
    assert_eq!(
        world.voided_publishes(),
        voided,
        "an accepted message was voided again"
    );
}

#[tokio::test]
async fn refused_publishes_of_one_message_are_bounded() {
    let world = World::new().await;
    world.bus.faults.set_down(true);
    for _ in 0..30 {
        send(&world, "key", BODY).await;
    }
    let refused = world.voided_publishes().len();
    world.void_refused_publishes_again().await;
    assert_eq!(world.voided_publishes().len() - refused, 16);
}

#[tokio::test]
async fn refused_publish_is_voided_again_while_it_may_arrive() {
    let world = World::new().await;
    world.bus.faults.set_down(true);
    send(&world, "key", BODY).await;
    let first = world.voided_publishes();
    world.void_refused_publishes_again().await;
    assert_eq!(world.voided_publishes(), [&first[..], &first[..]].concat());
}

#[tokio::test]
async fn relay_outage_rejects_only_requests_with_a_key() {
    let world = World::new().await;
    world.relay.faults.set_down(true);
    let refused = send(&world, "key", BODY).await;
    assert_eq!(refused.problem(), (503, "UNAVAILABLE".to_owned()));
    assert!(refused.headers.contains_key("retry-after"));
    assert!(world.jobs(Topic::Jobs).is_empty());
    let published = async {
        world.published().await;
        world.relay.faults.set_down(false);
        let job = world.jobs(Topic::Jobs).remove(0);
        for frame in reply_frames(&["ok"], ReplyStatus::Completed) {
            world.append_frame(&reply_of(&job), frame);
        }
    };
    let path = World::agent_path("/chat");
    let chat = world.send("POST", &path, BODY);
    assert_eq!(tokio::join!(chat, published).0.text, "ok");
}
