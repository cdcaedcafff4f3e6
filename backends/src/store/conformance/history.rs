//! Conformance tests of message pages: their cost, their contents and concurrent writes.

use std::{sync::Arc, time::Instant};

use futures::{StreamExt, stream};

use super::{Subject, Talk, failed, replied};
use crate::store::{TurnOpening, deletion::HistoryState};

/// Number of messages of a long conversation, six buckets of the Scylla backend.
const LONG_MESSAGES: u64 = 3_000;
const WRITES_AT_ONCE: usize = 64;
const PAGE: u32 = 50;
/// Largest difference in work between two pages that counts as independent of the offset.
const WORK_TOLERANCE: u64 = 2;

pub(super) async fn page_costs_the_same_at_any_offset(subject: Subject) {
    let talk = write_conversation(&subject, LONG_MESSAGES).await;
    let mut costs = Vec::new();
    for from in [0, 500, 1500, LONG_MESSAGES - u64::from(PAGE)] {
        let before = (subject.work)();
        let begun = Instant::now();
        let page = subject.page(&talk, from, PAGE).await;
        println!("page of {PAGE} from {from}: {:?}", begun.elapsed());
        assert_eq!((page.len(), page[0].position), (PAGE as usize, from));
        costs.push((subject.work)() - before);
    }
    println!("work of each page: {costs:?}");
    assert!(costs[0] > 0);
    let (least, most) = (costs.iter().min().unwrap(), costs.iter().max().unwrap());
    assert!(most - least <= WORK_TOLERANCE, "{costs:?}");
}

pub(super) async fn pages_join_to_the_complete_history(subject: Subject) {
    let messages = 1002;
    let talk = write_conversation(&subject, messages).await;
    for limit in [7, 100, 499, 500, 501, 1002, u32::MAX] {
        let mut next = 0;
        loop {
            let page = subject.page(&talk, next, limit).await;
            assert!(page.len() as u64 <= u64::from(limit));
            if page.is_empty() {
                break;
            }
            for message in page {
                assert_eq!(message.position, next);
                assert_eq!(message.content, format!("message {next}"));
                next += 1;
            }
        }
        assert_eq!(next, messages);
    }
    for (from, limit) in [
        (0, 0),
        (messages, 10),
        (messages + 1000, 10),
        (u64::MAX, u32::MAX),
    ] {
        assert_eq!(subject.page(&talk, from, limit).await, []);
    }
}

pub(super) async fn page_contains_only_counted_messages(subject: Subject) {
    let talk = Talk::new();
    let turn = talk.turn(0, "question");
    subject.begin(&turn, 1).await;
    subject
        .finish(&turn, 1, replied("of an attempt that lost"))
        .await;
    subject.finish(&turn, 2, failed()).await;
    assert_eq!(subject.texts(&talk).await, ["question"]);
    assert_eq!(subject.page(&talk, 1, 10).await, []);
}

pub(super) async fn opening_of_a_turn_is_what_its_parts_are(subject: Subject) {
    let talk = write_conversation(&subject, 6).await;
    let (first, next) = (talk.turn(0, "message 0"), talk.turn(6, "message 6"));
    let (stored, strange) = (first.turn.reply_id(), next.turn.reply_id());
    for (reply, messages_max) in [(&stored, 2), (&strange, 4), (&strange, 100)] {
        let opening = subject
            .store
            .turn_opening(&talk.org, reply, messages_max)
            .await
            .unwrap();
        let known = subject.store.known_reply(&talk.org, reply).await.unwrap();
        assert_eq!(opening.reply, known);
        assert_eq!(opening.history.message_count, 6);
        let from = 6_u64.saturating_sub(messages_max.into());
        assert_eq!(
            opening.messages,
            subject.page(&talk, from, messages_max).await
        );
    }
    let unknown = Talk::new().turn(0, "hello").turn.reply_id();
    let opening = subject.store.turn_opening(&talk.org, &unknown, 100).await;
    let nothing = TurnOpening {
        reply: None,
        history: HistoryState::default(),
        messages: Vec::new(),
    };
    assert_eq!(opening.unwrap(), nothing);
}

pub(super) async fn concurrent_reader_never_misses_a_counted_message(subject: Subject) {
    let talk = Talk::new();
    subject.begin(&talk.turn(0, "message 0"), 1).await;
    let turns = 40;
    let write = async {
        for position in (0..turns * 2).step_by(2) {
            let turn = talk.turn(position, &format!("message {position}"));
            subject.begin(&turn, 1).await;
            subject
                .finish(&turn, 1, replied(&format!("message {}", position + 1)))
                .await;
        }
    };
    let read = async {
        let mut seen = 0;
        while seen < turns * 2 {
            let counted = subject.conversation(&talk).await.message_count;
            let page = subject.page(&talk, 0, 100).await;
            assert!(page.len() as u64 >= counted && counted >= seen);
            assert!(
                page.iter()
                    .zip(0..)
                    .all(|(message, position)| message.position == position)
            );
            seen = counted;
        }
    };
    futures::future::join(write, read).await;
}

/// Stores a conversation whose turns are written in any order, which must not matter.
async fn write_conversation(subject: &Subject, messages: u64) -> Talk {
    let talk = Talk::new();
    let store = Arc::clone(&subject.store);
    stream::iter((0..messages).step_by(2))
        .for_each_concurrent(WRITES_AT_ONCE, |position| {
            let turn = talk.turn(position, &format!("message {position}"));
            let store = Arc::clone(&store);
            async move {
                store.begin_turn(&turn.start(1)).await.unwrap();
                store
                    .finish_turn(&turn.end(1, replied(&format!("message {}", position + 1))))
                    .await
                    .unwrap();
            }
        })
        .await;
    assert_eq!(subject.conversation(&talk).await.message_count, messages);
    talk
}
