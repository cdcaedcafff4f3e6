//! Publishes that were refused although their records may still be delivered.
//!
//! The relay remembers that they are void, but may lose its state before the producer has given up
//! their records. Until then this process voids them again and again.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use parking_lot::Mutex;
use switchboard_schemas::{ids::MessageId, turn::Turn};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::AppState;

/// Time for which a record may be appended after its refusal, which is the message timeout of the
/// producer, and for which a worker may take to read it.
const DELIVERABLE_FOR: Duration = Duration::from_secs(20);
/// Below the time for which a relay without state refuses older jobs.
const VOID_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout for voiding a publish; the first time, a client is waiting for its 503.
const VOID_TIMEOUT: Duration = Duration::from_millis(500);
/// Refused messages that are remembered, at about 300 bytes each. Further ones are voided once.
const REFUSED_MESSAGES_MAX: usize = 50_000;
/// Refused publishes of one message that are remembered, more than clients repeat in the time for
/// which one is deliverable. The oldest ones are forgotten first.
const PUBLISHES_MAX: usize = 16;
const CONCURRENT_VOIDS_MAX: usize = 64;

/// The refused publishes of the last seconds.
#[derive(Default)]
pub(crate) struct RefusedPublishes {
    by_reply: Mutex<HashMap<MessageId, RefusedMessage>>,
}

/// The refused publishes of one message, oldest first.
type RefusedMessage = VecDeque<RefusedPublish>;

struct RefusedPublish {
    nonce: String,
    deliverable_until: Instant,
}

impl RefusedPublishes {
    /// Adds a publish that the client was told has failed.
    pub(crate) fn add(&self, turn: &Turn) {
        let mut by_reply = self.by_reply.lock();
        let reply = turn.reply_id();
        if by_reply.len() >= REFUSED_MESSAGES_MAX && !by_reply.contains_key(&reply) {
            return;
        }
        let refused = by_reply.entry(reply).or_default();
        if refused.len() >= PUBLISHES_MAX {
            refused.pop_front();
        }
        refused.push_back(RefusedPublish {
            nonce: turn.publish_nonce.clone(),
            deliverable_until: Instant::now() + DELIVERABLE_FOR,
        });
    }

    /// Removes a message that was accepted after all: whichever of its records runs first counts.
    pub(crate) fn forget(&self, turn: &Turn) {
        let mut by_reply = self.by_reply.lock();
        if !by_reply.is_empty() {
            by_reply.remove(&turn.reply_id());
        }
    }

    /// Returns the publishes whose records may still be delivered.
    fn deliverable(&self) -> Vec<(MessageId, String)> {
        let mut by_reply = self.by_reply.lock();
        let now = Instant::now();
        by_reply.retain(|_, refused| {
            refused.retain(|publish| publish.deliverable_until > now);
            !refused.is_empty()
        });
        let publishes = by_reply.iter().flat_map(|(reply, refused)| {
            refused
                .iter()
                .map(|publish| (reply.clone(), publish.nonce.clone()))
        });
        publishes.collect()
    }
}

/// Voids refused publishes again, every second.
pub(crate) async fn void_periodically(state: &AppState) {
    let mut ticks = interval(VOID_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        void_again(state).await;
    }
}

/// Voids once all refused publishes whose records may still be delivered.
pub(crate) async fn void_again(state: &AppState) {
    let refused = stream::iter(state.refused_publishes.deliverable());
    refused
        .for_each_concurrent(CONCURRENT_VOIDS_MAX, async |(reply, nonce)| {
            // A relay that does not respond is asked again in a second.
            void_once(state, &reply, &nonce).await;
        })
        .await;
}

/// Voids a publish. Returns false if the relay does not confirm that in time.
pub(crate) async fn void_once(state: &AppState, reply: &MessageId, nonce: &str) -> bool {
    let void = state.backends.relay.void_publish(reply, nonce);
    matches!(timeout(VOID_TIMEOUT, void).await, Ok(Ok(())))
}
