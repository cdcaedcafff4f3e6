//! The relay on Redis: each step of a reply is one script, so that fence, log and push are one thing; a stream per
//! reply is its log, and one channel per ingress process carries what is pushed.

#[cfg(test)]
#[cfg(feature = "real-services")]
mod black_hole_tests;
mod listener;
#[cfg(test)]
#[cfg(feature = "real-services")]
mod outage_tests;
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
    ids::{AgentId, ConversationId, EventId, IngressId, MessageId, TeamId},
    playground::PlaygroundRouting,
    reply_event::{Frame, IngressEnvelope, PatchOutcome},
};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use self::{
    listener::Listener,
    scripts::{Scripts, frame_args, log_key, on_reply, push_target, with_token},
};
use super::{
    ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimTask, ClaimToken,
    LISTENER_ENVELOPES_MAX, PLAYGROUND_RUN_TTL, RecordedDecisions, Relay, RelayError,
    RoundRobinOffer, RoutingDecision, STATE_LOSS_GRACE, beat, claim_state::is_cancelled_end,
    decode_decision, encode_decision, millis, waiting,
};
use crate::{
    config::RedisConfig,
    redis_link::{LinkError, RedisLink},
};

/// The relay of an installation with many processes.
pub struct RedisRelay {
    link: RedisLink,
    scripts: Scripts,
    listeners: TaskTracker,
    counters: Arc<Counters>,
}

/// What was not delivered.
#[derive(Default)]
struct Counters {
    malformed: AtomicU64,
    dropped: AtomicU64,
}

/// One entry of a stream: its id, then its fields.
type StreamEntry = (String, Vec<(String, Bytes)>);
/// What the claim script answers: verdict, then attempt or milliseconds, task, count and sealed end.
type ClaimAnswer = (
    String,
    Option<u64>,
    Option<String>,
    Option<i64>,
    Option<Bytes>,
);

impl RedisRelay {
    /// Opens the relay, whether or not Redis is there.
    ///
    /// # Errors
    /// The URL cannot be read.
    pub async fn connect(config: &RedisConfig, namespace: &str) -> Result<Self, RelayError> {
        let this = Self {
            link: RedisLink::connect(config, namespace).await?,
            scripts: Scripts::new(),
            listeners: TaskTracker::new(),
            counters: Arc::default(),
        };
        // Counts from the first start of an installation, so that its first takeover need not wait.
        let _ = this.memory_age().await;
        Ok(this)
    }

    /// Messages on our channels that were no envelopes.
    pub fn envelopes_malformed(&self) -> u64 {
        self.counters.malformed.load(Ordering::Relaxed)
    }

    /// Envelopes that a listener was too slow for.
    pub fn envelopes_dropped(&self) -> u64 {
        self.counters.dropped.load(Ordering::Relaxed)
    }

    fn channel(&self, ingress: &IngressId) -> String {
        self.link.key(&format!("ingress:{ingress}"))
    }

    fn trial_key(&self, trial: &MessageId) -> String {
        self.link.key(&format!("trial:{trial}"))
    }

    fn void_key(&self, conversation: &ConversationId, publish_nonce: &str) -> String {
        self.link
            .key(&format!("{{{conversation}}}:void:{publish_nonce}"))
    }

    async fn push(&self, to: &IngressId, envelope: &IngressEnvelope) -> Result<(), RelayError> {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(self.channel(to)).arg(&envelope.encode()[..]);
        Ok(self.link.query(&publish).await?)
    }

    /// Where the decision for a message stands, and where the last one of its conversation; on one node of a cluster.
    fn decision_keys(&self, message: &MessageId) -> [String; 2] {
        let conversation = message.conversation();
        let key = |rest: &str| self.link.key(&format!("{{{conversation}}}:route{rest}"));
        [key(&format!(":{message}")), key("")]
    }

    /// The turns of a team, and who was chosen for a message; on one node of a cluster.
    fn rotation_keys(&self, team: &TeamId, message: &MessageId) -> [String; 2] {
        let key = |rest: &str| self.link.key(&format!("{{{team}}}:turns{rest}"));
        [key(""), key(&format!(":{message}"))]
    }

    /// For how long this Redis is known to have kept what it was told; from the first question when it has just started.
    async fn memory_age(&self) -> Result<Duration, RelayError> {
        let call = self.scripts.memory_age.key(self.link.key("relay:memory"));
        Ok(Duration::from_millis(self.link.invoke(&call).await?))
    }

    async fn standing(
        &self,
        call: &redis::ScriptInvocation<'_>,
    ) -> Result<ClaimStatus, RelayError> {
        let answer: String = self.link.invoke(call).await?;
        match answer.as_str() {
            "held" => Ok(ClaimStatus::Held),
            "cancelled" => Ok(ClaimStatus::Cancelled),
            "fenced" => Ok(ClaimStatus::Fenced),
            "forgotten" => Ok(ClaimStatus::StateLost),
            _ => Err(unexpected()),
        }
    }
}

#[async_trait]
impl Relay for RedisRelay {
    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, RelayError> {
        if request.inherited
            && let Some(retry_after) = STATE_LOSS_GRACE
                .checked_sub(self.memory_age().await?)
                .filter(|left| !left.is_zero())
        {
            return Ok(ClaimOutcome::Busy { retry_after });
        }
        let nonce: u64 = rand::random();
        let mut call = on_reply(&self.scripts.claim, &self.link, &request.reply_id);
        call.key(self.void_key(&request.reply_id.conversation(), &request.publish_nonce));
        call.arg(nonce.to_string()).arg(request.attempt_min);
        let answer: redis::Value = self.link.invoke(&call).await?;
        read_claim(&request.reply_id, nonce, answer)
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
        let mut call = with_token(&self.scripts.append, &self.link, token);
        push_target(
            &mut call,
            push_to.map(|ingress| self.channel(ingress)),
            &token.reply_id,
        );
        frames.iter().for_each(|frame| frame_args(&mut call, frame));
        self.standing(&call).await
    }

    async fn restore(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError> {
        let mut call = with_token(&self.scripts.restore, &self.link, token);
        push_target(
            &mut call,
            push_to.map(|ingress| self.channel(ingress)),
            &token.reply_id,
        );
        frames.iter().for_each(|frame| frame_args(&mut call, frame));
        self.standing(&call).await
    }

    async fn seal(&self, token: &ClaimToken, end: &Frame) -> Result<ClaimStatus, RelayError> {
        let mut call = with_token(&self.scripts.seal, &self.link, token);
        frame_args(&mut call, end);
        call.arg(u8::from(is_cancelled_end(end)));
        self.standing(&call).await
    }

    async fn settle(
        &self,
        token: &ClaimToken,
        settlement: &ClaimCompletion,
    ) -> Result<ClaimStatus, RelayError> {
        let mut call = with_token(&self.scripts.settle, &self.link, token);
        let channel = settlement
            .push_to
            .as_ref()
            .map(|ingress| self.channel(ingress));
        push_target(&mut call, channel, &token.reply_id);
        frame_args(&mut call, &settlement.end);
        call.arg(settlement.message_count)
            .arg(u8::from(settlement.announced));
        self.standing(&call).await
    }

    async fn release(&self, token: &ClaimToken) -> Result<(), RelayError> {
        self.standing(&with_token(&self.scripts.release, &self.link, token))
            .await
            .map(|_| ())
    }

    async fn answer_patch(
        &self,
        push_to: &IngressId,
        patch: &EventId,
        outcome: PatchOutcome,
    ) -> Result<(), RelayError> {
        self.push(push_to, &IngressEnvelope::Patch(patch.clone(), outcome))
            .await
    }

    async fn keep_trial(&self, trial: &MessageId, text: &str) -> Result<(), RelayError> {
        let mut set = redis::cmd("SET");
        set.arg(self.trial_key(trial))
            .arg(text)
            .arg("PX")
            .arg(millis(PLAYGROUND_RUN_TTL));
        Ok(self.link.query(&set).await?)
    }

    async fn trial(&self, trial: &MessageId) -> Result<Option<String>, RelayError> {
        let mut get = redis::cmd("GET");
        get.arg(self.trial_key(trial));
        Ok(self.link.query(&get).await?)
    }

    async fn answer_trial(
        &self,
        push_to: &IngressId,
        trial: &MessageId,
        verdict: PlaygroundRouting,
    ) -> Result<(), RelayError> {
        self.push(
            push_to,
            &IngressEnvelope::Playground(trial.clone(), verdict),
        )
        .await
    }

    async fn say_waiting(&self, push_to: &IngressId, reply: &MessageId) -> Result<(), RelayError> {
        self.push(push_to, &IngressEnvelope::Reply(reply.clone(), waiting()))
            .await
    }

    async fn listen(
        &self,
        ingress: &IngressId,
    ) -> Result<mpsc::Receiver<IngressEnvelope>, RelayError> {
        let (sender, receiver) = mpsc::channel(LISTENER_ENVELOPES_MAX);
        let listener = Listener::new(
            self.link.clone(),
            self.channel(ingress),
            sender,
            Arc::clone(&self.counters),
        );
        let mut subscribed = listener.subscribed();
        self.listeners.spawn(listener.run());
        // A job that is published before the subscription stands would lose its first frames; but an ingress also
        // starts while Redis is away, and then the listener comes alive later.
        let _ = tokio::time::timeout(
            self.link.command_timeout(),
            subscribed.wait_for(|done| *done),
        )
        .await;
        Ok(receiver)
    }

    async fn read_log(&self, reply: &MessageId, after_seq: u64) -> Result<Vec<Frame>, RelayError> {
        let mut range = redis::cmd("XRANGE");
        range
            .arg(log_key(&self.link, reply))
            .arg(format!("(0-{after_seq}"))
            .arg("+");
        let entries: Vec<StreamEntry> = self.link.query(&range).await?;
        let frames = entries.into_iter().flat_map(|(_, fields)| fields);
        frames
            .map(|(_, bytes)| Frame::decode(bytes).map_err(|_| unexpected()))
            .collect()
    }

    async fn void(&self, reply: &MessageId, publish_nonce: &str) -> Result<(), RelayError> {
        let mut call = on_reply(&self.scripts.void, &self.link, reply);
        call.key(self.void_key(&reply.conversation(), publish_nonce));
        Ok(self.link.invoke(&call).await?)
    }

    async fn enqueue(&self, reply: &MessageId, places_max: u32) -> Result<bool, RelayError> {
        let mut call = on_reply(&self.scripts.enqueue, &self.link, reply);
        call.arg(places_max);
        Ok(self.link.invoke(&call).await?)
    }

    async fn remember(&self, name: &str, value: &str) -> Result<String, RelayError> {
        let mut call = self
            .scripts
            .remember
            .key(self.link.key(&format!("memory:{name}")));
        Ok(self.link.invoke(call.arg(value)).await?)
    }

    async fn decide(
        &self,
        message: &MessageId,
        decision: &RoutingDecision,
    ) -> Result<RoutingDecision, RelayError> {
        let [own, last] = self.decision_keys(message);
        let mut call = self.scripts.decide.key(own);
        call.key(last).arg(encode_decision(decision));
        let text: String = self.link.invoke(&call).await?;
        Ok(decode_decision(&text).unwrap_or_else(|| decision.clone()))
    }

    async fn decide_in_turn(
        &self,
        message: &MessageId,
        offer: &RoundRobinOffer,
    ) -> Result<Option<RoutingDecision>, RelayError> {
        let own = self.decisions(message).await?.own;
        if own.is_some() || offer.members.is_empty() {
            return Ok(own);
        }
        let [rotation, chosen] = self.rotation_keys(&offer.team, message);
        let mut call = self.scripts.decide_in_turn.key(rotation);
        call.key(chosen);
        for member in &offer.members {
            call.arg(member.as_str());
        }
        let chosen: String = self.link.invoke(&call).await?;
        let chosen: AgentId = chosen.parse().map_err(|_| unexpected())?;
        // A team and a conversation live on different nodes of a cluster. Whoever dies between the two is asked again, and
        // the first script then gives the choice that it made.
        self.decide(message, &offer.decision(chosen))
            .await
            .map(Some)
    }

    async fn decisions(&self, message: &MessageId) -> Result<RecordedDecisions, RelayError> {
        let mut read = redis::cmd("MGET");
        read.arg(&self.decision_keys(message)[..]);
        let (own, last): (Option<String>, Option<String>) = self.link.query(&read).await?;
        let decision = |text: Option<String>| text.as_deref().and_then(decode_decision);
        Ok(RecordedDecisions {
            own: decision(own),
            last: decision(last),
        })
    }

    async fn cancel(&self, reply: &MessageId) -> Result<bool, RelayError> {
        Ok(self
            .link
            .invoke(&on_reply(&self.scripts.cancel, &self.link, reply))
            .await?)
    }

    async fn forget(&self, message: &MessageId) -> Result<(), RelayError> {
        let mut delete = redis::cmd("DEL");
        delete
            .arg(log_key(&self.link, &message.reply()))
            .arg(&self.decision_keys(message)[..]);
        Ok(self.link.query(&delete).await?)
    }

    async fn check(&self) -> Result<(), RelayError> {
        self.memory_age().await.map(|_| ())
    }
}

impl From<LinkError> for RelayError {
    fn from(error: LinkError) -> Self {
        Self::Unavailable(error.0)
    }
}

fn read_claim(
    reply_id: &MessageId,
    nonce: u64,
    answer: redis::Value,
) -> Result<ClaimOutcome, RelayError> {
    let redis::Value::Array(mut parts) = answer else {
        return Err(unexpected());
    };
    parts.resize(5, redis::Value::Nil);
    let answer: ClaimAnswer =
        redis::from_redis_value(redis::Value::Array(parts)).map_err(|_| unexpected())?;
    let (verdict, number, task, count, end) = answer;
    let number = number.unwrap_or_default();
    match verdict.as_str() {
        "voided" => Ok(ClaimOutcome::Voided),
        "done" => Ok(ClaimOutcome::Done),
        "busy" => Ok(ClaimOutcome::Busy {
            retry_after: Duration::from_millis(number),
        }),
        "granted" => {
            let attempt = u32::try_from(number).map_err(|_| unexpected())?;
            let token = ClaimToken {
                reply_id: reply_id.clone(),
                attempt,
                nonce,
            };
            let task = read_duty(task.as_deref(), end)?;
            let message_count = count.and_then(|count| u64::try_from(count).ok());
            Ok(ClaimOutcome::Granted {
                token,
                task,
                message_count,
            })
        }
        _ => Err(unexpected()),
    }
}

fn read_duty(task: Option<&str>, end: Option<Bytes>) -> Result<ClaimTask, RelayError> {
    match task {
        Some("answer") => Ok(ClaimTask::Generate),
        Some("announce") => Ok(ClaimTask::Announce),
        Some("give_up") => Ok(ClaimTask::GiveUp),
        Some("store") => {
            let end = Frame::decode(end.unwrap_or_default()).map_err(|_| unexpected())?;
            Ok(ClaimTask::StoreFinalized { end })
        }
        _ => Err(unexpected()),
    }
}

fn unexpected() -> RelayError {
    RelayError::Unavailable("redis gave an answer that the relay does not understand".into())
}
