//! Which twins run and where they are found; read by the composition root from the configuration file.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

/// All that [`crate`] needs to open the outside world.
#[derive(Clone, Debug)]
pub struct BackendsConfig {
    /// Embedded twins or production twins, for all six.
    pub profile: BackendProfile,
    /// Directory of the embedded twins.
    pub data_dir: PathBuf,
    /// Prefix of topics, keys and the keyspace, so that installations can share services; may be empty.
    pub namespace: String,
    /// Kafka.
    pub bus: BusConfig,
    /// Redis.
    pub redis: RedisConfig,
    /// ScyllaDB or Apache Cassandra.
    pub scylla: ScyllaConfig,
}

/// Which twins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendProfile {
    /// SQLite and this process.
    Embedded,
    /// Kafka, Redis and ScyllaDB.
    Cluster,
}

/// The bus of either twin.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusConfig {
    /// Kafka bootstrap servers, comma-separated.
    pub brokers: String,
    /// Partitions of the job and message topics, when they are made.
    pub partitions: u32,
    /// Copies of each partition, when topics are made.
    pub replication: u16,
    /// `classic` or `consumer` (KIP-848).
    pub group_protocol: String,
    /// Further librdkafka properties, for instance of TLS and SASL; they win over ours.
    #[serde(default)]
    pub properties: std::collections::BTreeMap<String, String>,
}

/// Redis, for relay and limiter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    /// URL; may hold a password.
    pub url: SecretString,
    /// How long one command may take.
    pub command_timeout_ms: u64,
}

/// ScyllaDB, for store and catalog.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScyllaConfig {
    /// Contact points, comma-separated `host:port`.
    pub nodes: String,
    /// User, where the cluster asks for one; empty: none.
    #[serde(deserialize_with = "none_if_empty")]
    pub user: Option<String>,
    /// Password; empty: none.
    #[serde(deserialize_with = "secret_if_any")]
    pub password: Option<SecretString>,
    /// Copies of each row, when the keyspace is made.
    pub replication: u16,
    /// How long a read may take.
    pub read_timeout_ms: u64,
    /// How long a write may take.
    pub write_timeout_ms: u64,
}

fn none_if_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Some(String::deserialize(deserializer)?).filter(|text| !text.is_empty()))
}

fn secret_if_any<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SecretString>, D::Error> {
    Ok(none_if_empty(deserializer)?.map(SecretString::from))
}
