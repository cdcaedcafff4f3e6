//! Tests of the Kafka bus without a broker, and with a mock of one.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use rdkafka::{
    Offset,
    consumer::Consumer as _,
    mocking::MockCluster,
    types::{RDKafkaApiKey, RDKafkaRespErr},
};
use switchboard_schemas::topics::Topic;

use super::{
    KafkaBus, consumer::KafkaConsumer, producer::KafkaProducer, properties::ClientProperties,
};
use crate::{
    bus::{BusConsumer as _, BusError, BusEvent, CommitMark, MessageBus, OutgoingRecord},
    config::{BusConfig, EventPublication},
    testing::SLACK,
};

/// Requests for offsets that are refused: more than librdkafka sends for one assignment.
const REFUSED_REQUESTS: usize = 4;

fn connect(brokers: &str, partitions: u32, namespace: &str) -> KafkaBus {
    KafkaBus::connect(&config(brokers, partitions), namespace, "conformance").unwrap()
}

fn config(brokers: &str, partitions: u32) -> BusConfig {
    BusConfig {
        brokers: brokers.to_owned(),
        partitions,
        replication: 1,
        group_protocol: "classic".to_owned(),
        publish_events: EventPublication::Auto,
        properties: BTreeMap::new(),
    }
}

fn record(topic: Topic) -> OutgoingRecord {
    OutgoingRecord {
        topic,
        key: "key".to_owned(),
        payload: "x".into(),
        headers: Vec::new(),
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
        let timeout = Duration::from_millis(300);
        let begun = Instant::now();
        let result = bus.publish(record(topic), timeout).await;
        assert!(
            matches!(result, Err(BusError::Unavailable(_))),
            "{result:?}"
        );
        assert!((timeout..timeout + SLACK).contains(&begun.elapsed()));
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
    let producer = Arc::new(KafkaProducer::new(properties.job_producer()).unwrap());
    let publish = || {
        let (topic, timeout) = (Topic::Jobs, Duration::from_secs(10));
        producer.publish(topic.name(), record(topic), timeout)
    };
    let first = publish().await;
    assert!(matches!(first, Err(BusError::Unavailable(_))), "{first:?}");
    publish().await.unwrap();
}

/// The broker answers, but takes no records. librdkafka tries again by itself, as often as it can.
#[tokio::test(flavor = "multi_thread")]
async fn stuck_producer_is_replaced_while_the_broker_answers() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(Topic::Jobs.name(), 1, 1).unwrap();
    let properties =
        ClientProperties::new(&config(&cluster.bootstrap_servers(), 1), "test").unwrap();
    let producer = Arc::new(KafkaProducer::new(properties.job_producer()).unwrap());
    let publish = |patience: Duration| {
        let topic = Topic::Jobs;
        producer.publish(topic.name(), record(topic), patience)
    };
    let refusal = RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT;
    cluster.request_errors(RDKafkaApiKey::Produce, &[refusal; 1_000]);
    let waiting = publish(Duration::from_secs(30));
    let late = async {
        let late = publish(Duration::from_millis(200)).await;
        assert!(matches!(late, Err(BusError::Unavailable(_))), "{late:?}");
    };
    let began = Instant::now();
    let (waiting, ()) = tokio::join!(waiting, late);
    // Its producer was replaced before the record expired.
    assert!(
        matches!(&waiting, Err(BusError::Unavailable(reason)) if reason.contains("Purge")),
        "{waiting:?}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(10 + 2) + SLACK,
        "{:?}",
        began.elapsed()
    );
    cluster.clear_request_errors(RDKafkaApiKey::Produce);
    publish(Duration::from_secs(10)).await.unwrap();
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
    bus.publish(record(Topic::Jobs), Duration::from_secs(10))
        .await
        .unwrap();
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

/// The broker refuses a commit, as it does while a group rebalances.
#[tokio::test(flavor = "multi_thread")]
async fn refused_commit_is_repeated() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(Topic::Jobs.name(), 1, 1).unwrap();
    let bus = connect(&cluster.bootstrap_servers(), 1, "");
    bus.publish(record(Topic::Jobs), Duration::from_secs(10))
        .await
        .unwrap();
    let topics = [Topic::Jobs];
    let client = KafkaConsumer::subscribe(&bus.properties, &bus.names, "workers", &topics).unwrap();
    let mut consumer = KafkaConsumer::start(client.clone()).unwrap();
    let partition = loop {
        if let BusEvent::Record(record) = consumer.next().await.unwrap() {
            break record.partition;
        }
    };
    let refusal = RDKafkaRespErr::RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS;
    cluster.request_errors(RDKafkaApiKey::OffsetCommit, &[refusal; REFUSED_REQUESTS]);
    let mark = CommitMark {
        next_offset: 1,
        finished: String::new(),
    };
    consumer.commit(partition, mark);
    let committed = || {
        let marks = client.committed(Duration::from_secs(2)).unwrap();
        marks.elements()[0].offset()
    };
    let begun = Instant::now();
    while committed() != Offset::Offset(1) {
        assert!(begun.elapsed() < Duration::from_secs(30), "never committed");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A pause of the client that nobody asked for stands for any position that a client has lost.
#[tokio::test(flavor = "multi_thread")]
async fn consumer_of_an_unread_partition_ends() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(Topic::Jobs.name(), 1, 1).unwrap();
    let bus = connect(&cluster.bootstrap_servers(), 1, "");
    let publish = async || {
        bus.publish(record(Topic::Jobs), Duration::from_secs(10))
            .await
    };
    publish().await.unwrap();
    let topics = [Topic::Jobs];
    let client = KafkaConsumer::subscribe(&bus.properties, &bus.names, "workers", &topics).unwrap();
    let mut consumer = KafkaConsumer::start(client.clone()).unwrap();
    while !matches!(consumer.next().await, Ok(BusEvent::Record(_))) {}

    client.pause(&client.assignment().unwrap()).unwrap();
    publish().await.unwrap();
    let event = tokio::time::timeout(Duration::from_secs(60), consumer.next()).await;
    let event = event.expect("the consumer ends");
    assert!(
        matches!(event, Err(BusError::PartitionUnread(_))),
        "{event:?}"
    );
}

#[cfg(feature = "real-services")]
mod real;
