//! Sentences about who may work on a reply.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use switchboard_schemas::conversation::ReplyStatus;
use tokio::task::JoinSet;

use super::support::{World, any_conversation, completed, end, granted, request, text, texts};
use crate::relay::{
    ATTEMPTS_MAX, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimTask, HEARTBEAT_INTERVAL, LEASE,
};
use switchboard_schemas::ids::MessageId;

pub(super) async fn of_many_that_ask_one_gets_the_reply(world: World) {
    let reply = world.reply();
    let mut claims = JoinSet::new();
    for index in 0..40 {
        let relay = Arc::clone(if index % 2 == 0 {
            &world.worker
        } else {
            &world.ingress
        });
        let request = request(&reply);
        claims.spawn(async move { relay.claim(&request).await.unwrap() });
    }
    let claims = claims.join_all().await;
    let (granted, busy): (Vec<_>, Vec<_>) = claims.into_iter().partition(|claim| {
        matches!(
            claim,
            ClaimOutcome::Granted {
                task: ClaimTask::Generate,
                ..
            }
        )
    });
    assert_eq!(granted.len(), 1);
    for claim in busy {
        assert!(
            matches!(claim, ClaimOutcome::Busy { retry_after } if retry_after <= LEASE && !retry_after.is_zero()),
            "{claim:?}"
        );
    }
}

pub(super) async fn one_reply_of_a_conversation_is_claimed_at_a_time(world: World) {
    world.token(&world.reply()).await;
    assert!(matches!(
        world.claim(&world.reply()).await,
        ClaimOutcome::Busy { .. }
    ));
    let elsewhere = MessageId::new_in(&any_conversation()).reply();
    assert!(matches!(
        world.claim(&elsewhere).await,
        ClaimOutcome::Granted { .. }
    ));
}

pub(super) async fn an_ended_lease_passes_to_the_next_with_a_higher_attempt(world: World) {
    let (reply, start) = (world.reply(), Instant::now());
    let dead = world.token(&reply).await;
    let (token, task) = world.take_over(&reply).await;
    assert!(
        start.elapsed() > LEASE - Duration::from_millis(50),
        "taken over from the living"
    );
    assert!(
        start.elapsed() < LEASE + Duration::from_secs(2),
        "taken over late"
    );
    assert_eq!(
        (dead.attempt, token.attempt, task),
        (1, 2, ClaimTask::Generate)
    );
    assert_eq!(
        world.worker.append(&dead, None, &[text(1)]).await.unwrap(),
        ClaimStatus::Fenced
    );
    assert_eq!(
        world.worker.append(&token, None, &[text(1)]).await.unwrap(),
        ClaimStatus::Held
    );
}

pub(super) async fn a_beat_keeps_the_claim(world: World) {
    let reply = world.reply();
    let token = world.token(&reply).await;
    let end = Instant::now() + LEASE + HEARTBEAT_INTERVAL;
    while Instant::now() < end {
        assert_eq!(
            world.worker.append(&token, None, &[]).await.unwrap(),
            ClaimStatus::Held
        );
        assert!(matches!(
            world.claim(&reply).await,
            ClaimOutcome::Busy { .. }
        ));
        tokio::time::sleep(HEARTBEAT_INTERVAL / 2).await;
    }
}

pub(super) async fn after_the_last_attempt_died_the_next_is_told_to_give_up(world: World) {
    let reply = world.reply();
    for attempt in 1..=ATTEMPTS_MAX {
        let (token, task) = world.take_over(&reply).await;
        assert_eq!((token.attempt, task), (attempt, ClaimTask::Generate));
    }
    let (token, task) = world.take_over(&reply).await;
    assert_eq!((token.attempt, task), (ATTEMPTS_MAX + 1, ClaimTask::GiveUp));
    assert_eq!(
        world
            .worker
            .seal(&token, &end(1, ReplyStatus::Failed))
            .await
            .unwrap(),
        ClaimStatus::Held
    );
}

pub(super) async fn the_lowest_attempt_is_respected(world: World) {
    let reply = world.reply();
    let mut attempts = Vec::new();
    for attempt_min in [5, 1, 9] {
        let claim = world
            .worker
            .claim(&ClaimRequest {
                attempt_min,
                ..request(&reply)
            })
            .await
            .unwrap();
        let (token, _) = granted(claim);
        attempts.push(token.attempt);
        world.worker.release(&token).await.unwrap();
    }
    assert_eq!(attempts, [5, 6, 9]);
}

pub(super) async fn a_release_lets_the_next_claim_succeed_at_once_and_costs_no_attempt(
    world: World,
) {
    let reply = world.reply();
    for attempt in 1..=ATTEMPTS_MAX * 2 {
        let (token, task) = granted(world.claim(&reply).await);
        assert_eq!((token.attempt, task), (attempt, ClaimTask::Generate));
        world.worker.release(&token).await.unwrap();
        assert_eq!(
            world.worker.append(&token, None, &[]).await.unwrap(),
            ClaimStatus::Fenced
        );
    }
    // It frees the conversation as well.
    world.token(&world.reply()).await;
}

pub(super) async fn a_voided_publish_is_not_worked_on(world: World) {
    let reply = world.reply();
    world.ingress.void(&reply, "publish").await.unwrap();
    assert_eq!(world.claim(&reply).await, ClaimOutcome::Voided);
    // The client's retry is another publish of the same message.
    let again = ClaimRequest {
        publish_nonce: "again".into(),
        ..request(&reply)
    };
    assert!(matches!(
        world.worker.claim(&again).await.unwrap(),
        ClaimOutcome::Granted { .. }
    ));
}

pub(super) async fn a_cancel_is_told_by_append_beat_and_seal(world: World) {
    let reply = world.reply();
    let token = world.token(&reply).await;
    assert_eq!(
        world.worker.append(&token, None, &[text(1)]).await.unwrap(),
        ClaimStatus::Held
    );
    assert!(world.ingress.cancel(&reply).await.unwrap());
    assert_eq!(
        world.worker.append(&token, None, &[text(2)]).await.unwrap(),
        ClaimStatus::Cancelled
    );
    assert_eq!(
        world.worker.append(&token, None, &[]).await.unwrap(),
        ClaimStatus::Cancelled
    );
    assert_eq!(
        world.worker.seal(&token, &completed(3)).await.unwrap(),
        ClaimStatus::Cancelled
    );
    // The text that was under way is part of what the client may see.
    assert_eq!(world.log(&reply).await, texts(1..=2));
}

pub(super) async fn a_cancel_before_the_first_claim_is_told_to_its_claimer(world: World) {
    let reply = world.reply();
    assert!(world.ingress.cancel(&reply).await.unwrap());
    let (token, task) = granted(world.claim(&reply).await);
    assert_eq!((token.attempt, task), (1, ClaimTask::Generate));
    assert_eq!(
        world.worker.append(&token, None, &[]).await.unwrap(),
        ClaimStatus::Cancelled
    );
}

pub(super) async fn a_final_or_sealed_reply_is_not_cancelled(world: World) {
    let reply = world.reply();
    let token = world.token(&reply).await;
    world.worker.seal(&token, &completed(1)).await.unwrap();
    assert!(!world.ingress.cancel(&reply).await.unwrap());
    for announced in [false, true] {
        world
            .worker
            .settle(&token, &world.settlement(completed(1), announced))
            .await
            .unwrap();
        assert!(!world.ingress.cancel(&reply).await.unwrap());
    }
}

pub(super) async fn a_holder_that_was_overtaken_in_its_conversation_is_fenced(world: World) {
    let (slow, next) = (world.reply(), world.reply());
    let late = world.token(&slow).await;
    let (token, _) = world.take_over(&next).await;
    assert_eq!(
        world.worker.append(&late, None, &[text(1)]).await.unwrap(),
        ClaimStatus::Fenced
    );
    // Even when the conversation is free again: a turn may have passed that it has not read.
    world.worker.release(&token).await.unwrap();
    assert_eq!(
        world.worker.append(&late, None, &[text(1)]).await.unwrap(),
        ClaimStatus::Fenced
    );
    assert_eq!(world.token(&slow).await.attempt, 2);
}

pub(super) async fn it_answers_that_it_is_there(world: World) {
    world.worker.check().await.unwrap();
}
