//! Conformance tests of claims.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use switchboard_schemas::{conversation::ReplyStatus, ids::MessageId};
use tokio::task::JoinSet;

use super::support::{
    World, any_conversation, cancelled_in_queue, completed, end, granted, request, text, texts,
};
use crate::relay::{
    ATTEMPTS_MAX, CancelOutcome, ClaimOutcome, ClaimRequest,
    ClaimStatus::{Cancelled, Fenced, Held},
    ClaimTask, HEARTBEAT_INTERVAL, LEASE,
};

pub(super) async fn reply_is_granted_to_one_of_many_claimers(world: World) {
    let reply = world.reply();
    let mut claims = JoinSet::new();
    for index in 0..40 {
        let relay = Arc::clone(if index % 2 == 0 {
            &world.worker
        } else {
            &world.ingress
        });
        let request = request(&reply);
        claims.spawn(async move { relay.claim_reply(&request).await.unwrap() });
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
            matches!(claim, ClaimOutcome::Busy { retry_after, attempt: Some(1) } if retry_after <= LEASE && !retry_after.is_zero()),
            "{claim:?}"
        );
    }
}

pub(super) async fn conversation_has_one_claimed_reply_at_a_time(world: World) {
    world.token(&world.reply()).await;
    assert!(world.is_busy(&world.reply()).await);
    let elsewhere = MessageId::new_in(&any_conversation()).reply();
    world.token(&elsewhere).await;
}

pub(super) async fn expired_lease_is_granted_with_a_higher_attempt(world: World) {
    let (reply, start) = (world.reply(), Instant::now());
    let dead = world.token(&reply).await;
    let (token, task) = world.take_over(&reply).await;
    assert!(
        start.elapsed() > LEASE - Duration::from_millis(50),
        "granted despite a live holder"
    );
    assert!(
        start.elapsed() < LEASE + Duration::from_secs(5),
        "granted late"
    );
    assert_eq!(
        (dead.attempt, token.attempt, task),
        (1, 2, ClaimTask::Generate)
    );
    assert_eq!(world.append(&dead, &[text(1)]).await, Fenced);
    assert_eq!(world.append(&token, &[text(1)]).await, Held);
}

pub(super) async fn heartbeat_renews_the_lease(world: World) {
    let (reply, token) = world.claimed_reply().await;
    let end = Instant::now() + LEASE + HEARTBEAT_INTERVAL;
    while Instant::now() < end {
        assert_eq!(world.heartbeat(&token).await, Held);
        assert!(world.is_busy(&reply).await);
        tokio::time::sleep(HEARTBEAT_INTERVAL / 2).await;
    }
}

pub(super) async fn remaining_lease_is_that_of_the_valid_claim(world: World) {
    let (reply, other) = (world.reply(), world.reply());
    let remaining = async |reply| world.ingress.remaining_lease(reply).await.unwrap();
    assert_eq!(remaining(&reply).await, None, "not claimed yet");
    let token = world.token(&reply).await;
    tokio::time::sleep(LEASE / 4).await;
    let left = remaining(&reply).await.unwrap();
    assert!(left <= LEASE * 3 / 4, "{left:?} after a quarter");
    world.heartbeat(&token).await;
    let renewed = remaining(&reply).await.unwrap();
    assert!(renewed > left && renewed <= LEASE, "{renewed:?} renewed");
    assert_eq!(remaining(&other).await, None, "another reply");
    world.release(&token).await;
    assert_eq!(remaining(&reply).await, None, "released");
    world.token(&reply).await;
    tokio::time::sleep(LEASE).await;
    assert_eq!(remaining(&reply).await, None, "expired");
}

pub(super) async fn claim_after_the_last_attempt_gives_up(world: World) {
    let reply = world.reply();
    for attempt in 1..=ATTEMPTS_MAX {
        let (token, task) = world.take_over(&reply).await;
        assert_eq!((token.attempt, task), (attempt, ClaimTask::Generate));
    }
    let (token, task) = world.take_over(&reply).await;
    assert_eq!((token.attempt, task), (ATTEMPTS_MAX + 1, ClaimTask::GiveUp));
    assert_eq!(
        world.finalize(&token, &end(1, ReplyStatus::Failed)).await,
        Held
    );
}

pub(super) async fn lowest_attempt_of_the_request_is_respected(world: World) {
    let reply = world.reply();
    let mut attempts = Vec::new();
    for attempt_min in [5, 1, 9] {
        let request = ClaimRequest {
            attempt_min,
            ..request(&reply)
        };
        let (token, ..) = granted(world.worker.claim_reply(&request).await.unwrap());
        attempts.push(token.attempt);
        world.release(&token).await;
    }
    assert_eq!(attempts, [5, 6, 9]);
}

pub(super) async fn repeated_claim_of_an_attempt_is_granted_again(world: World) {
    let reply = world.reply();
    let request = request(&reply);
    let (token, ..) = granted(world.worker.claim_reply(&request).await.unwrap());
    for _ in 0..=ATTEMPTS_MAX {
        // The answer to the first call was lost: this is no further attempt.
        let (again, task, _) = granted(world.worker.claim_reply(&request).await.unwrap());
        assert_eq!((&again, task), (&token, ClaimTask::Generate));
    }
    assert!(matches!(
        world.claim(&reply).await,
        ClaimOutcome::Busy { .. }
    ));
}

pub(super) async fn released_claim_is_granted_at_once_and_costs_no_attempt(world: World) {
    let reply = world.reply();
    for attempt in 1..=ATTEMPTS_MAX * 2 {
        let (token, task, _) = granted(world.claim(&reply).await);
        assert_eq!((token.attempt, task), (attempt, ClaimTask::Generate));
        world.release(&token).await;
        assert_eq!(world.heartbeat(&token).await, Fenced);
    }
    // The release also frees the conversation.
    world.token(&world.reply()).await;
}

pub(super) async fn voided_publish_is_not_claimed(world: World) {
    let reply = world.reply();
    world.ingress.void_publish(&reply, "publish").await.unwrap();
    assert_eq!(world.claim(&reply).await, ClaimOutcome::Voided);
    // The client's retry is another publish of the same message.
    let again = ClaimRequest {
        publish_nonce: "again".into(),
        ..request(&reply)
    };
    granted(world.worker.claim_reply(&again).await.unwrap());
}

pub(super) async fn cancellation_is_returned_by_append_heartbeat_and_finalize(world: World) {
    let (reply, token) = world.claimed_reply().await;
    assert_eq!(world.append(&token, &[text(1)]).await, Held);
    assert_eq!(world.cancel(&reply).await, CancelOutcome::Requested);
    assert_eq!(world.append(&token, &[text(2)]).await, Cancelled);
    assert_eq!(world.heartbeat(&token).await, Cancelled);
    assert_eq!(world.finalize(&token, &completed(3)).await, Cancelled);
    // Text in flight during the cancellation stays visible to the client.
    assert_eq!(world.log(&reply).await, texts(1..=2));
}

pub(super) async fn cancellation_before_the_first_claim_reaches_its_holder(world: World) {
    let reply = world.reply();
    assert_eq!(world.cancel(&reply).await, CancelOutcome::Requested);
    let (token, task, _) = granted(world.claim(&reply).await);
    assert_eq!((token.attempt, task), (1, ClaimTask::Generate));
    assert_eq!(world.heartbeat(&token).await, Cancelled);
}

pub(super) async fn cancelled_reply_with_a_slot_ends_before_its_claim(world: World) {
    let reply = world.reply();
    assert!(world.ingress.reserve_slot(&reply, 1).await.unwrap());
    assert_eq!(world.cancel(&reply).await, CancelOutcome::Ended);
    assert_eq!(world.cancel(&reply).await, CancelOutcome::TooLate);
    let end = cancelled_in_queue();
    assert_eq!(world.log(&reply).await, std::slice::from_ref(&end));
    let (token, task, _) = granted(world.claim(&reply).await);
    let store = ClaimTask::StoreFinalized { end: end.clone() };
    assert_eq!((token.attempt, task), (1, store));
    assert_eq!(world.complete(&token, end).await, Held);
    assert_eq!(world.claim(&reply).await, ClaimOutcome::Done);
}

pub(super) async fn final_or_finalized_reply_is_not_cancelled(world: World) {
    let (reply, token) = world.claimed_reply().await;
    world.finalize(&token, &completed(1)).await;
    assert_eq!(world.cancel(&reply).await, CancelOutcome::TooLate);
    world.complete_unannounced(&token, completed(1)).await;
    assert_eq!(world.cancel(&reply).await, CancelOutcome::TooLate);
    world.complete(&token, completed(1)).await;
    assert_eq!(world.cancel(&reply).await, CancelOutcome::TooLate);
}

pub(super) async fn overtaken_holder_in_its_conversation_is_fenced(world: World) {
    let (slow, late) = world.claimed_reply().await;
    let (token, _) = world.take_over(&world.reply()).await;
    assert_eq!(world.append(&late, &[text(1)]).await, Fenced);
    // Also once the conversation is free again: the holder may have missed a turn.
    world.release(&token).await;
    assert_eq!(world.append(&late, &[text(1)]).await, Fenced);
    assert_eq!(world.token(&slow).await.attempt, 2);
}
