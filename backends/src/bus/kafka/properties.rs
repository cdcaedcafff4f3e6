//! The librdkafka properties of all clients, each with its reason unless its name says it.

use rand::random;
use rdkafka::ClientConfig;

use crate::{bus::BusError, config::BusConfig};

/// Longer than the timeout of any caller: an idempotent producer that expires a record early fails
/// for good.
const MESSAGE_TIMEOUT_MS: &str = "15000";
/// Minimum of the broker; a rebalance cannot take over faster.
const SESSION_TIMEOUT_MS: &str = "6000";
const HEARTBEAT_INTERVAL_MS: &str = "2000";
const MAX_POLL_INTERVAL_MS: &str = "60000";
const STATISTICS_INTERVAL_MS: &str = "2000";
const SEND_BUFFER_KBYTES: &str = "65536";
const EVENT_LINGER_MS: &str = "10";

/// Creates the client configurations of an installation.
#[derive(Clone)]
pub(super) struct ClientProperties {
    config: BusConfig,
    client_id: String,
    consumer_protocol: bool,
}

impl ClientProperties {
    /// Fails for an unknown group protocol.
    pub(super) fn new(config: &BusConfig, client_id: &str) -> Result<Self, BusError> {
        let consumer_protocol = match config.group_protocol.as_str() {
            "classic" => false,
            "consumer" => true,
            other => {
                return Err(BusError::Fatal(format!(
                    "group_protocol is classic or consumer, not {other:?}"
                )));
            }
        };
        Ok(Self {
            config: config.clone(),
            client_id: client_id.to_owned(),
            consumer_protocol,
        })
    }

    /// Returns the configuration of the producer whose callers wait for each record.
    pub(super) fn job_producer(&self) -> ClientConfig {
        self.producer("jobs", "0")
    }

    /// Returns the configuration of the producer of events, for which no client waits.
    pub(super) fn event_producer(&self) -> ClientConfig {
        self.producer("events", EVENT_LINGER_MS)
    }

    /// Returns the configuration of the client that creates topics.
    pub(super) fn admin(&self) -> ClientConfig {
        self.client("admin", &[])
    }

    /// Returns the configuration of a group member.
    pub(super) fn consumer(&self, group: &str) -> ClientConfig {
        let mut properties = vec![
            ("group.id", group),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", "earliest"),
            ("max.poll.interval.ms", MAX_POLL_INTERVAL_MS),
            ("statistics.interval.ms", STATISTICS_INTERVAL_MS),
            // A newly assigned or resumed partition waits for the running fetch.
            ("fetch.wait.max.ms", "50"),
            ("queued.min.messages", "200"),
            ("queued.max.messages.kbytes", "8192"),
            // The default makes a full queue wait for a second.
            ("fetch.queue.backoff.ms", "5"),
            ("topic.metadata.refresh.interval.ms", "30000"),
        ];
        // A client rejects the properties of the other protocol.
        if self.consumer_protocol {
            properties.push(("group.protocol", "consumer"));
        } else {
            properties.extend([
                ("partition.assignment.strategy", "cooperative-sticky"),
                ("session.timeout.ms", SESSION_TIMEOUT_MS),
                ("heartbeat.interval.ms", HEARTBEAT_INTERVAL_MS),
            ]);
        }
        // Two members with one client id can keep a group rebalancing forever.
        self.client(&format!("{group}-{:08x}", random::<u32>()), &properties)
    }

    fn producer(&self, purpose: &str, linger_ms: &str) -> ClientConfig {
        let properties = [
            ("acks", "all"),
            ("enable.idempotence", "true"),
            ("linger.ms", linger_ms),
            ("message.timeout.ms", MESSAGE_TIMEOUT_MS),
            ("queue.buffering.max.kbytes", SEND_BUFFER_KBYTES),
            // The partitioner of other clients; the default of librdkafka places keys differently.
            ("partitioner", "murmur2_random"),
        ];
        self.client(purpose, &properties)
    }

    fn client(&self, purpose: &str, properties: &[(&str, &str)]) -> ClientConfig {
        let mut client = ClientConfig::new();
        client
            .set("bootstrap.servers", &self.config.brokers)
            .set("client.id", format!("{}-{purpose}", self.client_id))
            .set("socket.nagle.disable", "true")
            .set("socket.keepalive.enable", "true")
            .set("reconnect.backoff.ms", "50")
            .set("reconnect.backoff.max.ms", "1000")
            .set("log.connection.close", "false");
        for (name, value) in properties {
            client.set(*name, *value);
        }
        for (name, value) in &self.config.properties {
            client.set(name, value);
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::consumer::BaseConsumer;

    use super::*;
    use crate::config::EventPublication;

    fn properties(group_protocol: &str) -> Result<ClientProperties, BusError> {
        let config = BusConfig {
            brokers: "localhost:1".to_owned(),
            partitions: 1,
            replication: 1,
            group_protocol: group_protocol.to_owned(),
            publish_events: EventPublication::Auto,
            properties: [("linger.ms".to_owned(), "7".to_owned())].into(),
        };
        ClientProperties::new(&config, "test")
    }

    #[test]
    fn librdkafka_accepts_the_properties_of_both_group_protocols() {
        for protocol in ["classic", "consumer"] {
            properties(protocol)
                .unwrap()
                .consumer("workers")
                .create::<BaseConsumer>()
                .unwrap();
        }
        assert!(matches!(properties("eager"), Err(BusError::Fatal(_))));
    }

    #[test]
    fn configured_properties_override_built_in_ones() {
        assert_eq!(
            properties("classic")
                .unwrap()
                .job_producer()
                .get("linger.ms"),
            Some("7")
        );
    }

    #[test]
    fn client_ids_of_consumers_differ() {
        let properties = properties("classic").unwrap();
        assert_ne!(
            properties.consumer("a").get("client.id"),
            properties.consumer("a").get("client.id")
        );
    }
}
