//! The checker: compares what clients received with the store, the model's calls and the topic for
//! analytics, once everything is quiet. Invariants are printed with the number of their checks.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    clients::{ReceivedResponse, SentMessage},
    faults::{Fault, PastFault},
};
use crate::support::{Client, Organization, RecordedRequest, Reply, Script, eventually};

/// Time within which every accepted message is final: the deadline of a job, and slack.
pub(super) const FINAL_WITHIN: Duration = Duration::from_secs(180);
/// Model calls for one reply. Three attempts may fail; a released claim keeps its attempts, and a
/// Redis without its data forgets them.
pub(super) const CALLS_MAX: usize = 6;
/// Statuses of errors after which a client may send its message again.
const OUTAGE_STATUSES: [u16; 3] = [502, 503, 504];
/// Checks of each invariant in a run that says anything.
const CHECKS_MIN: usize = 20;
/// Time between a fault and a violation that it may have caused.
const NEAR: Duration = Duration::from_secs(20);
/// Violations of one invariant that are printed.
const VIOLATIONS_SHOWN: usize = 5;

/// Results of the checks by invariant.
pub(super) struct CheckReport<'a> {
    results: BTreeMap<&'static str, InvariantResult>,
    faults: &'a [PastFault],
}

/// A fault with its times in seconds from a byte of a reply.
#[derive(Debug)]
struct NearFault {
    fault: Fault,
    began: f64,
    ended: f64,
}

#[derive(Default)]
struct InvariantResult {
    checked: usize,
    violations: Vec<String>,
}

/// A message of a stored conversation, from the admin API.
pub(super) struct StoredMessage {
    id: String,
    is_reply: bool,
    content: String,
    /// True for a question whose reply ended without text.
    is_unanswered: bool,
}

/// Invariants that a run checks even if no fault has any effect.
const EVIDENT: [&str; 4] = [
    "an accepted message is stored",
    "a whole reply is one call's text",
    "a prompt has all earlier turns",
    "a stored message is announced",
];

/// The stored messages of conversations, by the id of the conversation.
pub(super) type Conversations = HashMap<String, Vec<StoredMessage>>;

impl StoredMessage {
    fn from_item(item: &Value) -> Self {
        Self {
            id: item["id"].as_str().unwrap().to_owned(),
            is_reply: item["role"] == "assistant",
            content: item["content"].as_str().unwrap().to_owned(),
            is_unanswered: !item["unanswered"].is_null(),
        }
    }
}

impl<'a> CheckReport<'a> {
    /// Creates an empty report. Violations name those of `faults` that were near.
    pub(super) fn new(faults: &'a [PastFault]) -> Self {
        let results = BTreeMap::new();
        Self { results, faults }
    }

    /// Counts a check; `violation` describes it if it failed.
    pub(super) fn check(
        &mut self,
        invariant: &'static str,
        holds: bool,
        violation: impl FnOnce() -> String,
    ) {
        let result = self.results.entry(invariant).or_default();
        result.checked += 1;
        if !holds {
            result.violations.push(violation());
        }
    }

    /// Returns one line per invariant.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |(invariant, result): (&&str, &InvariantResult)| {
            let (checked, violations) = (result.checked, result.violations.len());
            format!("{invariant}: {checked} checked, {violations} violations")
        };
        self.results.iter().map(line).collect()
    }

    /// Returns the numbers of checks and of violations.
    pub(super) fn totals(&self) -> (usize, usize) {
        let results = self.results.values();
        results.fold((0, 0), |(checked, violations), result| {
            (
                checked + result.checked,
                violations + result.violations.len(),
            )
        })
    }

    /// Panics with the first violations of each invariant.
    #[track_caller]
    pub(super) fn assert_no_violation(&self) {
        let shown = |result: &InvariantResult| {
            let first = result.violations.iter().take(VIOLATIONS_SHOWN);
            first.cloned().collect::<Vec<_>>()
        };
        let violations: BTreeMap<_, _> = self
            .results
            .iter()
            .filter(|(_, result)| !result.violations.is_empty())
            .map(|(invariant, result)| (invariant, shown(result)))
            .collect();
        assert!(violations.is_empty(), "{violations:#?}");
        for invariant in EVIDENT {
            let checked = self
                .results
                .get(invariant)
                .map_or(0, |result| result.checked);
            assert!(checked >= CHECKS_MIN, "{invariant}: only {checked} checks");
        }
    }

    /// Checks what one organization sent, received and stored. `script` is that of its model.
    pub(super) fn check_organization(
        &mut self,
        stored: &Conversations,
        sent: &[SentMessage],
        requests: &[RecordedRequest],
        events: &[Value],
        script: &Script,
    ) {
        self.check_delivery(stored, sent);
        self.check_texts(stored, sent, script);
        self.check_final_states(stored);
        self.check_model_calls(stored, requests);
        self.check_events(stored, events);
    }

    fn check_delivery(&mut self, stored: &Conversations, sent: &[SentMessage]) {
        let mut places: HashMap<&str, Vec<(&[StoredMessage], usize)>> = HashMap::new();
        for messages in stored.values() {
            for (index, message) in messages.iter().enumerate().filter(|(_, it)| !it.is_reply) {
                let place = (messages.as_slice(), index);
                places.entry(&message.content).or_default().push(place);
            }
        }
        for message in sent {
            let question = &message.question;
            let found = places.get(question.as_str()).map_or(&[][..], Vec::as_slice);
            let count = found.len();
            self.check("a message is stored once", count <= 1, || {
                format!("{question}: {count} times")
            });
            if message.is_refused() {
                self.check("a refused message is not stored", count == 0, || {
                    format!("{question}: {count} times")
                });
            }
            self.check_responses(message);
            let Some(reply) = message.reply() else {
                continue;
            };
            self.check("an accepted message is stored", count == 1, || {
                format!("{question}: {count} times")
            });
            let Some((messages, index)) = found.first() else {
                continue;
            };
            let next = messages.get(index + 1).filter(|next| next.is_reply);
            let text = String::from_utf8_lossy(&reply.bytes()).into_owned();
            let agrees = match next {
                Some(next) if reply.ended_cleanly => text == next.content,
                // What a worker wrote is lost if Redis loses its data before another worker has
                // read it. The reply is generated again.
                Some(next) => next.content.starts_with(&text) || self.was_redis_killed_near(reply),
                None => !reply.ended_cleanly && text.is_empty(),
            };
            let near = self.faults_near(reply);
            self.check("received bytes are the stored ones", agrees, || {
                let end = if reply.ended_cleanly { "whole" } else { "cut" };
                let content = next.map(|next| &next.content);
                format!("{question}: {end} {text:?}, stored {content:?}, faults: {near:?}")
            });
            let id = reply.header("x-message-id").unwrap_or_default();
            let is_own = next.is_none_or(|next| next.id == id);
            self.check("a reply has the announced id", is_own, || {
                format!("{question}: {id}")
            });
        }
    }

    fn was_redis_killed_near(&self, reply: &Reply) -> bool {
        let near = self.faults_near(reply);
        near.iter().any(|near| near.fault == Fault::KilledRedis)
    }

    /// Returns the faults around the last byte of a reply.
    fn faults_near(&self, reply: &Reply) -> Vec<NearFault> {
        let Some((last, _)) = reply.chunks.last() else {
            return vec![];
        };
        let from_last = |at: Instant| {
            let after = at.saturating_duration_since(*last).as_secs_f64();
            after - last.saturating_duration_since(at).as_secs_f64()
        };
        let near = self.faults.iter().map(|past| NearFault {
            fault: past.fault,
            began: from_last(past.began),
            ended: from_last(past.ended),
        });
        let limit = NEAR.as_secs_f64();
        near.filter(|near| near.began < limit && near.ended > -limit)
            .collect()
    }

    fn check_responses(&mut self, message: &SentMessage) {
        let question = &message.question;
        for exchange in &message.exchanges {
            if let ReceivedResponse::Problem(status) = exchange.response {
                let is_outage = OUTAGE_STATUSES.contains(&status);
                self.check("an error says that it is temporary", is_outage, || {
                    format!("{question}: {status}")
                });
            }
        }
        let is_accepted = message.reply().is_some();
        self.check("a message is accepted in the end", is_accepted, || {
            question.clone()
        });
    }

    fn check_texts(&mut self, stored: &Conversations, sent: &[SentMessage], script: &Script) {
        for reply in sent.iter().filter_map(SentMessage::reply) {
            if reply.ended_cleanly {
                let text = String::from_utf8_lossy(&reply.bytes()).into_owned();
                let is_whole = text == script.text_that_begins(&text);
                self.check("a whole reply is one call's text", is_whole, || text);
            }
        }
        for message in stored.values().flatten().filter(|it| it.is_reply) {
            let text = &message.content;
            let is_of_one_call = script.text_that_begins(text).starts_with(text.as_str());
            self.check("a stored reply is of one call", is_of_one_call, || {
                text.clone()
            });
        }
    }

    fn check_final_states(&mut self, stored: &Conversations) {
        for (id, messages) in stored {
            for (index, message) in messages.iter().enumerate() {
                let has_reply = messages.get(index + 1).is_some_and(|next| next.is_reply);
                let holds = if message.is_reply {
                    index > 0 && !has_reply
                } else {
                    message.is_unanswered != has_reply
                };
                self.check("a message has one final state", holds, || {
                    format!("{id}: {}", message.content)
                });
            }
        }
    }

    fn check_model_calls(&mut self, stored: &Conversations, requests: &[RecordedRequest]) {
        let mut calls: HashMap<&str, usize> = HashMap::new();
        for request in requests {
            let question = request.question();
            *calls.entry(question).or_default() += 1;
            let place = stored.values().find_map(|messages| {
                let is_question = |it: &StoredMessage| !it.is_reply && it.content == question;
                Some((messages, messages.iter().position(is_question)?))
            });
            // The question of a cut attempt is stored with its reply.
            let Some((messages, index)) = place else {
                continue;
            };
            let answered = messages[..index].iter().filter(|it| !it.is_unanswered);
            let expected: Vec<&str> = answered.map(|it| it.content.as_str()).collect();
            let prompt = request.messages.iter().filter(|(role, _)| role != "system");
            let prompt: Vec<&str> = prompt.map(|(_, text)| text.as_str()).collect();
            let asked = prompt.iter().rposition(|text| *text == question);
            let context = &prompt[..asked.unwrap_or(prompt.len())];
            self.check(
                "a prompt has all earlier turns",
                context == expected,
                || format!("{question}: {context:?} instead of {expected:?}"),
            );
        }
        for (question, count) in calls {
            self.check("a reply has few model calls", count <= CALLS_MAX, || {
                format!("{question}: {count} calls")
            });
        }
    }

    fn check_events(&mut self, stored: &Conversations, events: &[Value]) {
        let mut by_id: HashMap<&str, &Value> = HashMap::new();
        let mut contents: HashMap<&str, &str> = HashMap::new();
        let mut unanswered: HashSet<&str> = HashSet::new();
        let mut order: HashMap<&str, Vec<&str>> = HashMap::new();
        for event in events {
            let text = |name: &str| event[name].as_str().unwrap_or_default();
            let is_repeated = by_id.contains_key(text("eventId"));
            let first = by_id.entry(text("eventId")).or_insert(event);
            let is_same = first["content"] == event["content"];
            self.check("an event has one content", is_same, || {
                format!(
                    "{}: {} and {}",
                    text("eventId"),
                    first["content"],
                    event["content"]
                )
            });
            let is_message = text("type").starts_with("message.");
            if is_repeated || !is_message {
                continue;
            }
            contents.insert(text("messageId"), text("content"));
            if event["position"].is_null() {
                unanswered.insert(text("inReplyTo"));
            } else {
                let conversation = order.entry(text("conversationId"));
                conversation.or_default().push(text("messageId"));
            }
        }
        for (conversation, messages) in stored {
            for message in messages {
                let announced = contents.get(message.id.as_str());
                let is_announced = announced.is_some_and(|content| *content == message.content);
                self.check("a stored message is announced", is_announced, || {
                    format!("{}: {announced:?} for {:?}", message.id, message.content)
                });
                if message.is_unanswered {
                    let is_announced = unanswered.contains(message.id.as_str());
                    self.check("a failed reply is announced", is_announced, || {
                        message.id.clone()
                    });
                }
            }
            let ids: Vec<&str> = messages.iter().map(|it| it.id.as_str()).collect();
            let announced = order.remove(conversation.as_str()).unwrap_or_default();
            self.check(
                "events are stored messages in order",
                announced == ids,
                || format!("{conversation}: {announced:?} instead of {ids:?}"),
            );
        }
    }
}

/// Returns all conversations of an organization once no reply is running.
pub(super) async fn settled_conversations(
    admin: &Client,
    organization: &Organization,
) -> Conversations {
    let settled = eventually("every message is final", FINAL_WITHIN, async || {
        let conversations = organization.conversations(admin).await?;
        let is_settled = |it: &Value| it["activeMessageId"].is_null();
        conversations
            .iter()
            .all(is_settled)
            .then_some(conversations)
    })
    .await;
    let by_id = |conversation: &Value| {
        let items = conversation["messages"]["items"].as_array().unwrap();
        let id = conversation["id"].as_str().unwrap().to_owned();
        (id, items.iter().map(StoredMessage::from_item).collect())
    };
    settled.iter().map(by_id).collect()
}
