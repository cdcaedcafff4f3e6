//! Conformance tests of the end of a reply.

use switchboard_schemas::conversation::ReplyStatus::{
    Cancelled as CancelledEnd, Completed, Failed, Incomplete,
};

use super::support::{
    World, assert_pushed, assert_silent, completed, end, foreign, granted, text, texts,
};
use crate::relay::{
    ClaimCompletion, ClaimOutcome,
    ClaimStatus::{Cancelled, Fenced, Held},
    ClaimTask, RecordedDecisions, RoutingDecision,
};

pub(super) async fn finalized_end_is_hidden_until_completion(world: World) {
    let mut listener = world.listen().await;
    let (reply, token) = world.claimed_reply().await;
    world.append(&token, &texts(1..=2)).await;
    assert_eq!(world.finalize(&token, &completed(3)).await, Held);
    assert_eq!(world.log(&reply).await, texts(1..=2));
    assert_silent(&world, &mut listener).await;

    assert_eq!(world.complete(&token, completed(3)).await, Held);
    assert_eq!(world.log(&reply).await, [text(1), text(2), completed(3)]);
    assert_pushed(&mut listener, &[completed(3)]).await;
}

pub(super) async fn finalized_reply_accepts_no_other_text_or_end(world: World) {
    let mut listener = world.listen().await;
    let (reply, token) = world.claimed_reply().await;
    world.append(&token, &[text(1)]).await;
    world.finalize(&token, &completed(2)).await;
    assert_eq!(world.append_and_push(&token, &[text(2)]).await, Held);
    assert_eq!(world.restore(&token, &texts(1..=9)).await, Held);
    assert_eq!(world.finalize(&token, &end(2, Failed)).await, Held);
    assert_silent(&world, &mut listener).await;
    world.complete(&token, completed(2)).await;
    assert_eq!(world.log(&reply).await, [text(1), completed(2)]);
}

pub(super) async fn stored_end_is_logged_whatever_was_finalized(world: World) {
    let mut listener = world.listen().await;
    let (reply, token) = world.claimed_reply().await;
    world.append(&token, &[text(1)]).await;
    world.finalize(&token, &completed(2)).await;
    world.complete(&token, end(2, Failed)).await;
    assert_eq!(world.log(&reply).await, [text(1), end(2, Failed)]);
    assert_pushed(&mut listener, &[end(2, Failed)]).await;
}

pub(super) async fn cancelled_reply_accepts_only_a_cancelled_end(world: World) {
    let (reply, token) = world.claimed_reply().await;
    world.cancel(&reply).await;
    for status in [Completed, Incomplete, Failed] {
        assert_eq!(world.finalize(&token, &end(1, status)).await, Cancelled);
    }
    let cancelled = end(1, CancelledEnd);
    assert_eq!(world.finalize(&token, &cancelled).await, Held);
    world.complete(&token, cancelled.clone()).await;
    assert_eq!(world.log(&reply).await, [cancelled]);
}

pub(super) async fn finalized_end_is_handed_to_the_next_holder(world: World) {
    let (reply, dead) = world.claimed_reply().await;
    world.append(&dead, &texts(1..=2)).await;
    world.finalize(&dead, &completed(3)).await;
    let (token, task) = world.take_over(&reply).await;
    assert_eq!(task, ClaimTask::StoreFinalized { end: completed(3) });
    assert_eq!(world.complete(&dead, completed(3)).await, Fenced);
    assert_eq!(world.log(&reply).await, texts(1..=2));
    assert_eq!(world.complete(&token, completed(3)).await, Held);
    assert_eq!(world.claim(&reply).await, ClaimOutcome::Done);
}

pub(super) async fn stored_reply_is_left_to_announce(world: World) {
    let mut listener = world.listen().await;
    let (reply, token) = world.claimed_reply().await;
    world.complete_unannounced(&token, completed(1)).await;
    assert_pushed(&mut listener, &[completed(1)]).await;
    // The holder keeps the claim while it sends heartbeats.
    assert_eq!(world.heartbeat(&token).await, Held);
    assert!(world.is_busy(&reply).await);
    let (next_token, task) = world.take_over(&reply).await;
    assert_eq!((next_token.attempt, task), (2, ClaimTask::Announce));
    assert_eq!(world.complete(&token, completed(1)).await, Fenced);
    assert_eq!(world.complete(&next_token, completed(1)).await, Held);
    assert_eq!(world.claim(&reply).await, ClaimOutcome::Done);
    // The end is pushed once.
    assert_silent(&world, &mut listener).await;
    assert_eq!(world.log(&reply).await, [completed(1)]);
}

pub(super) async fn stored_reply_frees_its_conversation(world: World) {
    let (_, announcer) = world.claimed_reply().await;
    world.complete_unannounced(&announcer, completed(1)).await;
    let (_, token) = world.claimed_reply().await;
    let longer = ClaimCompletion {
        message_count: 4,
        ..world.completion(completed(1), true)
    };
    assert_eq!(world.complete_with(&token, &longer).await, Held);
    // The late announcement of an older turn does not reset the count.
    assert_eq!(world.complete(&announcer, completed(1)).await, Held);
    assert_eq!(granted(world.claim(&world.reply()).await).2, Some(4));
}

pub(super) async fn completed_reply_is_done_and_its_message_count_known(world: World) {
    let reply = world.reply();
    let (token, _, message_count) = granted(world.claim(&reply).await);
    assert_eq!(message_count, None);
    world.finalize(&token, &completed(1)).await;
    world.complete(&token, completed(1)).await;
    assert_eq!(world.claim(&reply).await, ClaimOutcome::Done);
    assert_eq!(granted(world.claim(&world.reply()).await).2, Some(2));
}

pub(super) async fn repeated_completion_has_no_effect(world: World) {
    let mut listener = world.listen().await;
    let (reply, token) = world.claimed_reply().await;
    for _ in 0..2 {
        assert_eq!(world.complete(&token, completed(1)).await, Held);
    }
    assert_eq!(
        world.complete(&foreign(&reply, 1), completed(1)).await,
        Fenced
    );
    assert_pushed(&mut listener, &[completed(1)]).await;
    assert_silent(&world, &mut listener).await;
    assert_eq!(world.log(&reply).await, [completed(1)]);
}

pub(super) async fn deleted_reply_has_no_text_and_stays_done(world: World) {
    let message = world.reply();
    let (reply, token) = (message.reply(), world.token(&message.reply()).await);
    let decision = RoutingDecision {
        agent_id: "agt_00000000000000000000000000".parse().unwrap(),
        reason: "why".into(),
        facts: None,
    };
    world
        .ingress
        .record_decision(&message, &decision)
        .await
        .unwrap();
    world.append(&token, &texts(1..=3)).await;
    world.finalize(&token, &completed(4)).await;
    world.complete(&token, completed(4)).await;
    assert_eq!(world.log(&reply).await.len(), 4);
    for _ in 0..2 {
        world.worker.delete_frames(&reply).await.unwrap();
        world.worker.delete_decisions(&message).await.unwrap();
        assert_eq!(world.log(&reply).await, []);
        assert_eq!(
            world.ingress.recorded_decisions(&message).await.unwrap(),
            RecordedDecisions::default()
        );
        assert_eq!(world.claim(&reply).await, ClaimOutcome::Done);
    }
    world.worker.delete_frames(&world.reply()).await.unwrap();
}
