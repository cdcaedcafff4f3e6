//! Conformance tests of the reply log.

use switchboard_schemas::{
    ids::{EventId, MessageId},
    playground::PlaygroundRouting,
    reply_event::{IngressEnvelope, PatchOutcome, ReplySignal},
};

use super::support::{
    World, assert_silent, completed, foreign, next, next_signal, seqs, text, text_of, texts,
};
use crate::relay::{ClaimOutcome, ClaimStatus, LISTENER_ENVELOPES_MAX};

pub(super) async fn invalid_token_changes_nothing(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    let token = world.token(&reply).await;
    world
        .worker
        .append_frames(&token, None, &texts(1..=2))
        .await
        .unwrap();
    for other in [
        foreign(&reply, token.attempt),
        foreign(&reply, token.attempt + 1),
    ] {
        let push_to = Some(&world.address);
        assert_eq!(
            world
                .worker
                .append_frames(&other, push_to, &[text(3)])
                .await
                .unwrap(),
            ClaimStatus::Fenced
        );
        assert_eq!(
            world
                .worker
                .append_frames(&other, push_to, &[])
                .await
                .unwrap(),
            ClaimStatus::Fenced
        );
        assert_eq!(
            world
                .worker
                .restore_claim(&other, push_to, &[text(1)])
                .await
                .unwrap(),
            ClaimStatus::Fenced
        );
        assert_eq!(
            world
                .worker
                .finalize_reply(&other, &completed(3))
                .await
                .unwrap(),
            ClaimStatus::Fenced
        );
        let completion = world.completion(completed(3), true);
        assert_eq!(
            world
                .worker
                .complete_claim(&other, &completion)
                .await
                .unwrap(),
            ClaimStatus::Fenced
        );
        world.worker.release_claim(&other).await.unwrap();
    }
    assert_silent(&world, &mut listener).await;
    assert_eq!(world.log(&reply).await, texts(1..=2));
    assert_eq!(
        world
            .worker
            .append_frames(&token, None, &[text(3)])
            .await
            .unwrap(),
        ClaimStatus::Held
    );
}

pub(super) async fn frames_are_logged_in_order_and_repeats_ignored(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    let token = world.token(&reply).await;
    for frames in [texts(1..=2), texts(1..=3), texts(2..=2), texts(3..=4)] {
        assert_eq!(
            world
                .worker
                .append_frames(&token, Some(&world.address), &frames)
                .await
                .unwrap(),
            ClaimStatus::Held
        );
    }
    assert_eq!(world.log(&reply).await, texts(1..=4));
    for seq in 1..=4 {
        assert_eq!(next(&mut listener).await.seq, seq);
    }
    assert_silent(&world, &mut listener).await;
}

pub(super) async fn frames_are_pushed_in_order(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    let token = world.token(&reply).await;
    for seq in 1..=200 {
        world
            .worker
            .append_frames(&token, Some(&world.address), &[text(seq)])
            .await
            .unwrap();
    }
    for seq in 1..=200 {
        assert_eq!(next(&mut listener).await, text(seq));
    }
}

pub(super) async fn missed_frames_are_read_from_the_log(world: World) {
    let reply = world.reply();
    let token = world.token(&reply).await;
    // Nobody listens at this address.
    world
        .worker
        .append_frames(&token, Some(&world.address), &texts(1..=5))
        .await
        .unwrap();
    let mut listener = world.listen().await;
    world
        .worker
        .append_frames(&token, Some(&world.address), &[text(6)])
        .await
        .unwrap();
    assert_eq!(next(&mut listener).await.seq, 6);
    assert_eq!(
        world.ingress.read_frames(&reply, 2).await.unwrap(),
        texts(3..=6)
    );
    assert_eq!(world.ingress.read_frames(&reply, 6).await.unwrap(), []);
    assert_eq!(
        world.ingress.read_frames(&world.reply(), 0).await.unwrap(),
        []
    );
}

pub(super) async fn heartbeat_is_pushed_and_not_logged(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    let token = world.token(&reply).await;
    world
        .worker
        .append_frames(&token, Some(&world.address), &[])
        .await
        .unwrap();
    let attempt = token.attempt;
    assert_eq!(
        next_signal(&mut listener).await,
        ReplySignal::Heartbeat { attempt }
    );
    assert_eq!(world.log(&reply).await, []);
}

pub(super) async fn waiting_is_pushed_without_a_claim_and_not_logged(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    world
        .worker
        .push(
            &world.address,
            &IngressEnvelope::Reply(reply.clone(), ReplySignal::Waiting),
        )
        .await
        .unwrap();
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
    let reply = world.reply();
    let token = world.token(&reply).await;
    let total = LISTENER_ENVELOPES_MAX as u64 + 2 * BATCH;
    for start in (1..=total).step_by(BATCH as usize) {
        world
            .worker
            .append_frames(
                &token,
                Some(&world.address),
                &texts(start..=start + BATCH - 1),
            )
            .await
            .unwrap();
    }
    assert_eq!(world.log(&reply).await.len() as u64, total);
    // Let the listener fill up before it is emptied.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while listener.len() < LISTENER_ENVELOPES_MAX {
        assert!(
            std::time::Instant::now() < deadline,
            "only {} frames arrived",
            listener.len()
        );
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let mut last = 0;
    for _ in 0..LISTENER_ENVELOPES_MAX {
        let seq = next(&mut listener).await.seq;
        assert!(seq > last, "out of order");
        last = seq;
    }
    assert!(listener.len() < 2 * BATCH as usize, "nothing was dropped");
}

pub(super) async fn new_generation_starts_a_new_log(world: World) {
    let reply = world.reply();
    let token = world.token(&reply).await;
    // Generations are random names: the later one is often the smaller number.
    for generation in [9, 2, 7] {
        let frames = [text_of(generation, 1), text_of(generation, 2)];
        assert_eq!(
            world
                .worker
                .append_frames(&token, None, &frames)
                .await
                .unwrap(),
            ClaimStatus::Held
        );
        assert_eq!(world.log(&reply).await, frames);
    }
}

pub(super) async fn missing_frames_are_reported_as_lost_state(world: World) {
    let reply = world.reply();
    let token = world.token(&reply).await;
    assert_eq!(
        world
            .worker
            .append_frames(&token, None, &[text(2)])
            .await
            .unwrap(),
        ClaimStatus::StateLost
    );
    world
        .worker
        .append_frames(&token, None, &[text(1)])
        .await
        .unwrap();
    assert_eq!(
        world
            .worker
            .append_frames(&token, None, &[text(3)])
            .await
            .unwrap(),
        ClaimStatus::StateLost
    );
    assert_eq!(
        world
            .worker
            .finalize_reply(&token, &completed(4))
            .await
            .unwrap(),
        ClaimStatus::StateLost
    );
    assert_eq!(
        world
            .worker
            .restore_claim(&token, None, &texts(1..=3))
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(
        world
            .worker
            .finalize_reply(&token, &completed(4))
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(world.log(&reply).await, texts(1..=3));
}

pub(super) async fn unknown_claim_is_reported_as_lost_state_and_restored(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    let token = foreign(&reply, 2);
    let push_to = Some(&world.address);
    assert_eq!(
        world
            .worker
            .append_frames(&token, push_to, &[text(3)])
            .await
            .unwrap(),
        ClaimStatus::StateLost
    );
    assert_eq!(
        world
            .worker
            .append_frames(&token, push_to, &[])
            .await
            .unwrap(),
        ClaimStatus::StateLost
    );
    assert_eq!(
        world
            .worker
            .finalize_reply(&token, &completed(3))
            .await
            .unwrap(),
        ClaimStatus::StateLost
    );
    let completion = world.completion(completed(3), true);
    assert_eq!(
        world
            .worker
            .complete_claim(&token, &completion)
            .await
            .unwrap(),
        ClaimStatus::StateLost
    );
    assert_silent(&world, &mut listener).await;

    assert_eq!(
        world
            .worker
            .restore_claim(&token, push_to, &texts(1..=3))
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    for seq in 1..=3 {
        assert_eq!(next(&mut listener).await, text(seq));
    }
    assert!(matches!(
        world.claim(&reply).await,
        ClaimOutcome::Busy { .. }
    ));
    assert!(matches!(
        world.claim(&world.reply()).await,
        ClaimOutcome::Busy { .. }
    ));
    assert_eq!(
        world
            .worker
            .append_frames(&token, None, &[text(4)])
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(world.log(&reply).await, texts(1..=4));
    // The next holder gets a higher number than the one that was restored.
    world.worker.release_claim(&token).await.unwrap();
    assert_eq!(world.token(&reply).await.attempt, 3);
}

pub(super) async fn restore_is_refused_after_another_claim(world: World) {
    let (reply, sibling) = (world.reply(), world.reply());
    let holder = world.token(&reply).await;
    for late in [foreign(&reply, 1), foreign(&reply, 2), foreign(&sibling, 1)] {
        assert_eq!(
            world
                .worker
                .restore_claim(&late, None, &texts(1..=2))
                .await
                .unwrap(),
            ClaimStatus::Fenced
        );
    }
    assert_eq!(world.log(&reply).await, []);
    assert_eq!(world.log(&sibling).await, []);
    assert_eq!(
        world
            .worker
            .append_frames(&holder, None, &[text(1)])
            .await
            .unwrap(),
        ClaimStatus::Held
    );
}

pub(super) async fn restored_log_accepts_one_gap(world: World) {
    let reply = world.reply();
    let token = foreign(&reply, 1);
    assert_eq!(
        world
            .worker
            .append_frames(&token, None, &[text(58)])
            .await
            .unwrap(),
        ClaimStatus::StateLost
    );
    assert_eq!(
        world
            .worker
            .restore_claim(&token, None, &texts(1..=2))
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(
        world
            .worker
            .append_frames(&token, None, &[text(58)])
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(
        world
            .worker
            .append_frames(&token, None, &[text(60)])
            .await
            .unwrap(),
        ClaimStatus::StateLost
    );
    assert_eq!(seqs(&world.log(&reply).await), [1, 2, 58]);
}

pub(super) async fn outcome_of_a_metadata_change_is_pushed(world: World) {
    let mut listener = world.listen().await;
    for outcome in [PatchOutcome::Applied, PatchOutcome::NotFound] {
        let patch = EventId::derive("conversation", "patched");
        world
            .worker
            .push(
                &world.address,
                &IngressEnvelope::Patch(patch.clone(), outcome),
            )
            .await
            .unwrap();
        let envelope = tokio::time::timeout(std::time::Duration::from_secs(10), listener.recv())
            .await
            .unwrap();
        assert_eq!(envelope, Some(IngressEnvelope::Patch(patch, outcome)));
    }
}

pub(super) async fn routing_of_a_playground_run_is_pushed(world: World) {
    let mut listener = world.listen().await;
    for verdict in [PlaygroundRouting::NoAgent, PlaygroundRouting::Expired] {
        let trial = MessageId::new_in(&world.conversation);
        world
            .worker
            .push(
                &world.address,
                &IngressEnvelope::Playground(trial.clone(), verdict.clone()),
            )
            .await
            .unwrap();
        let envelope = tokio::time::timeout(std::time::Duration::from_secs(10), listener.recv())
            .await
            .unwrap();
        assert_eq!(envelope, Some(IngressEnvelope::Playground(trial, verdict)));
    }
}
