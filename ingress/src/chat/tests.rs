//! Tests of a chat message over embedded backends, from its request to the last byte of its reply:
//! published jobs, headers, and losses of frames, workers and backends.

use std::time::Duration;

use serde_json::json;
use switchboard_backends::{relay::ClaimStore, store::ReplyRecord};
use switchboard_schemas::{
    conversation::{Message, MessageAuthor, ReplyFacts, ReplyStatus, TokenUsage},
    conversation_job::ConversationJob,
    ids::MessageId,
    reply_event::{Frame, FrameBody, ReplySignal},
    time::Timestamp,
    topics::Topic,
};

use crate::testing::{World, end_of, head, org_id, reply_frames, reply_of};

const fn heartbeat(attempt: u32) -> ReplySignal {
    ReplySignal::Heartbeat { attempt }
}

/// Stores a finished reply like a worker without a relay.
async fn store_reply(world: &World, reply: &MessageId, text: &str) {
    let conversation = world.put_conversation(org_id()).await;
    let end = end_of(text, ReplyStatus::Completed);
    let record = ReplyRecord {
        user_message_id: reply.clone(),
        user_position: 0,
        position: Some(1),
        head: Some(head()),
        end,
        generation: 1,
        attempt: 1,
        finished_at: Timestamp::from_micros(3),
        first_text_ms: None,
    };
    let facts = ReplyFacts {
        agent_id: head().agent_id,
        agent_name: "Shop".into(),
        status: ReplyStatus::Completed,
        finish_reason: None,
        usage: TokenUsage {
            prompt_tokens: 1,
            completion_tokens: 2,
            estimated: false,
        },
        response_time_ms: 9,
        model: "demo".into(),
        routing_reason: None,
        routing: None,
        ui_spec: None,
        generation: 1,
        truncation: None,
        summary: None,
        steps: None,
    };
    let message = Message {
        id: reply.clone(),
        position: 1,
        content: text.into(),
        attachments: Vec::new(),
        created_at: Timestamp::from_micros(3),
        author: MessageAuthor::Assistant(Box::new(facts)),
    };
    world
        .edit_conversation(&conversation, |conversation| conversation.message_count = 2)
        .await;
    world.store_message(&conversation, &message).await;
    world.store_reply(reply, &record).await;
}

#[tokio::test]
async fn job_is_complete_and_keyed_by_its_conversation() {
    let world = World::new().await;
    world
        .chat_answered(reply_frames(&["a"], ReplyStatus::Completed))
        .await;
    let record = world.published_records()[0].clone();
    let ConversationJob::Reply(job) = world.jobs(Topic::Jobs).remove(0) else {
        panic!("a reply job is expected")
    };
    assert_eq!(record.key, job.turn.conversation_id.as_str());
    assert!(
        record
            .headers
            .iter()
            .any(|(name, value)| name == "request-id" && value == job.turn.request_id.as_str())
    );
    assert_eq!(
        (
            job.turn.content.as_str(),
            job.turn.session_id.as_str(),
            job.attempt_min
        ),
        ("hi", "s", 1)
    );
    assert!(job.turn.reply_to.is_some() && job.turn.key_id.is_some());
}

/// Headers that the server adds below the router.
const SERVER_HEADERS: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ndate: Sat, 21 Nov 2026 11:17:49 GMT\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn response_head_stays_below_three_kibibytes() {
    let world = World::new().await;
    let mut frames = reply_frames(&["a"], ReplyStatus::Completed);
    let products: Vec<_> = (0..50)
        .map(|number| json!({"title": format!("Produkt №{number}"), "price": "9 €"}))
        .collect();
    let long = "é".repeat(400);
    let mut longest = head();
    longest.model = long.clone();
    longest.agent_name = long.clone();
    longest.routing_reason = Some(long);
    longest.ui_spec = Some(json!({ "type": "product-grid", "data": products }));
    frames[0].body = FrameBody::Head(Box::new(longest));
    let origin = format!("https://{}.example", vec!["a".repeat(63); 4].join("."));
    let answer = world.chat_with(&[("origin", &origin)], frames).await;
    assert_eq!(answer.headers["access-control-allow-origin"], origin);
    let lines: usize = answer
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let bytes = lines + SERVER_HEADERS.len();
    assert!(bytes <= 3 << 10, "{bytes} bytes: {:#?}", answer.headers);
    assert_eq!(answer.headers["x-ui-spec-truncated"], "true");
}

#[tokio::test]
async fn short_names_leave_most_header_bytes_to_the_products() {
    let world = World::new().await;
    let mut frames = reply_frames(&["a"], ReplyStatus::Completed);
    let products: Vec<_> = (0..50)
        .map(|number| json!({"title": format!("Product {number}"), "price": "$9"}))
        .collect();
    let mut with_products = head();
    with_products.ui_spec = Some(json!({ "type": "product-grid", "data": products }));
    frames[0].body = FrameBody::Head(Box::new(with_products));
    let answer = world.chat_answered(frames).await;
    assert!(
        answer.headers["x-ui-spec"].len() > 1000,
        "{} bytes",
        answer.headers["x-ui-spec"].len()
    );
}

#[tokio::test]
async fn completed_reply_without_text_is_an_empty_response() {
    let world = World::new().await;
    let answer = world
        .chat_answered(reply_frames(&[], ReplyStatus::Completed))
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.text.as_str(), answer.whole),
        (200, "", true)
    );
}

#[tokio::test]
async fn restarted_reply_is_never_appended_to_sent_text() {
    let world = World::new().await;
    let mut frames = reply_frames(&["old"], ReplyStatus::Completed);
    frames.pop();
    frames.extend(
        reply_frames(&["new"], ReplyStatus::Completed)
            .into_iter()
            .map(|frame| Frame {
                generation: 2,
                ..frame
            }),
    );
    let answer = world.chat_answered(frames).await;
    assert_eq!((answer.text.as_str(), answer.whole), ("old", false));
}

#[tokio::test]
async fn lost_frames_are_read_from_the_log() {
    let world = World::new().await;
    let answer = world
        .chat(async |job| {
            for (number, frame) in reply_frames(&["a", "b", "c", "d"], ReplyStatus::Completed)
                .into_iter()
                .enumerate()
            {
                world.drop_pushes(number == 0 || number == 2);
                world.append_frame(&reply_of(&job), frame);
            }
        })
        .await;
    assert_eq!((answer.text.as_str(), answer.whole), ("abcd", true));
}

#[tokio::test(start_paused = true)]
async fn lost_text_is_read_although_heartbeats_arrive() {
    let world = World::new().await;
    let answer = world
        .chat(async |job| {
            let (reply, frames) = (
                reply_of(&job),
                reply_frames(&["a", "b"], ReplyStatus::Completed),
            );
            world.append_frame(&reply, frames[0].clone());
            world.drop_pushes(true);
            world.append_frame(&reply, frames[1].clone());
            world.drop_pushes(false);
            world.relay.faults.forget_calls();
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                world.push(switchboard_schemas::reply_event::IngressEnvelope::Reply(
                    reply.clone(),
                    heartbeat(1),
                ));
            }
            let reads = world.relay.faults.call_count("read_frames");
            assert!(reads > 0, "the log was not read in three seconds");
            for frame in &frames[2..] {
                world.append_frame(&reply, frame.clone());
            }
        })
        .await;
    assert_eq!((answer.text.as_str(), answer.whole), ("ab", true));
}

#[tokio::test(start_paused = true)]
async fn reply_without_pushed_frames_is_read_from_the_log() {
    let world = World::new().await;
    world.drop_pushes(true);
    let answer = world
        .chat_answered(reply_frames(&["a", "b"], ReplyStatus::Completed))
        .await;
    assert_eq!((answer.text.as_str(), answer.whole), ("ab", true));
}

#[tokio::test(start_paused = true)]
async fn relay_outage_continues_from_the_stored_reply() {
    let world = World::new().await;
    let answer = world
        .chat(async |job| {
            for frame in reply_frames(&["He", "llo"], ReplyStatus::Completed)
                .into_iter()
                .take(2)
            {
                world.append_frame(&reply_of(&job), frame);
            }
            world.relay.faults.set_down(true);
            tokio::time::sleep(Duration::from_secs(40)).await;
            store_reply(&world, &reply_of(&job), "Hello").await;
        })
        .await;
    assert_eq!((answer.text.as_str(), answer.whole), ("Hello", true));
    assert!(
        world.jobs(Topic::JobsRetry).is_empty(),
        "nothing is taken over without the relay"
    );
}

#[tokio::test(start_paused = true)]
async fn stored_reply_with_another_beginning_breaks_the_transfer() {
    let world = World::new().await;
    let answer = world
        .chat(async |job| {
            for frame in reply_frames(&["He"], ReplyStatus::Completed)
                .into_iter()
                .take(2)
            {
                world.append_frame(&reply_of(&job), frame);
            }
            world.relay.faults.set_down(true);
            store_reply(&world, &reply_of(&job), "Good day").await;
        })
        .await;
    assert_eq!((answer.text.as_str(), answer.whole), ("He", false));
}

#[tokio::test(start_paused = true)]
async fn silent_reply_is_retried_with_a_higher_attempt() {
    let world = World::new().await;
    let answer = world
        .chat(async |job| {
            let frames = reply_frames(&["a", "b"], ReplyStatus::Completed);
            world.append_frame(&reply_of(&job), frames[0].clone());
            world.append_frame(&reply_of(&job), frames[1].clone());
            world.push(switchboard_schemas::reply_event::IngressEnvelope::Reply(
                reply_of(&job),
                heartbeat(1),
            ));
            let silent_since = tokio::time::Instant::now();
            world.published().await;
            assert_eq!(silent_since.elapsed().as_secs(), 3);
            let ConversationJob::Reply(retry) = world.jobs(Topic::JobsRetry).remove(0) else {
                panic!("an answer")
            };
            assert_eq!(
                (retry.attempt_min, retry.turn.reply_id()),
                (2, reply_of(&job))
            );
            for frame in &frames[2..] {
                world.append_frame(
                    &reply_of(&job),
                    Frame {
                        attempt: 2,
                        ..frame.clone()
                    },
                );
            }
        })
        .await;
    assert_eq!((answer.text.as_str(), answer.whole), ("ab", true));
}

#[tokio::test(start_paused = true)]
async fn reply_with_a_valid_claim_is_not_taken_over() {
    let world = World::new().await;
    let answer = world
        .chat(async |job| {
            let (reply, frames) = (reply_of(&job), reply_frames(&["a"], ReplyStatus::Completed));
            let token = world.claim_reply(&reply).await;
            world.append_frame(&reply, frames[0].clone());
            // The claim stays valid, because the clock of the embedded relay does not jump.
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert!(world.jobs(Topic::JobsRetry).is_empty(), "taken over");
            world.relay.release_claim(&token).await.unwrap();
            let released = tokio::time::Instant::now();
            world.published().await;
            assert!(released.elapsed() <= Duration::from_secs(3));
            world.append_frames(&reply, frames.into_iter().skip(1));
        })
        .await;
    assert_eq!((answer.text.as_str(), answer.whole), ("a", true));
}

#[tokio::test(start_paused = true)]
async fn unclaimed_message_is_503_after_20_seconds_without_takeover() {
    let world = World::new().await;
    let begun = tokio::time::Instant::now();
    let answer = world.chat(async |_| {}).await;
    assert_eq!(answer.problem(), (503, "UNAVAILABLE".to_owned()));
    assert!(answer.headers.contains_key("retry-after"));
    assert!((20..=22).contains(&begun.elapsed().as_secs()));
    assert!(world.jobs(Topic::JobsRetry).is_empty());
}

#[tokio::test(start_paused = true)]
async fn heartbeats_keep_a_queued_message_waiting() {
    let world = World::new().await;
    let answer = world
        .chat(async |job| {
            for _ in 0..60 {
                world.push(switchboard_schemas::reply_event::IngressEnvelope::Reply(
                    reply_of(&job),
                    heartbeat(1),
                ));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            for frame in reply_frames(&["late"], ReplyStatus::Completed) {
                world.append_frame(&reply_of(&job), frame);
            }
        })
        .await;
    assert_eq!((answer.text.as_str(), answer.whole), ("late", true));
    assert!(world.jobs(Topic::JobsRetry).is_empty());
}

#[tokio::test]
async fn slow_client_receives_every_byte_from_the_log() {
    let world = World::new().await;
    let parts: Vec<String> = (0..500).map(|number| format!("{number} ")).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    // All frames are appended before the client reads on, many more than its queue holds.
    let answer = world
        .chat_answered(reply_frames(&parts, ReplyStatus::Completed))
        .await;
    assert_eq!((answer.text, answer.whole), (parts.concat(), true));
    assert!(
        world.counter("switchboard_replies_pulled_total") > 0,
        "its queue overflowed"
    );
}
