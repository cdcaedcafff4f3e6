//! Tests of the embedded bus: the conformance suite, and durability, expiry and compaction of its
//! file.

use std::{
    future::{Ready, ready},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use futures::{FutureExt, future::join_all};
use switchboard_schemas::{ids::OrgId, secret::InstallationSecret, time::Timestamp, topics::Topic};
use tempfile::TempDir;

use super::{EmbeddedBus, file};
use crate::bus::{
    BusEvent, CommitMark, MessageBus, OutgoingRecord, PartitionId,
    conformance::{PARTITIONS, bus_conformance, publish, records, texts},
};

/// Returns a fresh bus, as a future because the conformance suite expects one.
fn fresh() -> Ready<(EmbeddedBus, TempDir)> {
    let directory = tempfile::tempdir().unwrap();
    ready((open(directory.path()), directory))
}

fn open(directory: &Path) -> EmbeddedBus {
    EmbeddedBus::open(&directory.join("bus.sqlite"), PARTITIONS).unwrap()
}

bus_conformance!(fresh);

#[tokio::test]
async fn records_and_marks_survive_reopening_the_file() {
    let (bus, directory) = fresh().await;
    for number in 0..3 {
        publish(&bus, "key", &number.to_string()).await;
    }
    let mut consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let seen = records(&mut *consumer, 3).await;
    consumer.commit(
        seen[0].partition,
        CommitMark {
            next_offset: seen[1].offset,
            finished: "v1:E".to_owned(),
        },
    );
    consumer.close().await.unwrap();
    drop(bus);

    // Another number of partitions would move keys, so the file keeps its number.
    let bus = EmbeddedBus::open(&directory.path().join("bus.sqlite"), PARTITIONS * 3).unwrap();
    publish(&bus, "key", "3").await;
    let mut consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let again = records(&mut *consumer, 3).await;
    assert_eq!(texts(&again), ["1", "2", "3"]);
    assert!(
        again
            .iter()
            .all(|record| record.partition == seen[0].partition)
    );
}

/// The test runs itself as another process, which aborts as soon as its publish is acknowledged.
#[tokio::test]
async fn acknowledged_record_survives_a_crash_of_its_process() {
    const DIRECTORY: &str = "SWITCHBOARD_TEST_DYING_BUS";
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        publish(&open(Path::new(&directory)), "key", "last words").await;
        std::process::abort();
    }
    let directory = tempfile::tempdir().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "bus::embedded::tests::acknowledged_record_survives_a_crash_of_its_process",
        ])
        .env(DIRECTORY, directory.path())
        .output()
        .unwrap();
    assert!(!child.status.success());
    let bus = open(directory.path());
    let mut consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    assert_eq!(texts(&records(&mut *consumer, 1).await), ["last words"]);
}

#[tokio::test]
async fn slow_consumer_reads_from_the_file() {
    let (bus, _directory) = fresh().await;
    let publishes = (0..1000).map(|number| {
        let bus = &bus;
        async move { publish(bus, "key", &number.to_string()).await }
    });
    futures::future::join_all(publishes).await;
    let mut consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let offsets: Vec<u64> = records(&mut *consumer, 1000)
        .await
        .iter()
        .map(|record| record.offset)
        .collect();
    assert_eq!(offsets, (0..1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn expired_records_are_deleted_and_offsets_not_reused() {
    let (bus, directory) = fresh().await;
    for number in 0..3 {
        publish(&bus, "key", &number.to_string()).await;
    }
    let mut consumer = bus.consume("one", &[Topic::Jobs]).await.unwrap();
    let partition = records(&mut *consumer, 1).await[0].partition;
    drop((consumer, bus));

    let mut connection = file::open(&directory.path().join("bus.sqlite")).unwrap();
    let day = Timestamp::from_micros(Timestamp::now().micros() + 23 * 3_600_000_000);
    assert_eq!(
        file::expire_step(&mut connection, partition, 3, day).unwrap(),
        0
    );
    assert_eq!(
        file::read(&connection, partition, 0, 9, 9).unwrap().len(),
        3
    );
    let later = Timestamp::from_micros(Timestamp::now().micros() + 25 * 3_600_000_000);
    assert_eq!(
        file::expire_step(&mut connection, partition, 3, later).unwrap(),
        3
    );
    assert_eq!(
        file::read(&connection, partition, 0, 9, 9).unwrap().len(),
        0
    );
    drop(connection);

    let bus = open(directory.path());
    publish(&bus, "key", "new").await;
    let mut consumer = bus.consume("two", &[Topic::Jobs]).await.unwrap();
    let record = records(&mut *consumer, 1).await.remove(0);
    assert_eq!(
        (record.offset, texts(&[record])),
        (3, vec!["new".to_owned()])
    );
}

#[tokio::test]
async fn compaction_keeps_the_last_record_of_each_key() {
    let (bus, directory) = fresh().await;
    for (key, payload) in [("a", "1"), ("b", "2"), ("a", "3"), ("b", "4"), ("c", "5")] {
        let record = OutgoingRecord {
            topic: Topic::Control,
            key: key.to_owned(),
            payload: payload.into(),
            headers: Vec::new(),
        };
        bus.publish(record, Duration::from_secs(5)).await.unwrap();
    }
    drop(bus);
    let connection = file::open(&directory.path().join("bus.sqlite")).unwrap();
    file::compact(
        &connection,
        PartitionId {
            topic: Topic::Control,
            number: 0,
        },
    )
    .unwrap();
    drop(connection);

    let bus = open(directory.path());
    let mut consumer = bus.consume("reader", &[Topic::Control]).await.unwrap();
    assert_eq!(texts(&records(&mut *consumer, 3).await), ["3", "4", "5"]);
}

/// Another connection locks the file, as a backup might, and more publishes wait than the queue
/// holds.
#[tokio::test]
async fn publishes_fail_while_the_file_is_not_writable() {
    const WAITING: usize = 6000;
    let (bus, directory) = fresh().await;
    let blocker = file::open(&directory.path().join("bus.sqlite")).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let record = || OutgoingRecord {
        topic: Topic::Jobs,
        key: "key".to_owned(),
        payload: "x".into(),
        headers: Vec::new(),
    };
    let begun = Instant::now();
    let publishes = (0..WAITING).map(|_| bus.publish(record(), Duration::from_millis(300)));
    let results = futures::future::join_all(publishes).await;
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
    let reasons: Vec<String> = results
        .into_iter()
        .map(|result| result.unwrap_err().to_string())
        .collect();
    assert!(
        reasons
            .iter()
            .all(|reason| reason.starts_with("bus unavailable"))
    );
    assert!(
        reasons.iter().any(|reason| reason.contains("behind")),
        "the queue has no bound"
    );

    blocker.execute_batch("ROLLBACK").unwrap();
    while let Err(error) = bus.publish(record(), Duration::from_secs(1)).await {
        assert!(begun.elapsed() < Duration::from_secs(30), "{error}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn mailbox_of_an_unpolled_member_is_bounded() {
    let (bus, _directory) = fresh().await;
    let mut idle = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    for _ in 0..50 {
        drop(bus.consume("workers", &[Topic::Jobs]).await.unwrap());
    }
    let mut owned = 0;
    for _ in 0..PARTITIONS {
        owned += i32::from(matches!(
            idle.next().await.unwrap(),
            BusEvent::Assigned { .. }
        ));
    }
    assert_eq!(owned, 4);
    assert!(
        idle.next().now_or_never().is_none(),
        "more events are waiting"
    );
}

#[tokio::test]
async fn erased_records_are_in_no_file_and_unfinished_jobs_stay() {
    let (bus, directory) = fresh().await;
    let erased = "conversation";
    for text in ["zebra 1", "zebra 2", "waits"] {
        publish(&bus, erased, text).await;
    }
    let event = OutgoingRecord {
        topic: Topic::Messages,
        key: erased.to_owned(),
        payload: "zebra event".into(),
        headers: Vec::new(),
    };
    let hint = OutgoingRecord {
        topic: Topic::JobsRetry,
        key: format!("{erased}/2"),
        payload: "zebra hint".into(),
        headers: Vec::new(),
    };
    for record in [event, hint] {
        bus.publish(record, Duration::from_secs(10)).await.unwrap();
    }
    publish(&bus, "other", "stays").await;
    let mut consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let seen = records(&mut *consumer, 4).await;
    let jobs: Vec<_> = seen.iter().filter(|record| record.key == erased).collect();
    let mark = CommitMark {
        next_offset: jobs[1].offset + 1,
        finished: String::new(),
    };
    consumer.commit(jobs[0].partition, mark);
    bus.erase_records(erased).await.unwrap();
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert!(
            !bytes.windows(5).any(|part| part == b"zebra"),
            "{}",
            path.display()
        );
    }
    consumer.close().await.unwrap();
    drop(bus);

    let bus = open(directory.path());
    let mut late = bus.consume("late", &[Topic::Jobs]).await.unwrap();
    let mut left = texts(&records(&mut *late, 2).await);
    left.sort();
    assert_eq!(left, ["stays", "waits"]);
}

#[tokio::test]
async fn offsets_of_erased_records_are_not_reused() {
    let (bus, directory) = fresh().await;
    publish(&bus, "key", "gone").await;
    let mut consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let gone = records(&mut *consumer, 1).await.remove(0);
    let mark = CommitMark {
        next_offset: gone.offset + 1,
        finished: String::new(),
    };
    consumer.commit(gone.partition, mark);
    bus.erase_records("key").await.unwrap();
    drop((bus, consumer));
    let bus = open(directory.path());
    publish(&bus, "key", "next").await;
    let mut consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let next = records(&mut *consumer, 1).await.remove(0);
    assert_eq!(
        (next.offset, &next.payload[..]),
        (gone.offset + 1, &b"next"[..])
    );
}

#[tokio::test]
async fn erased_organization_leaves_no_waiting_job() {
    let (bus, directory) = fresh().await;
    let secret = InstallationSecret::from_bytes([7; 32]);
    let (gone, other) = (
        OrgId::derive(&secret, "gone"),
        OrgId::derive(&secret, "other"),
    );
    for number in 0..600 {
        let org = if number % 2 == 0 { &gone } else { &other };
        publish(&bus, &number.to_string(), &format!("{number} of {org}")).await;
    }
    let mut consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    records(&mut *consumer, 10).await;
    bus.erase_organization(&gone).await.unwrap();
    let file = std::fs::read(directory.path().join("bus.sqlite")).unwrap();
    let id = gone.as_str().as_bytes();
    assert!(!file.windows(id.len()).any(|part| part == id));
    let mut late = bus.consume("late", &[Topic::Jobs]).await.unwrap();
    let left = texts(&records(&mut *late, 300).await);
    assert!(left.iter().all(|text| text.contains(other.as_str())));
}

/// Publishing once waited for each erasure, which reads the whole file.
#[tokio::test(flavor = "multi_thread")]
async fn erasures_share_a_look_and_publishing_does_not_wait_for_it() {
    let (bus, _directory) = fresh().await;
    let text = "x".repeat(8_000);
    for _ in 0..4 {
        join_all((0..500).map(|_| publish(&bus, "busy", &text))).await;
    }
    let began = Instant::now();
    bus.erase_records("0").await.unwrap();
    let one = began.elapsed();
    let began = Instant::now();
    let many: Vec<_> = (0..100).map(|key| key.to_string()).collect();
    let many = join_all(many.iter().map(|key| bus.erase_records(key)));
    let (mut many, mut slowest) = (std::pin::pin!(many), Duration::ZERO);
    let erased = loop {
        let publishing = Instant::now();
        tokio::select! {
            biased;
            erased = &mut many => break erased,
            () = publish(&bus, "quick", "text") => slowest = slowest.max(publishing.elapsed()),
        }
    };
    assert!(erased.into_iter().all(|erased| erased.is_ok()));
    let all = began.elapsed();
    assert!(all < 20 * one, "{all:?} for a hundred, {one:?} for one");
    assert!(slowest < one, "{slowest:?} for a publish, {one:?} for one");
}
