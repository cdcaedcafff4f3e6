//! A witness beside the product: its own eyes and hands on the topics, through librdkafka.

use std::time::{Duration, Instant};

use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    producer::{FutureProducer, FutureRecord},
};

use crate::support::{TestService, service_address};

const BROKER_PATIENCE: Duration = Duration::from_secs(10);

/// A record as it lies in a topic.
#[derive(Debug)]
pub(super) struct WitnessedRecord {
    /// Key.
    pub(super) key: Vec<u8>,
    /// Payload.
    pub(super) payload: Vec<u8>,
}

/// Full name of a topic of this installation, whatever joins it to its prefix.
pub(super) fn topic(service: &TestService, name: &str) -> String {
    let metadata = consumer().fetch_metadata(None, BROKER_PATIENCE).unwrap();
    let names = metadata.topics().iter().map(|topic| topic.name());
    let mut matching = names.filter(|topic| topic.starts_with(&service.namespace) && topic.ends_with(name));
    matching.next().unwrap_or_else(|| panic!("no topic {name} behind {}", service.namespace)).to_owned()
}

/// Everything in a topic, from its beginning to its present end.
pub(super) fn read_all(topic: &str) -> Vec<WitnessedRecord> {
    let consumer = consumer();
    let metadata = consumer.fetch_metadata(Some(topic), BROKER_PATIENCE).unwrap();
    let (mut assignment, mut left) = (TopicPartitionList::new(), 0);
    for partition in metadata.topics()[0].partitions() {
        assignment.add_partition_offset(topic, partition.id(), Offset::Beginning).unwrap();
        let (low, high) = consumer.fetch_watermarks(topic, partition.id(), BROKER_PATIENCE).unwrap();
        left += high - low;
    }
    consumer.assign(&assignment).unwrap();
    let (mut records, began) = (vec![], Instant::now());
    while (records.len() as i64) < left && began.elapsed() < BROKER_PATIENCE {
        if let Some(Ok(record)) = consumer.poll(Duration::from_millis(200)) {
            let (key, payload) = (record.key().unwrap_or_default(), record.payload().unwrap_or_default());
            records.push(WitnessedRecord { key: key.to_vec(), payload: payload.to_vec() });
        }
    }
    records
}

/// Writes a record of our own.
pub(super) async fn write(topic: &str, key: &str, payload: &[u8]) {
    let producer: FutureProducer = configuration().create().unwrap();
    let record = FutureRecord::to(topic).key(key).payload(payload);
    producer.send(record, BROKER_PATIENCE).await.map_err(|(error, _)| error).unwrap();
}

fn consumer() -> BaseConsumer {
    configuration().set("group.id", "witness").set("enable.auto.commit", "false").create().unwrap()
}

fn configuration() -> ClientConfig {
    let brokers = service_address("SWITCHBOARD_TEST_BROKERS");
    let mut configuration = ClientConfig::new();
    configuration.set("bootstrap.servers", brokers);
    configuration
}
