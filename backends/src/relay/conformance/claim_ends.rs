//! Conformance tests of the end of a reply.

use switchboard_schemas::conversation::ReplyStatus;

use super::support::{World, assert_silent, completed, end, foreign, granted, next, text, texts};
use crate::relay::{
    ClaimCompletion, ClaimOutcome, ClaimStatus, ClaimTask, RecordedDecisions, RoutingDecision,
};

pub(super) async fn finalized_end_is_hidden_until_completion(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    let token = world.token(&reply).await;
    world
        .worker
        .append_frames(&token, None, &texts(1..=2))
        .await
        .unwrap();
    assert_eq!(
        world
            .worker
            .finalize_reply(&token, &completed(3))
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(world.log(&reply).await, texts(1..=2));
    assert_silent(&world, &mut listener).await;

    let completion = world.completion(completed(3), true);
    assert_eq!(
        world
            .worker
            .complete_claim(&token, &completion)
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(
        world.log(&reply).await,
        [texts(1..=2), vec![completed(3)]].concat()
    );
    assert_eq!(next(&mut listener).await, completed(3));
}

pub(super) async fn finalized_reply_accepts_no_other_text_or_end(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    let token = world.token(&reply).await;
    world
        .worker
        .append_frames(&token, None, &[text(1)])
        .await
        .unwrap();
    world
        .worker
        .finalize_reply(&token, &completed(2))
        .await
        .unwrap();
    let push_to = Some(&world.address);
    assert_eq!(
        world
            .worker
            .append_frames(&token, push_to, &[text(2)])
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(
        world
            .worker
            .restore_claim(&token, push_to, &texts(1..=9))
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(
        world
            .worker
            .finalize_reply(&token, &end(2, ReplyStatus::Failed))
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_silent(&world, &mut listener).await;
    world
        .worker
        .complete_claim(&token, &world.completion(end(2, ReplyStatus::Failed), true))
        .await
        .unwrap();
    assert_eq!(world.log(&reply).await, [text(1), completed(2)]);
}

pub(super) async fn cancelled_reply_accepts_only_a_cancelled_end(world: World) {
    let reply = world.reply();
    let token = world.token(&reply).await;
    world.ingress.cancel_reply(&reply).await.unwrap();
    for status in [
        ReplyStatus::Completed,
        ReplyStatus::Incomplete,
        ReplyStatus::Failed,
    ] {
        assert_eq!(
            world
                .worker
                .finalize_reply(&token, &end(1, status))
                .await
                .unwrap(),
            ClaimStatus::Cancelled
        );
    }
    let cancelled = end(1, ReplyStatus::Cancelled);
    assert_eq!(
        world
            .worker
            .finalize_reply(&token, &cancelled)
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    world
        .worker
        .complete_claim(&token, &world.completion(cancelled.clone(), true))
        .await
        .unwrap();
    assert_eq!(world.log(&reply).await, [cancelled]);
}

pub(super) async fn finalized_end_is_handed_to_the_next_holder(world: World) {
    let reply = world.reply();
    let dead = world.token(&reply).await;
    world
        .worker
        .append_frames(&dead, None, &texts(1..=2))
        .await
        .unwrap();
    world
        .worker
        .finalize_reply(&dead, &completed(3))
        .await
        .unwrap();
    let (token, task) = world.take_over(&reply).await;
    assert_eq!(task, ClaimTask::StoreFinalized { end: completed(3) });
    assert_eq!(
        world
            .worker
            .complete_claim(&dead, &world.completion(completed(3), true))
            .await
            .unwrap(),
        ClaimStatus::Fenced
    );
    assert_eq!(world.log(&reply).await, texts(1..=2));
    assert_eq!(
        world
            .worker
            .complete_claim(&token, &world.completion(completed(3), true))
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(world.claim(&reply).await, ClaimOutcome::Done);
}

pub(super) async fn stored_reply_is_left_to_announce(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    let token = world.token(&reply).await;
    world
        .worker
        .complete_claim(&token, &world.completion(completed(1), false))
        .await
        .unwrap();
    assert_eq!(next(&mut listener).await, completed(1));
    // The holder keeps the claim while it sends heartbeats.
    assert_eq!(
        world.worker.append_frames(&token, None, &[]).await.unwrap(),
        ClaimStatus::Held
    );
    assert!(matches!(
        world.claim(&reply).await,
        ClaimOutcome::Busy { .. }
    ));
    let (next_token, task) = world.take_over(&reply).await;
    assert_eq!((next_token.attempt, task), (2, ClaimTask::Announce));
    let again = world.completion(completed(1), true);
    assert_eq!(
        world.worker.complete_claim(&token, &again).await.unwrap(),
        ClaimStatus::Fenced
    );
    assert_eq!(
        world
            .worker
            .complete_claim(&next_token, &again)
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(world.claim(&reply).await, ClaimOutcome::Done);
    // The end is pushed once.
    assert_silent(&world, &mut listener).await;
    assert_eq!(world.log(&reply).await, [completed(1)]);
}

pub(super) async fn stored_reply_frees_its_conversation(world: World) {
    let (stored, following) = (world.reply(), world.reply());
    let announcer = world.token(&stored).await;
    world
        .worker
        .complete_claim(&announcer, &world.completion(completed(1), false))
        .await
        .unwrap();
    let token = world.token(&following).await;
    let longer = ClaimCompletion {
        message_count: 4,
        ..world.completion(completed(1), true)
    };
    assert_eq!(
        world.worker.complete_claim(&token, &longer).await.unwrap(),
        ClaimStatus::Held
    );
    // The late announcement of an older turn does not reset the count.
    assert_eq!(
        world
            .worker
            .complete_claim(&announcer, &world.completion(completed(1), true))
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert!(matches!(
        world.claim(&world.reply()).await,
        ClaimOutcome::Granted {
            message_count: Some(4),
            ..
        }
    ));
}

pub(super) async fn completed_reply_is_done_and_its_message_count_known(world: World) {
    let reply = world.reply();
    let claim = world.claim(&reply).await;
    assert!(matches!(
        claim,
        ClaimOutcome::Granted {
            message_count: None,
            ..
        }
    ));
    let (token, _) = granted(claim);
    world
        .worker
        .finalize_reply(&token, &completed(1))
        .await
        .unwrap();
    world
        .worker
        .complete_claim(&token, &world.completion(completed(1), true))
        .await
        .unwrap();
    assert_eq!(world.claim(&reply).await, ClaimOutcome::Done);
    assert!(matches!(
        world.claim(&world.reply()).await,
        ClaimOutcome::Granted {
            message_count: Some(2),
            ..
        }
    ));
}

pub(super) async fn repeated_completion_has_no_effect(world: World) {
    let mut listener = world.listen().await;
    let reply = world.reply();
    let token = world.token(&reply).await;
    let completion = world.completion(completed(1), true);
    for _ in 0..2 {
        assert_eq!(
            world
                .worker
                .complete_claim(&token, &completion)
                .await
                .unwrap(),
            ClaimStatus::Held
        );
    }
    assert_eq!(
        world
            .worker
            .complete_claim(&foreign(&reply, 1), &completion)
            .await
            .unwrap(),
        ClaimStatus::Fenced
    );
    assert_eq!(next(&mut listener).await, completed(1));
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
    world
        .worker
        .append_frames(&token, None, &texts(1..=3))
        .await
        .unwrap();
    world
        .worker
        .finalize_reply(&token, &completed(4))
        .await
        .unwrap();
    world
        .worker
        .complete_claim(&token, &world.completion(completed(4), true))
        .await
        .unwrap();
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
