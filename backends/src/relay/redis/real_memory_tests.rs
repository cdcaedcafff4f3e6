//! Measures what a finished chat leaves in Redis, and for how long. Redis allocates more for longer
//! names, so these tests use the default namespace, which is empty.

use switchboard_schemas::{
    conversation::{ReplyStatus, TokenUsage},
    reply_event::{Frame, FrameBody, ReplyEnd},
};

use super::{
    RedisRelay,
    real_outage_tests::{Server, any_request, granted, text, wait_until_up},
    scripts::call_on_reply,
};
use crate::relay::{
    CancelOutcome, ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimStore,
    ClaimToken, DONE_LOG_TTL, FINAL_STATE_TTL, LOG_TTL, MESSAGE_COUNT_TTL, QueueSlots, ReplyLog,
};

/// Frames of a reply: at 20 a second, 5 seconds of text.
const FRAMES: u64 = 100;
/// Largest tombstone, with its name and the entry of the key, as `MEMORY USAGE` counts.
const TOMBSTONE_BYTES_MAX: u64 = 100;
/// Largest state of a conversation without open replies.
const CONVERSATION_BYTES_MAX: u64 = 128;

/// A key of Redis with its size and its remaining life.
#[derive(Debug)]
struct StoredKey {
    name: String,
    bytes: u64,
    seconds_left: i64,
}

async fn stored_keys(relay: &RedisRelay) -> Vec<StoredKey> {
    let query = redis::cmd("KEYS").arg("*{conv_*").to_owned();
    let names: Vec<String> = relay.link.query(&query).await.unwrap();
    let mut keys = Vec::new();
    for name in names {
        let usage = redis::cmd("MEMORY").arg("USAGE").arg(&name).to_owned();
        let bytes = relay.link.query(&usage).await.unwrap();
        let left = redis::cmd("TTL").arg(&name).to_owned();
        let seconds_left = relay.link.query(&left).await.unwrap();
        keys.push(StoredKey {
            name,
            bytes,
            seconds_left,
        });
    }
    keys
}

fn key_with<'a>(keys: &'a [StoredKey], part: &str) -> &'a StoredKey {
    let key = keys.iter().find(|key| key.name.contains(part));
    key.unwrap_or_else(|| panic!("no key with {part} in {keys:?}"))
}

fn tombstone_of(keys: &[StoredKey]) -> &StoredKey {
    let key = keys.iter().find(|key| !key.name.contains("}:"));
    key.unwrap_or_else(|| panic!("no tombstone in {keys:?}"))
}

fn completion(announced: bool) -> ClaimCompletion {
    let mut end = ReplyEnd::cancelled_in_queue(1);
    (end.status, end.usage) = (ReplyStatus::Completed, TokenUsage::default());
    ClaimCompletion {
        end: Frame {
            seq: FRAMES + 1,
            body: FrameBody::End(Box::new(end)),
            ..text(1)
        },
        message_count: 2,
        announced,
        push_to: None,
    }
}

/// Runs a reply to its announcement, as a worker does.
async fn finish_reply(relay: &RedisRelay, request: &ClaimRequest) -> ClaimToken {
    assert!(relay.reserve_slot(&request.reply_id, 8).await.unwrap());
    let token = granted(relay.claim_reply(request).await.unwrap());
    for seq in 1..=FRAMES {
        relay
            .append_frames(&token, None, &[text(seq)])
            .await
            .unwrap();
    }
    let last = completion(false);
    relay.finalize_reply(&token, &last.end).await.unwrap();
    for completion in [last, completion(true)] {
        assert_eq!(
            relay.complete_claim(&token, &completion).await.unwrap(),
            ClaimStatus::Held
        );
    }
    token
}

async fn started_relay(server: &Server) -> RedisRelay {
    let relay = RedisRelay::connect(&server.config(), "").await.unwrap();
    wait_until_up(&relay).await;
    relay
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finished_reply_leaves_at_most_100_bytes_for_a_day() {
    let server = Server::started();
    let relay = started_relay(&server).await;
    let request = any_request();
    finish_reply(&relay, &request).await;
    let keys = stored_keys(&relay).await;
    for key in &keys {
        println!(
            "measured: {} bytes for {} s: {}",
            key.bytes, key.seconds_left, key.name
        );
    }
    assert_eq!(keys.len(), 3, "{keys:?}");
    let (tombstone, conversation) = (tombstone_of(&keys), key_with(&keys, "}:conversation"));
    assert!(tombstone.bytes <= TOMBSTONE_BYTES_MAX, "{tombstone:?}");
    assert!(
        conversation.bytes <= CONVERSATION_BYTES_MAX,
        "{conversation:?}"
    );
    for (part, ttl) in [
        (tombstone.name.as_str(), FINAL_STATE_TTL),
        ("}:conversation", MESSAGE_COUNT_TTL),
        ("}:log:", DONE_LOG_TTL),
    ] {
        let (key, ttl) = (key_with(&keys, part), ttl.as_secs() as i64);
        assert!((ttl - 30..=ttl).contains(&key.seconds_left), "{key:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tombstone_answers_like_the_whole_state() {
    let server = Server::started();
    let relay = started_relay(&server).await;
    let request = any_request();
    let (token, reply) = (finish_reply(&relay, &request).await, &request.reply_id);
    let repeated = relay.complete_claim(&token, &completion(true)).await;
    let foreign = ClaimToken {
        nonce: token.nonce ^ 1,
        ..token.clone()
    };
    let other = relay.complete_claim(&foreign, &completion(true)).await;
    assert_eq!(
        (repeated.unwrap(), other.unwrap()),
        (ClaimStatus::Held, ClaimStatus::Fenced)
    );
    assert_eq!(
        relay.renew_claim(&token, None).await.unwrap(),
        ClaimStatus::Fenced
    );
    assert_eq!(
        relay.claim_reply(&request).await.unwrap(),
        ClaimOutcome::Done
    );
    let end = Frame::only(ReplyEnd::cancelled_in_queue(1));
    assert_eq!(
        relay.cancel_reply(reply, &end).await.unwrap(),
        CancelOutcome::TooLate
    );
    assert!(relay.reserve_slot(reply, 0).await.unwrap());
    assert_eq!(
        relay.read_frames(reply, 0).await.unwrap().len() as u64,
        FRAMES + 1
    );
    assert_eq!(stored_keys(&relay).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_with_an_open_reply_keeps_its_state() {
    let server = Server::started();
    let relay = started_relay(&server).await;
    let request = any_request();
    let waiting = request.reply_id.reply();
    assert!(relay.reserve_slot(&waiting, 8).await.unwrap());
    finish_reply(&relay, &request).await;
    let keys = stored_keys(&relay).await;
    let conversation = key_with(&keys, "}:conversation");
    assert!(
        conversation.seconds_left > LOG_TTL.as_secs() as i64,
        "{conversation:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn done_hash_of_the_previous_version_is_understood() {
    let server = Server::started();
    let relay = started_relay(&server).await;
    let request = any_request();
    let token = ClaimToken {
        reply_id: request.reply_id.clone(),
        attempt: 3,
        nonce: u64::MAX,
    };
    let write = redis::Script::new(
        "return redis.call('HSET', KEYS[2], 'status', 'done', 'attempt', '3', 'nonce', ARGV[1], \
         'failures', 0, 'released', '0', 'lease', 1, 'generation', 1, 'last', 2, 'loose', '0')",
    );
    let mut call = call_on_reply(&write, &relay.link, &request.reply_id);
    let _: i64 = relay
        .link
        .invoke(call.arg(token.nonce.to_string()))
        .await
        .unwrap();
    assert_eq!(
        relay.claim_reply(&request).await.unwrap(),
        ClaimOutcome::Done
    );
    let repeated = relay.complete_claim(&token, &completion(true)).await;
    assert_eq!(repeated.unwrap(), ClaimStatus::Held);
    let renewed = relay.renew_claim(&token, None).await.unwrap();
    assert_eq!(renewed, ClaimStatus::Fenced);
}
