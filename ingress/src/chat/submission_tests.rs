//! Submission of messages over embedded backends: acceptance, duplicates and rejections.

use std::time::Duration;

use switchboard_schemas::{agent::OnDisconnect, conversation::ReplyStatus, topics::Topic};
use tokio::time::Instant;

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

/// Sends a message whose publish is refused.
async fn send_refused(world: &World) {
    world.bus.faults.set_down(true);
    let refused = send(world, "key", BODY).await;
    assert_eq!(refused.problem(), (503, "UNAVAILABLE".to_owned()));
    world.bus.faults.set_down(false);
}

#[tokio::test(start_paused = true)]
async fn retry_without_a_worker_is_503_after_20_seconds() {
    let world = World::new().await;
    send_refused(&world).await;
    let retried = Instant::now();
    let answer = send(&world, "key", BODY).await;
    assert_eq!(answer.problem(), (503, "UNAVAILABLE".to_owned()));
    assert!(
        (20..=22).contains(&retried.elapsed().as_secs()),
        "{:?}",
        retried.elapsed()
    );
    assert!(world.jobs(Topic::JobsRetry).is_empty());
}

#[tokio::test(start_paused = true)]
async fn retry_is_taken_over_when_its_worker_is_silent() {
    let world = World::new().await;
    send_refused(&world).await;
    let work = async {
        world.published().await;
        let reply = reply_of(&world.jobs(Topic::Jobs)[0]);
        let mut frames = reply_frames(&["a", "b"], ReplyStatus::Completed);
        let later = frames.split_off(2);
        world.append_frames(&reply, frames);
        world.published().await;
        assert!(!world.jobs(Topic::JobsRetry).is_empty(), "not taken over");
        world.append_frames(&reply, later);
    };
    let (answer, ()) = tokio::join!(send(&world, "key", BODY), work);
    assert_eq!((answer.text.as_str(), answer.whole), ("ab", true));
}

#[tokio::test(start_paused = true)]
async fn retry_waits_for_a_worker_that_another_ingress_hears() {
    let world = World::new().await;
    send_refused(&world).await;
    world.drop_pushes(true);
    let work = async {
        world.published().await;
        let reply = reply_of(&world.jobs(Topic::Jobs)[0]);
        world.claim_reply(&reply).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let written = Instant::now();
        world.append_frames(&reply, reply_frames(&["once"], ReplyStatus::Completed));
        written
    };
    let (answer, written) = tokio::join!(send(&world, "key", BODY), work);
    assert_eq!((answer.text.as_str(), answer.whole), ("once", true));
    assert!(
        written.elapsed() <= Duration::from_millis(200),
        "{:?}",
        written.elapsed()
    );
    assert!(world.jobs(Topic::JobsRetry).is_empty(), "taken over");
}

#[tokio::test]
async fn last_watcher_that_disconnects_cancels_the_reply() {
    const PATIENCE: Duration = Duration::from_millis(50);
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.on_disconnect = OnDisconnect::Cancel)
        .await;
    let retry = async {
        world.published().await;
        let retry = tokio::time::timeout(PATIENCE, send(&world, "key", BODY));
        assert!(retry.await.is_err());
        world.background_is_done().await;
        assert!(
            world.cancelled_replies().is_empty(),
            "the first request still watches"
        );
    };
    let first = async {
        tokio::select! {
            answer = send(&world, "key", BODY) => panic!("{answer:?}"),
            () = retry => {}
        }
    };
    first.await;
    world.background_is_done().await;
    assert_eq!(world.cancelled_replies().len(), 1);
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
