//! Conformance tests of the reply log.

use std::time::{Duration, Instant};

use switchboard_schemas::{
    ids::{EventId, MessageId},
    playground::PlaygroundRouting,
    reply_event::{IngressEnvelope, PatchOutcome, ReplySignal},
};

use super::support::{
    DEADLINE, World, assert_pushed, assert_silent, completed, foreign, next, next_envelope,
    next_signal, seqs, text, text_of, texts,
};
use crate::relay::{
    ClaimStatus::{Fenced, Held, StateLost},
    ClaimToken, LISTENER_ENVELOPES_MAX,
};

/// Longest wait for frames before others are pushed.
const ARRIVAL: Duration = Duration::from_secs(1);

pub(super) async fn invalid_token_changes_nothing(world: World) {
    let mut listener = world.listen().await;
    let (reply, token) = world.claimed_reply().await;
    world.append(&token, &texts(1..=2)).await;
    for other in [foreign(&reply, 1), foreign(&reply, 2)] {
        assert_eq!(world.append_and_push(&other, &[text(3)]).await, Fenced);
        assert_eq!(world.heartbeat_and_push(&other).await, Fenced);
        assert_eq!(world.restore(&other, &[text(1)]).await, Fenced);
        assert_eq!(world.finalize(&other, &completed(3)).await, Fenced);
        assert_eq!(world.complete(&other, completed(3)).await, Fenced);
        world.release(&other).await;
    }
    assert_silent(&world, &mut listener).await;
    assert_eq!(world.log(&reply).await, texts(1..=2));
    assert_eq!(world.append(&token, &[text(3)]).await, Held);
}

pub(super) async fn frames_are_logged_in_order_and_repeats_ignored(world: World) {
    let mut listener = world.listen().await;
    let (reply, token) = world.claimed_reply().await;
    for frames in [texts(1..=2), texts(1..=3), texts(2..=2), texts(3..=4)] {
        assert_eq!(world.append_and_push(&token, &frames).await, Held);
    }
    assert_eq!(world.log(&reply).await, texts(1..=4));
    assert_pushed(&mut listener, &texts(1..=4)).await;
    assert_silent(&world, &mut listener).await;
}

pub(super) async fn frames_are_pushed_in_order(world: World) {
    let mut listener = world.listen().await;
    let (_, token) = world.claimed_reply().await;
    for seq in 1..=200 {
        world.append_and_push(&token, &[text(seq)]).await;
    }
    assert_pushed(&mut listener, &texts(1..=200)).await;
}

pub(super) async fn missed_frames_are_read_from_the_log(world: World) {
    let (reply, token) = world.claimed_reply().await;
    // Nobody listens at this address.
    world.append_and_push(&token, &texts(1..=5)).await;
    let mut listener = world.listen().await;
    world.append_and_push(&token, &[text(6)]).await;
    assert_eq!(next(&mut listener).await.seq, 6);
    assert_eq!(world.frames_after(&reply, 2).await, texts(3..=6));
    assert_eq!(world.frames_after(&reply, 6).await, []);
    assert_eq!(world.log(&world.reply()).await, []);
}

pub(super) async fn heartbeat_is_pushed_and_not_logged(world: World) {
    let mut listener = world.listen().await;
    let (reply, token) = world.claimed_reply().await;
    world.heartbeat_and_push(&token).await;
    let heartbeat = ReplySignal::Heartbeat { attempt: 1 };
    assert_eq!(next_signal(&mut listener).await, heartbeat);
    assert_eq!(world.log(&reply).await, []);
}

pub(super) async fn waiting_is_pushed_without_a_claim_and_not_logged(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    world
        .push(&IngressEnvelope::Reply(reply.clone(), ReplySignal::Waiting))
        .await;
    assert_eq!(next_signal(&mut listener).await, ReplySignal::Waiting);
    assert_eq!(world.log(&reply).await, []);
    assert_eq!(
        world.token(&reply).await.attempt,
        1,
        "waiting counted as an attempt"
    );
}

pub(super) async fn slow_listener_loses_frames_and_the_log_does_not(world: World) {
    const BATCH: u64 = 512;
    let mut listener = world.listen().await;
    let (reply, token) = world.claimed_reply().await;
    let mut pushed = 0;
    let deadline = Instant::now() + DEADLINE;
    // A listener that was starved subscribes again; then it misses frames and needs others.
    while listener.len() < LISTENER_ENVELOPES_MAX {
        let arrived = listener.len();
        assert!(Instant::now() < deadline, "only {arrived} frames arrived");
        push_batch(&world, &token, &mut pushed, BATCH).await;
        let due = (arrived + BATCH as usize).min(LISTENER_ENVELOPES_MAX);
        let arrival = async {
            while listener.len() < due {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(ARRIVAL, arrival).await;
    }
    for _ in 0..2 {
        push_batch(&world, &token, &mut pushed, BATCH).await;
    }
    assert_eq!(world.log(&reply).await.len() as u64, pushed);
    let mut last = 0;
    for _ in 0..LISTENER_ENVELOPES_MAX {
        let seq = next(&mut listener).await.seq;
        assert!(seq > last, "out of order");
        last = seq;
    }
    assert!(listener.len() < 2 * BATCH as usize, "nothing was dropped");
}

async fn push_batch(world: &World, token: &ClaimToken, pushed: &mut u64, frames: u64) {
    let batch = texts(*pushed + 1..=*pushed + frames);
    world.append_and_push(token, &batch).await;
    *pushed += frames;
}

pub(super) async fn new_generation_starts_a_new_log(world: World) {
    let (reply, token) = world.claimed_reply().await;
    // Generations are random names: the later one is often the smaller number.
    for generation in [9, 2, 7] {
        let frames = [text_of(generation, 1), text_of(generation, 2)];
        assert_eq!(world.append(&token, &frames).await, Held);
        assert_eq!(world.log(&reply).await, frames);
    }
}

pub(super) async fn missing_frames_are_reported_as_lost_state(world: World) {
    let (reply, token) = world.claimed_reply().await;
    assert_eq!(world.append(&token, &[text(2)]).await, StateLost);
    world.append(&token, &[text(1)]).await;
    assert_eq!(world.append(&token, &[text(3)]).await, StateLost);
    assert_eq!(world.finalize(&token, &completed(4)).await, StateLost);
    assert_eq!(world.restore(&token, &texts(1..=3)).await, Held);
    assert_eq!(world.finalize(&token, &completed(4)).await, Held);
    assert_eq!(world.log(&reply).await, texts(1..=3));
}

pub(super) async fn unknown_claim_is_reported_as_lost_state_and_restored(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    let token = foreign(&reply, 2);
    assert_eq!(world.append_and_push(&token, &[text(3)]).await, StateLost);
    assert_eq!(world.heartbeat_and_push(&token).await, StateLost);
    assert_eq!(world.finalize(&token, &completed(3)).await, StateLost);
    assert_eq!(world.complete(&token, completed(3)).await, StateLost);
    assert_silent(&world, &mut listener).await;

    assert_eq!(world.restore(&token, &texts(1..=3)).await, Held);
    assert_pushed(&mut listener, &texts(1..=3)).await;
    assert!(world.is_busy(&reply).await);
    assert!(world.is_busy(&world.reply()).await);
    assert_eq!(world.append(&token, &[text(4)]).await, Held);
    assert_eq!(world.log(&reply).await, texts(1..=4));
    // The next holder gets a higher number than the one that was restored.
    world.release(&token).await;
    assert_eq!(world.token(&reply).await.attempt, 3);
}

pub(super) async fn restore_is_refused_after_another_claim(world: World) {
    let (reply, sibling) = (world.reply(), world.reply());
    let holder = world.token(&reply).await;
    for late in [foreign(&reply, 1), foreign(&reply, 2), foreign(&sibling, 1)] {
        assert_eq!(world.restore(&late, &texts(1..=2)).await, Fenced);
    }
    assert_eq!(world.log(&reply).await, []);
    assert_eq!(world.log(&sibling).await, []);
    assert_eq!(world.append(&holder, &[text(1)]).await, Held);
}

pub(super) async fn restored_log_accepts_one_gap(world: World) {
    let reply = world.reply();
    let token = foreign(&reply, 1);
    assert_eq!(world.append(&token, &[text(58)]).await, StateLost);
    assert_eq!(world.restore(&token, &texts(1..=2)).await, Held);
    assert_eq!(world.append(&token, &[text(58)]).await, Held);
    assert_eq!(world.append(&token, &[text(60)]).await, StateLost);
    assert_eq!(seqs(&world.log(&reply).await), [1, 2, 58]);
}

pub(super) async fn outcome_of_a_metadata_change_is_pushed(world: World) {
    let mut listener = world.listen().await;
    for outcome in [PatchOutcome::Applied, PatchOutcome::NotFound] {
        let patch = EventId::derive("conversation", "patched");
        let envelope = IngressEnvelope::Patch(patch, outcome);
        world.push(&envelope).await;
        assert_eq!(next_envelope(&mut listener).await, envelope);
    }
}

pub(super) async fn routing_of_a_playground_run_is_pushed(world: World) {
    let mut listener = world.listen().await;
    for verdict in [PlaygroundRouting::NoAgent, PlaygroundRouting::Expired] {
        let envelope = IngressEnvelope::Playground(MessageId::new_in(&world.conversation), verdict);
        world.push(&envelope).await;
        assert_eq!(next_envelope(&mut listener).await, envelope);
    }
}
