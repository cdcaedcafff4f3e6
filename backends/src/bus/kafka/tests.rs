//! Tests of the Kafka bus without a broker, and with a mock of one.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use rdkafka::{
    mocking::MockCluster,
    types::{RDKafkaApiKey, RDKafkaRespErr},
};
use switchboard_schemas::topics::Topic;

use super::{KafkaBus, producer::KafkaProducer, properties::ClientProperties};
use crate::{
    bus::{BusError, BusEvent, MessageBus, OutgoingRecord},
    config::BusConfig,
};

/// More than one assignment asks for.
const REFUSED_REQUESTS: usize = 4;
/// Time that a busy machine may take beyond a documented deadline.
const SLACK: Duration = Duration::from_secs(3);

fn connect(brokers: &str, partitions: u32, namespace: &str) -> KafkaBus {
    KafkaBus::connect(&config(brokers, partitions), namespace, "conformance").unwrap()
}

fn config(brokers: &str, partitions: u32) -> BusConfig {
    BusConfig {
        brokers: brokers.to_owned(),
        partitions,
        replication: 1,
        group_protocol: "classic".to_owned(),
        properties: BTreeMap::new(),
    }
}

/// Returns an address at which nothing listens.
fn dead_brokers() -> String {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string()
}

#[tokio::test]
async fn publish_without_a_broker_fails_within_its_timeout() {
    let bus = connect(&dead_brokers(), 1, "");
    for topic in [Topic::Jobs, Topic::Messages] {
        let record = OutgoingRecord {
            topic,
            key: "key".to_owned(),
            payload: "x".into(),
            headers: Vec::new(),
        };
        let begun = Instant::now();
        let result = bus.publish(record, Duration::from_millis(300)).await;
        assert!(
            matches!(result, Err(BusError::Unavailable(_))),
            "{result:?}"
        );
        assert!(begun.elapsed() < Duration::from_millis(300) + SLACK);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_without_a_broker_fails_within_two_seconds() {
    let bus = connect(&dead_brokers(), 1, "");
    let begun = Instant::now();
    assert!(matches!(bus.check().await, Err(BusError::Unavailable(_))));
    assert!(
        begun.elapsed() < Duration::from_secs(2) + SLACK,
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn consumer_without_a_broker_closes_within_five_seconds() {
    let bus = connect(&dead_brokers(), 1, "");
    let consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let begun = Instant::now();
    // Only the return in time matters; there is no group to leave.
    drop(consumer.close().await);
    assert!(
        begun.elapsed() < Duration::from_secs(5) + SLACK,
        "{:?}",
        begun.elapsed()
    );
}

/// The mock fences the first producer, like a broker that lost the sequence of a producer.
#[tokio::test(flavor = "multi_thread")]
async fn producer_is_replaced_after_a_fatal_error() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(Topic::Jobs.name(), 1, 1).unwrap();
    let refusal = RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
    cluster.request_errors(RDKafkaApiKey::InitProducerId, &[refusal]);
    let properties =
        ClientProperties::new(&config(&cluster.bootstrap_servers(), 1), "test").unwrap();
    let producer = KafkaProducer::new(properties.job_producer()).unwrap();
    let publish = || {
        let key = "key".to_owned();
        let record = OutgoingRecord {
            topic: Topic::Jobs,
            key,
            payload: "x".into(),
            headers: Vec::new(),
        };
        producer.publish(Topic::Jobs.name(), record, Duration::from_secs(10))
    };
    let first = publish().await;
    assert!(matches!(first, Err(BusError::Unavailable(_))), "{first:?}");
    publish().await.unwrap();
}

/// The coordinator refuses to tell the committed offsets for a while, like one that has moved or
/// has just started.
#[tokio::test(flavor = "multi_thread")]
async fn partition_is_read_after_its_offset_was_refused() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(Topic::Jobs.name(), 1, 1).unwrap();
    let bus = connect(&cluster.bootstrap_servers(), 1, "");
    let refusal = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
    cluster.request_errors(RDKafkaApiKey::OffsetFetch, &[refusal; REFUSED_REQUESTS]);
    let mut consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let record = OutgoingRecord {
        topic: Topic::Jobs,
        key: "key".to_owned(),
        payload: "x".into(),
        headers: Vec::new(),
    };
    bus.publish(record, Duration::from_secs(10)).await.unwrap();
    let delivered = async {
        loop {
            match consumer.next().await {
                Ok(BusEvent::Record(record)) => return record,
                Ok(_) => {}
                Err(_) => consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap(),
            }
        }
    };
    let record = tokio::time::timeout(Duration::from_secs(60), delivered).await;
    assert_eq!(&record.expect("the record is delivered").payload[..], b"x");
}

#[cfg(feature = "real-services")]
mod real;
