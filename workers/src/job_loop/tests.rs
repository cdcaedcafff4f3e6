//! Tests of the job loop with a toy job over the embedded bus: order, commits, poison records,
//! panics and draining.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use prometheus::Registry;
use switchboard_backends::{
    bus::{OutgoingRecord, embedded::EmbeddedBus},
    testing::{Fault, Faulty},
};
use switchboard_schemas::{ids::OrgId, secret::InstallationSecret, topics::Topic};

use super::{dispatcher::LaneKind, *};
use crate::testing::{eventually, quick};

/// Records the jobs that it ran; some texts make it misbehave.
#[derive(Default)]
struct ToyHandler {
    ran: Mutex<Vec<String>>,
    running: Mutex<Vec<String>>,
    /// Number of records that the loop has taken.
    decoded: AtomicUsize,
    /// Number of jobs that it has started.
    started: AtomicUsize,
    /// Ends the jobs whose text starts with `hold`.
    released: CancellationToken,
}

#[async_trait]
impl JobHandler for ToyHandler {
    type Job = (String, String);

    const SOURCES: &'static [TopicSource] = &[(Topic::Jobs, "toy")];

    fn decode_job(&self, record: &IncomingRecord) -> Result<DecodedJob<Self::Job>, DecodeError> {
        self.decoded.fetch_add(1, Ordering::Relaxed);
        let text = String::from_utf8_lossy(&record.payload).into_owned();
        match text.as_str() {
            "poison" => Err(DecodeError::Malformed("no job".into())),
            "newer" => Err(DecodeError::UnknownVersion(9)),
            _ => Ok(DecodedJob {
                lane: LaneKey {
                    key: record.key.clone(),
                    kind: LaneKind::Turns,
                },
                organization: OrgId::derive(&InstallationSecret::from_bytes([7; 32]), "acme"),
                job: (record.key.clone(), text),
            }),
        }
    }

    async fn run_job(&self, (key, text): Self::Job, handoff: &CancellationToken) -> JobEnd {
        self.started.fetch_add(1, Ordering::Relaxed);
        {
            let mut running = self.running.lock().unwrap();
            assert!(
                !running.contains(&key),
                "two concurrent jobs of one conversation"
            );
            running.push(key.clone());
        }
        tokio::task::yield_now().await;
        let first = !self.ran.lock().unwrap().contains(&text);
        self.running.lock().unwrap().retain(|other| *other != key);
        if text.starts_with("hold") {
            self.released.cancelled().await;
        }
        if text.starts_with("hang") {
            handoff.cancelled().await;
            return JobEnd::RetryAfter(Duration::ZERO);
        }
        self.ran.lock().unwrap().push(text.clone());
        assert!(
            !(first && text.starts_with("panic")),
            "requested by the test"
        );
        if first && text.starts_with("again") {
            return JobEnd::RetryAfter(Duration::from_millis(20));
        }
        if text.starts_with("elsewhere") && !self.released.is_cancelled() {
            return JobEnd::HeldElsewhere(Duration::from_millis(20));
        }
        if text.starts_with("dead") {
            return JobEnd::DeadLetter(DeadLetterCause {
                class: "toy",
                reason: "requested by the test".into(),
                attempts: 3,
            });
        }
        JobEnd::Finished
    }
}

struct Run {
    toy: Arc<ToyHandler>,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

impl Run {
    fn start(bus: &Arc<impl MessageBus + 'static>) -> Self {
        Self::start_with(bus, quick())
    }

    fn start_with(bus: &Arc<impl MessageBus + 'static>, config: WorkersConfig) -> Self {
        let (toy, shutdown) = (Arc::new(ToyHandler::default()), CancellationToken::new());
        let metrics = Arc::new(WorkerMetrics::register(&Registry::new()).unwrap());
        let job_loop = JobLoop::new(toy.clone(), bus.clone(), config, metrics);
        let mut tasks = JoinSet::new();
        tasks.spawn(job_loop.run_until(shutdown.clone()));
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

/// Returns the first `count` dead letters.
async fn dead_letters(bus: &EmbeddedBus, count: usize) -> Vec<IncomingRecord> {
    let mut consumer = bus
        .consume("operator", &[Topic::DeadLetters])
        .await
        .unwrap();
    let mut letters = Vec::new();
    while letters.len() < count {
        let event = tokio::time::timeout(Duration::from_secs(60), consumer.next())
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
async fn record_stays_open_until_its_dead_letter_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let bus = Arc::new(Faulty::new(
        EmbeddedBus::open(&dir.path().join("bus.db"), 4).unwrap(),
    ));
    for (key, text) in [("a", "poison"), ("a", "after"), ("b", "other")] {
        publish(&bus.inner(), key, text).await;
    }
    bus.faults.inject("publish", Fault::Refuse);
    let run = Run::start(&bus);
    eventually("the dead letter is refused twice", async || {
        bus.faults.call_count("publish") >= 2
    })
    .await;
    assert_eq!(run.stop().await, ["other"], "the record holds its lane");

    bus.faults.clear("publish");
    let run = Run::start(&bus);
    let letters = dead_letters(&bus.inner(), 1).await;
    assert_eq!(letters[0].payload, "poison");
    eventually("the next one runs", async || run.ran() == ["after"]).await;
    run.stop().await;
}

#[tokio::test]
async fn retried_job_keeps_the_order_of_its_conversation() {
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
async fn hanging_job_blocks_no_other_and_hands_off_at_drain() {
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
async fn unfinished_records_are_redelivered() {
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
    eventually("the new loop ran", async || !run.ran().is_empty()).await;
    assert_eq!(run.stop().await, ["3"]);
}

#[tokio::test]
async fn waiting_jobs_of_a_lost_partition_run_on_its_next_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    let keys: Vec<String> = (0..16).map(|number| format!("k{number}")).collect();
    for key in &keys {
        publish(&bus, key, &format!("hold {key}")).await;
        publish(&bus, key, &format!("after {key}")).await;
    }
    let first = Run::start(&bus);
    eventually("every conversation is held", async || {
        first.toy.started.load(Ordering::Relaxed) == keys.len()
    })
    .await;
    let second = Run::start(&bus);
    eventually("the other member has some of them", async || {
        second.toy.started.load(Ordering::Relaxed) > 0
    })
    .await;
    first.toy.released.cancel();
    second.toy.released.cancel();
    let all_ran = async || {
        let ran = [first.ran(), second.ran()].concat();
        keys.iter().all(|key| ran.contains(&format!("after {key}")))
    };
    eventually("all ran", all_ran).await;
    let ran = [first.stop().await, second.stop().await].concat();
    let mut after: Vec<_> = ran
        .iter()
        .filter(|text| text.starts_with("after"))
        .collect();
    after.sort();
    after.dedup();
    let total = ran.iter().filter(|text| text.starts_with("after")).count();
    assert_eq!((after.len(), total), (keys.len(), keys.len()), "{ran:?}");
}

#[tokio::test]
async fn loop_reads_no_more_than_it_can_hold() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    let config = WorkersConfig {
        queued_jobs_max: 8,
        in_flight_max: 1,
        ..quick()
    };
    for number in 0..64 {
        publish(&bus, "a", &format!("hold {number}")).await;
    }
    let run = Run::start_with(&bus, config);
    eventually("the first job is held", async || {
        run.toy.decoded.load(Ordering::Relaxed) >= 8
    })
    .await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let decoded = run.toy.decoded.load(Ordering::Relaxed);
    assert!(decoded <= 9, "{decoded} jobs are in memory");
    run.toy.released.cancel();
    eventually("all ran", async || run.ran().len() == 64).await;
    run.stop().await;
}

#[tokio::test]
async fn jobs_of_other_workers_stop_no_intake() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    let config = WorkersConfig {
        queued_jobs_max: 8,
        ..quick()
    };
    for number in 0..32 {
        publish(&bus, &number.to_string(), &format!("elsewhere {number}")).await;
    }
    let run = Run::start_with(&bus, config);
    eventually("all look for their workers", async || run.ran().len() >= 32).await;
    publish(&bus, "new", "new").await;
    eventually("the new job runs", async || {
        run.ran().contains(&"new".to_owned())
    })
    .await;
    run.toy.released.cancel();
    run.stop().await;
}

#[tokio::test]
async fn poison_record_is_dead_lettered_and_others_run() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    for text in ["poison", "1", "dead", "2"] {
        publish(&bus, "a", text).await;
    }
    let run = Run::start(&bus);
    let letters = dead_letters(&bus, 2).await;
    let update: Vec<_> = letters
        .iter()
        .map(|letter| String::from_utf8_lossy(&letter.payload).into_owned())
        .collect();
    assert_eq!(update, ["poison", "dead"]);
    eventually("the neighbors ran", async || {
        run.ran().contains(&"2".to_owned())
    })
    .await;
    assert_eq!(run.stop().await, ["1", "dead", "2"]);
}

#[tokio::test]
async fn record_of_a_newer_version_is_parked() {
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
async fn panic_ends_one_attempt_of_one_job() {
    let dir = tempfile::tempdir().unwrap();
    let bus = open(dir.path());
    for (key, text) in [("a", "panic"), ("a", "2"), ("b", "1")] {
        publish(&bus, key, text).await;
    }
    let run = Run::start(&bus);
    eventually("the job was retried", async || {
        run.ran().contains(&"2".to_owned())
    })
    .await;
    let ran = run.stop().await;
    assert_eq!(ran.iter().filter(|text| *text == "panic").count(), 2);
}
