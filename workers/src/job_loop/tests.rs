//! The loop with a toy job over the embedded bus: order, settlement, poison, panics, drain.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use prometheus::Registry;
use switchboard_backends::bus::{OutgoingRecord, embedded::EmbeddedBus};
use switchboard_schemas::topics::Topic;

use super::{dispatcher::LaneKind, *};
use crate::testing::{eventually, quick};

/// Notes what it ran; some texts make it misbehave.
#[derive(Default)]
struct Toy {
    ran: Mutex<Vec<String>>,
    running: Mutex<Vec<String>>,
}

#[async_trait]
impl Handler for Toy {
    type Job = (String, String);

    const SOURCES: &'static [Source] = &[(Topic::Jobs, "toy")];

    fn read(&self, record: &IncomingRecord) -> Result<(LaneKey, Self::Job), DecodeError> {
        let text = String::from_utf8_lossy(&record.payload).into_owned();
        match text.as_str() {
            "poison" => Err(DecodeError::Malformed("no job".into())),
            "newer" => Err(DecodeError::UnknownVersion(9)),
            _ => Ok((
                LaneKey {
                    key: record.key.clone(),
                    kind: LaneKind::Turns,
                },
                (record.key.clone(), text),
            )),
        }
    }

    async fn run(&self, (key, text): Self::Job, handover: &CancellationToken) -> JobEnd {
        {
            let mut running = self.running.lock().unwrap();
            assert!(
                !running.contains(&key),
                "two jobs of one conversation at once"
            );
            running.push(key.clone());
        }
        tokio::task::yield_now().await;
        let first = !self.ran.lock().unwrap().contains(&text);
        self.running.lock().unwrap().retain(|other| *other != key);
        if text.starts_with("hang") {
            handover.cancelled().await;
            return JobEnd::Open(Duration::ZERO);
        }
        self.ran.lock().unwrap().push(text.clone());
        assert!(!(first && text.starts_with("panic")), "as asked");
        if first && text.starts_with("again") {
            return JobEnd::Open(Duration::from_millis(20));
        }
        if text.starts_with("dead") {
            return JobEnd::Dead(Cause {
                class: "toy",
                reason: "as asked".into(),
                attempts: 3,
            });
        }
        JobEnd::Finished
    }
}

struct Run {
    toy: Arc<Toy>,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

impl Run {
    fn start(bus: &Arc<EmbeddedBus>) -> Self {
        let (toy, shutdown) = (Arc::new(Toy::default()), CancellationToken::new());
        let metrics = Arc::new(WorkerMetrics::register(&Registry::new()).unwrap());
        let job_loop = JobLoop::new(toy.clone(), bus.clone(), quick(), metrics);
        let mut tasks = JoinSet::new();
        tasks.spawn(job_loop.run(shutdown.clone()));
        Self {
            toy,
            shutdown,
            tasks,
        }
    }

    fn ran(&self) -> Vec<String> {
        self.toy.ran.lock().unwrap().clone()
    }

    async fn stop(mut self) -> Vec<String> {
        self.shutdown.cancel();
        self.tasks.join_next().await.unwrap().unwrap();
        self.ran()
    }
}

fn open(path: &Path) -> Arc<EmbeddedBus> {
    Arc::new(EmbeddedBus::open(&path.join("bus.db"), 4).unwrap())
}

async fn publish(bus: &EmbeddedBus, key: &str, text: &str) {
    let record = OutgoingRecord {
        topic: Topic::Jobs,
        key: key.into(),
        payload: text.to_owned().into(),
        headers: Vec::new(),
    };
    bus.publish(record, Duration::from_secs(5)).await.unwrap();
}

/// All dead letters, once there are so many.
async fn dead_letters(bus: &EmbeddedBus, count: usize) -> Vec<IncomingRecord> {
    let mut consumer = bus
        .consume("operator", &[Topic::DeadLetters])
        .await
        .unwrap();
    let mut letters = Vec::new();
    while letters.len() < count {
        let event = tokio::time::timeout(Duration::from_secs(10), consumer.next())
            .await
            .expect("a dead letter")
            .unwrap();
        if let BusEvent::Record(record) = event {
            letters.push(record);
        }
    }
    letters
}

#[tokio::test]
async fn jobs_of_a_conversation_run_in_order_even_when_one_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    for text in ["again-1", "2", "3"] {
        publish(&bus, "a", text).await;
    }
    let run = Run::start(&bus);
    eventually("all ran", async || run.ran().len() == 4).await;
    assert_eq!(run.stop().await, ["again-1", "again-1", "2", "3"]);
}

#[tokio::test]
async fn a_job_that_hangs_stops_nobody_else_and_is_handed_over_at_the_drain() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    for (key, text) in [("a", "hang"), ("a", "after"), ("b", "1"), ("c", "2")] {
        publish(&bus, key, text).await;
    }
    let run = Run::start(&bus);
    eventually("the others ran", async || run.ran().len() == 2).await;
    let mut ran = run.stop().await;
    ran.sort();
    assert_eq!(ran, ["1", "2"]);
}

#[tokio::test]
async fn what_was_settled_never_comes_again_and_what_was_not_does() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    for (key, text) in [("a", "1"), ("b", "hang-1"), ("a", "2")] {
        publish(&bus, key, text).await;
    }
    let run = Run::start(&bus);
    eventually("the first conversation is done", async || {
        run.ran().len() == 2
    })
    .await;
    run.stop().await;

    publish(&bus, "c", "3").await;
    let run = Run::start(&bus);
    eventually("the new one ran", async || !run.ran().is_empty()).await;
    assert_eq!(run.stop().await, ["3"]);
}

#[tokio::test]
async fn poison_is_buried_byte_for_byte_and_its_neighbours_run() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    for text in ["poison", "1", "dead", "2"] {
        publish(&bus, "a", text).await;
    }
    let run = Run::start(&bus);
    let letters = dead_letters(&bus, 2).await;
    let told: Vec<_> = letters
        .iter()
        .map(|letter| String::from_utf8_lossy(&letter.payload).into_owned())
        .collect();
    assert_eq!(told, ["poison", "dead"]);
    eventually("the neighbours ran", async || {
        run.ran().contains(&"2".to_owned())
    })
    .await;
    assert_eq!(run.stop().await, ["1", "dead", "2"]);
}

#[tokio::test]
async fn a_record_of_a_newer_program_is_parked_and_not_buried() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    for (key, text) in [
        ("a", "newer"),
        ("a", "waits behind it"),
        ("b", "1"),
        ("c", "poison"),
    ] {
        publish(&bus, key, text).await;
    }
    let run = Run::start(&bus);
    let letters = dead_letters(&bus, 1).await;
    assert_eq!(&letters[0].payload[..], b"poison");
    eventually("the other conversation ran", async || run.ran().len() == 1).await;
    assert_eq!(run.stop().await, ["1"]);
}

#[tokio::test]
async fn a_panic_ends_one_attempt_of_one_job() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    for (key, text) in [("a", "panic"), ("a", "2"), ("b", "1")] {
        publish(&bus, key, text).await;
    }
    let run = Run::start(&bus);
    eventually("it was tried again", async || {
        run.ran().contains(&"2".to_owned())
    })
    .await;
    let ran = run.stop().await;
    assert_eq!(ran.iter().filter(|text| *text == "panic").count(), 2);
}
