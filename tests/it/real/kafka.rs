//! A Kafka client of the tests (librdkafka) to read and write the topics directly.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer},
    producer::{FutureProducer, FutureRecord},
};
use serde_json::Value;
use switchboard_schemas::{message_event::MessageEvent, versioned::decode};

use crate::support::{PATIENCE, TestService, eventually, service_address};

const BROKER_PATIENCE: Duration = Duration::from_secs(10);

const COMMIT_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Topics of the workers, each with its consumer group.
const CONSUMED: [(&str, &str); 3] = [
    ("chat.route", "routing"),
    ("chat.jobs", "inference"),
    ("chat.jobs.retry", "inference-retry"),
];

/// A record of a topic.
#[derive(Debug)]
pub(super) struct WitnessedRecord {
    partition: i32,
    pub(super) key: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

/// Records of a partition behind its committed offset.
#[derive(Debug)]
#[expect(dead_code, reason = "a failing test prints the offsets")]
pub(super) struct UncommittedRecords {
    pub(super) topic: &'static str,
    pub(super) partition: i32,
    committed: i64,
    end: i64,
}

/// Clients of one Kafka cluster.
pub(super) struct Witness {
    brokers: String,
}

impl Witness {
    /// Connects to the shared cluster.
    pub(super) fn at_shared() -> Self {
        Self::at(&service_address("SWITCHBOARD_TEST_BROKERS"))
    }

    /// Connects to another cluster.
    pub(super) fn at(brokers: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
        }
    }

    /// Returns the full name of a topic of this installation.
    pub(super) fn topic(&self, service: &TestService, name: &str) -> String {
        let metadata = self
            .consumer()
            .fetch_metadata(None, BROKER_PATIENCE)
            .unwrap();
        let names = metadata.topics().iter().map(|topic| topic.name());
        let mut matching =
            names.filter(|topic| topic.starts_with(&service.namespace) && topic.ends_with(name));
        matching
            .next()
            .unwrap_or_else(|| panic!("no topic {name} behind {}", service.namespace))
            .to_owned()
    }

    /// Reads a topic from its beginning to its current end.
    pub(super) fn read_all(&self, topic: &str) -> Vec<WitnessedRecord> {
        let consumer = self.consumer();
        let metadata = consumer
            .fetch_metadata(Some(topic), BROKER_PATIENCE)
            .unwrap();
        let (mut assignment, mut left) = (TopicPartitionList::new(), 0);
        for partition in metadata.topics()[0].partitions() {
            assignment
                .add_partition_offset(topic, partition.id(), Offset::Beginning)
                .unwrap();
            let (low, high) = consumer
                .fetch_watermarks(topic, partition.id(), BROKER_PATIENCE)
                .unwrap();
            left += high - low;
        }
        consumer.assign(&assignment).unwrap();
        let (mut records, began) = (vec![], Instant::now());
        while (records.len() as i64) < left && began.elapsed() < BROKER_PATIENCE {
            if let Some(Ok(record)) = consumer.poll(Duration::from_millis(200)) {
                let (key, payload) = (
                    record.key().unwrap_or_default(),
                    record.payload().unwrap_or_default(),
                );
                records.push(WitnessedRecord {
                    partition: record.partition(),
                    key: key.to_vec(),
                    payload: payload.to_vec(),
                });
            }
        }
        assert_eq!(records.len() as i64, left, "records of {topic}");
        records
    }

    /// Writes a record to a topic.
    pub(super) async fn write(&self, topic: &str, key: &str, payload: &[u8]) {
        let producer: FutureProducer = self.configuration().create().unwrap();
        let record = FutureRecord::to(topic).key(key).payload(payload);
        producer
            .send(record, BROKER_PATIENCE)
            .await
            .map_err(|(error, _)| error)
            .unwrap();
    }

    /// Returns the analytics facts of one conversation once there are `count`, without duplicates.
    pub(super) async fn events_of(
        &self,
        service: &TestService,
        conversation: &str,
        count: usize,
    ) -> Vec<(Value, MessageEvent)> {
        let topic = self.topic(service, "chat.messages");
        eventually("the events are on the topic", PATIENCE, async || {
            let records = self.read_all(&topic);
            let ours = records
                .iter()
                .filter(|record| record.key == conversation.as_bytes());
            let mut events: Vec<(Value, MessageEvent)> = ours
                .map(|record| {
                    (
                        serde_json::from_slice(&record.payload).unwrap(),
                        decode(&record.payload).unwrap(),
                    )
                })
                .collect();
            // At-least-once delivery: a duplicate has the same id.
            let mut seen = HashSet::new();
            events.retain(|(_, event)| seen.insert(event.event_id.clone()));
            (events.len() >= count).then_some(events)
        })
        .await
    }

    /// Waits until every record of the workers' topics is committed. Returns the partitions that
    /// still have uncommitted records after `deadline`.
    pub(super) async fn uncommitted_after(
        &self,
        service: &TestService,
        deadline: Duration,
    ) -> Vec<UncommittedRecords> {
        let began = Instant::now();
        loop {
            let open = tokio::task::block_in_place(|| self.uncommitted_records(service));
            if open.is_empty() || began.elapsed() > deadline {
                return open;
            }
            tokio::time::sleep(COMMIT_POLL_INTERVAL).await;
        }
    }

    /// Produces every record of the workers' topics again, to the same partition. Returns the
    /// number of records once all are acknowledged.
    pub(super) async fn repeat_jobs(&self, service: &TestService) -> usize {
        let producer: FutureProducer = self.configuration().create().unwrap();
        // All are awaited together: one round trip for each would take minutes.
        let mut deliveries = vec![];
        for (name, _) in CONSUMED {
            let (topic, records) = tokio::task::block_in_place(|| {
                let topic = self.topic(service, name);
                let records = self.read_all(&topic);
                (topic, records)
            });
            for record in &records {
                let copy = FutureRecord::to(&topic)
                    .partition(record.partition)
                    .key(&record.key)
                    .payload(&record.payload);
                let sent = producer.send_result(copy).map_err(|(error, _)| error);
                deliveries.push(sent.unwrap());
            }
        }
        let number = deliveries.len();
        for delivery in deliveries {
            let delivered = delivery.await.expect("the producer exists");
            delivered.map_err(|(error, _)| error).unwrap();
        }
        number
    }

    /// Sets the offsets of the workers' groups back to the beginning once the groups have no
    /// members.
    pub(super) async fn reset_offsets(&self, service: &TestService, deadline: Duration) {
        for (name, group) in CONSUMED {
            let (consumer, mut partitions) = self.worker_group_consumer(service, name, group);
            partitions.set_all_offsets(Offset::Offset(0)).unwrap();
            eventually("the group has no members", deadline, async || {
                consumer.commit(&partitions, CommitMode::Sync).ok()
            })
            .await;
        }
    }

    /// Returns the partitions of the workers' topics with records behind the committed offset.
    fn uncommitted_records(&self, service: &TestService) -> Vec<UncommittedRecords> {
        let mut uncommitted = vec![];
        for (name, group) in CONSUMED {
            let topic = self.topic(service, name);
            let (consumer, partitions) = self.worker_group_consumer(service, name, group);
            let committed = consumer
                .committed_offsets(partitions, BROKER_PATIENCE)
                .unwrap();
            for entry in committed.elements() {
                let (_, end) = consumer
                    .fetch_watermarks(&topic, entry.partition(), BROKER_PATIENCE)
                    .unwrap();
                let committed = entry.offset().to_raw().unwrap_or_default().max(0);
                if committed < end {
                    uncommitted.push(UncommittedRecords {
                        topic: name,
                        partition: entry.partition(),
                        committed,
                        end,
                    });
                }
            }
        }
        uncommitted
    }

    /// Returns a consumer of a workers' group that does not join it, and all partitions of its
    /// topic.
    fn worker_group_consumer(
        &self,
        service: &TestService,
        name: &str,
        group: &str,
    ) -> (BaseConsumer, TopicPartitionList) {
        let topic = self.topic(service, name);
        let prefix = topic.strip_suffix(name).unwrap();
        let consumer: BaseConsumer = self
            .configuration()
            .set("group.id", format!("{prefix}{group}"))
            .create()
            .unwrap();
        let metadata = consumer
            .fetch_metadata(Some(&topic), BROKER_PATIENCE)
            .unwrap();
        let mut partitions = TopicPartitionList::new();
        for partition in metadata.topics()[0].partitions() {
            partitions.add_partition(&topic, partition.id());
        }
        (consumer, partitions)
    }

    fn consumer(&self) -> BaseConsumer {
        self.configuration()
            .set("group.id", "witness")
            .set("enable.auto.commit", "false")
            .create()
            .unwrap()
    }

    fn configuration(&self) -> ClientConfig {
        let mut configuration = ClientConfig::new();
        configuration.set("bootstrap.servers", &self.brokers);
        configuration
    }
}
