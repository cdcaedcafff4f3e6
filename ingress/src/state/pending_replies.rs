//! Delivery of pushed frames to waiting requests. One task takes every envelope from the reply
//! channel and never blocks, so that a slow client cannot delay others.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use switchboard_backends::relay::ReplyLog;
use switchboard_schemas::{
    ids::{EventId, IngressId, MessageId, OrgId},
    playground::PlaygroundRouting,
    reply_event::{IngressEnvelope, PatchOutcome, ReplySignal},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::shared_reads::SharedReads;
use crate::metrics::IngressMetrics;

/// Pause before the reply channel is opened again after a failure.
const LISTEN_RETRY: Duration = Duration::from_millis(500);

/// Time for which a sign of crowding counts; workers repeat it every 5 s.
const CROWDED_TIME: Duration = Duration::from_secs(12);

/// Registry of the requests that wait for replies, patch outcomes and playground routings.
pub(crate) struct PendingReplies {
    waiting: Mutex<PendingTables>,
    /// Organizations that fill the queue of a worker, with the time of its last sign.
    crowded: Mutex<HashMap<OrgId, Instant>>,
    queue_frames_max: usize,
    metrics: IngressMetrics,
}

#[derive(Default)]
struct PendingTables {
    replies: HashMap<MessageId, PendingReply>,
    patches: OutcomeTable<EventId, PatchOutcome>,
    playground_runs: OutcomeTable<MessageId, PlaygroundRouting>,
    last_number: u64,
}

/// Requests that wait for one value each, by the id of its cause.
type OutcomeTable<K, V> = HashMap<K, oneshot::Sender<V>>;
type TableSelector<K, V> = fn(&mut PendingTables) -> &mut OutcomeTable<K, V>;

/// The requests that wait for one reply.
#[derive(Default)]
struct PendingReply {
    subscribers: Vec<ReplySubscriber>,
    reads: Arc<SharedReads>,
}

struct ReplySubscriber {
    number: u64,
    /// True for a request that published the job and watches its worker.
    watches: bool,
    signals: mpsc::Sender<ReplySignal>,
    overflowed: Arc<AtomicBool>,
}

/// Receiver of the signals about one reply; unregistered on drop.
pub(crate) struct ReplySubscription {
    pending: Arc<PendingReplies>,
    reply: MessageId,
    number: u64,
    signals: mpsc::Receiver<ReplySignal>,
    overflowed: Arc<AtomicBool>,
    reads: Arc<SharedReads>,
}

/// Receiver of one value; unregistered on drop.
pub(crate) struct OutcomeReceiver<K: Eq + Hash, V> {
    pending: Arc<PendingReplies>,
    table: TableSelector<K, V>,
    id: K,
    outcome: oneshot::Receiver<V>,
}

impl PendingReplies {
    pub(crate) fn new(queue_frames_max: usize, metrics: IngressMetrics) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            crowded: Mutex::default(),
            queue_frames_max,
            metrics,
        })
    }

    /// Returns true if so many messages of the organization wait that a worker would soon read no
    /// others.
    pub(crate) fn is_crowded(&self, org: &OrgId) -> bool {
        let mut crowded = self.crowded.lock();
        crowded.retain(|_, since| since.elapsed() < CROWDED_TIME);
        crowded.contains_key(org)
    }

    /// Subscribes to a reply. Must be called before its job is published.
    pub(crate) fn wait_for_reply(self: &Arc<Self>, reply: MessageId) -> ReplySubscription {
        let (sender, signals) = mpsc::channel(self.queue_frames_max);
        let overflowed = Arc::new(AtomicBool::new(false));
        let mut waiting = self.waiting.lock();
        waiting.last_number += 1;
        let number = waiting.last_number;
        let pending_reply = waiting.replies.entry(reply.clone()).or_default();
        pending_reply.subscribers.push(ReplySubscriber {
            number,
            watches: false,
            signals: sender,
            overflowed: Arc::clone(&overflowed),
        });
        let reads = Arc::clone(&pending_reply.reads);
        drop(waiting);
        ReplySubscription {
            pending: Arc::clone(self),
            reply,
            number,
            signals,
            overflowed,
            reads,
        }
    }

    /// Subscribes to the outcome of a patch. Must be called before it is published.
    pub(crate) fn wait_for_patch(
        self: &Arc<Self>,
        event: EventId,
    ) -> OutcomeReceiver<EventId, PatchOutcome> {
        self.wait_for_outcome(|tables| &mut tables.patches, event)
    }

    /// Subscribes to the routing of a team's playground run. Must be called before it is published.
    pub(crate) fn wait_for_playground_run(
        self: &Arc<Self>,
        run: MessageId,
    ) -> OutcomeReceiver<MessageId, PlaygroundRouting> {
        self.wait_for_outcome(|tables| &mut tables.playground_runs, run)
    }

    fn wait_for_outcome<K: Eq + Hash + Clone, V>(
        self: &Arc<Self>,
        table: TableSelector<K, V>,
        id: K,
    ) -> OutcomeReceiver<K, V> {
        let (sender, outcome) = oneshot::channel();
        table(&mut self.waiting.lock()).insert(id.clone(), sender);
        OutcomeReceiver {
            pending: Arc::clone(self),
            table,
            id,
            outcome,
        }
    }

    /// Returns true if any request waits for a reply.
    #[cfg(test)]
    pub(crate) fn is_awaited(&self, reply: &MessageId) -> bool {
        self.waiting.lock().replies.contains_key(reply)
    }

    /// Delivers an envelope to the requests that wait for it.
    pub(crate) fn deliver_envelope(&self, envelope: IngressEnvelope) {
        let claimed = match envelope {
            IngressEnvelope::Reply(reply, signal) => self.deliver_signal(&reply, &signal),
            IngressEnvelope::Patch(event, outcome) => self
                .waiting
                .lock()
                .patches
                .remove(&event)
                .is_some_and(|slot| slot.send(outcome).is_ok()),
            IngressEnvelope::Playground(run, routing) => self
                .waiting
                .lock()
                .playground_runs
                .remove(&run)
                .is_some_and(|slot| slot.send(routing).is_ok()),
            IngressEnvelope::Crowded(org) => {
                self.crowded.lock().insert(org, Instant::now());
                true
            }
        };
        if !claimed {
            self.metrics.envelopes_unclaimed.inc();
        }
    }

    /// Delivers a signal to the requests that wait for a reply. Returns false if there are none.
    pub(crate) fn deliver_signal(&self, reply: &MessageId, signal: &ReplySignal) -> bool {
        let waiting = self.waiting.lock();
        let Some(pending_reply) = waiting.replies.get(reply) else {
            return false;
        };
        for subscriber in &pending_reply.subscribers {
            if let Err(mpsc::error::TrySendError::Full(_)) =
                subscriber.signals.try_send(signal.clone())
            {
                subscriber.overflowed.store(true, Ordering::Release);
            }
        }
        true
    }
}

impl ReplySubscription {
    /// Returns the next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<ReplySignal> {
        self.signals.recv().await
    }

    /// Returns true once after signals were dropped and the queue is empty, so that the log must be
    /// read.
    pub(crate) fn must_pull(&self) -> bool {
        self.signals.is_empty() && self.overflowed.swap(false, Ordering::AcqRel)
    }

    /// Returns the reads that all followers of the reply in this process share.
    pub(crate) fn reads(&self) -> &SharedReads {
        &self.reads
    }

    /// Records that this request watches the worker of the reply.
    pub(crate) fn watch(&self) {
        self.set_watches(true);
    }

    /// Ends the watch. Returns true if no other request of this process watches the reply.
    pub(crate) fn end_watch(&self) -> bool {
        self.set_watches(false)
    }

    /// Returns true if no request watches the reply now.
    fn set_watches(&self, watches: bool) -> bool {
        let mut waiting = self.pending.waiting.lock();
        let pending_reply = waiting.replies.get_mut(&self.reply);
        pending_reply.is_none_or(|pending_reply| {
            let mut subscribers = pending_reply.subscribers.iter_mut();
            if let Some(own) = subscribers.find(|subscriber| subscriber.number == self.number) {
                own.watches = watches;
            }
            !pending_reply
                .subscribers
                .iter()
                .any(|subscriber| subscriber.watches)
        })
    }
}

impl Drop for ReplySubscription {
    fn drop(&mut self) {
        let mut waiting = self.pending.waiting.lock();
        if let Some(pending_reply) = waiting.replies.get_mut(&self.reply) {
            let subscribers = &mut pending_reply.subscribers;
            subscribers.retain(|subscriber| subscriber.number != self.number);
            if subscribers.is_empty() {
                waiting.replies.remove(&self.reply);
            }
        }
    }
}

impl<K: Eq + Hash, V> OutcomeReceiver<K, V> {
    /// Waits for the value. Returns `None` if another request took its place. Cancel-safe.
    pub(crate) async fn outcome(&mut self) -> Option<V> {
        (&mut self.outcome).await.ok()
    }
}

impl<K: Eq + Hash, V> Drop for OutcomeReceiver<K, V> {
    fn drop(&mut self) {
        (self.table)(&mut self.pending.waiting.lock()).remove(&self.id);
    }
}

/// Delivers all envelopes of this process, starting with `opened` if the channel is open already;
/// never returns.
pub(crate) async fn receive_envelopes(
    relay: Arc<dyn ReplyLog>,
    ingress: IngressId,
    pending: Arc<PendingReplies>,
    mut opened: Option<mpsc::Receiver<IngressEnvelope>>,
) {
    loop {
        if let Some(mut envelopes) = opened.take() {
            while let Some(envelope) = envelopes.recv().await {
                pending.deliver_envelope(envelope);
            }
        }
        match relay.subscribe(&ingress).await {
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
    use super::*;
    use crate::testing::{message_id, metrics};

    const fn heartbeat(attempt: u32) -> ReplySignal {
        ReplySignal::Heartbeat { attempt }
    }

    #[tokio::test]
    async fn full_queue_drops_frames_and_reports_it_once_empty() {
        let pending = PendingReplies::new(2, metrics());
        let mut slot = pending.wait_for_reply(message_id());
        for attempt in 1..=3 {
            pending.deliver_envelope(IngressEnvelope::Reply(message_id(), heartbeat(attempt)));
        }
        assert!(!slot.must_pull(), "two frames are still to be read");
        assert_eq!(
            (slot.next().await, slot.next().await),
            (Some(heartbeat(1)), Some(heartbeat(2)))
        );
        assert!(slot.must_pull());
        assert!(!slot.must_pull());
    }

    #[tokio::test]
    async fn frames_reach_all_subscribers_of_a_reply() {
        let pending = PendingReplies::new(2, metrics());
        let mut slots = [
            pending.wait_for_reply(message_id()),
            pending.wait_for_reply(message_id()),
        ];
        pending.deliver_envelope(IngressEnvelope::Reply(message_id(), heartbeat(1)));
        for slot in &mut slots {
            assert_eq!(slot.next().await, Some(heartbeat(1)));
        }
    }

    #[test]
    fn dropped_subscription_is_unregistered() {
        let pending = PendingReplies::new(2, metrics());
        let slots = [
            pending.wait_for_reply(message_id()),
            pending.wait_for_reply(message_id()),
        ];
        drop(slots);
        drop(pending.wait_for_patch(EventId::derive("a", "b")));
        drop(pending.wait_for_playground_run(message_id()));
        let waiting = pending.waiting.lock();
        assert!(
            waiting.replies.is_empty()
                && waiting.patches.is_empty()
                && waiting.playground_runs.is_empty()
        );
        drop(waiting);
        pending.deliver_envelope(IngressEnvelope::Reply(message_id(), heartbeat(1)));
        assert_eq!(pending.metrics.envelopes_unclaimed.get(), 1);
    }

    #[tokio::test]
    async fn outcomes_reach_their_subscriptions() {
        let pending = PendingReplies::new(2, metrics());
        let mut slot = pending.wait_for_patch(EventId::derive("a", "b"));
        pending.deliver_envelope(IngressEnvelope::Patch(
            EventId::derive("a", "b"),
            PatchOutcome::NotFound,
        ));
        assert_eq!(slot.outcome().await, Some(PatchOutcome::NotFound));
        let mut slot = pending.wait_for_playground_run(message_id());
        pending.deliver_envelope(IngressEnvelope::Playground(
            message_id(),
            PlaygroundRouting::NoAgent,
        ));
        assert_eq!(slot.outcome().await, Some(PlaygroundRouting::NoAgent));
    }
}
