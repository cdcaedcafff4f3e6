//! The relay on Redis. Each step of a reply is one script, so that fencing, log and push are
//! atomic.
//!
//! A stream per reply is its log, and one channel per ingress process carries pushed envelopes.

mod listener;
#[cfg(test)]
#[cfg(feature = "real-services")]
mod real_black_hole_tests;
#[cfg(test)]
#[cfg(feature = "real-services")]
mod real_memory_tests;
#[cfg(test)]
#[cfg(feature = "real-services")]
mod real_outage_tests;
mod responses;
mod scripts;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use switchboard_schemas::{
    ids::{AgentId, ConversationId, IngressId, MessageId, TeamId},
    reply_event::{Frame, IngressEnvelope, ReplySignal},
    time::whole_millis,
};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use self::{
    listener::ChannelListener,
    responses::{parse_cancellation, parse_claim, queued_reply, unexpected_response},
    scripts::{
        RelayScripts, add_frame, add_push_target, call_on_reply, call_with_token, conversation_key,
        log_key,
    },
};
use super::{
    CancelOutcome, ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimStore,
    ClaimToken, KeyValueMemory, LISTENER_ENVELOPES_MAX, PLAYGROUND_RUN_TTL, PlaygroundRuns,
    QueueSlots, RecordedDecisions, RelayError, ReplyLog, RoundRobinOffer, RoutingDecision,
    RoutingState, STATE_LOSS_GRACE, claims::is_cancelled_end,
};
use crate::{
    config::RedisConfig,
    redis_link::{RedisLink, RedisLinkError},
};

/// The relay of an installation with many processes.
pub struct RedisRelay {
    link: RedisLink,
    scripts: RelayScripts,
    listeners: TaskTracker,
    counters: Arc<EnvelopeCounters>,
}

/// Counters of undelivered envelopes.
#[derive(Default)]
struct EnvelopeCounters {
    malformed: AtomicU64,
    dropped: AtomicU64,
}

/// One entry of a stream: its id, then its fields.
type StreamEntry = (String, Vec<(String, Bytes)>);

impl RedisRelay {
    /// Opens the relay. Redis need not be reachable yet.
    ///
    /// # Errors
    /// The URL is invalid.
    pub async fn connect(config: &RedisConfig, namespace: &str) -> Result<Self, RelayError> {
        let this = Self {
            link: RedisLink::connect(config, namespace).await?,
            scripts: RelayScripts::new(),
            listeners: TaskTracker::new(),
            counters: Arc::default(),
        };
        // Start counting the age of the state now, so that the first takeover of an installation
        // need not wait.
        let _ = this.state_age().await;
        Ok(this)
    }

    /// Number of received messages that were not valid envelopes.
    pub fn envelopes_malformed(&self) -> u64 {
        self.counters.malformed.load(Ordering::Relaxed)
    }

    /// Number of envelopes dropped because a subscription was full.
    pub fn envelopes_dropped(&self) -> u64 {
        self.counters.dropped.load(Ordering::Relaxed)
    }

    fn channel(&self, ingress: &IngressId) -> String {
        self.link.key(&format!("ingress:{ingress}"))
    }

    fn playground_run_key(&self, run_id: &MessageId) -> String {
        self.link.key(&format!("trial:{run_id}"))
    }

    fn void_key(&self, conversation: &ConversationId, publish_nonce: &str) -> String {
        self.link
            .key(&format!("{{{conversation}}}:void:{publish_nonce}"))
    }

    /// Keys of the decision for a message and of the last one in its conversation, on one node of a
    /// cluster.
    fn decision_keys(&self, message: &MessageId) -> [String; 2] {
        let conversation = message.conversation();
        let key = |rest: &str| self.link.key(&format!("{{{conversation}}}:route{rest}"));
        [key(&format!(":{message}")), key("")]
    }

    /// Keys of a team's round-robin counts and of the member chosen for a message, on one node of a
    /// cluster.
    fn round_robin_keys(&self, team: &TeamId, message: &MessageId) -> [String; 2] {
        let key = |rest: &str| self.link.key(&format!("{{{team}}}:turns{rest}"));
        [key(""), key(&format!(":{message}"))]
    }

    /// Returns the time for which this Redis is known to have kept its state. After a restart it
    /// counts from the first call.
    async fn state_age(&self) -> Result<Duration, RelayError> {
        let call = self.scripts.state_age.key(self.link.key("relay:memory"));
        Ok(Duration::from_millis(self.link.invoke(&call).await?))
    }

    /// Creates a call that appends to the log of a claimed reply. Its next argument is the
    /// heartbeat to push, or nothing.
    fn append_call(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
    ) -> redis::ScriptInvocation<'_> {
        let mut call = call_with_token(&self.scripts.append, &self.link, token);
        let channel = push_to.map(|ingress| self.channel(ingress));
        add_push_target(&mut call, channel, &token.reply_id);
        call
    }

    async fn claim_status(
        &self,
        call: &redis::ScriptInvocation<'_>,
    ) -> Result<ClaimStatus, RelayError> {
        let response: String = self.link.invoke(call).await?;
        match response.as_str() {
            "held" => Ok(ClaimStatus::Held),
            "cancelled" => Ok(ClaimStatus::Cancelled),
            "fenced" => Ok(ClaimStatus::Fenced),
            "forgotten" => Ok(ClaimStatus::StateLost),
            _ => Err(unexpected_response()),
        }
    }
}

#[async_trait]
impl ClaimStore for RedisRelay {
    async fn claim_reply(&self, request: &ClaimRequest) -> Result<ClaimOutcome, RelayError> {
        if request.maybe_held
            && let Some(retry_after) = STATE_LOSS_GRACE
                .checked_sub(self.state_age().await?)
                .filter(|left| !left.is_zero())
        {
            return Ok(ClaimOutcome::Busy {
                retry_after,
                attempt: None,
            });
        }
        let mut call = call_on_reply(&self.scripts.claim, &self.link, &request.reply_id);
        call.key(self.void_key(&request.reply_id.conversation(), &request.publish_nonce));
        call.arg(request.nonce.to_string()).arg(request.attempt_min);
        let response: redis::Value = self.link.invoke(&call).await?;
        parse_claim(&request.reply_id, request.nonce, response)
    }

    async fn restore_claim(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        let mut call = call_with_token(&self.scripts.restore, &self.link, token);
        add_push_target(
            &mut call,
            push_to.map(|ingress| self.channel(ingress)),
            &token.reply_id,
        );
        frames.iter().for_each(|frame| add_frame(&mut call, frame));
        self.claim_status(&call).await
    }

    async fn renew_claim(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
    ) -> Result<ClaimStatus, RelayError> {
        let attempt = token.attempt;
        let mut call = self.append_call(token, push_to);
        call.arg(&ReplySignal::Heartbeat { attempt }.encode()[..]);
        self.claim_status(&call).await
    }

    async fn finalize_reply(
        &self,
        token: &ClaimToken,
        end: &Frame,
    ) -> Result<ClaimStatus, RelayError> {
        let mut call = call_with_token(&self.scripts.finalize, &self.link, token);
        add_frame(&mut call, end);
        call.arg(u8::from(is_cancelled_end(end)));
        self.claim_status(&call).await
    }

    async fn complete_claim(
        &self,
        token: &ClaimToken,
        completion: &ClaimCompletion,
    ) -> Result<ClaimStatus, RelayError> {
        let mut call = call_with_token(&self.scripts.complete, &self.link, token);
        let channel = completion
            .push_to
            .as_ref()
            .map(|ingress| self.channel(ingress));
        add_push_target(&mut call, channel, &token.reply_id);
        add_frame(&mut call, &completion.end);
        call.arg(completion.message_count)
            .arg(u8::from(completion.announced));
        self.claim_status(&call).await
    }

    async fn release_claim(&self, token: &ClaimToken) -> Result<(), RelayError> {
        self.claim_status(&call_with_token(&self.scripts.release, &self.link, token))
            .await
            .map(|_| ())
    }

    async fn cancel_reply(
        &self,
        reply: &MessageId,
        end: &Frame,
    ) -> Result<CancelOutcome, RelayError> {
        let mut call = call_on_reply(&self.scripts.cancel, &self.link, reply);
        add_frame(&mut call, end);
        let outcome: String = self.link.invoke(&call).await?;
        parse_cancellation(&outcome)
    }
}

#[async_trait]
impl ReplyLog for RedisRelay {
    async fn append_frames(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        let mut call = self.append_call(token, push_to);
        // No heartbeat: the frames are the sign of life.
        call.arg("");
        frames.iter().for_each(|frame| add_frame(&mut call, frame));
        self.claim_status(&call).await
    }

    async fn read_frames(
        &self,
        reply: &MessageId,
        after_seq: u64,
    ) -> Result<Vec<Frame>, RelayError> {
        let mut range = redis::cmd("XRANGE");
        range
            .arg(log_key(&self.link, reply))
            .arg(format!("(0-{after_seq}"))
            .arg("+");
        let entries: Vec<StreamEntry> = self.link.query(&range).await?;
        let frames = entries.into_iter().flat_map(|(_, fields)| fields);
        frames
            .map(|(_, bytes)| Frame::decode(bytes).map_err(|_| unexpected_response()))
            .collect()
    }

    async fn remaining_lease(&self, reply: &MessageId) -> Result<Option<Duration>, RelayError> {
        let call = call_on_reply(&self.scripts.remaining_lease, &self.link, reply);
        let left = Duration::from_millis(self.link.invoke(&call).await?);
        Ok(Some(left).filter(|left| !left.is_zero()))
    }

    async fn delete_frames(&self, reply: &MessageId) -> Result<(), RelayError> {
        let mut delete = redis::cmd("DEL");
        delete.arg(log_key(&self.link, reply));
        Ok(self.link.query(&delete).await?)
    }

    async fn subscribe(
        &self,
        ingress: &IngressId,
    ) -> Result<mpsc::Receiver<IngressEnvelope>, RelayError> {
        let (sender, receiver) = mpsc::channel(LISTENER_ENVELOPES_MAX);
        let listener = ChannelListener::new(
            self.link.clone(),
            self.channel(ingress),
            sender,
            Arc::clone(&self.counters),
        );
        let mut subscribed = listener.subscribed();
        self.listeners.spawn(listener.run());
        // A job that is published before the subscription is active would lose its first frames. An
        // ingress also starts while Redis is unavailable; its subscription is then established
        // later.
        let _ = tokio::time::timeout(
            self.link.command_timeout(),
            subscribed.wait_for(|done| *done),
        )
        .await;
        Ok(receiver)
    }

    async fn push(&self, to: &IngressId, envelope: &IngressEnvelope) -> Result<(), RelayError> {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(self.channel(to)).arg(&envelope.encode()[..]);
        Ok(self.link.query(&publish).await?)
    }
}

#[async_trait]
impl QueueSlots for RedisRelay {
    async fn reserve_slot(&self, reply: &MessageId, slots_max: u32) -> Result<bool, RelayError> {
        let mut call = call_on_reply(&self.scripts.reserve_slot, &self.link, reply);
        call.arg(slots_max);
        Ok(self.link.invoke(&call).await?)
    }

    async fn queued_replies(
        &self,
        conversation: &ConversationId,
    ) -> Result<Vec<MessageId>, RelayError> {
        let mut fields = redis::cmd("HKEYS");
        fields.arg(conversation_key(&self.link, conversation));
        let fields: Vec<String> = self.link.query(&fields).await?;
        Ok(fields
            .iter()
            .filter_map(|field| queued_reply(field))
            .collect())
    }

    async fn void_publish(&self, reply: &MessageId, publish_nonce: &str) -> Result<(), RelayError> {
        let mut call = call_on_reply(&self.scripts.void, &self.link, reply);
        call.key(self.void_key(&reply.conversation(), publish_nonce));
        Ok(self.link.invoke(&call).await?)
    }
}

#[async_trait]
impl RoutingState for RedisRelay {
    async fn record_decision(
        &self,
        message: &MessageId,
        decision: &RoutingDecision,
    ) -> Result<RoutingDecision, RelayError> {
        let [own, last] = self.decision_keys(message);
        let mut call = self.scripts.record_decision.key(own);
        call.key(last).arg(decision.encode()?);
        let text: String = self.link.invoke(&call).await?;
        Ok(RoutingDecision::decode(&text).unwrap_or_else(|| decision.clone()))
    }

    async fn record_round_robin(
        &self,
        message: &MessageId,
        offer: &RoundRobinOffer,
    ) -> Result<Option<RoutingDecision>, RelayError> {
        let own = self.recorded_decisions(message).await?.own;
        if own.is_some() || offer.members.is_empty() {
            return Ok(own);
        }
        let [rotation, chosen] = self.round_robin_keys(&offer.team, message);
        let mut call = self.scripts.choose_round_robin.key(rotation);
        call.key(chosen);
        for member in &offer.members {
            call.arg(member.as_str());
        }
        let chosen: String = self.link.invoke(&call).await?;
        let chosen: AgentId = chosen.parse().map_err(|_| unexpected_response())?;
        // A team and a conversation live on different nodes of a cluster. After a crash between the
        // two calls, a retry gets the recorded choice from the first script.
        self.record_decision(message, &offer.decision(chosen))
            .await
            .map(Some)
    }

    async fn recorded_decisions(
        &self,
        message: &MessageId,
    ) -> Result<RecordedDecisions, RelayError> {
        let mut read = redis::cmd("MGET");
        read.arg(&self.decision_keys(message)[..]);
        let (own, last): (Option<String>, Option<String>) = self.link.query(&read).await?;
        let decision = |text: Option<String>| text.as_deref().and_then(RoutingDecision::decode);
        Ok(RecordedDecisions {
            own: decision(own),
            last: decision(last),
        })
    }

    async fn delete_decisions(&self, message: &MessageId) -> Result<(), RelayError> {
        let mut delete = redis::cmd("DEL");
        delete.arg(&self.decision_keys(message)[..]);
        Ok(self.link.query(&delete).await?)
    }

    async fn erase_residue(&self) -> Result<(), RelayError> {
        Ok(())
    }
}

#[async_trait]
impl KeyValueMemory for RedisRelay {
    async fn get_or_insert(&self, name: &str, value: &str) -> Result<String, RelayError> {
        let mut call = self
            .scripts
            .get_or_insert
            .key(self.link.key(&format!("memory:{name}")));
        Ok(self.link.invoke(call.arg(value)).await?)
    }

    async fn check(&self) -> Result<(), RelayError> {
        self.state_age().await.map(|_| ())
    }
}

#[async_trait]
impl PlaygroundRuns for RedisRelay {
    async fn put_playground_run(&self, run_id: &MessageId, text: &str) -> Result<(), RelayError> {
        let mut set = redis::cmd("SET");
        set.arg(self.playground_run_key(run_id))
            .arg(text)
            .arg("PX")
            .arg(whole_millis(PLAYGROUND_RUN_TTL));
        Ok(self.link.query(&set).await?)
    }

    async fn playground_run(&self, run_id: &MessageId) -> Result<Option<String>, RelayError> {
        let mut get = redis::cmd("GET");
        get.arg(self.playground_run_key(run_id));
        Ok(self.link.query(&get).await?)
    }
}

impl From<serde_json::Error> for RelayError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unavailable(format!("value cannot be encoded: {error}"))
    }
}

impl From<RedisLinkError> for RelayError {
    fn from(error: RedisLinkError) -> Self {
        Self::Unavailable(error.0)
    }
}
