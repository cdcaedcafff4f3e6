//! Conformance tests of the queue slots.

use std::time::{Duration, Instant};

use futures::future::join_all;
use switchboard_schemas::ids::MessageId;

use crate::relay::ClaimOutcome;

use super::support::{World, any_conversation, completed, text};

const SLOTS: u32 = 3;

async fn enqueue(world: &World, reply: &MessageId) -> bool {
    world.ingress.reserve_slot(reply, SLOTS).await.unwrap()
}

async fn fill(world: &World) -> Vec<MessageId> {
    let replies: Vec<_> = (0..SLOTS).map(|_| world.reply()).collect();
    for reply in &replies {
        assert!(enqueue(world, reply).await);
    }
    replies
}

pub(super) async fn full_queue_accepts_only_replies_that_have_a_slot(world: World) {
    let replies = fill(&world).await;
    assert!(!enqueue(&world, &world.reply()).await);
    assert!(
        enqueue(&world, &replies[0]).await,
        "a repeat keeps its slot"
    );
    let elsewhere = MessageId::new_in(&any_conversation()).reply();
    assert!(enqueue(&world, &elsewhere).await);
}

pub(super) async fn replies_with_a_slot_are_known_by_their_conversation(world: World) {
    let mut replies = fill(&world).await;
    let conversation = replies[0].conversation();
    let token = world.token(&replies[0]).await;
    world.complete(&token, completed(1)).await;
    replies.remove(0);
    let mut queued = world.worker.queued_replies(&conversation).await.unwrap();
    replies.sort();
    queued.sort();
    assert_eq!(queued, replies);
    let elsewhere = any_conversation();
    assert_eq!(world.worker.queued_replies(&elsewhere).await.unwrap(), []);
}

pub(super) async fn concurrent_reservations_stay_within_the_limit(world: World) {
    let replies: Vec<_> = (0..4 * SLOTS).map(|_| world.reply()).collect();
    let taken = join_all(replies.iter().map(|reply| enqueue(&world, reply))).await;
    assert_eq!(
        taken.into_iter().filter(|taken| *taken).count(),
        SLOTS as usize
    );
}

pub(super) async fn completed_reply_frees_its_slot_and_needs_none(world: World) {
    let replies = fill(&world).await;
    let token = world.token(&replies[1]).await;
    world.append(&token, &[text(1)]).await;
    world.finalize(&token, &completed(2)).await;
    assert!(
        !enqueue(&world, &world.reply()).await,
        "a finalized reply is not stored yet"
    );
    world.complete(&token, completed(2)).await;
    assert!(
        enqueue(&world, &replies[1]).await,
        "a repeat of a final reply is served"
    );
    assert!(enqueue(&world, &world.reply()).await);
    assert!(!enqueue(&world, &world.reply()).await);
}

pub(super) async fn claim_knows_the_age_of_the_slot(world: World) {
    let [queued, unqueued] = [
        world.reply(),
        MessageId::new_in(&any_conversation()).reply(),
    ];
    let began = Instant::now();
    assert!(enqueue(&world, &queued).await);
    let reserved = Instant::now();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let least = reserved.elapsed();
    let ClaimOutcome::Granted { queue_wait, .. } = world.claim(&queued).await else {
        panic!("not granted")
    };
    // The relay counts whole milliseconds.
    let (queue_wait, rounding) = (queue_wait.unwrap(), Duration::from_millis(2));
    assert!(queue_wait + rounding >= least && queue_wait <= began.elapsed() + rounding);
    let ClaimOutcome::Granted { queue_wait, .. } = world.claim(&unqueued).await else {
        panic!("not granted")
    };
    assert_eq!(queue_wait, None);
}

pub(super) async fn voided_publish_frees_its_slot(world: World) {
    let replies = fill(&world).await;
    world
        .ingress
        .void_publish(&replies[2], "publish")
        .await
        .unwrap();
    assert!(enqueue(&world, &world.reply()).await);
}
