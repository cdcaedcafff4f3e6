//! A decorator that adds [`Faults`] to any backend.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyHash},
    audit::AuditEntry,
    client_text::SessionId,
    conversation::{Conversation, Message},
    erasure::Erasure,
    ids::{AgentId, AuditId, ConversationId, ErasureId, IngressId, MessageId, OrgId},
    random_token::TokenHash,
    reply_event::{Frame, IngressEnvelope, ReplyEnd},
    time::Timestamp,
    topics::Topic,
};
use tokio::sync::mpsc;

use super::Faults;
use crate::{
    accounts::{AccountActivityStore, DashboardSession},
    bus::{BusConsumer, BusError, MessageBus, OutgoingRecord},
    catalog::{
        CatalogEntry, CatalogEntryStore, EntryKind, EntryPage, KeyUse, KeyUseStore, PageSighting,
        PageSightingStore, VersionedEntry,
    },
    error::StoreError,
    limiter::{RateLimitOutcome, RateLimiter, RateLimiterError, RequestQuota},
    relay::{
        CancelOutcome, ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimStore,
        ClaimToken, KeyValueMemory, PlaygroundRuns, QueueSlots, RecordedDecisions, RelayError,
        ReplyLog, RoundRobinOffer, RoutingDecision, RoutingState,
    },
    store::{
        AcceptedReply, ConversationReader, ConversationWriter, ErasureStore, ReplyState,
        ReplyStateStore, SessionLink, SessionLinkStore, TurnEnd, TurnOpening, TurnStart,
        TurnWriter,
        deletion::{ConversationDeletion, HistoryState},
        listing::{ListQuery, ListedConversation},
    },
};

/// A backend whose calls can be made to fail.
pub struct Faulty<B> {
    /// Faults of this backend.
    pub faults: Faults,
    inner: Mutex<Arc<B>>,
}

impl<B> Faulty<B> {
    /// Wraps a backend without faults.
    pub fn new(inner: B) -> Self {
        Self {
            faults: Faults::default(),
            inner: Mutex::new(Arc::new(inner)),
        }
    }

    /// Returns the backend without faults.
    pub fn inner(&self) -> Arc<B> {
        Arc::clone(&self.inner.lock())
    }

    /// Replaces the backend, as if it had lost its data.
    pub fn replace(&self, inner: B) {
        *self.inner.lock() = Arc::new(inner);
    }
}

/// Implements a backend trait for [`Faulty`]; `records` names the recorded argument of a call.
macro_rules! faulty {
    ($backend:ident {
        $( $operation:ident($($argument:ident: $type:ty),*) -> $result:ty $(, records $value:expr)?; )*
    }) => {
        #[async_trait]
        impl<B: $backend + 'static> $backend for Faulty<B> {
            $(
                async fn $operation(&self, $($argument: $type),*) -> $result {
                    let recorded = ($($value)?);
                    let inner = self.inner();
                    let call = inner.$operation($($argument),*);
                    self.faults.call(stringify!($operation), recorded, call).await
                }
            )*
        }
    };
}

#[async_trait]
impl<B: MessageBus + 'static> MessageBus for Faulty<B> {
    async fn publish(&self, record: OutgoingRecord, timeout: Duration) -> Result<(), BusError> {
        let (topic, recorded) = (record.topic.name(), record.clone());
        let inner = self.inner();
        let publish = self.faults.call(topic, (), inner.publish(record, timeout));
        self.faults.call("publish", recorded, publish).await
    }

    async fn consume(
        &self,
        group: &str,
        topics: &[Topic],
    ) -> Result<Box<dyn BusConsumer>, BusError> {
        self.inner().consume(group, topics).await
    }

    async fn erase_records(&self, key: &str) -> Result<(), BusError> {
        let inner = self.inner();
        let erase = inner.erase_records(key);
        self.faults
            .call("erase_records", key.to_owned(), erase)
            .await
    }

    async fn erase_organization(&self, org: &OrgId) -> Result<(), BusError> {
        let inner = self.inner();
        let erase = inner.erase_organization(org);
        self.faults
            .call("erase_organization", org.to_string(), erase)
            .await
    }

    async fn migrate(&self) -> Result<(), BusError> {
        self.inner().migrate().await
    }

    async fn check(&self) -> Result<(), BusError> {
        let inner = self.inner();
        self.faults.call("check", (), inner.check()).await
    }
}

faulty!(TurnWriter {
    begin_turn(start: &TurnStart) -> Result<(), StoreError>;
    finish_turn(end: &TurnEnd) -> Result<(), StoreError>;
    settle_turn(end: &TurnEnd) -> Result<TurnEnd, StoreError>;
    settle_cancellation(org: &OrgId, reply: &MessageId, end: &ReplyEnd) -> Result<bool, StoreError>;
});

faulty!(ReplyStateStore {
    record_acceptance(accepted: &AcceptedReply) -> Result<(), StoreError>;
    known_reply(org: &OrgId, reply: &MessageId) -> Result<Option<ReplyState>, StoreError>;
});

faulty!(ConversationReader {
    conversation(org: &OrgId, id: &ConversationId) -> Result<Option<Conversation>, StoreError>;
    history_state(org: &OrgId, id: &ConversationId) -> Result<HistoryState, StoreError>;
    turn_opening(org: &OrgId, reply: &MessageId, messages_max: u32) -> Result<TurnOpening, StoreError>;
    messages(org: &OrgId, id: &ConversationId, from: u64, limit: u32) -> Result<Vec<Message>, StoreError>;
    conversations(org: &OrgId, query: &ListQuery) -> Result<Vec<ListedConversation>, StoreError>;
    check() -> Result<(), StoreError>;
});

faulty!(ConversationWriter {
    update_metadata(org: &OrgId, id: &ConversationId, changes: &Map<String, Value>, at: Timestamp) -> Result<bool, StoreError>;
    delete_conversation(deletion: &ConversationDeletion) -> Result<bool, StoreError>;
});

faulty!(SessionLinkStore {
    link_session(link: &SessionLink) -> Result<(), StoreError>;
    linked_conversations(org: &OrgId, agent: &AgentId, session: &SessionId) -> Result<Vec<ConversationId>, StoreError>;
});

faulty!(ErasureStore {
    put_erasure(erasure: &Erasure) -> Result<(), StoreError>;
    erasure(org: &OrgId, id: &ErasureId) -> Result<Option<Erasure>, StoreError>;
    erasures(org: &OrgId, before: Option<&ErasureId>, limit: u32) -> Result<Vec<Erasure>, StoreError>;
});

faulty!(CatalogEntryStore {
    get(kind: EntryKind, id: &str) -> Result<Option<CatalogEntry>, StoreError>;
    versioned(kind: EntryKind, id: &str) -> Result<Option<VersionedEntry>, StoreError>;
    key_by_hash(hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError>;
    put(entry: &CatalogEntry) -> Result<(), StoreError>;
    remove(kind: EntryKind, org: &OrgId, id: &str) -> Result<(), StoreError>;
    list(kind: EntryKind, org: Option<&OrgId>) -> Result<Vec<CatalogEntry>, StoreError>;
    page(kind: EntryKind, org: Option<&OrgId>, offset: u64, limit: u32) -> Result<EntryPage, StoreError>;
    check() -> Result<(), StoreError>;
});

faulty!(KeyUseStore {
    record_key_uses(uses: &[KeyUse]) -> Result<(), StoreError>;
    key_uses(org: &OrgId) -> Result<Vec<KeyUse>, StoreError>;
});

faulty!(PageSightingStore {
    record_page(page: &PageSighting) -> Result<(), StoreError>;
    pages(org: &OrgId, agent: &AgentId) -> Result<Vec<PageSighting>, StoreError>;
});

faulty!(AccountActivityStore {
    begin_session(hash: &TokenHash, session: &DashboardSession) -> Result<(), StoreError>, records (*hash, session.clone());
    find_session(hash: &TokenHash) -> Result<Option<DashboardSession>, StoreError>;
    touch_session(hash: &TokenHash, session: &DashboardSession) -> Result<(), StoreError>;
    end_session(hash: &TokenHash) -> Result<(), StoreError>;
    append_entry(entry: &AuditEntry) -> Result<(), StoreError>, records entry.clone();
    log_entries(org: &OrgId, before: Option<&AuditId>, limit: u32) -> Result<Vec<AuditEntry>, StoreError>;
    check() -> Result<(), StoreError>;
});

faulty!(RateLimiter {
    take_request(key: &str, quota: RequestQuota) -> Result<RateLimitOutcome, RateLimiterError>;
    check() -> Result<(), RateLimiterError>;
});

faulty!(ClaimStore {
    claim_reply(request: &ClaimRequest) -> Result<ClaimOutcome, RelayError>;
    renew_claim(token: &ClaimToken, push_to: Option<&IngressId>) -> Result<ClaimStatus, RelayError>;
    restore_claim(token: &ClaimToken, push_to: Option<&IngressId>, frames: &[Frame]) -> Result<ClaimStatus, RelayError>;
    finalize_reply(token: &ClaimToken, end: &Frame) -> Result<ClaimStatus, RelayError>;
    complete_claim(token: &ClaimToken, completion: &ClaimCompletion) -> Result<ClaimStatus, RelayError>;
    release_claim(token: &ClaimToken) -> Result<(), RelayError>;
    cancel_reply(reply: &MessageId, end: &Frame) -> Result<CancelOutcome, RelayError>, records reply.clone();
});

faulty!(ReplyLog {
    append_frames(token: &ClaimToken, push_to: Option<&IngressId>, frames: &[Frame]) -> Result<ClaimStatus, RelayError>;
    read_frames(reply: &MessageId, after_seq: u64) -> Result<Vec<Frame>, RelayError>;
    remaining_lease(reply: &MessageId) -> Result<Option<Duration>, RelayError>;
    delete_frames(reply: &MessageId) -> Result<(), RelayError>;
    subscribe(ingress: &IngressId) -> Result<mpsc::Receiver<IngressEnvelope>, RelayError>;
    push(to: &IngressId, envelope: &IngressEnvelope) -> Result<(), RelayError>;
});

faulty!(QueueSlots {
    reserve_slot(reply: &MessageId, slots_max: u32) -> Result<bool, RelayError>;
    queued_replies(conversation: &ConversationId) -> Result<Vec<MessageId>, RelayError>;
    void_publish(reply: &MessageId, publish_nonce: &str) -> Result<(), RelayError>, records publish_nonce.to_owned();
});

faulty!(RoutingState {
    record_decision(message: &MessageId, decision: &RoutingDecision) -> Result<RoutingDecision, RelayError>;
    record_round_robin(message: &MessageId, offer: &RoundRobinOffer) -> Result<Option<RoutingDecision>, RelayError>;
    recorded_decisions(message: &MessageId) -> Result<RecordedDecisions, RelayError>;
    delete_decisions(message: &MessageId) -> Result<(), RelayError>;
    erase_residue() -> Result<(), RelayError>;
});

faulty!(KeyValueMemory {
    get_or_insert(name: &str, value: &str) -> Result<String, RelayError>;
    check() -> Result<(), RelayError>;
});

faulty!(PlaygroundRuns {
    put_playground_run(run_id: &MessageId, text: &str) -> Result<(), RelayError>;
    playground_run(run_id: &MessageId) -> Result<Option<String>, RelayError>;
});
