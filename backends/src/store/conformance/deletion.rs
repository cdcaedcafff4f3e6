//! Conformance tests of deletions: deleted data stays deleted, and the session may start anew.

use serde_json::json;
use switchboard_schemas::{ids::EventId, time::Timestamp};

use super::{Subject, Talk, TalkTurn, noon_and, object, replied};
use crate::store::{
    ReplyState, SessionLink,
    deletion::{ConversationDeletion, HistoryState},
    listing::ListQuery,
};

pub(super) fn deletion(talk: &Talk, name: &str, seconds: i64) -> ConversationDeletion {
    ConversationDeletion {
        org_id: talk.org.clone(),
        conversation_id: talk.id.clone(),
        event_id: EventId::derive(talk.id.as_str(), name),
        at: noon_and(seconds),
    }
}

fn link(talk: &Talk, turn: &TalkTurn) -> SessionLink {
    let switchboard_schemas::conversation::ConversationOwner::Agent(agent_id) = talk.owner.clone()
    else {
        unreachable!("tests talk with agents")
    };
    SessionLink {
        org_id: talk.org.clone(),
        agent_id,
        session_id: turn.turn.session_id.clone(),
        conversation_id: talk.id.clone(),
        answered_at: noon_and(1),
    }
}

/// Stores a conversation of one turn with all data that can belong to it.
async fn talked(subject: &Subject) -> (Talk, TalkTurn) {
    let talk = Talk::new();
    let mut turn = talk.turn(0, "question");
    turn.turn.visitor.email = Some("ada@example.com".into());
    subject.begin(&turn, 1).await;
    subject
        .store
        .link_session(&link(&talk, &turn))
        .await
        .unwrap();
    subject.finish(&turn, 1, replied("answer")).await;
    subject
        .change(&talk, json!({"feedback": "private"}), noon_and(5))
        .await;
    (talk, turn)
}

async fn delete(subject: &Subject, deletion: &ConversationDeletion) -> bool {
    subject.store.delete_conversation(deletion).await.unwrap()
}

async fn history_state(subject: &Subject, talk: &Talk) -> HistoryState {
    subject
        .store
        .history_state(&talk.org, &talk.id)
        .await
        .unwrap()
}

async fn assert_gone(subject: &Subject, talk: &Talk, turn: &TalkTurn) {
    let (store, link) = (&subject.store, link(talk, turn));
    assert_eq!(store.conversation(&talk.org, &talk.id).await.unwrap(), None);
    assert_eq!(subject.page(talk, 0, 10).await, []);
    assert_eq!(
        subject.read_known_reply(talk, turn).await,
        Some(ReplyState::Deleted)
    );
    assert_eq!(
        store
            .linked_conversations(&talk.org, &link.agent_id, &link.session_id)
            .await
            .unwrap(),
        []
    );
    for owner in [None, Some(talk.owner.clone())] {
        let query = ListQuery {
            owner,
            limit: 10,
            ..ListQuery::default()
        };
        assert_eq!(store.conversations(&talk.org, &query).await.unwrap(), []);
    }
    let changes = object(json!({"rating": 1}));
    assert!(
        !store
            .update_metadata(&talk.org, &talk.id, &changes, noon_and(900))
            .await
            .unwrap()
    );
    assert_eq!(history_state(subject, talk).await.message_count, 0);
}

pub(super) async fn deleted_conversation_is_not_found_by_any_read(subject: Subject) {
    let (talk, turn) = talked(&subject).await;
    assert_eq!(
        history_state(&subject, &talk).await,
        HistoryState {
            message_count: 2,
            tombstone: None
        }
    );
    assert!(delete(&subject, &deletion(&talk, "first", 9)).await);
    assert_gone(&subject, &talk, &turn).await;
}

pub(super) async fn repeated_deletion_succeeds_and_another_finds_nothing(subject: Subject) {
    let (talk, turn) = talked(&subject).await;
    for _ in 0..3 {
        assert!(delete(&subject, &deletion(&talk, "first", 9)).await);
    }
    assert!(!delete(&subject, &deletion(&talk, "second", 10)).await);
    assert!(!delete(&subject, &deletion(&Talk::new(), "first", 9)).await);
    assert_gone(&subject, &talk, &turn).await;
}

/// The caller is dropped at every possible point, and a repeated deletion finishes the work.
pub(super) async fn interrupted_deletion_is_finished_by_its_repeat(subject: Subject) {
    for polls in 0..12 {
        let (talk, turn) = talked(&subject).await;
        let wanted = deletion(&talk, "first", 9);
        let mut attempt = Box::pin(subject.store.delete_conversation(&wanted));
        for _ in 0..polls {
            if futures::poll!(&mut attempt).is_ready() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        drop(attempt);
        assert!(delete(&subject, &wanted).await);
        assert_gone(&subject, &talk, &turn).await;
    }
}

pub(super) async fn session_restarts_after_a_deletion_and_is_deleted_again(subject: Subject) {
    let (talk, _) = talked(&subject).await;
    for round in 1..4 {
        let wanted = deletion(&talk, &round.to_string(), 100 * round);
        assert!(delete(&subject, &wanted).await);
        let tombstone = history_state(&subject, &talk).await.tombstone;
        let mut turn = talk.turn_at(0, "hello again", 100 * round + 1);
        turn.tombstone.clone_from(&tombstone);
        subject.begin(&turn, 1).await;
        subject.finish(&turn, 1, replied("welcome back")).await;
        assert_eq!(subject.texts(&talk).await, ["hello again", "welcome back"]);
        let conversation = subject.conversation(&talk).await;
        assert_eq!(
            (conversation.message_count, conversation.active_message_id),
            (2, None)
        );
        assert_eq!(conversation.metadata, object(json!({"source": "api"})));
        assert_eq!(
            history_state(&subject, &talk).await,
            HistoryState {
                message_count: 2,
                tombstone
            }
        );
        let query = ListQuery {
            limit: 10,
            ..ListQuery::default()
        };
        assert_eq!(
            subject
                .store
                .conversations(&talk.org, &query)
                .await
                .unwrap()
                .len(),
            1
        );
        assert!(subject.record(&talk, &turn).await.is_some());
        // Regardless of the clock of the deleting process.
        delete(
            &subject,
            &ConversationDeletion {
                at: Timestamp::default(),
                ..deletion(&talk, "other", 0)
            },
        )
        .await;
        assert_eq!(history_state(&subject, &talk).await.message_count, 0);
        let tombstone = history_state(&subject, &talk).await.tombstone;
        let mut turn = talk.turn_at(0, "and again", 100 * round + 2);
        turn.tombstone = tombstone;
        subject.begin(&turn, 1).await;
    }
}

pub(super) async fn late_write_restores_nothing_of_a_deleted_conversation(subject: Subject) {
    let (talk, turn) = talked(&subject).await;
    let following = talk.turn(2, "a turn that nobody counted");
    assert!(delete(&subject, &deletion(&talk, "first", 9)).await);
    let late = async || {
        for turn in [&turn, &following] {
            for attempt in [1, 2, u32::MAX] {
                subject.begin(turn, attempt).await;
                subject.finish(turn, attempt, replied("late")).await;
            }
        }
    };
    late().await;
    assert_eq!(
        subject
            .store
            .conversation(&talk.org, &talk.id)
            .await
            .unwrap(),
        None
    );
    assert_eq!(subject.page(&talk, 0, 10).await, []);

    let mut anew = talk.turn_at(0, "hello again", 20);
    anew.tombstone = history_state(&subject, &talk).await.tombstone;
    subject.begin(&anew, 1).await;
    late().await;
    assert_eq!(subject.texts(&talk).await, ["hello again"]);
    subject.finish(&anew, 1, replied("welcome back")).await;
    late().await;
    assert_eq!(subject.texts(&talk).await, ["hello again", "welcome back"]);
}

pub(super) async fn change_after_a_deletion_wins_despite_a_slow_clock(subject: Subject) {
    let (talk, _) = talked(&subject).await;
    assert!(delete(&subject, &deletion(&talk, "first", 60)).await);
    let mut turn = talk.turn_at(0, "hello again", 30);
    turn.turn.visitor.name = Some("Ada".into());
    turn.tombstone = history_state(&subject, &talk).await.tombstone;
    subject.begin(&turn, 1).await;
    subject
        .change(&talk, json!({"rating": 4}), noon_and(31))
        .await;
    let metadata = subject.conversation(&talk).await.metadata;
    assert_eq!(
        metadata,
        object(json!({"visitorName": "Ada", "source": "api", "rating": 4}))
    );
}

pub(super) async fn long_conversation_is_deleted_completely(subject: Subject) {
    let talk = Talk::new();
    let turns: Vec<TalkTurn> = (0..1104)
        .step_by(2)
        .map(|position| talk.turn(position, "question"))
        .collect();
    for turn in &turns {
        subject.begin(turn, 1).await;
        subject.finish(turn, 1, replied("answer")).await;
    }
    assert!(delete(&subject, &deletion(&talk, "first", 5000)).await);
    for turn in [&turns[0], &turns[50], &turns[300], &turns[551]] {
        assert_gone(&subject, &talk, turn).await;
    }
}

pub(super) async fn conversation_is_not_deleted_by_another_organization(subject: Subject) {
    let (talk, _) = talked(&subject).await;
    let wanted = ConversationDeletion {
        org_id: Talk::new().org,
        ..deletion(&talk, "first", 9)
    };
    assert!(!delete(&subject, &wanted).await);
    assert_eq!(subject.texts(&talk).await, ["question", "answer"]);
}
