//! The contract of [`super::Store`], sentence by sentence, for both twins; and the conversations that the tests hold.

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

/// A moment that every test counts from.
const NOON_MICROS: i64 = 1_800_000_000_000_000;
const SECOND_MICROS: i64 = 1_000_000;

/// A twin under test.
pub(super) struct Subject {
    store: Arc<dyn ConversationStore>,
    figures: Arc<dyn AnalyticsStore>,
    /// Work done by reads of pages so far, in the twin's own unit.
    work: Box<dyn Fn() -> u64 + Send + Sync>,
    _directory: Option<tempfile::TempDir>,
}

/// A conversation of an organization of its own.
pub(super) struct Talk {
    pub(super) org: OrgId,
    pub(super) id: ConversationId,
    owner: ConversationOwner,
    session: String,
}

/// One turn of it.
pub(super) struct TalkTurn {
    turn: Turn,
    owner: ConversationOwner,
    position: u64,
    tombstone: Option<Tombstone>,
}

macro_rules! claims {
    ($($group:ident [$($claim:ident,)*])*) => {
        mod embedded {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $claim() {
                    super::$group::$claim(super::embedded_subject()).await;
                }
            )*)*
        }

        #[cfg(feature = "real-services")]
        mod scylla {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $claim() {
                    super::$group::$claim(super::scylla_subject().await).await;
                }
            )*)*
        }
    };
}

claims! {
    turns [
        a_first_turn_makes_the_conversation,
        a_finished_turn_is_counted_and_leaves_no_active_reply,
        a_reply_has_no_record_before_its_turn_has_ended,
        an_accepted_reply_is_known_before_its_turn_begins,
        an_acceptance_never_wins_over_a_final_state,
        every_write_may_be_repeated,
        the_higher_attempt_wins_in_any_order_of_arrival,
        a_later_turn_wins_though_its_clock_is_behind,
        a_message_wins_over_a_lost_attempts_reply_though_its_clock_is_behind,
        a_failed_reply_leaves_no_gap,
        a_read_sees_every_write_that_returned_before,
        another_organization_finds_nothing,
        text_is_kept_byte_for_byte,
        a_store_answers_its_check,
    ]
    history [
        a_page_costs_the_same_at_any_offset,
        pages_join_to_the_whole_history,
        a_page_holds_only_counted_messages,
        a_reader_beside_a_writer_never_misses_a_counted_message,
    ]
    metadata [
        changes_merge_key_by_key,
        of_two_changes_of_a_key_the_later_wins_in_either_order,
        an_older_change_does_not_bring_a_cleared_key_back,
        at_one_moment_clearing_wins,
        turns_and_changes_at_once_keep_each_others_keys,
        a_turn_cannot_set_reserved_keys_and_says_who_its_visitor_is,
        a_change_is_the_conversations_last_change,
        a_change_of_no_conversation_makes_none,
    ]
    lists [
        conversations_are_listed_latest_first_and_pages_join,
        conversations_of_one_moment_are_all_listed,
        a_list_is_of_one_owner_and_of_a_time,
        a_conversation_is_listed_once_whatever_follows_and_is_repeated,
        another_organization_lists_none_of_them,
        a_page_of_a_list_costs_by_its_length_and_not_by_the_lists,
    ]
    deletion [
        a_deleted_conversation_is_found_nowhere,
        a_deletion_may_be_repeated_and_another_one_finds_nothing,
        a_deletion_that_stopped_halfway_is_finished_by_its_repeat,
        a_session_begins_anew_behind_a_deletion_and_can_be_deleted_again,
        a_late_write_brings_nothing_of_a_deleted_conversation_back,
        a_change_behind_a_deletion_counts_though_its_clock_is_behind,
        a_long_conversation_is_deleted_to_its_end,
        another_organization_deletes_nothing,
    ]
    erasures [
        of_two_states_of_an_erasure_the_later_stays,
        erasures_are_listed_latest_first_and_pages_join,
        another_organization_reads_no_erasure,
    ]
    analytics [
        figures_equal_a_recount_of_what_is_stored,
        a_turn_is_counted_once_and_as_it_is_stored,
        the_last_rating_of_a_conversation_counts_in_either_order,
        what_comes_late_is_counted_though_its_day_was_counted_before,
        a_day_that_did_not_change_is_not_counted_again,
        pages_of_facts_join,
        another_organization_counts_nothing_of_it,
        a_message_that_nobody_could_answer_is_the_teams,
        what_is_deleted_is_not_counted_and_late_writes_bring_nothing_of_it_back,
    ]
    links [
        a_teams_conversation_is_found_through_each_agent_that_answered,
        of_several_teams_the_one_that_was_answered_last_comes_first,
        another_organization_agent_or_session_finds_none,
    ]
}

fn embedded_subject() -> Subject {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(&directory.path().join("store.db")).unwrap());
    let work = Arc::clone(&store.work);
    let work = Box::new(move || work.load(Ordering::Relaxed));
    Subject {
        figures: store.clone(),
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
        figures: store.clone(),
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
            .reply(&talk.org, &turn.turn.reply_id())
            .await
            .unwrap()
    }

    async fn known(&self, talk: &Talk, turn: &TalkTurn) -> Option<ReplyState> {
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

/// How a turn ends.
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

    /// A turn whose user message stands at `position`, accepted so many seconds after noon.
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
