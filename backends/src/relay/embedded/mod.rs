//! The relay inside one process. It keeps the contract of the Redis relay and is never more
//! lenient.
//!
//! It drops frames to a slow listener, has the same lifetimes, and loses logs in a restart. Only
//! attempt counts, values and routing decisions survive a crash, so that a job that kills its
//! process is given up and a repeated request is recognized.

mod attempt_file;
mod claim_state;
#[cfg(test)]
mod claim_state_properties;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fixtures;
mod frame_log;
mod memory_file;
mod playground_store;
mod round_robin;

use std::{
    collections::HashMap,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use parking_lot::Mutex;
use switchboard_schemas::{
    ids::{ConversationId, IngressId, MessageId},
    reply_event::{Frame, IngressEnvelope, ReplySignal},
    time::whole_millis,
};
use tokio::sync::mpsc::{self, error::TrySendError};

use self::{
    attempt_file::AttemptFile, claim_state::ConversationClaims, frame_log::RelayMillis,
    memory_file::MemoryFile, playground_store::PlaygroundStore,
};
use super::{
    CancelOutcome, ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimStore,
    ClaimToken, KeyValueMemory, LISTENER_ENVELOPES_MAX, PlaygroundRuns, QueueSlots,
    RecordedDecisions, RelayError, ReplyLog, RoundRobinOffer, RoutingDecision, RoutingState,
};

/// Interval at which expired entries are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// The relay of a process that is ingress and worker at once.
pub struct EmbeddedRelay {
    started: Instant,
    attempts: Option<AttemptFile>,
    memory: MemoryFile,
    conversations: Mutex<ConversationTable>,
    listeners: Mutex<HashMap<IngressId, Vec<mpsc::Sender<IngressEnvelope>>>>,
    playground_runs: Mutex<PlaygroundStore>,
    dropped: AtomicU64,
}

#[derive(Default)]
struct ConversationTable {
    claims: HashMap<ConversationId, ConversationClaims>,
    swept_at: RelayMillis,
}

impl EmbeddedRelay {
    /// Opens the relay. `path` is the file of attempts, values and decisions; without one they do
    /// not survive a crash.
    ///
    /// # Errors
    /// The file cannot be opened or created.
    pub fn open(path: Option<&Path>) -> Result<Self, RelayError> {
        Ok(Self {
            started: Instant::now(),
            attempts: path.map(AttemptFile::open).transpose()?,
            memory: MemoryFile::open(path)?,
            conversations: Mutex::default(),
            listeners: Mutex::default(),
            playground_runs: Mutex::default(),
            dropped: AtomicU64::new(0),
        })
    }

    /// Number of envelopes dropped because a subscription was full.
    pub fn envelopes_dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn now(&self) -> RelayMillis {
        // Starts at one second, so that zero means "never" even in a process that has just started.
        whole_millis(self.started.elapsed()) + 1_000
    }

    fn with_claims<T>(
        &self,
        reply: &MessageId,
        work: impl FnOnce(&mut ConversationClaims, RelayMillis) -> T,
    ) -> T {
        let mut conversations = self.conversations.lock();
        let now = self.now();
        conversations.sweep(now);
        work(
            conversations
                .claims
                .entry(reply.conversation())
                .or_default(),
            now,
        )
    }

    /// Loads the attempts that an earlier run recorded, the first time this run claims the reply.
    fn load_attempts(&self, reply_id: &MessageId) -> Result<(), RelayError> {
        let Some(attempts) = &self.attempts else {
            return Ok(());
        };
        if self
            .with_claims(reply_id, |claims, _| claims.attempt_record(reply_id))
            .is_some()
        {
            return Ok(());
        }
        if let Some(record) = attempts.read(reply_id)? {
            self.with_claims(reply_id, |claims, now| {
                claims.restore_attempts(now, reply_id, record)
            });
        }
        Ok(())
    }

    fn deliver(&self, to: Option<&IngressId>, envelope: impl FnOnce() -> IngressEnvelope) {
        let Some(to) = to else { return };
        let mut listeners = self.listeners.lock();
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

    fn push_signal(&self, to: Option<&IngressId>, reply_id: &MessageId, signal: ReplySignal) {
        self.deliver(to, || IngressEnvelope::Reply(reply_id.clone(), signal));
    }

    fn push_frame(&self, to: Option<&IngressId>, reply_id: &MessageId, frame: &Frame) {
        self.push_signal(to, reply_id, ReplySignal::Frame(frame.clone()));
    }
}

impl ConversationTable {
    fn sweep(&mut self, now: RelayMillis) {
        if now.saturating_sub(self.swept_at) >= whole_millis(SWEEP_INTERVAL) {
            self.swept_at = now;
            self.claims.retain(|_, claims| claims.sweep(now));
        }
    }
}

#[async_trait]
impl ClaimStore for EmbeddedRelay {
    async fn claim_reply(&self, request: &ClaimRequest) -> Result<ClaimOutcome, RelayError> {
        self.load_attempts(&request.reply_id)?;
        let (claim, record) = self.with_claims(&request.reply_id, |claims, now| {
            (
                claims.claim(now, request),
                claims.attempt_record(&request.reply_id),
            )
        });
        // Record the attempt before its work begins, so that a crash in the middle of it counts.
        if let (Some(attempts), ClaimOutcome::Granted { .. }, Some(record)) =
            (&self.attempts, &claim, record)
        {
            attempts.write(&request.reply_id, record)?;
        }
        Ok(claim)
    }

    async fn restore_claim(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        let push = |frame: &Frame| self.push_frame(push_to, &token.reply_id, frame);
        Ok(self.with_claims(&token.reply_id, |claims, now| {
            claims.restore(now, token, frames, push)
        }))
    }

    async fn renew_claim(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
    ) -> Result<ClaimStatus, RelayError> {
        let push = |heartbeat| self.push_signal(push_to, &token.reply_id, heartbeat);
        Ok(self.with_claims(&token.reply_id, |claims, now| {
            claims.send_heartbeat(now, token, push)
        }))
    }

    async fn finalize_reply(
        &self,
        token: &ClaimToken,
        end: &Frame,
    ) -> Result<ClaimStatus, RelayError> {
        Ok(self.with_claims(&token.reply_id, |claims, now| {
            claims.finalize(now, token, end)
        }))
    }

    async fn complete_claim(
        &self,
        token: &ClaimToken,
        completion: &ClaimCompletion,
    ) -> Result<ClaimStatus, RelayError> {
        let push =
            |frame: &Frame| self.push_frame(completion.push_to.as_ref(), &token.reply_id, frame);
        let status = self.with_claims(&token.reply_id, |claims, now| {
            claims.complete(now, token, completion, push)
        });
        if let (Some(attempts), ClaimStatus::Held, true) =
            (&self.attempts, status, completion.announced)
        {
            attempts.delete(&token.reply_id, token.attempt)?;
        }
        Ok(status)
    }

    async fn release_claim(&self, token: &ClaimToken) -> Result<(), RelayError> {
        let released = self.with_claims(&token.reply_id, |claims, now| claims.release(now, token));
        match &self.attempts {
            Some(attempts) if released => attempts.mark_released(&token.reply_id, token.attempt),
            _ => Ok(()),
        }
    }

    async fn cancel_reply(
        &self,
        reply: &MessageId,
        end: &Frame,
    ) -> Result<CancelOutcome, RelayError> {
        Ok(self.with_claims(reply, |claims, now| claims.cancel(now, reply, end)))
    }
}

#[async_trait]
impl ReplyLog for EmbeddedRelay {
    async fn append_frames(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        let push = |frame: &Frame| self.push_frame(push_to, &token.reply_id, frame);
        Ok(self.with_claims(&token.reply_id, |claims, now| {
            claims.append(now, token, frames, push)
        }))
    }

    async fn read_frames(
        &self,
        reply: &MessageId,
        after_seq: u64,
    ) -> Result<Vec<Frame>, RelayError> {
        Ok(self.with_claims(reply, |claims, now| {
            claims.read_frames(now, reply, after_seq)
        }))
    }

    async fn remaining_lease(&self, reply: &MessageId) -> Result<Option<Duration>, RelayError> {
        Ok(self.with_claims(reply, |claims, now| claims.remaining_lease(now, reply)))
    }

    async fn delete_frames(&self, reply: &MessageId) -> Result<(), RelayError> {
        self.with_claims(reply, |claims, _| claims.delete_log(reply));
        Ok(())
    }

    async fn subscribe(
        &self,
        ingress: &IngressId,
    ) -> Result<mpsc::Receiver<IngressEnvelope>, RelayError> {
        let (sender, receiver) = mpsc::channel(LISTENER_ENVELOPES_MAX);
        self.listeners
            .lock()
            .entry(ingress.clone())
            .or_default()
            .push(sender);
        Ok(receiver)
    }

    async fn push(&self, to: &IngressId, envelope: &IngressEnvelope) -> Result<(), RelayError> {
        self.deliver(Some(to), || envelope.clone());
        Ok(())
    }
}

#[async_trait]
impl QueueSlots for EmbeddedRelay {
    async fn reserve_slot(&self, reply: &MessageId, slots_max: u32) -> Result<bool, RelayError> {
        Ok(self.with_claims(reply, |claims, now| {
            claims.reserve_slot(now, reply, slots_max)
        }))
    }

    async fn queued_replies(
        &self,
        conversation: &ConversationId,
    ) -> Result<Vec<MessageId>, RelayError> {
        let conversations = self.conversations.lock();
        let claims = conversations.claims.get(conversation);
        Ok(claims.map_or_else(Vec::new, ConversationClaims::queued_replies))
    }

    async fn void_publish(&self, reply: &MessageId, publish_nonce: &str) -> Result<(), RelayError> {
        self.with_claims(reply, |claims, now| {
            claims.void_publish(now, reply, publish_nonce)
        });
        Ok(())
    }
}

#[async_trait]
impl RoutingState for EmbeddedRelay {
    async fn record_decision(
        &self,
        message: &MessageId,
        decision: &RoutingDecision,
    ) -> Result<RoutingDecision, RelayError> {
        self.memory.record_decision(message, decision)
    }

    async fn record_round_robin(
        &self,
        message: &MessageId,
        offer: &RoundRobinOffer,
    ) -> Result<Option<RoutingDecision>, RelayError> {
        self.memory.record_round_robin(message, offer)
    }

    async fn recorded_decisions(
        &self,
        message: &MessageId,
    ) -> Result<RecordedDecisions, RelayError> {
        self.memory.recorded_decisions(message)
    }

    async fn delete_decisions(&self, message: &MessageId) -> Result<(), RelayError> {
        self.memory.delete_decisions(message)
    }

    async fn erase_residue(&self) -> Result<(), RelayError> {
        self.memory.erase_residue()
    }
}

#[async_trait]
impl KeyValueMemory for EmbeddedRelay {
    async fn get_or_insert(&self, name: &str, value: &str) -> Result<String, RelayError> {
        self.memory.get_or_insert(name, value)
    }

    async fn check(&self) -> Result<(), RelayError> {
        Ok(())
    }
}

#[async_trait]
impl PlaygroundRuns for EmbeddedRelay {
    async fn put_playground_run(&self, run_id: &MessageId, text: &str) -> Result<(), RelayError> {
        self.playground_runs.lock().put(self.now(), run_id, text);
        Ok(())
    }

    async fn playground_run(&self, run_id: &MessageId) -> Result<Option<String>, RelayError> {
        Ok(self.playground_runs.lock().read(self.now(), run_id))
    }
}
