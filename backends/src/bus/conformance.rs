//! Conformance tests of the bus, run on both backends, each on a fresh bus with four partitions.

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt;
use switchboard_schemas::{time::Timestamp, topics::Topic};
use tokio::time::{Instant, timeout};

use self::support::{
    FinishingConsumer, OwningConsumer, join, next, place, publish_owned, run_until, text,
};
pub(super) use self::support::{publish, records, texts};
use super::{BusEvent, CommitMark, IncomingRecord, MessageBus, OutgoingRecord, PartitionId};

/// Partitions of the busy topics of every bus under test.
pub(super) const PARTITIONS: u32 = 4;
const DEADLINE: Duration = Duration::from_secs(30);
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
const GROUP: &str = "workers";

/// Creates one test for each conformance function. `$open` is an async function that returns a
/// fresh bus and a guard that must outlive it.
macro_rules! bus_conformance {
    ($open:path) => {
        $crate::bus::conformance::bus_conformance! { $open:
            records_of_a_key_arrive_in_order_of_acknowledgement
            uncommitted_record_is_redelivered_after_a_dropped_consumer
            committed_mark_is_returned_at_the_next_assignment
            group_members_share_partitions_and_replace_a_leaver
            mark_of_a_revoked_partition_is_dropped
            recorded_marks_are_committed_before_a_revocation
            rebalances_lose_no_record_and_no_mark
            paused_partition_delivers_nothing_until_resumed
            unpolled_consumer_keeps_its_partitions_and_records
            each_group_receives_all_records
            record_arrives_byte_for_byte
            records_before_the_assignment_may_be_repeated
            dropped_publish_future_does_not_withdraw_the_record
            dropped_next_future_loses_no_event
            lag_counts_undelivered_records
            second_migration_changes_nothing
            bus_check_succeeds
        }
    };
    ($open:path: $($sentence:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $sentence() {
                let (bus, _outlives) = $open().await;
                $crate::bus::conformance::$sentence(&bus).await;
            }
        )*
    };
}
pub(super) use bus_conformance;

pub(super) async fn records_of_a_key_arrive_in_order_of_acknowledgement(bus: &impl MessageBus) {
    for number in 0..60 {
        publish(bus, &format!("key {}", number % 5), &number.to_string()).await;
    }
    let mut consumer = join(bus, GROUP).await;
    let mut by_key: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for record in records(&mut *consumer, 60).await {
        by_key
            .entry(record.key.clone())
            .or_default()
            .push(text(&record).parse().unwrap());
    }
    assert_eq!(by_key.len(), 5);
    assert!(
        by_key
            .values()
            .all(|numbers| numbers.len() == 12 && numbers.is_sorted())
    );
}

pub(super) async fn uncommitted_record_is_redelivered_after_a_dropped_consumer(
    bus: &impl MessageBus,
) {
    for number in 0..3 {
        publish(bus, "key", &number.to_string()).await;
    }
    let mut first = join(bus, GROUP).await;
    let seen = texts(&records(&mut *first, 3).await);
    drop(first);
    let mut second = join(bus, GROUP).await;
    assert_eq!(texts(&records(&mut *second, 3).await), seen);
}

pub(super) async fn committed_mark_is_returned_at_the_next_assignment(bus: &impl MessageBus) {
    for number in 0..3 {
        publish(bus, "key", &number.to_string()).await;
    }
    let mut first = join(bus, GROUP).await;
    let seen = records(&mut *first, 3).await;
    // As long as the mark of a full window.
    let mark = CommitMark {
        next_offset: seen[1].offset,
        finished: format!("v1:{}", "B".repeat(2731)),
    };
    first.commit(seen[0].partition, mark.clone());
    first.close().await.unwrap();

    let mut second = join(bus, GROUP).await;
    let mut committed = None;
    let record = loop {
        match next(&mut *second).await {
            BusEvent::Assigned {
                partition,
                committed: mark,
                ..
            } if partition == seen[0].partition => committed = mark,
            BusEvent::Record(record) => break record,
            _ => {}
        }
    };
    assert_eq!(committed, Some(mark));
    assert_eq!(record.offset, seen[1].offset);
}

pub(super) async fn group_members_share_partitions_and_replace_a_leaver(bus: &impl MessageBus) {
    let (mut one, mut two) = (
        OwningConsumer::join(bus).await,
        OwningConsumer::join(bus).await,
    );
    run_until(&mut one, &mut two, |one, two| {
        one.owned.len() == 2 && two.owned.len() == 2
    })
    .await;
    assert!(one.partitions().is_disjoint(&two.partitions()));

    let before = two.owned.clone();
    one.consumer.close().await.unwrap();
    while two.owned.len() < 4 {
        two.step().await;
    }
    assert!(
        before
            .iter()
            .all(|(partition, epoch)| two.owned[partition] == *epoch),
        "what stayed was not touched"
    );
    let newest = before.values().max().unwrap();
    let taken_over = two
        .owned
        .iter()
        .filter(|(partition, _)| !before.contains_key(partition));
    assert!(
        taken_over.into_iter().all(|(_, epoch)| epoch > newest),
        "epochs rise"
    );
}

pub(super) async fn mark_of_a_revoked_partition_is_dropped(bus: &impl MessageBus) {
    let mut one = OwningConsumer::join(bus).await;
    while one.owned.len() < 4 {
        one.step().await;
    }
    let mut two = OwningConsumer::join(bus).await;
    run_until(&mut one, &mut two, |one, two| {
        one.owned.len() == 2 && two.owned.len() == 2
    })
    .await;
    for lost in two.partitions() {
        one.consumer.commit(
            lost,
            CommitMark {
                next_offset: 1000,
                finished: String::new(),
            },
        );
    }
    one.consumer.close().await.unwrap();
    two.consumer.close().await.unwrap();

    let mut three = join(bus, GROUP).await;
    for _ in 0..4 {
        let event = next(&mut *three).await;
        assert!(
            matches!(
                event,
                BusEvent::Assigned {
                    committed: None,
                    ..
                }
            ),
            "{event:?}"
        );
    }
}

pub(super) async fn recorded_marks_are_committed_before_a_revocation(bus: &impl MessageBus) {
    let mut one = OwningConsumer::join(bus).await;
    while one.owned.len() < 4 {
        one.step().await;
    }
    let mark = |given: u64| CommitMark {
        next_offset: given,
        finished: "v1:C".to_owned(),
    };
    let give = |owner: &mut OwningConsumer, given: u64| {
        owner
            .partitions()
            .into_iter()
            .for_each(|partition| owner.consumer.commit(partition, mark(given)));
    };
    give(&mut one, 1);
    let mut two = join(bus, GROUP).await;
    // Records marks continuously, so that some are newer than the last regular commit.
    let (mut given, mut taken_over) = (1, 0);
    while taken_over < 2 {
        given += 1;
        give(&mut one, given);
        tokio::select! {
            () = one.step() => {}
            event = next(&mut *two) => {
                let BusEvent::Assigned { committed, .. } = event else { continue };
                assert!(committed.is_some_and(|mark| mark.finished == "v1:C"));
                taken_over += 1;
            }
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
}

pub(super) async fn rebalances_lose_no_record_and_no_mark(bus: &impl MessageBus) {
    const ROUNDS: u32 = 6;
    const RECORDS: u32 = 50;
    let (mut workers, mut finished) = (vec![FinishingConsumer::join(bus).await], BTreeSet::new());
    for round in 0..ROUNDS {
        for number in 0..RECORDS {
            publish(
                bus,
                &format!("key {number}"),
                &(round * RECORDS + number).to_string(),
            )
            .await;
        }
        // One member joins; then a member that has just joined leaves, by closing or by being
        // dropped.
        match round % 3 {
            0 => workers.push(FinishingConsumer::join(bus).await),
            1 => workers.remove(0).consumer.close().await.unwrap(),
            _ => drop(workers.splice(0..1, [FinishingConsumer::join(bus).await])),
        }
        while finished.len() < ((round + 1) * RECORDS) as usize {
            let steps = workers.iter_mut().map(|worker| worker.step().boxed());
            finished.extend(futures::future::select_all(steps).await.0);
        }
    }
    for worker in workers {
        worker.consumer.close().await.unwrap();
    }
    let (mut last, mut marked) = (join(bus, GROUP).await, 0);
    for _ in 0..PARTITIONS {
        let BusEvent::Assigned { committed, .. } = next(&mut *last).await else {
            panic!("nothing is left to run")
        };
        marked += committed.map_or(0, |mark| mark.next_offset);
    }
    assert_eq!(marked, u64::from(ROUNDS * RECORDS));
}

pub(super) async fn paused_partition_delivers_nothing_until_resumed(bus: &impl MessageBus) {
    let mut consumer = join(bus, GROUP).await;
    publish(bus, "quiet", "0").await;
    let quiet = records(&mut *consumer, 1).await[0].partition;
    let loud_key = (0..)
        .map(|number| format!("loud {number}"))
        .find(|key| place(key) != quiet.number)
        .unwrap();
    consumer.pause(quiet);

    // Records in flight at the time of the pause may still arrive, so ten silent polls in a row are
    // required.
    let (mut published, mut delivered, mut silent) = (0, 0, 0);
    let deadline = Instant::now() + DEADLINE;
    while silent < 10 {
        assert!(Instant::now() < deadline, "the partition was never silent");
        published += 1;
        publish(bus, "quiet", &published.to_string()).await;
        publish(bus, &loud_key, "loud").await;
        silent += 1;
        while let record = records(&mut *consumer, 1).await.remove(0)
            && record.partition == quiet
        {
            (delivered, silent) = (delivered + 1, 0);
        }
    }
    consumer.resume(quiet);
    let rest: Vec<String> = (delivered + 1..=published)
        .map(|number| number.to_string())
        .collect();
    assert_eq!(texts(&records(&mut *consumer, rest.len()).await), rest);
}

pub(super) async fn unpolled_consumer_keeps_its_partitions_and_records(bus: &impl MessageBus) {
    const RECORDS: u32 = 3000;
    let mut idle = OwningConsumer::join(bus).await;
    while idle.owned.len() < 4 {
        idle.step().await;
    }
    let publishes = (0..RECORDS)
        .map(|number| publish_owned(bus, format!("key {}", number % 40), number.to_string()));
    futures::future::join_all(publishes).await;
    // If the idle consumer had left, the other one would own all four partitions.
    let mut other = OwningConsumer::join(bus).await;
    while other.owned.len() < 2 {
        other.step().await;
    }
    // Polled again, the idle consumer learns of its lost partitions and gets the rest without a
    // gap.
    while idle.records.len() + other.records.len() < RECORDS as usize {
        tokio::select! { () = idle.step() => {}, () = other.step() => {} }
    }
    assert_eq!((idle.owned.len(), other.owned.len()), (2, 2));
    let numbers: BTreeSet<u32> = idle
        .records
        .iter()
        .chain(&other.records)
        .map(|record| text(record).parse().unwrap())
        .collect();
    assert_eq!(numbers.len(), RECORDS as usize);
    for owner in [&idle, &other] {
        assert!(
            owner
                .records
                .iter()
                .all(|record| owner.owned.contains_key(&record.partition))
        );
        let mut next_offsets: BTreeMap<PartitionId, u64> = BTreeMap::new();
        for record in &owner.records {
            assert_eq!(
                std::mem::replace(
                    next_offsets.entry(record.partition).or_default(),
                    record.offset + 1
                ),
                record.offset
            );
        }
    }
}

pub(super) async fn each_group_receives_all_records(bus: &impl MessageBus) {
    let (mut one, mut two) = (join(bus, "one").await, join(bus, "two").await);
    for number in 0..20 {
        publish(bus, &format!("key {number}"), &number.to_string()).await;
    }
    let sorted = |records: &[IncomingRecord]| texts(records).into_iter().collect::<BTreeSet<_>>();
    let (first, second) = (records(&mut *one, 20).await, records(&mut *two, 20).await);
    assert_eq!(sorted(&first).len(), 20);
    assert_eq!(sorted(&first), sorted(&second));
}

pub(super) async fn record_arrives_byte_for_byte(bus: &impl MessageBus) {
    let sent = OutgoingRecord {
        topic: Topic::Jobs,
        key: "ключ 🔑".to_owned(),
        payload: Bytes::from_iter(0..=u8::MAX),
        headers: vec![
            ("traceparent".to_owned(), "00-ab".to_owned()),
            ("empty".to_owned(), String::new()),
        ],
    };
    let before = Timestamp::now();
    bus.publish(sent.clone(), PUBLISH_TIMEOUT).await.unwrap();
    let mut consumer = join(bus, GROUP).await;
    let got = records(&mut *consumer, 1).await.remove(0);
    assert_eq!(
        (got.key, got.payload, got.headers),
        (sent.key, sent.payload, sent.headers)
    );
    // Kafka stores milliseconds.
    assert!(
        (before.micros() - 1000..=Timestamp::now().micros()).contains(&got.published_at.micros())
    );
}

pub(super) async fn records_before_the_assignment_may_be_repeated(bus: &impl MessageBus) {
    publish(bus, "key", "old").await;
    let mut consumer = join(bus, GROUP).await;
    let old = records(&mut *consumer, 1).await;
    publish(bus, "key", "new").await;
    let new = records(&mut *consumer, 1).await;
    assert!(old[0].maybe_repeated && !new[0].maybe_repeated);
}

pub(super) async fn dropped_publish_future_does_not_withdraw_the_record(bus: &impl MessageBus) {
    let mut consumer = join(bus, GROUP).await;
    _ = publish_owned(bus, "key".to_owned(), "dropped".to_owned()).now_or_never();
    assert_eq!(texts(&records(&mut *consumer, 1).await), ["dropped"]);
}

pub(super) async fn dropped_next_future_loses_no_event(bus: &impl MessageBus) {
    for number in 0..50 {
        publish(bus, "key", &number.to_string()).await;
    }
    let mut consumer = join(bus, GROUP).await;
    let (mut seen, deadline) = (Vec::new(), Instant::now() + DEADLINE);
    while seen.len() < 50 {
        assert!(Instant::now() < deadline, "only {} came", seen.len());
        if let Ok(event) = timeout(Duration::from_micros(200), consumer.next()).await
            && let BusEvent::Record(record) = event.unwrap()
        {
            seen.push(record.offset);
        }
    }
    assert!(seen.is_sorted() && seen[49] - seen[0] == 49);
}

pub(super) async fn lag_counts_undelivered_records(bus: &impl MessageBus) {
    for number in 0..5 {
        publish(bus, "key", &number.to_string()).await;
    }
    let mut consumer = join(bus, GROUP).await;
    let seen = records(&mut *consumer, 5).await;
    let partition = seen[0].partition;
    for (done, behind) in [(2, 3), (5, 0)] {
        consumer.commit(
            partition,
            CommitMark {
                next_offset: seen[0].offset + done,
                finished: String::new(),
            },
        );
        let deadline = Instant::now() + DEADLINE;
        while consumer
            .lag()
            .iter()
            .find(|(id, _)| *id == partition)
            .map(|(_, lag)| *lag)
            != Some(behind)
        {
            assert!(
                Instant::now() < deadline,
                "lag is {:?}, not {behind}",
                consumer.lag()
            );
            drop(timeout(Duration::from_millis(50), consumer.next()).await);
        }
    }
}

pub(super) async fn second_migration_changes_nothing(bus: &impl MessageBus) {
    publish(bus, "key", "kept").await;
    bus.migrate().await.unwrap();
    let mut consumer = join(bus, GROUP).await;
    assert_eq!(texts(&records(&mut *consumer, 1).await), ["kept"]);
}

pub(super) async fn bus_check_succeeds(bus: &impl MessageBus) {
    bus.check().await.unwrap();
}
