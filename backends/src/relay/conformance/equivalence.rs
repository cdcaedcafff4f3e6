//! Compares the Lua scripts with the pure state machine: random histories of calls get equal
//! responses from both.

use proptest::{prelude::*, test_runner::TestRunner};
use switchboard_schemas::{conversation::ReplyStatus, ids::MessageId, reply_event::Frame};

use super::support::{World, any_conversation, end, foreign, request, text_of};
use crate::relay::{ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimToken, Relay};

const HISTORIES: u32 = 300;
const CALLS_MAX: usize = 40;
const REPLIES: usize = 2;

/// A call. Its numbers select existing replies and tokens, so that most histories are long.
#[derive(Clone, Debug)]
enum Call {
    Claim {
        reply: usize,
        attempt_min: u32,
    },
    Append {
        token: usize,
        generation: u32,
        seqs: std::ops::Range<u64>,
    },
    Restore {
        token: usize,
        generation: u32,
        seqs: std::ops::Range<u64>,
    },
    Seal {
        token: usize,
        seq: u64,
        status: ReplyStatus,
    },
    Settle {
        token: usize,
        seq: u64,
        count: u64,
        announced: bool,
    },
    Release {
        token: usize,
    },
    Cancel {
        reply: usize,
    },
    Enqueue {
        reply: usize,
        places: u32,
    },
    Void {
        reply: usize,
    },
    ReadLog {
        reply: usize,
        after: u64,
    },
}

fn any_call() -> impl Strategy<Value = Call> {
    let seqs = || (1..6_u64, 0..3_u64).prop_map(|(start, length)| start..start + length);
    let statuses = prop_oneof![Just(ReplyStatus::Completed), Just(ReplyStatus::Cancelled)];
    prop_oneof![
        3 => (0..REPLIES, 1..6_u32).prop_map(|(reply, attempt_min)| Call::Claim { reply, attempt_min }),
        6 => (0..4_usize, 1..3_u32, seqs())
            .prop_map(|(token, generation, seqs)| Call::Append { token, generation, seqs }),
        2 => (0..4_usize, 1..3_u32, seqs())
            .prop_map(|(token, generation, seqs)| Call::Restore { token, generation, seqs }),
        2 => (0..4_usize, 1..8_u64, statuses).prop_map(|(token, seq, status)| Call::Seal { token, seq, status }),
        2 => (0..4_usize, 1..8_u64, 1..9_u64, any::<bool>())
            .prop_map(|(token, seq, count, announced)| Call::Settle { token, seq, count, announced }),
        3 => (0..4_usize).prop_map(|token| Call::Release { token }),
        1 => (0..REPLIES).prop_map(|reply| Call::Cancel { reply }),
        2 => (0..REPLIES, 0..3_u32).prop_map(|(reply, places)| Call::Enqueue { reply, places }),
        1 => (0..REPLIES).prop_map(|reply| Call::Void { reply }),
        3 => (0..REPLIES, 0..4_u64).prop_map(|(reply, after)| Call::ReadLog { reply, after }),
    ]
}

/// One relay in a history, with the tokens that it granted.
struct Side<'a> {
    relay: &'a dyn Relay,
    replies: &'a [MessageId],
    tokens: Vec<ClaimToken>,
}

fn text(answer: impl std::fmt::Debug) -> String {
    format!("{answer:?}")
}

impl Side<'_> {
    /// Returns the response without nonces and milliseconds, which may differ.
    async fn answer(&mut self, call: &Call) -> String {
        let relay = self.relay;
        match call {
            Call::Claim { reply, attempt_min } => {
                self.claim(&self.replies[*reply].clone(), *attempt_min)
                    .await
            }
            Call::Append {
                token,
                generation,
                seqs,
            } => {
                let frames = frames(*generation, seqs.clone());
                text(
                    relay
                        .append_frames(&self.token(*token), None, &frames)
                        .await,
                )
            }
            Call::Restore {
                token,
                generation,
                seqs,
            } => {
                let frames = frames(*generation, seqs.clone());
                text(
                    relay
                        .restore_claim(&self.token(*token), None, &frames)
                        .await,
                )
            }
            Call::Seal { token, seq, status } => {
                let end = end(*seq, *status);
                text(relay.finalize_reply(&self.token(*token), &end).await)
            }
            Call::Settle {
                token,
                seq,
                count,
                announced,
            } => {
                let completion = ClaimCompletion {
                    end: end(*seq, ReplyStatus::Completed),
                    message_count: *count,
                    announced: *announced,
                    push_to: None,
                };
                text(relay.complete_claim(&self.token(*token), &completion).await)
            }
            Call::Release { token } => text(relay.release_claim(&self.token(*token)).await),
            Call::Cancel { reply } => text(relay.cancel_reply(&self.replies[*reply]).await),
            Call::Enqueue { reply, places } => {
                text(relay.reserve_slot(&self.replies[*reply], *places).await)
            }
            Call::Void { reply } => text(relay.void_publish(&self.replies[*reply], "other").await),
            Call::ReadLog { reply, after } => {
                text(relay.read_frames(&self.replies[*reply], *after).await)
            }
        }
    }

    async fn claim(&mut self, reply: &MessageId, attempt_min: u32) -> String {
        let claim = self
            .relay
            .claim_reply(&ClaimRequest {
                attempt_min,
                ..request(reply)
            })
            .await
            .unwrap();
        match claim {
            ClaimOutcome::Granted {
                token,
                task,
                message_count,
            } => {
                let answer = format!("granted {} {task:?} {message_count:?}", token.attempt);
                self.tokens.push(token);
                answer
            }
            ClaimOutcome::Busy { .. } => "busy".into(),
            other => format!("{other:?}"),
        }
    }

    /// Returns the token that was granted `age` claims ago, or a foreign one.
    fn token(&self, age: usize) -> ClaimToken {
        let found = self.tokens.iter().rev().nth(age);
        found
            .cloned()
            .unwrap_or_else(|| foreign(&self.replies[age % REPLIES], 1))
    }
}

fn frames(generation: u32, seqs: std::ops::Range<u64>) -> Vec<Frame> {
    seqs.map(|seq| text_of(generation, seq)).collect()
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
            let mut pure = Side {
                relay: &*embedded.worker,
                replies: &replies,
                tokens: Vec::new(),
            };
            let mut scripted = Side {
                relay: &*redis.worker,
                replies: &replies,
                tokens: Vec::new(),
            };
            for call in &history {
                prop_assert_eq!(
                    pure.answer(call).await,
                    scripted.answer(call).await,
                    "{:?}",
                    call
                );
            }
            Ok(())
        })
    });
    outcome.unwrap();
}
