//! Support for the conformance tests of the relay: one relay as seen by a worker and by an ingress.

use std::{
    future::{Ready, ready},
    sync::Arc,
    time::{Duration, Instant},
};

use switchboard_schemas::{
    conversation::{ReplyStatus, TokenUsage},
    ids::{ConversationId, IngressId, MessageId},
    reply_event::{Frame, FrameBody, IngressEnvelope, ReplyEnd, ReplySignal},
};
use tokio::sync::mpsc;

use crate::relay::{
    ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimTask, ClaimToken, LEASE, Relay,
    embedded::EmbeddedRelay,
};

/// Longest wait for an expected event.
const DEADLINE: Duration = Duration::from_secs(10);

/// One relay, as two processes see it.
pub(super) struct World {
    pub(super) worker: Arc<dyn Relay>,
    pub(super) ingress: Arc<dyn Relay>,
    pub(super) address: IngressId,
    pub(super) conversation: ConversationId,
}

impl World {
    pub(super) fn embedded() -> Ready<Self> {
        let relay: Arc<dyn Relay> = Arc::new(EmbeddedRelay::open(None).unwrap());
        ready(Self::of(Arc::clone(&relay), relay))
    }

    #[cfg(feature = "real-services")]
    pub(super) async fn redis() -> Self {
        use crate::{redis_link, relay::redis::RedisRelay};
        let (config, namespace) = (redis_link::test_config(), redis_link::test_namespace());
        let worker = RedisRelay::connect(&config, &namespace).await.unwrap();
        let ingress = RedisRelay::connect(&config, &namespace).await.unwrap();
        Self::of(Arc::new(worker), Arc::new(ingress))
    }

    fn of(worker: Arc<dyn Relay>, ingress: Arc<dyn Relay>) -> Self {
        Self {
            worker,
            ingress,
            address: IngressId::random(),
            conversation: any_conversation(),
        }
    }

    pub(super) fn reply(&self) -> MessageId {
        MessageId::new_in(&self.conversation).reply()
    }

    pub(super) async fn listen(&self) -> mpsc::Receiver<IngressEnvelope> {
        self.ingress.subscribe(&self.address).await.unwrap()
    }

    pub(super) async fn claim(&self, reply: &MessageId) -> ClaimOutcome {
        self.worker.claim_reply(&request(reply)).await.unwrap()
    }

    /// Claims a reply, which must succeed, and returns the token.
    pub(super) async fn token(&self, reply: &MessageId) -> ClaimToken {
        granted(self.claim(reply).await).0
    }

    /// Claims a reply as soon as the lease of its holder has ended.
    pub(super) async fn take_over(&self, reply: &MessageId) -> (ClaimToken, ClaimTask) {
        let deadline = Instant::now() + LEASE + DEADLINE;
        loop {
            match self.claim(reply).await {
                ClaimOutcome::Busy { retry_after } => {
                    assert!(Instant::now() < deadline, "the lease never ended");
                    tokio::time::sleep(retry_after).await;
                }
                claim => return granted(claim),
            }
        }
    }

    pub(super) fn completion(&self, end: Frame, announced: bool) -> ClaimCompletion {
        ClaimCompletion {
            end,
            message_count: 2,
            announced,
            push_to: Some(self.address.clone()),
        }
    }

    pub(super) async fn log(&self, reply: &MessageId) -> Vec<Frame> {
        self.ingress.read_frames(reply, 0).await.unwrap()
    }
}

pub(super) fn any_conversation() -> ConversationId {
    format!(
        "conv_{}",
        &IngressId::random().as_str()[IngressId::PREFIX.len()..]
    )
    .parse()
    .unwrap()
}

pub(super) fn request(reply: &MessageId) -> ClaimRequest {
    ClaimRequest {
        reply_id: reply.clone(),
        publish_nonce: "publish".into(),
        attempt_min: 1,
        inherited: false,
    }
}

pub(super) fn granted(claim: ClaimOutcome) -> (ClaimToken, ClaimTask) {
    match claim {
        ClaimOutcome::Granted { token, task, .. } => (token, task),
        other => panic!("not granted: {other:?}"),
    }
}

/// Returns a token that the relay never granted.
pub(super) fn foreign(reply: &MessageId, attempt: u32) -> ClaimToken {
    ClaimToken {
        reply_id: reply.clone(),
        attempt,
        nonce: 7,
    }
}

pub(super) fn text(seq: u64) -> Frame {
    text_of(1, seq)
}

pub(super) fn text_of(generation: u32, seq: u64) -> Frame {
    let body = FrameBody::Text {
        offset: seq - 1,
        text: "é".into(),
    };
    Frame {
        attempt: 1,
        generation,
        seq,
        body,
    }
}

pub(super) fn texts(seqs: std::ops::RangeInclusive<u64>) -> Vec<Frame> {
    seqs.map(text).collect()
}

pub(super) fn end(seq: u64, status: ReplyStatus) -> Frame {
    let end = ReplyEnd {
        status,
        finish_reason: None,
        usage: TokenUsage {
            prompt_tokens: 1,
            completion_tokens: 2,
            estimated: false,
        },
        length: 3,
        sha256: "00".into(),
        response_time_ms: 4,
        failure: None,
    };
    Frame {
        attempt: 1,
        generation: 1,
        seq,
        body: FrameBody::End(Box::new(end)),
    }
}

pub(super) fn completed(seq: u64) -> Frame {
    end(seq, ReplyStatus::Completed)
}

pub(super) fn seqs(frames: &[Frame]) -> Vec<u64> {
    frames.iter().map(|frame| frame.seq).collect()
}

/// Returns the next pushed frame.
pub(super) async fn next(listener: &mut mpsc::Receiver<IngressEnvelope>) -> Frame {
    match next_signal(listener).await {
        ReplySignal::Frame(frame) => frame,
        other => panic!("no frame was pushed: {other:?}"),
    }
}

/// The next signal about a reply that is pushed.
pub(super) async fn next_signal(listener: &mut mpsc::Receiver<IngressEnvelope>) -> ReplySignal {
    match tokio::time::timeout(DEADLINE, listener.recv()).await {
        Ok(Some(IngressEnvelope::Reply(_, signal))) => signal,
        other => panic!("no signal was pushed: {other:?}"),
    }
}

/// Asserts that nothing was pushed before a mark that is pushed now.
pub(super) async fn assert_silent(world: &World, listener: &mut mpsc::Receiver<IngressEnvelope>) {
    let patch = switchboard_schemas::ids::EventId::derive("mark", "pushed");
    let outcome = switchboard_schemas::reply_event::PatchOutcome::Applied;
    world
        .worker
        .push(
            &world.address,
            &IngressEnvelope::Patch(patch.clone(), outcome),
        )
        .await
        .unwrap();
    let envelope = tokio::time::timeout(DEADLINE, listener.recv())
        .await
        .unwrap();
    assert_eq!(envelope, Some(IngressEnvelope::Patch(patch, outcome)));
}
