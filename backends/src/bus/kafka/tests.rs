//! The Kafka bus keeps the contract, and says so in time where no Kafka is.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use switchboard_schemas::topics::Topic;

use super::KafkaBus;
use crate::{
    bus::{Bus, BusError, OutgoingRecord},
    config::BusConfig,
};

fn connect(brokers: &str, partitions: u32, namespace: &str) -> KafkaBus {
    let config = BusConfig {
        brokers: brokers.to_owned(),
        partitions,
        replication: 1,
        publish_timeout_ms: 3000,
        group_protocol: "classic".to_owned(),
        properties: BTreeMap::new(),
    };
    KafkaBus::connect(&config, namespace, "conformance").unwrap()
}

/// A port that was free a moment ago.
fn dead_brokers() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[tokio::test]
async fn without_a_broker_a_publish_is_unavailable_within_its_timeout() {
    let bus = connect(&dead_brokers(), 1, "");
    for topic in [Topic::Jobs, Topic::Messages] {
        let record = OutgoingRecord { topic, key: "key".to_owned(), payload: "x".into(), headers: Vec::new() };
        let begun = Instant::now();
        let result = bus.publish(record, Duration::from_millis(300)).await;
        assert!(matches!(result, Err(BusError::Unavailable(_))), "{result:?}");
        assert!((Duration::from_millis(300)..Duration::from_secs(1)).contains(&begun.elapsed()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_broker_a_check_fails_within_two_seconds() {
    let bus = connect(&dead_brokers(), 1, "");
    let begun = Instant::now();
    assert!(matches!(bus.check().await, Err(BusError::Unavailable(_))));
    assert!(begun.elapsed() < Duration::from_millis(2500), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_broker_a_consumer_closes_within_five_seconds() {
    let bus = connect(&dead_brokers(), 1, "");
    let consumer = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let begun = Instant::now();
    // Whether it left a group that it never reached is of no interest, only that it came back.
    drop(consumer.close().await);
    assert!(begun.elapsed() < Duration::from_millis(5500), "{:?}", begun.elapsed());
}

#[cfg(feature = "real-services")]
mod real {
    use super::{Bus, KafkaBus, Topic, connect};
    use crate::bus::conformance::{PARTITIONS, bus_conformance};

    const BROKERS: &str = "SWITCHBOARD_TEST_BROKERS";

    bus_conformance!(fresh);

    async fn fresh() -> (KafkaBus, Leftovers) {
        let brokers = std::env::var(BROKERS).unwrap_or_else(|_| panic!("{BROKERS} must name a Kafka"));
        let namespace = format!("test-{:016x}", rand::random::<u64>());
        let bus = connect(&brokers, PARTITIONS, &namespace);
        bus.migrate().await.unwrap();
        let topics = Topic::ALL.into_iter().map(|topic| bus.names.topic(topic)).collect();
        let properties = bus.properties.clone();
        (bus, Leftovers { properties, topics })
    }

    /// Deletes the topics of one test when it has ended, well or not.
    struct Leftovers {
        properties: super::super::Properties,
        topics: Vec<String>,
    }

    impl Drop for Leftovers {
        fn drop(&mut self) {
            use rdkafka::{
                admin::{AdminClient, AdminOptions},
                client::DefaultClientContext,
            };
            let admin: AdminClient<DefaultClientContext> = self.properties.admin().create().unwrap();
            let topics: Vec<&str> = self.topics.iter().map(String::as_str).collect();
            let deletion = admin.delete_topics(&topics, &AdminOptions::new());
            drop(futures::executor::block_on(deletion));
        }
    }
}
