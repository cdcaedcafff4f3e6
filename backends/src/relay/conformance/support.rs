//! Support for the conformance tests of the relay: one relay as seen by a worker and by an ingress.

use std::{
    future::{Ready, ready},
    sync::Arc,
    time::{Duration, Instant},
};

use switchboard_schemas::{
    conversation::{ReplyStatus, TokenUsage},
    ids::{ConversationId, EventId, IngressId, MessageId},
    reply_event::{Frame, FrameBody, IngressEnvelope, PatchOutcome, ReplyEnd, ReplySignal},
};
use tokio::sync::mpsc;

use crate::relay::{
    CancelOutcome, ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimTask, ClaimToken,
    LEASE, Relay, embedded::EmbeddedRelay,
};

/// Longest wait for an expected event on a busy machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);

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

    /// Returns a new reply of the conversation and the token of its claim.
    pub(super) async fn claimed_reply(&self) -> (MessageId, ClaimToken) {
        let reply = self.reply();
        let token = self.token(&reply).await;
        (reply, token)
    }

    pub(super) async fn is_busy(&self, reply: &MessageId) -> bool {
        matches!(self.claim(reply).await, ClaimOutcome::Busy { .. })
    }

    /// Claims a reply as soon as the lease of its holder has ended.
    pub(super) async fn take_over(&self, reply: &MessageId) -> (ClaimToken, ClaimTask) {
        let deadline = Instant::now() + LEASE + DEADLINE;
        loop {
            match self.claim(reply).await {
                ClaimOutcome::Busy { retry_after, .. } => {
                    assert!(Instant::now() < deadline, "the lease never ended");
                    tokio::time::sleep(retry_after).await;
                }
                claim => {
                    let (token, task, _) = granted(claim);
                    return (token, task);
                }
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

    pub(super) async fn append(&self, token: &ClaimToken, frames: &[Frame]) -> ClaimStatus {
        self.worker
            .append_frames(token, None, frames)
            .await
            .unwrap()
    }

    pub(super) async fn heartbeat(&self, token: &ClaimToken) -> ClaimStatus {
        self.worker.renew_claim(token, None).await.unwrap()
    }

    pub(super) async fn heartbeat_and_push(&self, token: &ClaimToken) -> ClaimStatus {
        let push_to = Some(&self.address);
        self.worker.renew_claim(token, push_to).await.unwrap()
    }

    pub(super) async fn append_and_push(
        &self,
        token: &ClaimToken,
        frames: &[Frame],
    ) -> ClaimStatus {
        self.worker
            .append_frames(token, Some(&self.address), frames)
            .await
            .unwrap()
    }

    /// Restores a claim and pushes its frames.
    pub(super) async fn restore(&self, token: &ClaimToken, frames: &[Frame]) -> ClaimStatus {
        self.worker
            .restore_claim(token, Some(&self.address), frames)
            .await
            .unwrap()
    }

    pub(super) async fn finalize(&self, token: &ClaimToken, end: &Frame) -> ClaimStatus {
        self.worker.finalize_reply(token, end).await.unwrap()
    }

    pub(super) async fn complete(&self, token: &ClaimToken, end: Frame) -> ClaimStatus {
        self.complete_with(token, &self.completion(end, true)).await
    }

    pub(super) async fn complete_unannounced(&self, token: &ClaimToken, end: Frame) -> ClaimStatus {
        self.complete_with(token, &self.completion(end, false))
            .await
    }

    pub(super) async fn complete_with(
        &self,
        token: &ClaimToken,
        completion: &ClaimCompletion,
    ) -> ClaimStatus {
        self.worker.complete_claim(token, completion).await.unwrap()
    }

    pub(super) async fn release(&self, token: &ClaimToken) {
        self.worker.release_claim(token).await.unwrap();
    }

    pub(super) async fn cancel(&self, reply: &MessageId) -> CancelOutcome {
        let end = cancelled_in_queue();
        self.ingress.cancel_reply(reply, &end).await.unwrap()
    }

    pub(super) async fn push(&self, envelope: &IngressEnvelope) {
        self.worker.push(&self.address, envelope).await.unwrap();
    }

    pub(super) async fn log(&self, reply: &MessageId) -> Vec<Frame> {
        self.frames_after(reply, 0).await
    }

    pub(super) async fn frames_after(&self, reply: &MessageId, seq: u64) -> Vec<Frame> {
        self.ingress.read_frames(reply, seq).await.unwrap()
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
        nonce: rand::random(),
        attempt_min: 1,
        maybe_held: false,
    }
}

pub(super) fn granted(claim: ClaimOutcome) -> (ClaimToken, ClaimTask, Option<u64>) {
    match claim {
        ClaimOutcome::Granted {
            token,
            task,
            message_count,
            ..
        } => (token, task, message_count),
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
        provider_error: None,
    };
    Frame {
        attempt: 1,
        generation: 1,
        seq,
        body: FrameBody::End(Box::new(end)),
    }
}

pub(super) fn cancelled_in_queue() -> Frame {
    Frame::only(ReplyEnd::cancelled_in_queue(5))
}

pub(super) fn completed(seq: u64) -> Frame {
    end(seq, ReplyStatus::Completed)
}

pub(super) fn seqs(frames: &[Frame]) -> Vec<u64> {
    frames.iter().map(|frame| frame.seq).collect()
}

/// Asserts that the next pushed frames are these.
pub(super) async fn assert_pushed(
    listener: &mut mpsc::Receiver<IngressEnvelope>,
    frames: &[Frame],
) {
    for frame in frames {
        assert_eq!(next(listener).await, *frame);
    }
}

/// Returns the next pushed frame.
pub(super) async fn next(listener: &mut mpsc::Receiver<IngressEnvelope>) -> Frame {
    match next_signal(listener).await {
        ReplySignal::Frame(frame) => frame,
        other => panic!("no frame was pushed: {other:?}"),
    }
}

/// Returns the next pushed signal about a reply.
pub(super) async fn next_signal(listener: &mut mpsc::Receiver<IngressEnvelope>) -> ReplySignal {
    match next_envelope(listener).await {
        IngressEnvelope::Reply(_, signal) => signal,
        other => panic!("no signal was pushed: {other:?}"),
    }
}

pub(super) async fn next_envelope(
    listener: &mut mpsc::Receiver<IngressEnvelope>,
) -> IngressEnvelope {
    tokio::time::timeout(DEADLINE, listener.recv())
        .await
        .unwrap()
        .unwrap()
}

/// Asserts that nothing was pushed before a mark that is pushed now.
pub(super) async fn assert_silent(world: &World, listener: &mut mpsc::Receiver<IngressEnvelope>) {
    let mark = IngressEnvelope::Patch(EventId::derive("mark", "pushed"), PatchOutcome::Applied);
    world.push(&mark).await;
    assert_eq!(next_envelope(listener).await, mark);
}
