//! The embedded twins, with faults on request.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde_json::{Map, Value};
use switchboard_backends::{
    bus::{BusConsumer, BusError, MessageBus, OutgoingRecord, embedded::EmbeddedBus},
    relay::{
        ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimTask, ClaimToken,
        RecordedDecisions, Relay, RelayError, RoundRobinOffer, RoutingDecision,
        embedded::EmbeddedRelay,
    },
    store::{
        AcceptedReply, ConversationStore, ReplyState, SessionLink, StoreError, TurnEnd, TurnStart,
        deletion::{ConversationDeletion, HistoryState},
        embedded::EmbeddedStore,
        listing::{ListQuery, ListedConversation},
    },
};
use switchboard_schemas::{
    client_text::SessionId,
    conversation::{Conversation, Message},
    erasure::Erasure,
    ids::{AgentId, ConversationId, ErasureId, EventId, IngressId, MessageId, OrgId},
    playground::PlaygroundRouting,
    reply_event::{Frame, IngressEnvelope, PatchOutcome},
    time::Timestamp,
    topics::Topic,
};
use tokio::{sync::mpsc, time::Instant};

/// The embedded bus, which can refuse events.
pub(super) struct FaultyBus {
    inner: EmbeddedBus,
    events_away: AtomicBool,
}

impl FaultyBus {
    pub(super) const fn new(inner: EmbeddedBus) -> Self {
        Self {
            inner,
            events_away: AtomicBool::new(false),
        }
    }

    pub(super) fn set_events_away(&self, away: bool) {
        self.events_away.store(away, Ordering::SeqCst);
    }
}

#[async_trait]
impl MessageBus for FaultyBus {
    async fn publish(&self, record: OutgoingRecord, timeout: Duration) -> Result<(), BusError> {
        if record.topic == Topic::Messages && self.events_away.load(Ordering::SeqCst) {
            return Err(BusError::Unavailable("as asked".into()));
        }
        self.inner.publish(record, timeout).await
    }

    async fn consume(
        &self,
        group: &str,
        topics: &[Topic],
    ) -> Result<Box<dyn BusConsumer>, BusError> {
        self.inner.consume(group, topics).await
    }

    async fn migrate(&self) -> Result<(), BusError> {
        self.inner.migrate().await
    }

    async fn check(&self) -> Result<(), BusError> {
        self.inner.check().await
    }
}

/// The embedded relay, which can go away, forget, or fence everyone.
pub(super) struct FaultyRelay {
    inner: Mutex<Arc<EmbeddedRelay>>,
    away: AtomicBool,
    fenced: AtomicBool,
    task: Mutex<Option<ClaimTask>>,
}

impl FaultyRelay {
    pub(super) fn new() -> Self {
        let inner = Mutex::new(Arc::new(EmbeddedRelay::open(None).unwrap()));
        Self {
            inner,
            away: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
            task: Mutex::new(None),
        }
    }

    pub(super) fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    pub(super) fn set_fenced(&self, fenced: bool) {
        self.fenced.store(fenced, Ordering::SeqCst);
    }

    /// The next claim is told this task.
    pub(super) fn force_duty(&self, task: ClaimTask) {
        *self.task.lock().unwrap() = Some(task);
    }

    /// An empty relay takes the place of the one that knew.
    pub(super) fn forget(&self) {
        *self.inner.lock().unwrap() = Arc::new(EmbeddedRelay::open(None).unwrap());
    }

    pub(super) fn inner(&self) -> Arc<EmbeddedRelay> {
        self.inner.lock().unwrap().clone()
    }

    fn up(&self) -> Result<Arc<EmbeddedRelay>, RelayError> {
        if self.away.load(Ordering::SeqCst) {
            Err(RelayError::Unavailable("as asked".into()))
        } else {
            Ok(self.inner())
        }
    }

    fn judge(&self, standing: ClaimStatus) -> ClaimStatus {
        if self.fenced.load(Ordering::SeqCst) {
            ClaimStatus::Fenced
        } else {
            standing
        }
    }
}

#[async_trait]
impl Relay for FaultyRelay {
    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, RelayError> {
        let claim = self.up()?.claim(request).await?;
        let forced = self.task.lock().unwrap().take();
        Ok(match (claim, forced) {
            (
                ClaimOutcome::Granted {
                    token,
                    message_count,
                    ..
                },
                Some(task),
            ) => ClaimOutcome::Granted {
                token,
                task,
                message_count,
            },
            (claim, _) => claim,
        })
    }

    async fn append(
        &self,
        token: &ClaimToken,
        to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        Ok(self.judge(self.up()?.append(token, to, frames).await?))
    }

    async fn restore(
        &self,
        token: &ClaimToken,
        to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        Ok(self.judge(self.up()?.restore(token, to, frames).await?))
    }

    async fn seal(&self, token: &ClaimToken, end: &Frame) -> Result<ClaimStatus, RelayError> {
        Ok(self.judge(self.up()?.seal(token, end).await?))
    }

    async fn settle(
        &self,
        token: &ClaimToken,
        settlement: &ClaimCompletion,
    ) -> Result<ClaimStatus, RelayError> {
        Ok(self.judge(self.up()?.settle(token, settlement).await?))
    }

    async fn release(&self, token: &ClaimToken) -> Result<(), RelayError> {
        self.up()?.release(token).await
    }

    async fn answer_patch(
        &self,
        to: &IngressId,
        patch: &EventId,
        outcome: PatchOutcome,
    ) -> Result<(), RelayError> {
        self.up()?.answer_patch(to, patch, outcome).await
    }

    async fn keep_trial(&self, trial: &MessageId, text: &str) -> Result<(), RelayError> {
        self.up()?.keep_trial(trial, text).await
    }

    async fn trial(&self, trial: &MessageId) -> Result<Option<String>, RelayError> {
        self.up()?.trial(trial).await
    }

    async fn answer_trial(
        &self,
        to: &IngressId,
        trial: &MessageId,
        verdict: PlaygroundRouting,
    ) -> Result<(), RelayError> {
        self.up()?.answer_trial(to, trial, verdict).await
    }

    async fn say_waiting(&self, to: &IngressId, reply: &MessageId) -> Result<(), RelayError> {
        self.up()?.say_waiting(to, reply).await
    }

    async fn listen(
        &self,
        ingress: &IngressId,
    ) -> Result<mpsc::Receiver<IngressEnvelope>, RelayError> {
        self.up()?.listen(ingress).await
    }

    async fn read_log(&self, reply: &MessageId, after_seq: u64) -> Result<Vec<Frame>, RelayError> {
        self.up()?.read_log(reply, after_seq).await
    }

    async fn void(&self, reply: &MessageId, nonce: &str) -> Result<(), RelayError> {
        self.up()?.void(reply, nonce).await
    }

    async fn enqueue(&self, reply: &MessageId, places_max: u32) -> Result<bool, RelayError> {
        self.up()?.enqueue(reply, places_max).await
    }

    async fn remember(&self, name: &str, value: &str) -> Result<String, RelayError> {
        self.up()?.remember(name, value).await
    }

    async fn decide(
        &self,
        message: &MessageId,
        decision: &RoutingDecision,
    ) -> Result<RoutingDecision, RelayError> {
        self.up()?.decide(message, decision).await
    }

    async fn decide_in_turn(
        &self,
        message: &MessageId,
        offer: &RoundRobinOffer,
    ) -> Result<Option<RoutingDecision>, RelayError> {
        self.up()?.decide_in_turn(message, offer).await
    }

    async fn decisions(&self, message: &MessageId) -> Result<RecordedDecisions, RelayError> {
        self.up()?.decisions(message).await
    }

    async fn cancel(&self, reply: &MessageId) -> Result<bool, RelayError> {
        self.up()?.cancel(reply).await
    }

    async fn forget(&self, message: &MessageId) -> Result<(), RelayError> {
        self.up()?.forget(message).await
    }

    async fn check(&self) -> Result<(), RelayError> {
        self.up()?.check().await
    }
}

/// The embedded store, which can go away for a while.
pub(super) struct FaultyStore {
    pub(super) inner: EmbeddedStore,
    away_until: Mutex<Option<Instant>>,
    ends_away: AtomicBool,
    ends_tried: AtomicU32,
}

impl FaultyStore {
    pub(super) const fn new(inner: EmbeddedStore) -> Self {
        Self {
            inner,
            away_until: Mutex::new(None),
            ends_away: AtomicBool::new(false),
            ends_tried: AtomicU32::new(0),
        }
    }

    pub(super) fn set_away_for(&self, time: Duration) {
        *self.away_until.lock().unwrap() = Some(Instant::now() + time);
    }

    /// Refuses the ends of turns.
    pub(super) fn set_ends_away(&self, away: bool) {
        self.ends_away.store(away, Ordering::SeqCst);
    }

    /// How often the end of a turn was to be stored.
    pub(super) fn ends_tried(&self) -> u32 {
        self.ends_tried.load(Ordering::SeqCst)
    }

    fn up(&self) -> Result<&EmbeddedStore, StoreError> {
        let away = self
            .away_until
            .lock()
            .unwrap()
            .is_some_and(|until| Instant::now() < until);
        if away {
            Err(StoreError::Unavailable("as asked".into()))
        } else {
            Ok(&self.inner)
        }
    }
}

#[async_trait]
impl ConversationStore for FaultyStore {
    async fn begin_turn(&self, start: &TurnStart) -> Result<(), StoreError> {
        self.up()?.begin_turn(start).await
    }

    async fn finish_turn(&self, end: &TurnEnd) -> Result<(), StoreError> {
        self.ends_tried.fetch_add(1, Ordering::SeqCst);
        if self.ends_away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("as asked".into()));
        }
        self.up()?.finish_turn(end).await
    }

    async fn accept(&self, accepted: &AcceptedReply) -> Result<(), StoreError> {
        self.up()?.accept(accepted).await
    }

    async fn known_reply(
        &self,
        org: &OrgId,
        reply: &MessageId,
    ) -> Result<Option<ReplyState>, StoreError> {
        self.up()?.known_reply(org, reply).await
    }

    async fn conversation(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        self.up()?.conversation(org, id).await
    }

    async fn history_state(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<HistoryState, StoreError> {
        self.up()?.history_state(org, id).await
    }

    async fn delete_conversation(
        &self,
        deletion: &ConversationDeletion,
    ) -> Result<bool, StoreError> {
        self.up()?.delete_conversation(deletion).await
    }

    async fn messages(
        &self,
        org: &OrgId,
        id: &ConversationId,
        from: u64,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        self.up()?.messages(org, id, from, limit).await
    }

    async fn conversations(
        &self,
        org: &OrgId,
        query: &ListQuery,
    ) -> Result<Vec<ListedConversation>, StoreError> {
        self.up()?.conversations(org, query).await
    }

    async fn update_metadata(
        &self,
        org: &OrgId,
        id: &ConversationId,
        changes: &Map<String, Value>,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.up()?.update_metadata(org, id, changes, at).await
    }

    async fn link_session(&self, link: &SessionLink) -> Result<(), StoreError> {
        self.up()?.link_session(link).await
    }

    async fn linked_conversations(
        &self,
        org: &OrgId,
        agent: &AgentId,
        session: &SessionId,
    ) -> Result<Vec<ConversationId>, StoreError> {
        self.up()?.linked_conversations(org, agent, session).await
    }

    async fn put_erasure(&self, erasure: &Erasure) -> Result<(), StoreError> {
        self.up()?.put_erasure(erasure).await
    }

    async fn erasure(&self, org: &OrgId, id: &ErasureId) -> Result<Option<Erasure>, StoreError> {
        self.up()?.erasure(org, id).await
    }

    async fn erasures(
        &self,
        org: &OrgId,
        before: Option<&ErasureId>,
        limit: u32,
    ) -> Result<Vec<Erasure>, StoreError> {
        self.up()?.erasures(org, before, limit).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.up()?.check().await
    }
}
