//! The five backends, in memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use async_trait::async_trait;
use serde_json::{Map, Value};
use switchboard_backends::{
    bus::{BusConsumer, BusError, MessageBus, OutgoingRecord},
    catalog::{CatalogEntry, CatalogStore, EntryKind, KeyUse, VersionedEntry},
    limiter::{
        RateLimitOutcome, RateLimiter, RateLimiterError, RequestQuota, embedded::EmbeddedLimiter,
    },
    relay::{
        ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimToken, RecordedDecisions,
        Relay, RelayError, RoundRobinOffer, RoutingDecision,
    },
    store::{
        AcceptedReply, ConversationStore, ReplyRecord, ReplyState, SessionLink, StoreError,
        TurnEnd, TurnStart,
        deletion::{ConversationDeletion, HistoryState},
        listing::{ListQuery, ListedConversation},
    },
};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyHash},
    client_text::SessionId,
    conversation::{Conversation, Message},
    erasure::Erasure,
    ids::{AgentId, ConversationId, ErasureId, EventId, IngressId, MessageId, OrgId},
    playground::PlaygroundRouting,
    reply_event::{Frame, IngressEnvelope, PatchOutcome},
    time::Timestamp,
    topics::Topic,
};
use tokio::sync::mpsc;

/// Keeps what is published.
#[derive(Default)]
pub(crate) struct FakeBus {
    pub(crate) records: Mutex<Vec<OutgoingRecord>>,
    pub(crate) away: AtomicBool,
    /// Told of each job.
    pub(crate) published: tokio::sync::Notify,
}

#[async_trait]
impl MessageBus for FakeBus {
    async fn publish(&self, record: OutgoingRecord, _: Duration) -> Result<(), BusError> {
        if self.away.load(Ordering::SeqCst) {
            return Err(BusError::Unavailable("away".into()));
        }
        let is_job = matches!(record.topic, Topic::Route | Topic::Jobs | Topic::JobsRetry);
        self.records.lock().unwrap().push(record);
        if is_job {
            self.published.notify_one();
        }
        Ok(())
    }

    async fn consume(&self, _: &str, _: &[Topic]) -> Result<Box<dyn BusConsumer>, BusError> {
        Err(BusError::Fatal("this fake has no consumers".into()))
    }

    async fn migrate(&self) -> Result<(), BusError> {
        Ok(())
    }

    async fn check(&self) -> Result<(), BusError> {
        Ok(())
    }
}

/// A channel and a log.
#[derive(Default)]
pub(crate) struct FakeRelay {
    listener: Mutex<Option<mpsc::Sender<IngressEnvelope>>>,
    logs: Mutex<HashMap<MessageId, Vec<Frame>>>,
    pub(crate) voided: Mutex<Vec<String>>,
    pub(crate) cancelled: Mutex<Vec<MessageId>>,
    /// Replies with a place in the queue of their conversation; tests talk in one.
    pub(crate) places: Mutex<Vec<MessageId>>,
    memory: Mutex<HashMap<String, String>>,
    /// What trials run on.
    pub(crate) trials: Mutex<HashMap<MessageId, String>>,
    /// What routing decided.
    pub(crate) decision: Mutex<Option<RoutingDecision>>,
    pub(crate) away: AtomicBool,
    /// Whether what is logged is pushed as well.
    pub(crate) deaf: AtomicBool,
}

impl FakeRelay {
    /// What a worker's append does: logs the frame and pushes it.
    pub(crate) fn append_frame(&self, reply: &MessageId, frame: Frame) {
        self.logs
            .lock()
            .unwrap()
            .entry(reply.clone())
            .or_default()
            .push(frame.clone());
        self.push(IngressEnvelope::Reply(reply.clone(), frame));
    }

    /// Pushes, as far as anyone listens.
    pub(crate) fn push(&self, envelope: IngressEnvelope) {
        if !self.deaf.load(Ordering::SeqCst)
            && let Some(listener) = &*self.listener.lock().unwrap()
        {
            let _ = listener.try_send(envelope);
        }
    }

    fn answers(&self) -> Result<(), RelayError> {
        if self.away.load(Ordering::SeqCst) {
            Err(RelayError::Unavailable("away".into()))
        } else {
            Ok(())
        }
    }
}

/// The worker's half of a relay is not needed where no worker runs.
fn no_worker<T>() -> Result<T, RelayError> {
    Err(RelayError::Unavailable(
        "this fake serves no workers".into(),
    ))
}

#[async_trait]
impl Relay for FakeRelay {
    async fn claim(&self, _: &ClaimRequest) -> Result<ClaimOutcome, RelayError> {
        no_worker()
    }

    async fn append(
        &self,
        _: &ClaimToken,
        _: Option<&IngressId>,
        _: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        no_worker()
    }

    async fn restore(
        &self,
        _: &ClaimToken,
        _: Option<&IngressId>,
        _: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        no_worker()
    }

    async fn seal(&self, _: &ClaimToken, _: &Frame) -> Result<ClaimStatus, RelayError> {
        no_worker()
    }

    async fn settle(&self, _: &ClaimToken, _: &ClaimCompletion) -> Result<ClaimStatus, RelayError> {
        no_worker()
    }

    async fn release(&self, _: &ClaimToken) -> Result<(), RelayError> {
        no_worker()
    }

    async fn answer_patch(
        &self,
        _: &IngressId,
        patch: &EventId,
        outcome: PatchOutcome,
    ) -> Result<(), RelayError> {
        self.answers()?;
        self.push(IngressEnvelope::Patch(patch.clone(), outcome));
        Ok(())
    }

    async fn keep_trial(&self, trial: &MessageId, text: &str) -> Result<(), RelayError> {
        self.answers()?;
        self.trials
            .lock()
            .unwrap()
            .insert(trial.clone(), text.to_owned());
        Ok(())
    }

    async fn trial(&self, _: &MessageId) -> Result<Option<String>, RelayError> {
        no_worker()
    }

    async fn answer_trial(
        &self,
        _: &IngressId,
        trial: &MessageId,
        verdict: PlaygroundRouting,
    ) -> Result<(), RelayError> {
        self.push(IngressEnvelope::Playground(trial.clone(), verdict));
        Ok(())
    }

    async fn say_waiting(&self, _: &IngressId, _: &MessageId) -> Result<(), RelayError> {
        no_worker()
    }

    async fn listen(&self, _: &IngressId) -> Result<mpsc::Receiver<IngressEnvelope>, RelayError> {
        let (sender, receiver) = mpsc::channel(1024);
        *self.listener.lock().unwrap() = Some(sender);
        Ok(receiver)
    }

    async fn read_log(&self, reply: &MessageId, after_seq: u64) -> Result<Vec<Frame>, RelayError> {
        self.answers()?;
        let logs = self.logs.lock().unwrap();
        let frames = logs
            .get(reply)
            .into_iter()
            .flatten()
            .filter(|frame| frame.seq > after_seq);
        Ok(frames.cloned().collect())
    }

    async fn void(&self, reply: &MessageId, publish_nonce: &str) -> Result<(), RelayError> {
        self.answers()?;
        self.voided.lock().unwrap().push(publish_nonce.to_owned());
        self.places.lock().unwrap().retain(|place| place != reply);
        Ok(())
    }

    async fn cancel(&self, reply: &MessageId) -> Result<bool, RelayError> {
        self.answers()?;
        self.cancelled.lock().unwrap().push(reply.clone());
        Ok(true)
    }

    async fn enqueue(&self, reply: &MessageId, places_max: u32) -> Result<bool, RelayError> {
        self.answers()?;
        let mut places = self.places.lock().unwrap();
        let has_place = places.contains(reply);
        if !has_place && places.len() >= places_max as usize {
            return Ok(false);
        }
        if !has_place {
            places.push(reply.clone());
        }
        Ok(true)
    }

    async fn remember(&self, name: &str, value: &str) -> Result<String, RelayError> {
        self.answers()?;
        Ok(self
            .memory
            .lock()
            .unwrap()
            .entry(name.to_owned())
            .or_insert_with(|| value.to_owned())
            .clone())
    }

    async fn decide(
        &self,
        _: &MessageId,
        _: &RoutingDecision,
    ) -> Result<RoutingDecision, RelayError> {
        no_worker()
    }

    async fn decide_in_turn(
        &self,
        _: &MessageId,
        _: &RoundRobinOffer,
    ) -> Result<Option<RoutingDecision>, RelayError> {
        no_worker()
    }

    async fn decisions(&self, _: &MessageId) -> Result<RecordedDecisions, RelayError> {
        self.answers()?;
        Ok(RecordedDecisions {
            own: self.decision.lock().unwrap().clone(),
            last: None,
        })
    }

    async fn forget(&self, _: &MessageId) -> Result<(), RelayError> {
        no_worker()
    }

    async fn check(&self) -> Result<(), RelayError> {
        self.answers()
    }
}

/// Conversations as a test puts them there.
#[derive(Default)]
pub(crate) struct FakeStore {
    pub(crate) conversations: Mutex<HashMap<ConversationId, Conversation>>,
    pub(crate) messages: Mutex<HashMap<ConversationId, Vec<Message>>>,
    pub(crate) replies: Mutex<HashMap<MessageId, ReplyRecord>>,
    pub(crate) accepted: Mutex<HashMap<MessageId, AcceptedReply>>,
    pub(crate) links: Mutex<Vec<SessionLink>>,
    pub(crate) erasures: Mutex<BTreeMap<ErasureId, Erasure>>,
    pub(crate) away: AtomicBool,
}

impl FakeStore {
    fn answers(&self) -> Result<(), StoreError> {
        if self.away.load(Ordering::SeqCst) {
            Err(StoreError::Unavailable("away".into()))
        } else {
            Ok(())
        }
    }

    fn belongs(&self, org: &OrgId, id: &ConversationId) -> bool {
        self.conversations
            .lock()
            .unwrap()
            .get(id)
            .is_some_and(|conversation| conversation.org_id == *org)
    }
}

#[async_trait]
impl ConversationStore for FakeStore {
    async fn begin_turn(&self, _: &TurnStart) -> Result<(), StoreError> {
        Err(StoreError::Unavailable(
            "this fake serves no workers".into(),
        ))
    }

    async fn finish_turn(&self, _: &TurnEnd) -> Result<(), StoreError> {
        Err(StoreError::Unavailable(
            "this fake serves no workers".into(),
        ))
    }

    async fn accept(&self, accepted: &AcceptedReply) -> Result<(), StoreError> {
        self.answers()?;
        self.accepted
            .lock()
            .unwrap()
            .insert(accepted.user_message_id.reply(), accepted.clone());
        Ok(())
    }

    async fn known_reply(
        &self,
        org: &OrgId,
        reply: &MessageId,
    ) -> Result<Option<ReplyState>, StoreError> {
        self.answers()?;
        let record = self.replies.lock().unwrap().get(reply).cloned();
        if let Some(record) = record.filter(|_| self.belongs(org, &reply.conversation())) {
            return Ok(Some(ReplyState::Final(Box::new(record))));
        }
        let accepted = self.accepted.lock().unwrap().get(reply).cloned();
        Ok(accepted
            .filter(|accepted| accepted.org_id == *org)
            .map(ReplyState::Accepted))
    }

    async fn conversation(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        self.answers()?;
        let found = self.conversations.lock().unwrap().get(id).cloned();
        Ok(found.filter(|conversation| conversation.org_id == *org))
    }

    async fn history_state(
        &self,
        _: &OrgId,
        _: &ConversationId,
    ) -> Result<HistoryState, StoreError> {
        Err(StoreError::Unavailable(
            "this fake serves no workers".into(),
        ))
    }

    async fn delete_conversation(&self, _: &ConversationDeletion) -> Result<bool, StoreError> {
        Err(StoreError::Unavailable(
            "this fake serves no workers".into(),
        ))
    }

    async fn messages(
        &self,
        org: &OrgId,
        id: &ConversationId,
        from: u64,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        self.answers()?;
        let messages = self.messages.lock().unwrap();
        let page = messages
            .get(id)
            .into_iter()
            .flatten()
            .filter(|message| message.position >= from);
        Ok(if self.belongs(org, id) {
            page.take(limit as usize).cloned().collect()
        } else {
            Vec::new()
        })
    }

    async fn conversations(
        &self,
        org: &OrgId,
        query: &ListQuery,
    ) -> Result<Vec<ListedConversation>, StoreError> {
        self.answers()?;
        let conversations = self.conversations.lock().unwrap();
        let ours = conversations.values().filter(|conversation| {
            conversation.org_id == *org
                && query
                    .owner
                    .as_ref()
                    .is_none_or(|owner| conversation.owner == *owner)
        });
        let mut listed: Vec<_> = ours
            .map(|conversation| ListedConversation {
                began_at: conversation.created_at,
                id: conversation.id.clone(),
            })
            .filter(|listed| query.since.is_none_or(|since| listed.began_at >= since))
            .filter(|listed| {
                let place = (listed.began_at, Some(listed.id.clone()));
                query
                    .behind
                    .as_ref()
                    .is_none_or(|behind| place < (behind.began_at, behind.id.clone()))
            })
            .collect();
        listed.sort_by(|left, right| (right.began_at, &right.id).cmp(&(left.began_at, &left.id)));
        listed.truncate(query.limit as usize);
        Ok(listed)
    }

    async fn update_metadata(
        &self,
        org: &OrgId,
        id: &ConversationId,
        changes: &Map<String, Value>,
        _: Timestamp,
    ) -> Result<bool, StoreError> {
        self.answers()?;
        let mut conversations = self.conversations.lock().unwrap();
        let Some(conversation) = conversations
            .get_mut(id)
            .filter(|conversation| conversation.org_id == *org)
        else {
            return Ok(false);
        };
        for (key, value) in changes {
            match value {
                Value::Null => conversation.metadata.remove(key),
                value => conversation.metadata.insert(key.clone(), value.clone()),
            };
        }
        Ok(true)
    }

    async fn link_session(&self, _: &SessionLink) -> Result<(), StoreError> {
        Err(StoreError::Unavailable(
            "this fake serves no workers".into(),
        ))
    }

    async fn linked_conversations(
        &self,
        org: &OrgId,
        agent: &AgentId,
        session: &SessionId,
    ) -> Result<Vec<ConversationId>, StoreError> {
        self.answers()?;
        let links = self.links.lock().unwrap();
        let found = links.iter().filter(|link| {
            link.org_id == *org && link.agent_id == *agent && link.session_id == *session
        });
        Ok(found.map(|link| link.conversation_id.clone()).collect())
    }

    async fn put_erasure(&self, erasure: &Erasure) -> Result<(), StoreError> {
        self.answers()?;
        self.erasures
            .lock()
            .unwrap()
            .insert(erasure.id.clone(), erasure.clone());
        Ok(())
    }

    async fn erasure(&self, org: &OrgId, id: &ErasureId) -> Result<Option<Erasure>, StoreError> {
        self.answers()?;
        Ok(self
            .erasures
            .lock()
            .unwrap()
            .get(id)
            .filter(|erasure| erasure.org_id == *org)
            .cloned())
    }

    async fn erasures(
        &self,
        org: &OrgId,
        before: Option<&ErasureId>,
        limit: u32,
    ) -> Result<Vec<Erasure>, StoreError> {
        self.answers()?;
        let erasures = self.erasures.lock().unwrap();
        let ours = erasures
            .values()
            .rev()
            .filter(|erasure| erasure.org_id == *org);
        let page = ours.filter(|erasure| before.is_none_or(|before| erasure.id < *before));
        Ok(page.take(limit as usize).cloned().collect())
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.answers()
    }
}

/// Entries by kind and id.
#[derive(Default)]
pub(crate) struct FakeCatalog {
    pub(crate) entries: Mutex<BTreeMap<(&'static str, String), CatalogEntry>>,
    /// Puts so far.
    puts: Mutex<HashMap<String, i64>>,
    /// Each note of uses of keys.
    pub(crate) uses: Mutex<Vec<KeyUse>>,
    pub(crate) away: AtomicBool,
}

impl FakeCatalog {
    fn answers(&self) -> Result<(), StoreError> {
        if self.away.load(Ordering::SeqCst) {
            Err(StoreError::Unavailable("away".into()))
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl CatalogStore for FakeCatalog {
    async fn get(&self, kind: EntryKind, id: &str) -> Result<Option<CatalogEntry>, StoreError> {
        self.answers()?;
        Ok(self
            .entries
            .lock()
            .unwrap()
            .get(&(kind.name(), id.to_owned()))
            .cloned())
    }

    async fn versioned(
        &self,
        kind: EntryKind,
        id: &str,
    ) -> Result<Option<VersionedEntry>, StoreError> {
        let version = self
            .puts
            .lock()
            .unwrap()
            .get(id)
            .copied()
            .unwrap_or_default();
        Ok(self
            .get(kind, id)
            .await?
            .map(|entry| VersionedEntry { entry, version }))
    }

    async fn key_by_hash(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError> {
        self.answers()?;
        let entries = self.entries.lock().unwrap();
        Ok(entries.values().find_map(|entry| match entry {
            CatalogEntry::Key { key, hash: kept } if *kept == hash.0 => Some(key.clone()),
            _ => None,
        }))
    }

    async fn put(&self, entry: &CatalogEntry) -> Result<(), StoreError> {
        self.answers()?;
        // A real write takes a while, in which others read.
        tokio::task::yield_now().await;
        *self
            .puts
            .lock()
            .unwrap()
            .entry(entry.id().to_owned())
            .or_default() += 1;
        self.entries
            .lock()
            .unwrap()
            .insert((entry.kind().name(), entry.id().to_owned()), entry.clone());
        Ok(())
    }

    async fn remove(&self, kind: EntryKind, _: &OrgId, id: &str) -> Result<(), StoreError> {
        self.answers()?;
        self.entries
            .lock()
            .unwrap()
            .remove(&(kind.name(), id.to_owned()));
        Ok(())
    }

    async fn list(
        &self,
        kind: EntryKind,
        org: Option<&OrgId>,
    ) -> Result<Vec<CatalogEntry>, StoreError> {
        self.answers()?;
        let entries = self.entries.lock().unwrap();
        let listed = entries
            .values()
            .filter(|entry| entry.kind() == kind && org.is_none_or(|org| entry.org_id() == org));
        Ok(listed.cloned().collect())
    }

    async fn note_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError> {
        self.answers()?;
        self.uses.lock().unwrap().extend_from_slice(uses);
        Ok(())
    }

    async fn uses(&self, org: &OrgId) -> Result<Vec<KeyUse>, StoreError> {
        self.answers()?;
        Ok(self
            .uses
            .lock()
            .unwrap()
            .iter()
            .filter(|used| used.org_id == *org)
            .cloned()
            .collect())
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.answers()
    }
}

/// Counts in memory.
#[derive(Default)]
pub(crate) struct FakeLimiter {
    counted: EmbeddedLimiter,
    pub(crate) away: AtomicBool,
}

#[async_trait]
impl RateLimiter for FakeLimiter {
    async fn take(
        &self,
        key: &str,
        quota: RequestQuota,
    ) -> Result<RateLimitOutcome, RateLimiterError> {
        if self.away.load(Ordering::SeqCst) {
            return Err(RateLimiterError::Unavailable("away".into()));
        }
        self.counted.take(key, quota).await
    }

    async fn check(&self) -> Result<(), RateLimiterError> {
        Ok(())
    }
}
