//! Conformance tests of metadata: merged key by key, in the order of time.

use futures::future::join_all;
use serde_json::{Value, json};
use switchboard_schemas::turn::MessageSource;

use super::{Subject, Talk, noon_and, object, replied};

async fn begin_talk(subject: &Subject) -> Talk {
    let talk = Talk::new();
    subject.begin(&talk.turn(0, "hello"), 1).await;
    talk
}

async fn value(subject: &Subject, talk: &Talk, key: &str) -> Option<Value> {
    subject.conversation(talk).await.metadata.get(key).cloned()
}

pub(super) async fn changes_merge_key_by_key(subject: Subject) {
    let talk = begin_talk(&subject).await;
    subject
        .change(&talk, json!({"rating": 5, "tags": ["a"]}), noon_and(1))
        .await;
    subject
        .change(
            &talk,
            json!({"feedback": "good", "tags": {"b": null}}),
            noon_and(2),
        )
        .await;
    subject
        .change(&talk, json!({"rating": null, "plan": "pro"}), noon_and(3))
        .await;
    let expected = json!({"source": "api", "feedback": "good", "tags": {"b": null}, "plan": "pro"});
    assert_eq!(subject.conversation(&talk).await.metadata, object(expected));
}

pub(super) async fn later_change_of_a_key_wins_in_any_order(subject: Subject) {
    for order in [[1, 2], [2, 1]] {
        let talk = begin_talk(&subject).await;
        for at in order {
            subject
                .change(&talk, json!({ "rating": at }), noon_and(at))
                .await;
        }
        assert_eq!(value(&subject, &talk, "rating").await, Some(json!(2)));
    }
}

pub(super) async fn older_change_does_not_restore_a_cleared_key(subject: Subject) {
    let talk = begin_talk(&subject).await;
    subject
        .change(&talk, json!({"rating": null}), noon_and(2))
        .await;
    subject
        .change(&talk, json!({"rating": 1}), noon_and(1))
        .await;
    assert_eq!(value(&subject, &talk, "rating").await, None);
    subject
        .change(&talk, json!({"rating": 3}), noon_and(3))
        .await;
    assert_eq!(value(&subject, &talk, "rating").await, Some(json!(3)));
}

pub(super) async fn clearing_wins_over_a_change_of_the_same_time(subject: Subject) {
    for order in [[json!(1), Value::Null], [Value::Null, json!(1)]] {
        let talk = begin_talk(&subject).await;
        for rating in order {
            subject
                .change(&talk, json!({ "rating": rating }), noon_and(1))
                .await;
        }
        assert_eq!(value(&subject, &talk, "rating").await, None);
    }
}

pub(super) async fn concurrent_turns_and_changes_keep_all_keys(subject: Subject) {
    let talk = begin_talk(&subject).await;
    let mut turn = talk.turn(0, "hello");
    turn.turn.metadata = object(json!({"page": "/pricing"}));
    let changes = (0..20)
        .map(|index| subject.change(&talk, json!({ format!("key{index}"): index }), noon_and(1)));
    futures::future::join(join_all(changes), async {
        subject.begin(&turn, 1).await;
        subject.finish(&turn, 1, replied("answer")).await;
    })
    .await;
    let conversation = subject.conversation(&talk).await;
    assert_eq!(conversation.metadata.get("page"), Some(&json!("/pricing")));
    assert!(
        (0..20)
            .all(|index| conversation.metadata.get(&format!("key{index}")) == Some(&json!(index)))
    );
    assert_eq!(conversation.message_count, 2);
}

pub(super) async fn turn_sets_visitor_keys_but_no_reserved_ones(subject: Subject) {
    let talk = Talk::new();
    let mut first = talk.turn(0, "hello");
    first.turn.metadata = object(json!({"visitorName": "forged", "source": "forged", "page": "/"}));
    first.turn.visitor.id = Some("visitor-1".parse().unwrap());
    first.turn.visitor.email = Some("ada@example.com".into());
    first.turn.ip_address = Some("192.0.2.0".into());
    subject.begin(&first, 1).await;
    let mut expected = json!({
        "visitorId": "visitor-1", "visitorEmail": "ada@example.com", "source": "api", "ipAddress": "192.0.2.0", "page": "/",
    });
    assert_eq!(
        subject.conversation(&talk).await.metadata,
        object(expected.clone())
    );

    let mut second = talk.turn(1, "again");
    second.turn.visitor.name = Some("Ada".into());
    second.turn.source = MessageSource::Widget;
    subject.begin(&second, 1).await;
    expected["visitorName"] = json!("Ada");
    expected["source"] = json!("widget");
    assert_eq!(subject.conversation(&talk).await.metadata, object(expected));
}

pub(super) async fn metadata_change_updates_the_last_change_time(subject: Subject) {
    let talk = begin_talk(&subject).await;
    subject
        .change(&talk, json!({"rating": 1}), noon_and(60))
        .await;
    assert_eq!(subject.conversation(&talk).await.updated_at, noon_and(60));
    subject
        .change(&talk, json!({"plan": "pro"}), noon_and(30))
        .await;
    assert_eq!(subject.conversation(&talk).await.updated_at, noon_and(60));
    subject
        .change(&talk, json!({"rating": null}), noon_and(90))
        .await;
    assert_eq!(subject.conversation(&talk).await.updated_at, noon_and(90));
}

pub(super) async fn change_of_an_unknown_conversation_creates_none(subject: Subject) {
    let talk = Talk::new();
    let changes = object(json!({"rating": 1}));
    assert!(
        !subject
            .store
            .update_metadata(&talk.org, &talk.id, &changes, noon_and(0))
            .await
            .unwrap()
    );
    assert_eq!(
        subject
            .store
            .conversation(&talk.org, &talk.id)
            .await
            .unwrap(),
        None
    );
}
