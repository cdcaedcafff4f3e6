//! Conformance tests of turns: repeated, reordered, superseded and failed ones.

use std::time::Instant;

use futures::future::join_all;
use switchboard_schemas::{conversation::MessageAuthor, reply_event::ReplyEnd};

use super::{Outcome, Subject, Talk, TalkTurn, deletion::deletion, failed, noon_and, replied};
use crate::store::{AcceptedReply, ReplyState};

/// Texts that a store or its query language could alter.
const TEXTS: [&str; 8] = [
    "",
    " leading and trailing \t\r\n",
    "null \0 inside and at the end \0",
    "é e\u{301} \u{feff} \u{202e}סלאם\u{202c}",
    "🦀👩‍👩‍👧 \u{10ffff}",
    "'; DROP TABLE messages; --",
    "{\"json\": \"\\u0000\"} \\ \" ' ` $1 ?",
    "\u{1}\u{7f}\u{85}\u{2028}",
];

pub(super) async fn first_turn_creates_the_conversation(subject: Subject) {
    let talk = Talk::new();
    assert_eq!(
        subject
            .store
            .conversation(&talk.org, &talk.id)
            .await
            .unwrap(),
        None
    );
    let turn = talk.turn(0, "hello");
    subject.begin(&turn, 1).await;

    let conversation = subject.conversation(&talk).await;
    assert_eq!(
        (&conversation.id, &conversation.org_id),
        (&talk.id, &talk.org)
    );
    assert_eq!(
        (&conversation.session_id, &conversation.owner),
        (&turn.turn.session_id, &turn.owner)
    );
    assert_eq!(conversation.message_count, 1);
    assert_eq!(conversation.active_message_id, Some(turn.turn.reply_id()));
    assert_eq!(conversation.last_reply_id, None);
    assert_eq!(
        (conversation.created_at, conversation.updated_at),
        (noon_and(0), noon_and(0))
    );

    let page = subject.page(&talk, 0, 10).await;
    assert_eq!(page.len(), 1);
    assert_eq!((&page[0].id, page[0].position), (&turn.turn.message_id, 0));
    assert_eq!(
        (page[0].content.as_str(), &page[0].author),
        ("hello", &MessageAuthor::User)
    );
}

pub(super) async fn finished_turn_is_counted_and_clears_the_active_reply(subject: Subject) {
    let talk = Talk::new();
    let turn = talk.turn(0, "question");
    subject.begin(&turn, 1).await;
    subject.finish(&turn, 1, replied("answer")).await;

    let conversation = subject.conversation(&talk).await;
    assert_eq!(
        (conversation.message_count, conversation.active_message_id),
        (2, None)
    );
    assert_eq!(
        conversation.last_reply_id,
        Some(turn.turn.reply_id()),
        "nobody loses sight of it"
    );
    assert_eq!(
        (conversation.created_at, conversation.updated_at),
        (noon_and(0), noon_and(1))
    );
    let end = turn.end(1, replied("answer"));
    assert_eq!(subject.page(&talk, 1, 1).await, [end.message.unwrap()]);
    assert_eq!(subject.record(&talk, &turn).await, Some(end.record));
}

pub(super) async fn accepted_reply_is_known_before_its_turn_begins(subject: Subject) {
    let talk = Talk::new();
    let turn = talk.turn(0, "question");
    let reply = turn.turn.reply_id();
    assert_eq!(
        subject.store.known_reply(&talk.org, &reply).await.unwrap(),
        None
    );
    for _ in 0..2 {
        subject
            .store
            .record_acceptance(&accepted(&turn))
            .await
            .unwrap();
    }
    assert_eq!(
        subject.read_known_reply(&talk, &turn).await,
        Some(ReplyState::Accepted(accepted(&turn)))
    );
    assert_eq!(
        subject
            .store
            .known_reply(&Talk::new().org, &reply)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        subject.record(&talk, &turn).await,
        None,
        "it has no final state"
    );
    assert_eq!(
        subject
            .store
            .conversation(&talk.org, &talk.id)
            .await
            .unwrap(),
        None,
        "its turn has not begun"
    );
}

pub(super) async fn acceptance_never_replaces_a_final_state(subject: Subject) {
    let talk = Talk::new();
    let turn = talk.turn(0, "question");
    subject
        .store
        .record_acceptance(&accepted(&turn))
        .await
        .unwrap();
    subject.begin(&turn, 1).await;
    subject.finish(&turn, 1, replied("answer")).await;
    let later = AcceptedReply {
        accepted_at: noon_and(3600),
        ..accepted(&turn)
    };
    subject.store.record_acceptance(&later).await.unwrap();
    let record = turn.end(1, replied("answer")).record;
    assert_eq!(
        subject.read_known_reply(&talk, &turn).await,
        Some(ReplyState::Final(Box::new(record)))
    );
}

fn accepted(turn: &TalkTurn) -> AcceptedReply {
    AcceptedReply {
        org_id: turn.turn.org_id.clone(),
        user_message_id: turn.turn.message_id.clone(),
        owner: turn.owner.clone(),
        accepted_at: turn.turn.accepted_at,
    }
}

pub(super) async fn reply_has_no_record_before_its_turn_ends(subject: Subject) {
    let talk = Talk::new();
    let turn = talk.turn(0, "question");
    assert_eq!(subject.record(&talk, &turn).await, None);
    subject.begin(&turn, 1).await;
    assert_eq!(subject.record(&talk, &turn).await, None);
}

pub(super) async fn repeated_writes_change_nothing(subject: Subject) {
    let talk = Talk::new();
    let turn = talk.turn(0, "question");
    for _ in 0..3 {
        subject.begin(&turn, 1).await;
    }
    assert_eq!(subject.conversation(&talk).await.message_count, 1);
    for _ in 0..3 {
        subject.finish(&turn, 1, replied("answer")).await;
    }
    let finished = subject.conversation(&talk).await;
    subject.begin(&turn, 1).await;
    assert_eq!(subject.conversation(&talk).await, finished);
    assert_eq!(subject.texts(&talk).await, ["question", "answer"]);
}

pub(super) async fn higher_attempt_wins_in_any_order_of_arrival(subject: Subject) {
    for order in permutations(vec![0, 1, 2, 3]) {
        let talk = Talk::new();
        let turn = talk.turn(0, "question");
        for step in &order {
            match step {
                0 => subject.begin(&turn, 1).await,
                1 => subject.begin(&turn, 2).await,
                2 => {
                    subject
                        .finish(&turn, 1, replied("zero of the first attempt"))
                        .await
                }
                _ => {
                    subject
                        .finish(&turn, 2, replied("answer of the second"))
                        .await
                }
            }
        }
        let conversation = subject.conversation(&talk).await;
        assert_eq!(
            (conversation.message_count, conversation.active_message_id),
            (2, None),
            "{order:?}"
        );
        assert_eq!(
            subject.texts(&talk).await,
            ["question", "answer of the second"],
            "{order:?}"
        );
        let record = subject.record(&talk, &turn).await.unwrap();
        assert_eq!(
            record,
            turn.end(2, replied("answer of the second")).record,
            "{order:?}"
        );
    }
}

pub(super) async fn later_turn_wins_despite_a_slow_clock(subject: Subject) {
    let talk = Talk::new();
    let (first, second) = (talk.turn_at(0, "one", 3600), talk.turn_at(2, "three", 0));
    subject.begin(&first, 1).await;
    subject.finish(&first, 1, replied("two")).await;
    subject.begin(&second, 1).await;
    let begun = subject.conversation(&talk).await;
    assert_eq!(
        (begun.message_count, begun.active_message_id),
        (3, Some(second.turn.reply_id()))
    );

    subject.finish(&second, 1, replied("four")).await;
    subject.begin(&first, 2).await;
    subject.finish(&first, 3, replied("two")).await;
    let finished = subject.conversation(&talk).await;
    assert_eq!(
        (finished.message_count, finished.active_message_id),
        (4, None)
    );
    assert_eq!(finished.created_at, noon_and(3600));
    assert_eq!(subject.texts(&talk).await, ["one", "two", "three", "four"]);
}

pub(super) async fn first_settled_end_stays_until_its_deletion(subject: Subject) {
    let talk = Talk::new();
    let turn = talk.turn(0, "question");
    subject.begin(&turn, 1).await;
    let (first, second) = (
        turn.end(1, replied("of the first")),
        turn.end(2, replied("of the second")),
    );
    let other_turn = talk.turn(2, "next").end(1, replied("of another turn"));
    assert_eq!(subject.settle(&first).await, first);
    assert_eq!(subject.settle(&second).await, first);
    assert_eq!(subject.settle(&first).await, first);
    assert_eq!(subject.settle(&other_turn).await, other_turn);
    assert_eq!(
        subject.record(&talk, &turn).await,
        None,
        "settled, but not stored"
    );

    subject.finish(&turn, 1, replied("of the first")).await;
    let deletion = deletion(&talk, "deletion", 9);
    assert!(subject.store.delete_conversation(&deletion).await.unwrap());
    assert_eq!(subject.settle(&second).await, second, "the text is deleted");
}

pub(super) async fn one_of_simultaneous_ends_is_settled(subject: Subject) {
    let talk = Talk::new();
    let turn = talk.turn(0, "question");
    let ends = (1..=8).map(|attempt| turn.end(attempt, replied(&format!("of {attempt}"))));
    let ends: Vec<_> = ends.collect();
    let settled = join_all(ends.iter().map(|end| subject.settle(end))).await;
    assert!(ends.contains(&settled[0]));
    assert!(settled.iter().all(|end| *end == settled[0]), "{settled:?}");
}

pub(super) async fn cancellation_and_end_exclude_each_other(subject: Subject) {
    let talk = Talk::new();
    let (ended, cancelled) = (talk.turn(0, "question"), talk.turn(2, "next"));
    let cancellation = ReplyEnd::cancelled_in_queue(5);
    let cancel = async |turn: &TalkTurn| {
        let reply = turn.turn.reply_id();
        let settled = subject
            .store
            .settle_cancellation(&talk.org, &reply, &cancellation);
        settled.await.unwrap()
    };
    let text = ended.end(1, replied("text"));
    assert_eq!(subject.settle(&text).await, text);
    assert!(!cancel(&ended).await, "the text came first");

    assert!(cancel(&cancelled).await && cancel(&cancelled).await);
    let settled = subject.settle(&cancelled.end(1, replied("text"))).await;
    assert_eq!((settled.message, settled.record.position), (None, None));
    assert_eq!(settled.record.end, cancellation);
    assert_eq!(settled.record.user_position, 2);
}

pub(super) async fn message_wins_over_the_reply_of_a_lost_attempt(subject: Subject) {
    let talk = Talk::new();
    let (first, second) = (talk.turn_at(0, "one", 3600), talk.turn_at(1, "two", 0));
    let writes: [(&TalkTurn, u32, Option<Outcome>); 5] = [
        (&first, 1, None),
        (&first, 1, Some(replied("of an attempt that lost"))),
        (&first, 2, Some(failed())),
        (&second, 1, None),
        (&first, 1, Some(replied("of an attempt that lost"))),
    ];
    for (turn, attempt, outcome) in writes {
        match outcome {
            Some(outcome) => subject.finish(turn, attempt, outcome).await,
            None => subject.begin(turn, attempt).await,
        }
    }
    assert_eq!(subject.texts(&talk).await, ["one", "two"]);
}

pub(super) async fn failed_reply_leaves_no_gap(subject: Subject) {
    let talk = Talk::new();
    let (first, second) = (talk.turn(0, "one"), talk.turn(1, "two"));
    subject.begin(&first, 1).await;
    subject.finish(&first, 1, failed()).await;
    let failed = subject.conversation(&talk).await;
    assert_eq!((failed.message_count, failed.active_message_id), (1, None));
    let record = subject.record(&talk, &first).await.unwrap();
    assert_eq!((record.position, record.message_count()), (None, 1));

    subject.begin(&second, 1).await;
    subject.finish(&second, 1, replied("three")).await;
    let positions: Vec<u64> = subject
        .page(&talk, 0, 10)
        .await
        .iter()
        .map(|message| message.position)
        .collect();
    assert_eq!(positions, [0, 1, 2]);
}

pub(super) async fn read_sees_all_completed_writes(subject: Subject) {
    let talk = Talk::new();
    let mut times = [vec![], vec![], vec![]];
    for position in (0..200).step_by(2) {
        let turn = talk.turn(position, "question");
        let begun = Instant::now();
        subject.begin(&turn, 1).await;
        times[0].push(begun.elapsed());
        let begun = Instant::now();
        assert_eq!(subject.page(&talk, position, 10).await.len(), 1);
        times[1].push(begun.elapsed());
        let begun = Instant::now();
        subject.finish(&turn, 1, replied("answer")).await;
        times[2].push(begun.elapsed());
        assert_eq!(
            subject.conversation(&talk).await.message_count,
            position + 2
        );
        assert_eq!(subject.page(&talk, position, 10).await.len(), 2);
        assert!(subject.record(&talk, &turn).await.is_some());
    }
    for (name, mut times) in ["begin_turn", "messages", "finish_turn"]
        .into_iter()
        .zip(times)
    {
        times.sort();
        println!("p50 of {name}: {:?}", times[times.len() / 2]);
    }
}

pub(super) async fn conversation_is_invisible_to_another_organization(subject: Subject) {
    let (talk, other) = (Talk::new(), Talk::new());
    let turn = talk.turn(0, "question");
    subject.begin(&turn, 1).await;
    subject.finish(&turn, 1, replied("answer")).await;
    let before = subject.conversation(&talk).await;

    let store = &subject.store;
    assert_eq!(
        store.conversation(&other.org, &talk.id).await.unwrap(),
        None
    );
    assert_eq!(
        store.messages(&other.org, &talk.id, 0, 10).await.unwrap(),
        []
    );
    assert_eq!(
        store
            .final_record(&other.org, &turn.turn.reply_id())
            .await
            .unwrap(),
        None
    );
    let changes = super::object(serde_json::json!({"rating": 1}));
    assert!(
        !store
            .update_metadata(&other.org, &talk.id, &changes, noon_and(9))
            .await
            .unwrap()
    );
    assert_eq!(subject.conversation(&talk).await, before);
}

pub(super) async fn text_is_stored_byte_for_byte(subject: Subject) {
    for text in TEXTS
        .map(str::to_owned)
        .into_iter()
        .chain(["\0é".repeat(30_000)])
    {
        let talk = Talk::with_session("s'; -- \u{202e}🦀");
        let mut turn = talk.turn(0, &text);
        turn.turn.metadata = super::object(
            serde_json::json!({ format!("k{text}"): text, "list": [text, 1.5, true] }),
        );
        subject.begin(&turn, 1).await;
        subject.finish(&turn, 1, replied(&text)).await;
        assert_eq!(subject.texts(&talk).await, [text.as_str(), text.as_str()]);
        let conversation = subject.conversation(&talk).await;
        assert_eq!(conversation.session_id, turn.turn.session_id);
        for (key, value) in &turn.turn.metadata {
            assert_eq!(conversation.metadata.get(key), Some(value));
        }
    }
}

pub(super) async fn conversation_store_check_succeeds(subject: Subject) {
    subject.store.check().await.unwrap();
}

fn permutations(steps: Vec<u32>) -> Vec<Vec<u32>> {
    if steps.len() < 2 {
        return vec![steps];
    }
    let mut all = Vec::new();
    for index in 0..steps.len() {
        let mut rest = steps.clone();
        let first = rest.remove(index);
        all.extend(
            permutations(rest)
                .into_iter()
                .map(|rest| [vec![first], rest].concat()),
        );
    }
    all
}
