//! Conformance tests of [`super::ConversationStore`] and its analytics, run on both backends.

mod analytics;
mod deletion;
mod erasures;
mod history;
mod links;
mod lists;
mod metadata;
mod turns;

use std::sync::{Arc, atomic::Ordering};

use serde_json::{Map, Value};
use switchboard_schemas::{
    conversation::{
        Conversation, ConversationOwner, FinishReason, Message, MessageAuthor, ReplyFacts,
        ReplyStatus, TokenUsage,
    },
    ids::{AgentId, ConversationId, MessageId, OrgId, RequestId},
    reply_event::{ReplyEnd, ReplyFailure},
    routing::{RoutingFacts, RoutingStage},
    secret::InstallationSecret,
    time::Timestamp,
    turn::{MessageSource, Turn, Visitor},
};

use super::{
    ConversationStore, ReplyRecord, ReplyState, TurnEnd, TurnStart, deletion::Tombstone,
    embedded::EmbeddedStore,
};
use crate::analytics::AnalyticsStore;

/// Reference time of the tests.
const NOON_MICROS: i64 = 1_800_000_000_000_000;
const SECOND_MICROS: i64 = 1_000_000;

/// A backend under test.
pub(super) struct Subject {
    store: Arc<dyn ConversationStore>,
    analytics: Arc<dyn AnalyticsStore>,
    /// Work of all page reads so far, in the unit of the backend.
    work: Box<dyn Fn() -> u64 + Send + Sync>,
    _directory: Option<tempfile::TempDir>,
}

/// A conversation of a unique organization.
pub(super) struct Talk {
    pub(super) org: OrgId,
    pub(super) id: ConversationId,
    owner: ConversationOwner,
    session: String,
}

/// A turn of a [`Talk`].
pub(super) struct TalkTurn {
    turn: Turn,
    owner: ConversationOwner,
    position: u64,
    tombstone: Option<Tombstone>,
}

macro_rules! conformance_tests {
    ($($group:ident [$($test:ident,)*])*) => {
        mod embedded {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$group::$test(super::embedded_subject()).await;
                }
            )*)*
        }

        #[cfg(feature = "real-services")]
        mod real_scylla {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$group::$test(super::scylla_subject().await).await;
                }
            )*)*
        }
    };
}

conformance_tests! {
    turns [
        first_turn_creates_the_conversation,
        finished_turn_is_counted_and_clears_the_active_reply,
        reply_has_no_record_before_its_turn_ends,
        accepted_reply_is_known_before_its_turn_begins,
        acceptance_never_replaces_a_final_state,
        repeated_writes_change_nothing,
        higher_attempt_wins_in_any_order_of_arrival,
        later_turn_wins_despite_a_slow_clock,
        message_wins_over_the_reply_of_a_lost_attempt,
        first_settled_end_stays_until_its_deletion,
        one_of_simultaneous_ends_is_settled,
        cancellation_and_end_exclude_each_other,
        failed_reply_leaves_no_gap,
        read_sees_all_completed_writes,
        conversation_is_invisible_to_another_organization,
        text_is_stored_byte_for_byte,
        conversation_store_check_succeeds,
    ]
    history [
        page_costs_the_same_at_any_offset,
        pages_join_to_the_complete_history,
        opening_of_a_turn_is_what_its_parts_are,
        page_contains_only_counted_messages,
        concurrent_reader_never_misses_a_counted_message,
    ]
    metadata [
        changes_merge_key_by_key,
        later_change_of_a_key_wins_in_any_order,
        older_change_does_not_restore_a_cleared_key,
        clearing_wins_over_a_change_of_the_same_time,
        concurrent_turns_and_changes_keep_all_keys,
        turn_sets_visitor_keys_but_no_reserved_ones,
        metadata_change_updates_the_last_change_time,
        change_of_an_unknown_conversation_creates_none,
    ]
    lists [
        conversations_are_listed_latest_first_and_pages_join,
        conversations_of_one_moment_are_all_listed,
        list_is_filtered_by_owner_and_time,
        conversation_is_listed_once_despite_repeats,
        list_contains_only_its_organization,
        cost_of_a_list_page_depends_only_on_its_length,
    ]
    deletion [
        deleted_conversation_is_not_found_by_any_read,
        repeated_deletion_succeeds_and_another_finds_nothing,
        interrupted_deletion_is_finished_by_its_repeat,
        session_restarts_after_a_deletion_and_is_deleted_again,
        late_write_restores_nothing_of_a_deleted_conversation,
        change_after_a_deletion_wins_despite_a_slow_clock,
        long_conversation_is_deleted_completely,
        conversation_is_not_deleted_by_another_organization,
    ]
    erasures [
        later_state_of_an_erasure_wins,
        erasures_are_listed_latest_first_and_pages_join,
        erasures_are_invisible_to_another_organization,
    ]
    analytics [
        totals_equal_a_recount_of_stored_turns,
        turn_is_counted_once_as_stored,
        conversation_with_a_lead_counts_once_until_it_is_deleted,
        last_rating_of_a_conversation_counts_in_any_order,
        late_fact_is_counted_on_an_already_counted_day,
        unchanged_day_is_not_recounted,
        pages_of_facts_join,
        facts_are_invisible_to_another_organization,
        unanswered_message_counts_for_its_team,
        late_writes_do_not_restore_facts_of_a_deleted_conversation,
    ]
    links [
        team_conversation_is_linked_to_each_answering_agent,
        latest_answered_team_conversation_comes_first,
        links_are_scoped_to_organization_agent_and_session,
    ]
}

fn embedded_subject() -> Subject {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(&directory.path().join("store.db")).unwrap());
    let work = Arc::clone(&store.work);
    let work = Box::new(move || work.load(Ordering::Relaxed));
    Subject {
        analytics: store.clone(),
        store,
        work,
        _directory: Some(directory),
    }
}

#[cfg(feature = "real-services")]
async fn scylla_subject() -> Subject {
    let link = crate::scylla_link::testing::link().await;
    let store = Arc::new(super::scylla::ScyllaStore::connect(Arc::clone(&link)));
    let work = Box::new(move || link.work.load(Ordering::Relaxed));
    Subject {
        analytics: store.clone(),
        store,
        work,
        _directory: None,
    }
}

impl Subject {
    async fn begin(&self, turn: &TalkTurn, attempt: u32) {
        self.store.begin_turn(&turn.start(attempt)).await.unwrap();
    }

    async fn finish(&self, turn: &TalkTurn, attempt: u32, outcome: Outcome) {
        self.store
            .finish_turn(&turn.end(attempt, outcome))
            .await
            .unwrap();
    }

    async fn settle(&self, end: &TurnEnd) -> TurnEnd {
        self.store.settle_turn(end).await.unwrap()
    }

    async fn conversation(&self, talk: &Talk) -> Conversation {
        self.store
            .conversation(&talk.org, &talk.id)
            .await
            .unwrap()
            .unwrap()
    }

    async fn page(&self, talk: &Talk, from: u64, limit: u32) -> Vec<Message> {
        self.store
            .messages(&talk.org, &talk.id, from, limit)
            .await
            .unwrap()
    }

    async fn texts(&self, talk: &Talk) -> Vec<String> {
        self.page(talk, 0, 100)
            .await
            .into_iter()
            .map(|message| message.content)
            .collect()
    }

    async fn record(&self, talk: &Talk, turn: &TalkTurn) -> Option<ReplyRecord> {
        self.store
            .final_record(&talk.org, &turn.turn.reply_id())
            .await
            .unwrap()
    }

    async fn read_known_reply(&self, talk: &Talk, turn: &TalkTurn) -> Option<ReplyState> {
        self.store
            .known_reply(&talk.org, &turn.turn.reply_id())
            .await
            .unwrap()
    }

    async fn change(&self, talk: &Talk, changes: Value, at: Timestamp) {
        assert!(
            self.store
                .update_metadata(&talk.org, &talk.id, &object(changes), at)
                .await
                .unwrap()
        );
    }
}

/// The end of a turn.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Replied(String),
    Failed,
}

pub(super) fn replied(text: &str) -> Outcome {
    Outcome::Replied(text.into())
}

pub(super) const fn failed() -> Outcome {
    Outcome::Failed
}

impl Talk {
    pub(super) fn new() -> Self {
        Self::with_session("session")
    }

    fn with_session(session: &str) -> Self {
        let secret = InstallationSecret::from_bytes(rand::random());
        let org = OrgId::derive(&secret, "acme");
        let agent = AgentId::derive(&secret, &org, "shop");
        let id = ConversationId::of_agent(&org, &agent, &session.parse().unwrap());
        Self {
            org,
            id,
            owner: ConversationOwner::Agent(agent),
            session: session.into(),
        }
    }

    /// Creates a turn whose user message is at `position`, accepted `position` seconds after noon.
    pub(super) fn turn(&self, position: u64, content: &str) -> TalkTurn {
        self.turn_at(position, content, i64::try_from(position).unwrap())
    }

    fn turn_at(&self, position: u64, content: &str, seconds: i64) -> TalkTurn {
        let turn = Turn {
            org_id: self.org.clone(),
            conversation_id: self.id.clone(),
            message_id: MessageId::new_in(&self.id),
            request_id: RequestId::random(),
            key_id: None,
            session_id: self.session.parse().unwrap(),
            content: content.into(),
            attachments: Vec::new(),
            visitor: Visitor::default(),
            metadata: Map::new(),
            source: MessageSource::Api,
            ip_address: None,
            accepted_at: noon_and(seconds),
            reply_to: None,
            publish_nonce: "nonce".into(),
        };
        TalkTurn {
            turn,
            owner: self.owner.clone(),
            position,
            tombstone: None,
        }
    }
}

impl TalkTurn {
    pub(super) fn start(&self, attempt: u32) -> TurnStart {
        TurnStart {
            turn: self.turn.clone(),
            owner: self.owner.clone(),
            position: self.position,
            tombstone: self.tombstone.clone(),
            metadata_at: self.turn.accepted_at,
            attempt,
        }
    }

    pub(super) fn end(&self, attempt: u32, outcome: Outcome) -> TurnEnd {
        let message = match &outcome {
            Outcome::Replied(text) => Some(self.reply(text, attempt)),
            Outcome::Failed => None,
        };
        let failure = if message.is_some() {
            None
        } else {
            Some(ReplyFailure::ModelError)
        };
        let status = if message.is_some() {
            ReplyStatus::Completed
        } else {
            ReplyStatus::Failed
        };
        TurnEnd {
            org_id: self.turn.org_id.clone(),
            accepted_at: self.turn.accepted_at,
            tombstone: self.tombstone.clone(),
            attempt,
            user_message_id: self.turn.message_id.clone(),
            agent_id: match &self.owner {
                ConversationOwner::Agent(agent) => Some(agent.clone()),
                ConversationOwner::Team(_) => None,
            },
            team_id: match &self.owner {
                ConversationOwner::Agent(_) => None,
                ConversationOwner::Team(team) => Some(team.clone()),
            },
            record: ReplyRecord {
                user_message_id: self.turn.message_id.clone(),
                user_position: self.position,
                position: message.as_ref().map(|message| message.position),
                head: None,
                end: ReplyEnd {
                    status,
                    finish_reason: None,
                    usage: TokenUsage::default(),
                    length: message
                        .as_ref()
                        .map_or(0, |message| message.content.len() as u64),
                    sha256: String::new(),
                    response_time_ms: 1000,
                    failure,
                    provider_error: None,
                },
                generation: attempt,
                attempt,
                finished_at: Timestamp::from_micros(self.turn.accepted_at.micros() + SECOND_MICROS),
                first_text_ms: Some(10),
            },
            message,
        }
    }

    fn reply(&self, text: &str, attempt: u32) -> Message {
        let ConversationOwner::Agent(agent_id) = self.owner.clone() else {
            unreachable!("tests talk with agents")
        };
        Message {
            id: self.turn.reply_id(),
            position: self.position + 1,
            content: text.into(),
            attachments: Vec::new(),
            created_at: self.turn.accepted_at,
            author: MessageAuthor::Assistant(Box::new(ReplyFacts {
                agent_id,
                agent_name: "Shop".into(),
                status: ReplyStatus::Completed,
                finish_reason: Some(FinishReason::Stop),
                usage: TokenUsage {
                    prompt_tokens: 1,
                    completion_tokens: 2,
                    estimated: true,
                },
                response_time_ms: 1000,
                model: "model".into(),
                routing_reason: Some("only one".into()),
                routing: Some(RoutingFacts {
                    stage: RoutingStage::Words,
                    took_ms: 2,
                    scores: Vec::new(),
                }),
                ui_spec: Some(serde_json::json!({"type": "product-grid"})),
                generation: attempt,
                truncation: None,
                summary: None,
                steps: None,
            })),
        }
    }
}

fn noon_and(seconds: i64) -> Timestamp {
    Timestamp::from_micros(NOON_MICROS + seconds * SECOND_MICROS)
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}
