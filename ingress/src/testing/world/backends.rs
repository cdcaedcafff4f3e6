//! Access to the backends of a [`World`]: writes of a worker, and effects of the ingress.

use std::{fs, sync::atomic::Ordering};

use serde_json::Value;
use switchboard_backends::{
    bus::OutgoingRecord,
    catalog::{CatalogEntry, CatalogEntryStore, EntryKind},
    relay::{ClaimOutcome, ClaimRequest, ClaimStore, ClaimToken, PlaygroundRuns, QueueSlots},
    store::{ConversationReader, ReplyRecord},
    testing,
};
use switchboard_schemas::{
    agent::Agent,
    audit::AuditEntry,
    conversation::{Conversation, ConversationOwner, Message, ReplyStatus},
    ids::{AgentId, ConversationId, MessageId, OrgId},
    reply_event::{Frame, IngressEnvelope},
    time::Timestamp,
};

use super::World;
use crate::{
    state::{AddressCheck, refused_publishes},
    testing::{agent_id, end_of, org_id},
};

impl World {
    /// Sets the check of addresses that are saved.
    pub(crate) fn check_addresses(&self, check: AddressCheck) {
        assert!(
            self.state.apply.address_check.set(check).is_ok(),
            "set once"
        );
    }

    /// Changes the agent in the catalog.
    pub(crate) async fn edit_agent(&self, edit: impl FnOnce(&mut Agent)) {
        let catalog = self.catalog.inner();
        let entry = catalog.get(EntryKind::Agent, agent_id().as_str()).await;
        let Some(CatalogEntry::Agent(mut agent)) = entry.unwrap() else {
            panic!("the agent is missing")
        };
        edit(&mut agent);
        catalog.put(&CatalogEntry::Agent(agent)).await.unwrap();
    }

    pub(crate) async fn catalog_entries(&self) -> Vec<CatalogEntry> {
        let catalog = self.catalog.inner();
        let mut entries = catalog.list(EntryKind::Organization, None).await.unwrap();
        let orgs: Vec<_> = entries.iter().map(|entry| entry.org_id().clone()).collect();
        for org in orgs {
            for kind in [
                EntryKind::Provider,
                EntryKind::Agent,
                EntryKind::Team,
                EntryKind::Key,
                EntryKind::User,
            ] {
                entries.extend(catalog.list(kind, Some(&org)).await.unwrap());
            }
        }
        entries
    }

    /// Returns the audit entries that were recorded, oldest first.
    pub(crate) fn audit_entries(&self) -> Vec<AuditEntry> {
        self.accounts.faults.arguments("append_entry")
    }

    /// Returns true if any file of the backends contains a text.
    pub(crate) fn is_stored(&self, text: &str) -> bool {
        let files = fs::read_dir(self.directory.path()).unwrap();
        let mut contents = files.map(|file| fs::read(file.unwrap().path()).unwrap());
        contents.any(|bytes| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        })
    }

    /// Stores an empty conversation of session `s`.
    pub(crate) async fn put_conversation(&self, org: OrgId) -> ConversationId {
        let conversation = empty_conversation(org);
        self.store_conversation(&conversation).await;
        conversation.id
    }

    pub(crate) async fn store_conversation(&self, conversation: &Conversation) {
        let store = self.store.inner();
        testing::put_conversation(&store, conversation)
            .await
            .unwrap();
    }

    /// Changes a conversation in the store.
    pub(crate) async fn edit_conversation(
        &self,
        id: &ConversationId,
        edit: impl FnOnce(&mut Conversation),
    ) {
        let conversation = self.store.conversation(&org_id(), id).await.unwrap();
        let mut conversation = conversation.expect("the conversation exists");
        edit(&mut conversation);
        self.store_conversation(&conversation).await;
    }

    pub(crate) async fn store_message(&self, id: &ConversationId, message: &Message) {
        let store = self.store.inner();
        testing::put_message(&store, &org_id(), id, message)
            .await
            .unwrap();
    }

    pub(crate) async fn store_reply(&self, reply: &MessageId, record: &ReplyRecord) {
        let store = self.store.inner();
        testing::put_reply(&store, &org_id(), reply, record)
            .await
            .unwrap();
    }

    /// Stores a final reply without text.
    pub(crate) async fn put_final(&self, reply: &MessageId, status: ReplyStatus) {
        let record = ReplyRecord {
            user_message_id: reply.clone(),
            user_position: 0,
            position: None,
            head: None,
            end: end_of("", status),
            generation: 1,
            attempt: 1,
            finished_at: Timestamp::from_micros(3),
            first_text_ms: None,
        };
        self.store_reply(reply, &record).await;
    }

    /// Logs a frame of a reply and pushes it, as a worker does.
    pub(crate) fn append_frame(&self, reply: &MessageId, frame: Frame) {
        let is_pushed = !self.drops_pushes.load(Ordering::SeqCst);
        let push_to = is_pushed.then_some(&self.state.ingress_id);
        testing::put_frame(&self.relay.inner(), reply, &frame, push_to);
    }

    pub(crate) fn append_frames(&self, reply: &MessageId, frames: impl IntoIterator<Item = Frame>) {
        for frame in frames {
            self.append_frame(reply, frame);
        }
    }

    /// Claims a reply, as a worker does.
    pub(crate) async fn claim_reply(&self, reply: &MessageId) -> ClaimToken {
        let request = ClaimRequest {
            reply_id: reply.clone(),
            publish_nonce: "publish".into(),
            nonce: 1,
            attempt_min: 1,
            maybe_held: false,
        };
        match self.relay.claim_reply(&request).await.unwrap() {
            ClaimOutcome::Granted { token, .. } => token,
            outcome => panic!("not granted: {outcome:?}"),
        }
    }

    /// Makes frames reach the log only.
    pub(crate) fn drop_pushes(&self, drops: bool) {
        self.drops_pushes.store(drops, Ordering::SeqCst);
    }

    pub(crate) fn push(&self, envelope: IngressEnvelope) {
        testing::push_envelope(&self.relay.inner(), &self.state.ingress_id, envelope);
    }

    /// Returns the replies whose cancellation was requested.
    pub(crate) fn cancelled_replies(&self) -> Vec<MessageId> {
        self.relay.faults.arguments("cancel_reply")
    }

    /// Returns the nonces of publishes that were voided.
    pub(crate) fn voided_publishes(&self) -> Vec<String> {
        self.relay.faults.arguments("void_publish")
    }

    /// Does what an ingress does every second for the publishes that it refused.
    pub(crate) async fn void_refused_publishes_again(&self) {
        refused_publishes::void_again(&self.state).await;
    }

    /// Returns the input of a published playground run.
    pub(crate) async fn playground_run(&self, id: &MessageId) -> String {
        self.relay
            .playground_run(id)
            .await
            .unwrap()
            .expect("the run is kept")
    }

    /// Returns true if no reply has a slot in the queue of session `s`.
    pub(crate) async fn has_empty_queue(&self) -> bool {
        let probe = MessageId::new_in(&empty_conversation(org_id()).id).reply();
        let is_empty = self.relay.inner().reserve_slot(&probe, 1).await.unwrap();
        self.relay
            .inner()
            .void_publish(&probe, "probe")
            .await
            .unwrap();
        is_empty
    }

    /// Returns the records that were published, oldest first.
    pub(crate) fn published_records(&self) -> Vec<OutgoingRecord> {
        self.bus.faults.arguments("publish")
    }

    pub(crate) fn forget_published(&self) {
        self.bus.faults.forget_calls();
        self.jobs_seen.store(0, Ordering::SeqCst);
    }
}

/// Returns the conversation of session `s` before its first message.
pub(crate) fn empty_conversation(org: OrgId) -> Conversation {
    let session = "s".parse().unwrap();
    Conversation {
        id: ConversationId::of_agent(&org_id(), &agent_id(), &session),
        org_id: org,
        session_id: session,
        owner: ConversationOwner::Agent(agent_id()),
        message_count: 0,
        active_message_id: None,
        last_reply_id: None,
        created_at: Timestamp::from_micros(1),
        updated_at: Timestamp::from_micros(2),
        metadata: serde_json::Map::new(),
    }
}

/// Stores a conversation that began at this time, in microseconds.
pub(crate) async fn put_conversation(
    world: &World,
    org: &OrgId,
    agent: &AgentId,
    micros: i64,
    metadata: Value,
) -> ConversationId {
    let session = format!("session {micros}").parse().unwrap();
    let id = ConversationId::of_agent(org, agent, &session);
    let conversation = Conversation {
        id: id.clone(),
        session_id: session,
        owner: ConversationOwner::Agent(agent.clone()),
        created_at: Timestamp::from_micros(micros),
        updated_at: Timestamp::from_micros(micros),
        metadata: metadata.as_object().unwrap().clone(),
        ..empty_conversation(org.clone())
    };
    world.store_conversation(&conversation).await;
    id
}
