//! The relay inside one process: the production twin's contract, never kinder. It drops frames to a slow listener, has
//! the same times to live, and a restart loses logs; only the count of attempts and what is remembered outlive a
//! crash, so that a job that kills its process comes to an end and a repeated request stays a repeat.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use switchboard_schemas::{
    ids::{ConversationId, EventId, IngressId, MessageId},
    playground::PlaygroundRouting,
    reply_event::{Frame, IngressEnvelope, PatchOutcome},
};
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{
    ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimToken, LISTENER_ENVELOPES_MAX,
    RecordedDecisions, Relay, RelayError, RoundRobinOffer, RoutingDecision,
    attempt_store::AttemptStore, beat, claim_state::ConversationClaims,
    key_value_store::KeyValueStore, millis, playground_store::PlaygroundStore, reply_log::Millis,
    waiting,
};

/// How often expired entries are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// The relay of a process that is ingress and worker at once.
pub struct EmbeddedRelay {
    born: Instant,
    book: Option<AttemptStore>,
    memory: KeyValueStore,
    conversations: Mutex<Conversations>,
    listeners: Mutex<HashMap<IngressId, Vec<mpsc::Sender<IngressEnvelope>>>>,
    trials: Mutex<PlaygroundStore>,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Conversations {
    claims: HashMap<ConversationId, ConversationClaims>,
    swept_at: Millis,
}

impl EmbeddedRelay {
    /// Opens the relay; `path` is the file of attempts and memories, without one a crash forgets them.
    ///
    /// # Errors
    /// The file cannot be opened or made.
    pub fn open(path: Option<&Path>) -> Result<Self, RelayError> {
        Ok(Self {
            born: Instant::now(),
            book: path.map(AttemptStore::open).transpose()?,
            memory: KeyValueStore::open(path)?,
            conversations: Mutex::default(),
            listeners: Mutex::default(),
            trials: Mutex::default(),
            dropped: AtomicU64::new(0),
        })
    }

    /// Envelopes that a listener was too slow for.
    pub fn envelopes_dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn now(&self) -> Millis {
        // One second is kept before zero, so that "never" and "now" differ in a process that was just born.
        millis(self.born.elapsed()) + 1_000
    }

    pub(super) fn with<T>(
        &self,
        conversation: &ConversationId,
        work: impl FnOnce(&mut ConversationClaims, Millis) -> T,
    ) -> T {
        let mut conversations = lock(&self.conversations);
        let now = self.now();
        conversations.sweep(now);
        work(
            conversations
                .claims
                .entry(conversation.clone())
                .or_default(),
            now,
        )
    }

    /// Reads the attempts of an earlier run, the first time that this one hears of the reply.
    fn recall(&self, reply_id: &MessageId) -> Result<(), RelayError> {
        let Some(book) = &self.book else {
            return Ok(());
        };
        let conversation = reply_id.conversation();
        if self
            .with(&conversation, |claims, _| claims.attempt_record(reply_id))
            .is_some()
        {
            return Ok(());
        }
        if let Some(record) = book.read(reply_id)? {
            self.with(&conversation, |claims, now| {
                claims.recall(now, reply_id, record)
            });
        }
        Ok(())
    }

    pub(super) fn push(&self, to: Option<&IngressId>, envelope: impl FnOnce() -> IngressEnvelope) {
        let Some(to) = to else { return };
        let mut listeners = lock(&self.listeners);
        let Some(senders) = listeners.get_mut(to) else {
            return;
        };
        let envelope = envelope();
        senders.retain(|sender| match sender.try_send(envelope.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Closed(_)) => false,
        });
        if senders.is_empty() {
            listeners.remove(to);
        }
    }

    pub(super) fn push_frame(&self, to: Option<&IngressId>, reply_id: &MessageId, frame: &Frame) {
        self.push(to, || {
            IngressEnvelope::Reply(reply_id.clone(), frame.clone())
        });
    }
}

impl Conversations {
    fn sweep(&mut self, now: Millis) {
        if now.saturating_sub(self.swept_at) >= millis(SWEEP_INTERVAL) {
            self.swept_at = now;
            self.claims.retain(|_, claims| claims.sweep(now));
        }
    }
}

#[async_trait]
impl Relay for EmbeddedRelay {
    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, RelayError> {
        self.recall(&request.reply_id)?;
        let (claim, record) = self.with(&request.reply_id.conversation(), |claims, now| {
            (
                claims.claim(now, request, rand::random()),
                claims.attempt_record(&request.reply_id),
            )
        });
        // The attempt is counted before its work begins: a crash in the middle of it must be remembered.
        if let (Some(book), ClaimOutcome::Granted { .. }, Some(record)) =
            (&self.book, &claim, record)
        {
            book.write(&request.reply_id, record)?;
        }
        Ok(claim)
    }

    async fn append(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        let sign_of_life = [beat(token)];
        let frames = if frames.is_empty() {
            &sign_of_life
        } else {
            frames
        };
        let push = |frame: &Frame| self.push_frame(push_to, &token.reply_id, frame);
        Ok(self.with(&token.reply_id.conversation(), |claims, now| {
            claims.append(now, token, frames, push)
        }))
    }

    async fn restore(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        let push = |frame: &Frame| self.push_frame(push_to, &token.reply_id, frame);
        Ok(self.with(&token.reply_id.conversation(), |claims, now| {
            claims.restore(now, token, frames, push)
        }))
    }

    async fn seal(&self, token: &ClaimToken, end: &Frame) -> Result<ClaimStatus, RelayError> {
        Ok(self.with(&token.reply_id.conversation(), |claims, now| {
            claims.seal(now, token, end)
        }))
    }

    async fn settle(
        &self,
        token: &ClaimToken,
        settlement: &ClaimCompletion,
    ) -> Result<ClaimStatus, RelayError> {
        let push =
            |frame: &Frame| self.push_frame(settlement.push_to.as_ref(), &token.reply_id, frame);
        let standing = self.with(&token.reply_id.conversation(), |claims, now| {
            claims.settle(now, token, settlement, push)
        });
        if let (Some(book), ClaimStatus::Held, true) = (&self.book, standing, settlement.announced)
        {
            book.forget(&token.reply_id, token.attempt)?;
        }
        Ok(standing)
    }

    async fn release(&self, token: &ClaimToken) -> Result<(), RelayError> {
        let released = self.with(&token.reply_id.conversation(), |claims, now| {
            claims.release(now, token)
        });
        match &self.book {
            Some(book) if released => book.release(&token.reply_id, token.attempt),
            _ => Ok(()),
        }
    }

    async fn answer_patch(
        &self,
        push_to: &IngressId,
        patch: &EventId,
        outcome: PatchOutcome,
    ) -> Result<(), RelayError> {
        self.push(Some(push_to), || {
            IngressEnvelope::Patch(patch.clone(), outcome)
        });
        Ok(())
    }

    async fn keep_trial(&self, trial: &MessageId, text: &str) -> Result<(), RelayError> {
        lock(&self.trials).keep(self.now(), trial, text);
        Ok(())
    }

    async fn trial(&self, trial: &MessageId) -> Result<Option<String>, RelayError> {
        Ok(lock(&self.trials).read(self.now(), trial))
    }

    async fn answer_trial(
        &self,
        push_to: &IngressId,
        trial: &MessageId,
        verdict: PlaygroundRouting,
    ) -> Result<(), RelayError> {
        self.push(Some(push_to), || {
            IngressEnvelope::Playground(trial.clone(), verdict)
        });
        Ok(())
    }

    async fn say_waiting(&self, push_to: &IngressId, reply: &MessageId) -> Result<(), RelayError> {
        self.push_frame(Some(push_to), reply, &waiting());
        Ok(())
    }

    async fn listen(
        &self,
        ingress: &IngressId,
    ) -> Result<mpsc::Receiver<IngressEnvelope>, RelayError> {
        let (sender, receiver) = mpsc::channel(LISTENER_ENVELOPES_MAX);
        lock(&self.listeners)
            .entry(ingress.clone())
            .or_default()
            .push(sender);
        Ok(receiver)
    }

    async fn read_log(&self, reply: &MessageId, after_seq: u64) -> Result<Vec<Frame>, RelayError> {
        Ok(self.with(&reply.conversation(), |claims, now| {
            claims.read_log(now, reply, after_seq)
        }))
    }

    async fn void(&self, reply: &MessageId, publish_nonce: &str) -> Result<(), RelayError> {
        self.with(&reply.conversation(), |claims, now| {
            claims.void(now, reply, publish_nonce)
        });
        Ok(())
    }

    async fn enqueue(&self, reply: &MessageId, places_max: u32) -> Result<bool, RelayError> {
        Ok(self.with(&reply.conversation(), |claims, now| {
            claims.enqueue(now, reply, places_max)
        }))
    }

    async fn remember(&self, name: &str, value: &str) -> Result<String, RelayError> {
        self.memory.remember(name, value)
    }

    async fn decide(
        &self,
        message: &MessageId,
        decision: &RoutingDecision,
    ) -> Result<RoutingDecision, RelayError> {
        self.memory.decide(message, decision)
    }

    async fn decide_in_turn(
        &self,
        message: &MessageId,
        offer: &RoundRobinOffer,
    ) -> Result<Option<RoutingDecision>, RelayError> {
        self.memory.decide_in_turn(message, offer)
    }

    async fn decisions(&self, message: &MessageId) -> Result<RecordedDecisions, RelayError> {
        self.memory.decisions(message)
    }

    async fn cancel(&self, reply: &MessageId) -> Result<bool, RelayError> {
        Ok(self.with(&reply.conversation(), |claims, now| {
            claims.cancel(now, reply)
        }))
    }

    async fn forget(&self, message: &MessageId) -> Result<(), RelayError> {
        self.with(&message.conversation(), |claims, _| {
            claims.forget(&message.reply())
        });
        self.memory.forget_decisions(message)
    }

    async fn check(&self) -> Result<(), RelayError> {
        Ok(())
    }
}

/// A panic elsewhere leaves these maps whole: each change is one call that either happened or did not.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
