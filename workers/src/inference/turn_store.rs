//! Storage of one turn: the conversation's store, its cached history and its event topic. A
//! playground run implements the same trait without storing anything.

use async_trait::async_trait;
use futures::future::try_join;
use serde_json::{Map, Value, json};
use switchboard_backends::{
    StoreError,
    files::AttachOutcome,
    relay::LEASE,
    store::{ReplyRecord, ReplyState, SessionLink, TurnEnd, TurnStart, message_metadata},
};
use switchboard_schemas::{
    conversation::{Conversation, ConversationOwner, Message, MessageAuthor},
    conversation_job::ReplyJob,
    ids::ConversationId,
    lead::LEAD_KEY,
    message_event::MessageEvent,
    time::Timestamp,
};
use tokio::{sync::SetOnce, time::Instant};

use super::{
    InferenceHandler,
    announcement::AnnouncementReceiver,
    events,
    history::{PendingTurn, TurnState},
    metadata_patch::time_behind,
    turn_deadlines::TurnDeadlines,
};
use crate::{
    dead_letter::DeadLetterCause,
    job_loop::JobEnd,
    retry::{self, RetriedError, RetryDelays},
};

/// Reads and writes of one turn. Implementations retry until their deadline.
#[async_trait]
pub(super) trait TurnStore: Send + Sync {
    /// Returns the state of the turn; `None` if it could not be read in time. `message_count` is
    /// the length of the history as the relay remembers it.
    async fn load_state(&self, message_count: Option<u64>) -> Option<TurnState>;

    /// Moves the files of the message to the conversation. Returns false if that failed until the
    /// deadline.
    async fn attach_files(&self) -> bool;

    /// Stores the user message. Returns false if that failed until the deadline.
    async fn store_user_message(&self, turn: &PendingTurn) -> bool;

    /// Lets the store decide which end of the turn counts: one that is stored, the one that an
    /// attempt settled first, or `own`. Returns `None` if that failed until the deadline.
    async fn settle_end(&self, own: &TurnEnd) -> Option<SettledEnd>;

    /// Stores the reply with its record. Returns the number of messages in the conversation, or
    /// `None` if storing failed until the deadline.
    async fn store_reply(&self, turn: &PendingTurn, end: &TurnEnd) -> Option<u64>;

    /// Publishes the event of the user message, then that of the reply. Never returns, so that the
    /// work beside it ends the turn.
    async fn publish_events(&self, position: u64, publication: AnnouncementReceiver);

    /// Publishes the events of a turn that an earlier attempt stored.
    async fn republish_events(&self, record: &ReplyRecord) -> Result<(), JobEnd>;
}

/// The end of a turn that the store decided for.
pub(super) enum SettledEnd {
    /// It still has to be stored.
    Unstored(Box<TurnEnd>),
    /// An attempt has stored it.
    Stored(Box<ReplyRecord>),
    /// It was deleted with its conversation.
    Deleted,
}

pub(super) struct ConversationTurnStore<'a> {
    inference: &'a InferenceHandler,
    job: &'a ReplyJob,
    attempt: u32,
    deadlines: TurnDeadlines,
    /// Metadata keys that the message changed, once it is stored.
    changes: SetOnce<Map<String, Value>>,
}

#[async_trait]
impl TurnStore for ConversationTurnStore<'_> {
    async fn load_state(&self, message_count: Option<u64>) -> Option<TurnState> {
        let store = &*self.inference.backends.store;
        let (turn, catalog) = (&self.job.turn, &self.inference.catalog);
        self.retry_until(self.deadlines.reply, "read the history", || async {
            let state = self
                .inference
                .histories
                .turn_state(store, turn, message_count);
            let (state, is_removed) = try_join(state, catalog.is_removed(&turn.org_id)).await?;
            Ok::<_, StoreError>(if is_removed {
                TurnState::Deleted
            } else {
                state
            })
        })
        .await
    }

    async fn attach_files(&self) -> bool {
        let (files, turn) = (&self.inference.backends.files, &self.job.turn);
        let (org, conversation) = (&turn.org_id, &turn.conversation_id);
        for file in &turn.attachments {
            let id = &file.file_id;
            let attached = self.retry_until(self.deadlines.storage, "attach a file", || {
                files.attach(org, conversation, id)
            });
            match attached.await {
                Some(AttachOutcome::Attached) => {}
                // It was removed meanwhile. The ingress lets no two conversations name a file.
                Some(outcome) => tracing::info!(file.id = %id, ?outcome, "file not attached"),
                None => return false,
            }
        }
        turn.attachments.is_empty() || self.remove_files_of_deleted().await.is_some()
    }

    async fn store_user_message(&self, turn: &PendingTurn) -> bool {
        let owner = match &self.job.routed {
            Some(routed) => ConversationOwner::Team(routed.team_id.clone()),
            None => ConversationOwner::Agent(self.job.agent_id.clone()),
        };
        let said = message_metadata(&self.job.turn);
        let Some(known) = self.known_conversation(&said).await else {
            return false;
        };
        let start = TurnStart {
            turn: self.job.turn.clone(),
            owner,
            position: turn.position,
            tombstone: turn.history.tombstone.clone(),
            metadata_at: time_behind(known.as_ref(), self.job.turn.accepted_at),
            attempt: self.attempt,
        };
        let store = &*self.inference.backends.store;
        let stored = self.retry_until(self.deadlines.storage, "store the user message", || {
            store.begin_turn(&start)
        });
        if stored.await.is_none() || !self.store_lead(start.metadata_at).await {
            return false;
        }
        let mut changes = said;
        if let Some(known) = known {
            changes.retain(|key, value| known.metadata.get(key) != Some(value));
        }
        // Set once, because a turn stores its message once.
        let _ = self.changes.set(changes);
        true
    }

    async fn settle_end(&self, own: &TurnEnd) -> Option<SettledEnd> {
        let store = &*self.inference.backends.store;
        let (org, reply) = (&self.job.turn.org_id, self.job.turn.reply_id());
        let settle = || async {
            match store.known_reply(org, &reply).await? {
                Some(ReplyState::Final(record)) => return Ok(SettledEnd::Stored(record)),
                Some(ReplyState::Deleted) => return Ok(SettledEnd::Deleted),
                Some(ReplyState::Accepted(_)) | None => {}
            }
            let settled = store.settle_turn(own).await?;
            Ok::<_, StoreError>(SettledEnd::Unstored(Box::new(settled)))
        };
        self.retry_until(self.deadlines.storage, "settle the reply", settle)
            .await
    }

    async fn store_reply(&self, turn: &PendingTurn, end: &TurnEnd) -> Option<u64> {
        let store = &*self.inference.backends.store;
        let link = self.session_link(&end.record);
        self.retry_until(self.deadlines.storage, "store the reply", || async {
            // Linked first: a client that knows of the reply may read it through its agent.
            if let Some(link) = &link {
                store.link_session(link).await?;
            }
            store.finish_turn(end).await
        })
        .await?;
        self.cache_history(turn, end.message.clone());
        Some(end.record.message_count())
    }

    async fn publish_events(&self, position: u64, mut publication: AnnouncementReceiver) {
        if !self.inference.config.publish_events {
            publication.mark_published();
            return std::future::pending().await;
        }
        let is_user_published = self
            .publish(&events::user_message(self.job, position))
            .await;
        let is_change_published = self.publish_changes(self.changes.wait().await).await;
        if let Some(event) = publication.event().await
            && is_user_published
            && is_change_published
            && self.publish(&event).await
        {
            publication.mark_published();
        }
        std::future::pending().await
    }

    async fn republish_events(&self, record: &ReplyRecord) -> Result<(), JobEnd> {
        if !self.inference.config.publish_events {
            return Ok(());
        }
        let text = self.stored_text(record).await?;
        let user_message = events::user_message(self.job, record.user_position);
        let reply = events::assistant_message(self.job, record, &text);
        let is_published = self.publish(&user_message).await
            // What the first attempt found changed is not known any more.
            && self.publish_changes(&message_metadata(&self.job.turn)).await
            && self.publish(&reply).await;
        if is_published {
            Ok(())
        } else {
            Err(JobEnd::RetryAfter(LEASE))
        }
    }
}

impl<'a> ConversationTurnStore<'a> {
    pub(super) fn new(
        inference: &'a InferenceHandler,
        job: &'a ReplyJob,
        attempt: u32,
        deadlines: TurnDeadlines,
    ) -> Self {
        Self {
            inference,
            job,
            attempt,
            deadlines,
            changes: SetOnce::new(),
        }
    }

    /// Removes the files of a turn that was deleted: a worker that lost its partition may have
    /// attached them behind the deletion. Returns `None` if that failed until the deadline.
    async fn remove_files_of_deleted(&self) -> Option<()> {
        let (backends, turn) = (&self.inference.backends, &self.job.turn);
        let reply = turn.reply_id();
        self.retry_until(self.deadlines.storage, "look for a deletion", || async {
            let known = backends.store.known_reply(&turn.org_id, &reply).await?;
            if !matches!(known, Some(ReplyState::Deleted)) {
                return Ok(());
            }
            for file in &turn.attachments {
                let (org, conversation) = (&turn.org_id, &turn.conversation_id);
                let removed = backends.files.remove_file(org, conversation, &file.file_id);
                removed.await?;
            }
            Ok::<_, StoreError>(())
        })
        .await
    }

    /// Returns the conversation as it was before this turn, if the message may change its metadata.
    /// Only a first attempt knows it: a later one may find the changes of an earlier one. Returns
    /// `None` if the store did not answer until the deadline.
    async fn known_conversation(&self, said: &Map<String, Value>) -> Option<Option<Conversation>> {
        if said.is_empty() || self.attempt > 1 {
            return Some(None);
        }
        let (store, turn) = (&*self.inference.backends.store, &self.job.turn);
        self.retry_until(self.deadlines.storage, "read the conversation", || {
            store.conversation(&turn.org_id, &turn.conversation_id)
        })
        .await
    }

    /// Stores the lead that came with the message, which is counted as a change. Returns false if
    /// that failed until the deadline.
    async fn store_lead(&self, at: Timestamp) -> bool {
        let turn = &self.job.turn;
        let Some(lead) = &turn.visitor.lead else {
            return true;
        };
        let change = Map::from_iter([(LEAD_KEY.to_owned(), json!(lead))]);
        let store = &*self.inference.backends.store;
        self.retry_until(self.deadlines.storage, "store the lead", || {
            store.update_metadata(&turn.org_id, &turn.conversation_id, &change, at)
        })
        .await
        .is_some()
    }

    async fn publish_changes(&self, changes: &Map<String, Value>) -> bool {
        let updated = (!changes.is_empty())
            .then(|| events::message_metadata_changed(self.job, changes.clone()));
        for event in updated.into_iter().chain(events::message_lead(self.job)) {
            if !self.publish(&event).await {
                return false;
            }
        }
        true
    }

    /// Returns the link that makes a team's or a page visitor's conversation readable through the
    /// agent that answered in it.
    fn session_link(&self, record: &ReplyRecord) -> Option<SessionLink> {
        let turn = &self.job.turn;
        let own = ConversationId::of_agent(&turn.org_id, &self.job.agent_id, &turn.session_id);
        (turn.conversation_id != own && record.position.is_some()).then(|| SessionLink {
            org_id: turn.org_id.clone(),
            agent_id: self.job.agent_id.clone(),
            session_id: turn.session_id.clone(),
            conversation_id: turn.conversation_id.clone(),
            answered_at: record.finished_at,
        })
    }

    fn cache_history(&self, pending: &PendingTurn, reply: Option<Message>) {
        let turn = &self.job.turn;
        let question = Message {
            id: turn.message_id.clone(),
            position: pending.position,
            content: turn.content.clone(),
            attachments: turn.attachments.clone(),
            created_at: turn.accepted_at,
            author: MessageAuthor::User,
        };
        self.inference.histories.add_turn(
            &turn.conversation_id,
            &pending.history,
            std::iter::once(question).chain(reply),
        );
    }

    /// Returns the text of a stored reply, or the end of this run if it cannot be read.
    async fn stored_text(&self, record: &ReplyRecord) -> Result<String, JobEnd> {
        let Some(position) = record.position else {
            return Ok(String::new());
        };
        let (store, turn) = (&*self.inference.backends.store, &self.job.turn);
        let messages = self
            .retry_until(self.deadlines.storage, "read the stored reply", || {
                store.messages(&turn.org_id, &turn.conversation_id, position, 1)
            })
            .await
            .ok_or(JobEnd::RetryAfter(LEASE))?;
        let reply = messages
            .into_iter()
            .find(|message| message.id == turn.reply_id());
        // No retry will find it: an operator has to look.
        reply.map(|message| message.content).ok_or_else(|| {
            JobEnd::DeadLetter(DeadLetterCause {
                class: "reply-text-lost",
                reason: "the reply is recorded, but its text is not in the store".to_owned(),
                attempts: self.attempt,
            })
        })
    }

    async fn publish(&self, event: &MessageEvent) -> bool {
        let (bus, config) = (&*self.inference.backends.bus, &self.inference.config);
        self.retry_until(self.deadlines.storage, "publish an event", || {
            events::publish_event(bus, config, event)
        })
        .await
        .is_some()
    }

    async fn retry_until<T, E, F>(
        &self,
        deadline: Instant,
        task: &str,
        work: impl FnMut() -> F,
    ) -> Option<T>
    where
        F: Future<Output = Result<T, E>>,
        E: RetriedError,
    {
        let delays = RetryDelays::of_store(&self.inference.config);
        retry::retry_until(deadline, delays, task, work).await
    }
}
