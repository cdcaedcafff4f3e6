//! Property tests of claims, the exclusive rights of workers to replies: random histories of two
//! replies of one conversation.

use std::time::Duration;

use proptest::prelude::*;
use switchboard_schemas::{
    conversation::{ReplyStatus, TokenUsage},
    ids::{ConversationId, MessageId},
    reply_event::{Frame, FrameBody, ReplyEnd},
    time::whole_millis,
};

use super::{claim_state::ConversationClaims, frame_log::RelayMillis};
use crate::relay::{
    ATTEMPTS_MAX, ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimTask, ClaimToken,
    FINAL_STATE_TTL, LEASE,
};

#[derive(Clone, Debug)]
enum ClaimEvent {
    Pass(RelayMillis),
    Claim(usize),
    Append(usize, u64),
    Restore(usize),
    Finalize(usize),
    Complete(usize, bool),
    Release(usize),
    Cancel(usize),
}

fn any_event() -> impl Strategy<Value = ClaimEvent> {
    let token = 0..6_usize;
    prop_oneof![
        3 => (1..4_000_u64).prop_map(ClaimEvent::Pass),
        4 => (0..2_usize).prop_map(ClaimEvent::Claim),
        5 => (token.clone(), 1..6_u64).prop_map(|(token, seq)| ClaimEvent::Append(token, seq)),
        1 => token.clone().prop_map(ClaimEvent::Restore),
        2 => token.clone().prop_map(ClaimEvent::Finalize),
        1 => (token.clone(), any::<bool>()).prop_map(|(token, announced)| ClaimEvent::Complete(token, announced)),
        1 => token.prop_map(ClaimEvent::Release),
        1 => (0..2_usize).prop_map(ClaimEvent::Cancel),
    ]
}

/// A random history and the expectations that every step is checked against.
struct ClaimSimulation {
    claims: ConversationClaims,
    now: RelayMillis,
    replies: Vec<MessageId>,
    tokens: Vec<ClaimToken>,
    finalized: Vec<(MessageId, Frame, Vec<Frame>)>,
}

impl ClaimSimulation {
    fn new() -> Self {
        let conversation: ConversationId = format!("conv_{}", "0".repeat(26)).parse().unwrap();
        let replies = (0..2)
            .map(|_| MessageId::new_in(&conversation).reply())
            .collect();
        let claims = ConversationClaims::default();
        Self {
            claims,
            now: 10_000,
            replies,
            tokens: Vec::new(),
            finalized: Vec::new(),
        }
    }

    fn token(&self, age: usize) -> Option<ClaimToken> {
        self.tokens.iter().rev().nth(age).cloned()
    }

    fn happen(&mut self, event: &ClaimEvent) {
        match event {
            ClaimEvent::Pass(time) => self.now += time,
            ClaimEvent::Claim(reply) => self.claim(*reply),
            ClaimEvent::Cancel(reply) => {
                self.claims.cancel(self.now, &self.replies[*reply], &end(1));
            }
            ClaimEvent::Append(age, seq) => {
                self.step(*age, |claims, now, token| {
                    claims.append(now, token, &[text(*seq)], |_| {})
                });
            }
            ClaimEvent::Restore(age) => {
                self.step(*age, |claims, now, token| {
                    claims.restore(now, token, &[text(1)], |_| {})
                });
            }
            ClaimEvent::Finalize(age) => self.finalize(*age),
            ClaimEvent::Complete(age, announced) => {
                let completion = ClaimCompletion {
                    end: end(99),
                    message_count: 1,
                    announced: *announced,
                    push_to: None,
                };
                self.step(*age, |claims, now, token| {
                    claims.complete(now, token, &completion, |_| {})
                });
            }
            ClaimEvent::Release(age) => {
                self.step(*age, |claims, now, token| {
                    claims.release(now, token);
                    ClaimStatus::Held
                });
            }
        }
    }

    fn step(
        &mut self,
        age: usize,
        work: impl FnOnce(&mut ConversationClaims, RelayMillis, &ClaimToken) -> ClaimStatus,
    ) -> Option<ClaimStatus> {
        let token = self.token(age)?;
        Some(work(&mut self.claims, self.now, &token))
    }

    fn claim(&mut self, reply: usize) {
        let reply_id = self.replies[reply].clone();
        let request = claim_request(&reply_id);
        let highest = self
            .tokens
            .iter()
            .filter(|token| token.reply_id == reply_id)
            .map(|token| token.attempt)
            .max();
        if let ClaimOutcome::Granted { token, task, .. } = self.claims.claim(self.now, &request) {
            assert!(
                Some(token.attempt) > highest,
                "an attempt number was granted twice"
            );
            if let ClaimTask::StoreFinalized { end } = task {
                let first = self.finalized.iter().find(|(id, ..)| *id == reply_id);
                assert_eq!(
                    first.map(|(_, finalized, _)| finalized),
                    Some(&end),
                    "another end than the finalized one"
                );
            }
            self.tokens.push(token);
        }
    }

    fn finalize(&mut self, age: usize) {
        let Some(token) = self.token(age) else { return };
        let end = end(u64::from(token.attempt));
        let is_first = self.finalized.iter().all(|(id, ..)| *id != token.reply_id);
        if self.claims.finalize(self.now, &token, &end) == ClaimStatus::Held && is_first {
            let text = self.claims.read_frames(self.now, &token.reply_id, 0);
            // A reply that was completed without being finalized has its end in the log already.
            if text
                .iter()
                .all(|frame| matches!(frame.body, FrameBody::Text { .. }))
            {
                self.finalized.push((token.reply_id, end, text));
            }
        }
    }

    fn check(&mut self) {
        let (mut live, now) = (0, self.now);
        for token in &self.tokens {
            live += usize::from(self.claims.is_held_alive(now, token));
        }
        assert!(live <= 1, "{live} holders are alive in one conversation");
        for (reply, _, text) in &self.finalized {
            let log = self.claims.read_frames(now, reply, 0);
            assert_eq!(
                &log[..text.len()],
                &text[..],
                "text changed after it was finalized"
            );
            assert!(
                log.len() <= text.len() + 1,
                "text was added after it was finalized"
            );
        }
        for reply in &self.replies {
            let log = self.claims.read_frames(now, reply, 0);
            let texts: Vec<_> = log
                .iter()
                .filter(|frame| !matches!(frame.body, FrameBody::End(_)))
                .collect();
            assert!(
                texts.windows(2).all(|pair| pair[0].seq < pair[1].seq),
                "the log is out of order"
            );
        }
    }
}

fn claim_request(reply_id: &MessageId) -> ClaimRequest {
    ClaimRequest {
        reply_id: reply_id.clone(),
        publish_nonce: "publish".into(),
        nonce: rand::random(),
        attempt_min: 1,
        maybe_held: false,
    }
}

fn text(seq: u64) -> Frame {
    Frame {
        attempt: 1,
        generation: 1,
        seq,
        body: FrameBody::Text {
            offset: seq,
            text: "a".into(),
        },
    }
}

fn end(length: u64) -> Frame {
    let end = ReplyEnd {
        status: ReplyStatus::Cancelled,
        finish_reason: None,
        usage: TokenUsage {
            prompt_tokens: 0,
            completion_tokens: 0,
            estimated: false,
        },
        length,
        sha256: String::new(),
        response_time_ms: 0,
        failure: None,
        provider_error: None,
    };
    // These histories ignore the position of an end in the log.
    Frame {
        attempt: 1,
        generation: 1,
        seq: 1,
        body: FrameBody::End(Box::new(end)),
    }
}

#[test]
fn repeated_claim_returns_the_same_token_and_others_wait() {
    let mut history = ClaimSimulation::new();
    let request = claim_request(&history.replies[0]);
    let lease = whole_millis(LEASE);
    let mut claim = |now, nonce| {
        let request = ClaimRequest {
            nonce,
            ..request.clone()
        };
        history.claims.claim(now, &request)
    };
    let first = claim(10_000, 7);
    assert_eq!(claim(10_000 + lease - 1, 7), first);
    let busy = ClaimOutcome::Busy {
        retry_after: LEASE - Duration::from_millis(1_000),
        attempt: Some(1),
    };
    assert_eq!(claim(11_000, 8), busy);
    let ClaimOutcome::Granted { token, .. } = claim(10_000 + lease, 7) else {
        panic!("not granted after the lease")
    };
    assert_eq!(token.attempt, 2);
}

#[test]
fn lease_ends_at_its_last_millisecond() {
    let mut history = ClaimSimulation::new();
    history.claim(0);
    history.now += whole_millis(LEASE) - 1;
    history.claim(0);
    assert_eq!(history.tokens.len(), 1, "claimed during the lease");
    history.now += 1;
    history.claim(0);
    assert_eq!(history.tokens.len(), 2);
}

#[test]
fn completed_and_voided_claims_are_remembered_for_a_day() {
    let mut history = ClaimSimulation::new();
    let (claimed, voided) = (history.replies[0].clone(), history.replies[1].clone());
    history.claim(0);
    let completion = ClaimCompletion {
        end: end(1),
        message_count: 2,
        announced: true,
        push_to: None,
    };
    let complete = |claims: &mut ConversationClaims, now, token: &_| {
        claims.complete(now, token, &completion, |_| {})
    };
    assert_eq!(history.step(0, complete), Some(ClaimStatus::Held));
    history.claims.void_publish(history.now, &voided, "refused");
    let refused_request = ClaimRequest {
        publish_nonce: "refused".into(),
        ..claim_request(&voided)
    };
    let day = whole_millis(FINAL_STATE_TTL);
    let last = history.now + day - 1;
    assert!(history.claims.sweep(last));
    let repeated = history.claims.claim(last, &claim_request(&claimed));
    let refused = history.claims.claim(last, &refused_request);
    assert_eq!(
        (repeated, refused),
        (ClaimOutcome::Done, ClaimOutcome::Voided)
    );
    assert!(!history.claims.sweep(history.now + day));
}

proptest! {
    #[test]
    fn random_histories_keep_the_claim_invariants(events in proptest::collection::vec(any_event(), 1..80)) {
        let mut history = ClaimSimulation::new();
        for event in &events {
            history.happen(event);
            history.check();
        }
    }

    #[test]
    fn reply_that_kills_every_holder_ends_despite_handoffs(
        releases in proptest::collection::vec(0..3_usize, ATTEMPTS_MAX as usize + 1),
    ) {
        let mut history = ClaimSimulation::new();
        for (deaths, releases) in releases.into_iter().enumerate() {
            for death in (0..=releases).rev().map(|left| left == 0) {
                let request = claim_request(&history.replies[0]);
                let claim = history.claims.claim(history.now, &request);
                let ClaimOutcome::Granted { token, task, .. } = claim else { panic!("not granted: {claim:?}") };
                let expected = if deaths < ATTEMPTS_MAX as usize { ClaimTask::Generate } else { ClaimTask::GiveUp };
                prop_assert_eq!(task, expected);
                history.now += 1;
                if death {
                    history.now += whole_millis(LEASE);
                } else {
                    history.claims.release(history.now, &token);
                }
            }
        }
    }
}
