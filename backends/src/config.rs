//! Settings of the backends: the profile and the addresses of services.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

/// Settings of all backends.
#[derive(Clone, Debug)]
pub struct BackendsConfig {
    /// Profile of all backends: embedded or cluster.
    pub profile: BackendProfile,
    /// Data directory of the embedded backends.
    pub data_dir: PathBuf,
    /// Prefix of topics, keys and the keyspace, so that installations can share services; may be
    /// empty.
    pub namespace: String,
    /// Settings of Kafka.
    pub bus: BusConfig,
    /// Settings of Redis.
    pub redis: RedisConfig,
    /// Settings of ScyllaDB or Apache Cassandra.
    pub scylla: ScyllaConfig,
    /// Settings of the files of messages.
    pub files: FilesConfig,
}

/// The set of backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendProfile {
    /// SQLite files and this process.
    Embedded,
    /// Kafka, Redis and ScyllaDB.
    Cluster,
}

/// Settings of the bus.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusConfig {
    /// Kafka bootstrap servers, comma-separated.
    pub brokers: String,
    /// Number of partitions of the job and message topics, used when they are created.
    pub partitions: u32,
    /// Replication factor of topics, used when they are created.
    pub replication: u16,
    /// Group protocol: `classic` or `consumer` (KIP-848).
    pub group_protocol: String,
    /// Profiles in which message events are published for readers outside the service.
    pub publish_events: EventPublication,
    /// Further librdkafka properties, for instance for TLS and SASL; they override the built-in
    /// ones.
    #[serde(default)]
    pub properties: std::collections::BTreeMap<String, String>,
}

/// Profiles in which message events are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventPublication {
    /// In the cluster profile: nothing outside the process can read the embedded bus.
    Auto,
    /// In both profiles.
    Always,
    /// In no profile.
    Never,
}

impl BackendsConfig {
    /// Returns true if message events are published.
    pub fn publishes_events(&self) -> bool {
        match self.bus.publish_events {
            EventPublication::Auto => self.profile == BackendProfile::Cluster,
            EventPublication::Always => true,
            EventPublication::Never => false,
        }
    }
}

/// Settings of Redis, used by relay and limiter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    /// URL of Redis; may contain a password.
    pub url: SecretString,
    /// Timeout of one command, in milliseconds.
    pub command_timeout_ms: u64,
}

/// Settings of ScyllaDB, used by the stores.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScyllaConfig {
    /// Contact points: comma-separated `host:port`.
    pub nodes: String,
    /// User name; empty for none.
    #[serde(deserialize_with = "none_if_empty")]
    pub user: Option<String>,
    /// Password; empty for none.
    #[serde(deserialize_with = "secret_if_any")]
    pub password: Option<SecretString>,
    /// Replication factor of the keyspace, used when it is created.
    pub replication: u16,
    /// Timeout of a read, in milliseconds.
    pub read_timeout_ms: u64,
    /// Timeout of a write, in milliseconds.
    pub write_timeout_ms: u64,
}

/// Settings of the files of messages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesConfig {
    /// Bucket of the cluster profile; empty: no files are accepted.
    pub bucket: String,
    /// Base URL of a store that speaks S3; empty: AWS.
    pub endpoint: String,
    /// Region of the bucket; empty: that of the environment.
    pub region: String,
    /// Id of the access key; empty: credentials of the environment.
    pub access_key_id: String,
    /// The access key.
    #[serde(deserialize_with = "secret_if_any")]
    pub secret_access_key: Option<SecretString>,
    /// Time after which an upload that no message names is removed, in milliseconds.
    pub upload_lifetime_ms: u64,
    /// Bytes of the uploads of an organization that no message has named; beyond, uploads are
    /// refused.
    pub waiting_bytes_max: u64,
    /// Interval at which expired uploads are looked for, in milliseconds.
    pub sweep_interval_ms: u64,
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self {
            bucket: String::new(),
            endpoint: String::new(),
            region: String::new(),
            access_key_id: String::new(),
            secret_access_key: None,
            upload_lifetime_ms: 86_400_000,
            waiting_bytes_max: 5_000_000_000,
            sweep_interval_ms: 3_600_000,
        }
    }
}

fn none_if_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Some(String::deserialize(deserializer)?).filter(|text| !text.is_empty()))
}

fn secret_if_any<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SecretString>, D::Error> {
    Ok(none_if_empty(deserializer)?.map(SecretString::from))
}
