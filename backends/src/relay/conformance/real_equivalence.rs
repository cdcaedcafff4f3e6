//! Compares the Lua scripts with the pure state machine: random histories of calls get equal
//! responses from both.

use std::ops::Range;

use proptest::{prelude::*, test_runner::TestRunner};
use switchboard_schemas::{conversation::ReplyStatus, ids::MessageId};

use super::support::{
    World, any_conversation, cancelled_in_queue, completed, end, foreign, request, text_of,
};
use crate::relay::{ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimToken, Relay};

const HISTORIES: u32 = 300;
const CALLS_MAX: usize = 40;
const REPLIES: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Claim,
    Append,
    Restore,
    Finalize,
    Complete,
    Release,
    Cancel,
    ReserveSlot,
    VoidPublish,
    ReadLog,
    ReadLease,
}

/// A call. Its indexes select existing replies and tokens, so that most histories are long.
#[derive(Clone, Debug)]
struct Call {
    operation: Operation,
    reply: usize,
    /// Number of claims granted after the one whose token is used.
    token_age: usize,
    generation: u32,
    seqs: Range<u64>,
    /// Attempt, sequence number or count that the operation needs.
    number: u64,
    status: ReplyStatus,
    announced: bool,
}

fn any_call() -> impl Strategy<Value = Call> {
    let operations = prop_oneof![
        3 => Just(Operation::Claim),
        6 => Just(Operation::Append),
        2 => Just(Operation::Restore),
        2 => Just(Operation::Finalize),
        2 => Just(Operation::Complete),
        3 => Just(Operation::Release),
        1 => Just(Operation::Cancel),
        2 => Just(Operation::ReserveSlot),
        1 => Just(Operation::VoidPublish),
        3 => Just(Operation::ReadLog),
        1 => Just(Operation::ReadLease),
    ];
    let seqs = (1..6_u64, 0..3_u64).prop_map(|(start, length)| start..start + length);
    let statuses = prop_oneof![Just(ReplyStatus::Completed), Just(ReplyStatus::Cancelled)];
    let target = (0..REPLIES, 0..4_usize);
    (
        operations,
        target,
        1..3_u32,
        seqs,
        1..8_u64,
        statuses,
        any::<bool>(),
    )
        .prop_map(
            |(operation, (reply, token_age), generation, seqs, number, status, announced)| Call {
                operation,
                reply,
                token_age,
                generation,
                seqs,
                number,
                status,
                announced,
            },
        )
}

/// One relay in a history, with the tokens that it granted.
struct Side<'a> {
    relay: &'a dyn Relay,
    replies: &'a [MessageId],
    tokens: Vec<ClaimToken>,
}

impl Side<'_> {
    /// Returns the response without nonces and milliseconds, which may differ.
    async fn response(&mut self, call: &Call) -> String {
        let (relay, reply, number) = (self.relay, &self.replies[call.reply], call.number);
        let token = self.token(call.token_age);
        let frames: Vec<_> = call
            .seqs
            .clone()
            .map(|seq| text_of(call.generation, seq))
            .collect();
        match call.operation {
            Operation::Claim => self.claim(reply, number as u32).await,
            Operation::Append if frames.is_empty() => text(relay.renew_claim(&token, None).await),
            Operation::Append => text(relay.append_frames(&token, None, &frames).await),
            Operation::Restore => text(relay.restore_claim(&token, None, &frames).await),
            Operation::Finalize => text(
                relay
                    .finalize_reply(&token, &end(number, call.status))
                    .await,
            ),
            Operation::Complete => {
                let completion = ClaimCompletion {
                    end: completed(number),
                    message_count: call.seqs.start,
                    announced: call.announced,
                    push_to: None,
                };
                text(relay.complete_claim(&token, &completion).await)
            }
            Operation::Release => text(relay.release_claim(&token).await),
            Operation::Cancel => text(relay.cancel_reply(reply, &cancelled_in_queue()).await),
            Operation::ReserveSlot => text(relay.reserve_slot(reply, number as u32 % 3).await),
            Operation::VoidPublish => text(relay.void_publish(reply, "other").await),
            Operation::ReadLog => text(relay.read_frames(reply, number % 4).await),
            Operation::ReadLease => {
                let lease = relay.remaining_lease(reply).await;
                text(lease.map(|left| left.is_some()))
            }
        }
    }

    async fn claim(&mut self, reply: &MessageId, attempt_min: u32) -> String {
        let request = ClaimRequest {
            attempt_min,
            ..request(reply)
        };
        match self.relay.claim_reply(&request).await.unwrap() {
            ClaimOutcome::Granted {
                token,
                task,
                message_count,
                queue_wait,
            } => {
                let attempt = token.attempt;
                let has_slot = queue_wait.is_some();
                let response = format!("granted {attempt} {task:?} {message_count:?} {has_slot}");
                self.tokens.push(token);
                response
            }
            ClaimOutcome::Busy { attempt, .. } => format!("busy {attempt:?}"),
            other => text(other),
        }
    }

    /// Returns the token that was granted `age` claims ago, or a foreign one.
    fn token(&self, age: usize) -> ClaimToken {
        let granted = self.tokens.iter().rev().nth(age).cloned();
        granted.unwrap_or_else(|| foreign(&self.replies[age % REPLIES], 1))
    }
}

fn text(response: impl std::fmt::Debug) -> String {
    format!("{response:?}")
}

#[test]
fn random_histories_have_equal_results_on_both_backends() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (embedded, redis) =
        runtime.block_on(async { (World::embedded().await, World::redis().await) });
    let mut runner = TestRunner::new(ProptestConfig {
        cases: HISTORIES,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let histories = proptest::collection::vec(any_call(), 1..CALLS_MAX);
    let outcome = runner.run(&histories, |history| {
        let conversation = any_conversation();
        let replies: Vec<_> = (0..REPLIES)
            .map(|_| MessageId::new_in(&conversation).reply())
            .collect();
        runtime.block_on(async {
            let [mut pure, mut scripted] = [&embedded, &redis].map(|world| Side {
                relay: &*world.worker,
                replies: &replies,
                tokens: Vec::new(),
            });
            for call in &history {
                let (expected, actual) = (pure.response(call).await, scripted.response(call).await);
                prop_assert_eq!(expected, actual, "{:?}", call);
            }
            Ok(())
        })
    });
    outcome.unwrap();
}
