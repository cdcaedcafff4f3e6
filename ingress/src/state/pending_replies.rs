//! Who waits for what on this process: one task takes every envelope off the relay's channel and never blocks, so that
//! one slow client cannot hold up the others.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use switchboard_backends::relay::Relay;
use switchboard_schemas::{
    ids::{EventId, IngressId, MessageId},
    playground::PlaygroundRouting,
    reply_event::{Frame, IngressEnvelope, PatchOutcome},
};
use tokio::sync::{mpsc, oneshot};

use crate::metrics::Metrics;

/// How long a relay that refuses to listen is left alone.
const LISTEN_RETRY: Duration = Duration::from_millis(500);

/// Everyone who waits.
pub(crate) struct Registry {
    waiting: Mutex<Waiting>,
    queue_frames_max: usize,
    metrics: Metrics,
}

#[derive(Default)]
struct Waiting {
    replies: HashMap<MessageId, Vec<Waiter>>,
    patches: HashMap<EventId, oneshot::Sender<PatchOutcome>>,
    trials: HashMap<MessageId, oneshot::Sender<PlaygroundRouting>>,
    last_number: u64,
}

struct Waiter {
    number: u64,
    frames: mpsc::Sender<Frame>,
    overflowed: Arc<AtomicBool>,
}

/// A place at which frames of one reply arrive; free again when it is dropped.
pub(crate) struct ReplySlot {
    registry: Arc<Registry>,
    reply: MessageId,
    number: u64,
    frames: mpsc::Receiver<Frame>,
    overflowed: Arc<AtomicBool>,
}

/// A place at which the outcome of one change arrives.
pub(crate) struct PatchSlot {
    registry: Arc<Registry>,
    event: EventId,
    outcome: oneshot::Receiver<PatchOutcome>,
}

/// A place at which it arrives who of a team would answer.
pub(crate) struct TrialSlot {
    registry: Arc<Registry>,
    trial: MessageId,
    verdict: oneshot::Receiver<PlaygroundRouting>,
}

impl Registry {
    pub(crate) fn new(queue_frames_max: usize, metrics: Metrics) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            queue_frames_max,
            metrics,
        })
    }

    /// Begins to wait for a reply; to be called before its job is published.
    pub(crate) fn wait_for_reply(self: &Arc<Self>, reply: MessageId) -> ReplySlot {
        let (sender, frames) = mpsc::channel(self.queue_frames_max);
        let overflowed = Arc::new(AtomicBool::new(false));
        let mut waiting = self.lock();
        waiting.last_number += 1;
        let number = waiting.last_number;
        let waiter = Waiter {
            number,
            frames: sender,
            overflowed: Arc::clone(&overflowed),
        };
        waiting
            .replies
            .entry(reply.clone())
            .or_default()
            .push(waiter);
        drop(waiting);
        ReplySlot {
            registry: Arc::clone(self),
            reply,
            number,
            frames,
            overflowed,
        }
    }

    /// Begins to wait for the outcome of a change; to be called before it is published.
    pub(crate) fn wait_for_patch(self: &Arc<Self>, event: EventId) -> PatchSlot {
        let (sender, outcome) = oneshot::channel();
        self.lock().patches.insert(event.clone(), sender);
        PatchSlot {
            registry: Arc::clone(self),
            event,
            outcome,
        }
    }

    /// Begins to wait for the verdict of a trial; to be called before it is published.
    pub(crate) fn wait_for_trial(self: &Arc<Self>, trial: MessageId) -> TrialSlot {
        let (sender, verdict) = oneshot::channel();
        self.lock().trials.insert(trial.clone(), sender);
        TrialSlot {
            registry: Arc::clone(self),
            trial,
            verdict,
        }
    }

    /// Whether anyone waits for a reply.
    #[cfg(test)]
    pub(crate) fn is_awaited(&self, reply: &MessageId) -> bool {
        self.lock().replies.contains_key(reply)
    }

    /// Hands an envelope to whoever waits for it.
    pub(crate) fn deliver(&self, envelope: IngressEnvelope) {
        let claimed = match envelope {
            IngressEnvelope::Reply(reply, frame) => self.deliver_frame(&reply, &frame),
            IngressEnvelope::Patch(event, outcome) => self
                .lock()
                .patches
                .remove(&event)
                .is_some_and(|slot| slot.send(outcome).is_ok()),
            IngressEnvelope::Playground(trial, verdict) => self
                .lock()
                .trials
                .remove(&trial)
                .is_some_and(|slot| slot.send(verdict).is_ok()),
        };
        if !claimed {
            self.metrics.envelopes_unclaimed.inc();
        }
    }

    fn deliver_frame(&self, reply: &MessageId, frame: &Frame) -> bool {
        let waiting = self.lock();
        let Some(waiters) = waiting.replies.get(reply) else {
            return false;
        };
        for waiter in waiters {
            if let Err(mpsc::error::TrySendError::Full(_)) = waiter.frames.try_send(frame.clone()) {
                waiter.overflowed.store(true, Ordering::Release);
            }
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplySlot {
    /// The next frame. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        self.frames.recv().await
    }

    /// Whether frames were dropped here and none is left: the log is to be read. Told once.
    pub(crate) fn must_pull(&self) -> bool {
        self.frames.is_empty() && self.overflowed.swap(false, Ordering::AcqRel)
    }
}

impl Drop for ReplySlot {
    fn drop(&mut self) {
        let mut waiting = self.registry.lock();
        if let Some(waiters) = waiting.replies.get_mut(&self.reply) {
            waiters.retain(|waiter| waiter.number != self.number);
            if waiters.is_empty() {
                waiting.replies.remove(&self.reply);
            }
        }
    }
}

impl PatchSlot {
    /// The outcome, if the relay brings it. Cancel-safe.
    pub(crate) async fn outcome(&mut self) -> Option<PatchOutcome> {
        (&mut self.outcome).await.ok()
    }
}

impl Drop for PatchSlot {
    fn drop(&mut self) {
        self.registry.lock().patches.remove(&self.event);
    }
}

impl TrialSlot {
    /// The verdict, if the relay brings it. Cancel-safe.
    pub(crate) async fn verdict(&mut self) -> Option<PlaygroundRouting> {
        (&mut self.verdict).await.ok()
    }
}

impl Drop for TrialSlot {
    fn drop(&mut self) {
        self.registry.lock().trials.remove(&self.trial);
    }
}

/// Delivers for ever what arrives for this process, beginning with `opened` if the channel is open already.
pub(crate) async fn listen(
    relay: Arc<dyn Relay>,
    ingress: IngressId,
    registry: Arc<Registry>,
    mut opened: Option<mpsc::Receiver<IngressEnvelope>>,
) {
    loop {
        if let Some(mut envelopes) = opened.take() {
            while let Some(envelope) = envelopes.recv().await {
                registry.deliver(envelope);
            }
        }
        match relay.listen(&ingress).await {
            Ok(envelopes) => opened = Some(envelopes),
            Err(error) => {
                tracing::warn!(%error, "reply channel not open");
                tokio::time::sleep(LISTEN_RETRY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::reply_event::FrameBody;

    use super::*;
    use crate::testing::{message_id, metrics};

    fn beat(seq: u64) -> Frame {
        Frame {
            attempt: 1,
            generation: 1,
            seq,
            body: FrameBody::Heartbeat,
        }
    }

    #[tokio::test]
    async fn a_full_queue_drops_frames_and_says_so_once_it_is_empty() {
        let registry = Registry::new(2, metrics());
        let mut slot = registry.wait_for_reply(message_id());
        for seq in 1..=3 {
            registry.deliver(IngressEnvelope::Reply(message_id(), beat(seq)));
        }
        assert!(!slot.must_pull(), "two frames are still to be read");
        assert_eq!(
            (slot.next().await, slot.next().await),
            (Some(beat(1)), Some(beat(2)))
        );
        assert!(slot.must_pull());
        assert!(!slot.must_pull());
    }

    #[tokio::test]
    async fn everyone_who_waits_for_a_reply_gets_its_frames() {
        let registry = Registry::new(2, metrics());
        let mut slots = [
            registry.wait_for_reply(message_id()),
            registry.wait_for_reply(message_id()),
        ];
        registry.deliver(IngressEnvelope::Reply(message_id(), beat(1)));
        for slot in &mut slots {
            assert_eq!(slot.next().await, Some(beat(1)));
        }
    }

    #[test]
    fn a_dropped_slot_leaves_nothing_behind() {
        let registry = Registry::new(2, metrics());
        let slots = [
            registry.wait_for_reply(message_id()),
            registry.wait_for_reply(message_id()),
        ];
        drop(slots);
        drop(registry.wait_for_patch(EventId::of("a", "b")));
        drop(registry.wait_for_trial(message_id()));
        let waiting = registry.lock();
        assert!(
            waiting.replies.is_empty() && waiting.patches.is_empty() && waiting.trials.is_empty()
        );
        drop(waiting);
        registry.deliver(IngressEnvelope::Reply(message_id(), beat(1)));
        assert_eq!(registry.metrics.envelopes_unclaimed.get(), 1);
    }

    #[tokio::test]
    async fn an_outcome_reaches_its_change_and_a_verdict_its_trial() {
        let registry = Registry::new(2, metrics());
        let mut slot = registry.wait_for_patch(EventId::of("a", "b"));
        registry.deliver(IngressEnvelope::Patch(
            EventId::of("a", "b"),
            PatchOutcome::NotFound,
        ));
        assert_eq!(slot.outcome().await, Some(PatchOutcome::NotFound));
        let mut slot = registry.wait_for_trial(message_id());
        registry.deliver(IngressEnvelope::Playground(
            message_id(),
            PlaygroundRouting::NoAgent,
        ));
        assert_eq!(slot.verdict().await, Some(PlaygroundRouting::NoAgent));
    }
}
