//! Tests that need a real Kafka: the conformance suite under both group protocols, and a consumer
//! beyond its poll interval.

use std::time::Duration;

use rdkafka::{
    admin::{AdminClient, AdminOptions},
    client::DefaultClientContext,
};
use switchboard_schemas::topics::Topic;

use super::{KafkaBus, config};
use crate::{
    bus::{
        BusEvent, MessageBus,
        conformance::{PARTITIONS, bus_conformance},
        kafka::properties::ClientProperties,
    },
    config::BusConfig,
};

const BROKERS: &str = "SWITCHBOARD_TEST_BROKERS";

mod classic {
    super::bus_conformance!(super::classic);
}

mod consumer_protocol {
    super::bus_conformance!(super::consumer_protocol);
}

async fn classic() -> (KafkaBus, Leftovers) {
    fresh(real_config()).await
}

async fn consumer_protocol() -> (KafkaBus, Leftovers) {
    fresh(BusConfig {
        group_protocol: "consumer".to_owned(),
        ..real_config()
    })
    .await
}

/// Uses the shortest poll interval that librdkafka allows, so that the test can exceed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slowly_polled_consumer_keeps_its_partitions() {
    let poll_interval = Duration::from_secs(6);
    let mut config = real_config();
    config.properties.insert(
        "max.poll.interval.ms".to_owned(),
        poll_interval.as_millis().to_string(),
    );
    let (bus, _leftovers) = fresh(config).await;
    let mut idle = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let mut owned = 0;
    while owned < PARTITIONS {
        owned += u32::from(matches!(
            idle.next().await.unwrap(),
            BusEvent::Assigned { .. }
        ));
    }
    let mut other = bus.consume("workers", &[Topic::Jobs]).await.unwrap();
    let mut taken = 0;
    let watch = async {
        loop {
            taken += u32::from(matches!(
                other.next().await.unwrap(),
                BusEvent::Assigned { .. }
            ));
            assert!(
                taken <= PARTITIONS / 2,
                "the idle consumer has lost its share"
            );
        }
    };
    assert!(
        tokio::time::timeout(poll_interval + Duration::from_secs(2), watch)
            .await
            .is_err()
    );
    assert_eq!(taken, PARTITIONS / 2);
}

fn real_config() -> BusConfig {
    config(
        &std::env::var(BROKERS).unwrap_or_else(|_| panic!("{BROKERS} must name a Kafka")),
        PARTITIONS,
    )
}

async fn fresh(config: BusConfig) -> (KafkaBus, Leftovers) {
    let namespace = format!("test-{:016x}", rand::random::<u64>());
    let bus = KafkaBus::connect(&config, &namespace, "conformance").unwrap();
    bus.migrate().await.unwrap();
    let topics = Topic::ALL
        .into_iter()
        .map(|topic| bus.names.topic(topic))
        .collect();
    let properties = bus.properties.clone();
    (bus, Leftovers { properties, topics })
}

/// Deletes the topics of a test when it ends, also by a panic.
struct Leftovers {
    properties: ClientProperties,
    topics: Vec<String>,
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        let admin: AdminClient<DefaultClientContext> = self.properties.admin().create().unwrap();
        let topics: Vec<&str> = self.topics.iter().map(String::as_str).collect();
        drop(futures::executor::block_on(
            admin.delete_topics(&topics, &AdminOptions::new()),
        ));
    }
}
