//! A Kafka client of the tests (librdkafka) to read and write the topics directly.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    producer::{FutureProducer, FutureRecord},
};
use serde_json::Value;
use switchboard_schemas::{message_event::MessageEvent, versioned::decode};

use crate::support::{PATIENCE, TestService, eventually, service_address};

const BROKER_PATIENCE: Duration = Duration::from_secs(10);

/// A record of a topic.
#[derive(Debug)]
pub(super) struct WitnessedRecord {
    pub(super) key: Vec<u8>,
    pub(super) payload: Vec<u8>,
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
                    key: key.to_vec(),
                    payload: payload.to_vec(),
                });
            }
        }
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
