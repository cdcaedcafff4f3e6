//! Opens the outside world as the configuration says; the only place that knows the names of all twins.

use std::sync::Arc;

use anyhow::Context;
use secrecy::ExposeSecret;
use switchboard_backends::{
    Backends,
    bus::{Bus, embedded::EmbeddedBus, kafka::KafkaBus},
    catalog::{embedded::EmbeddedCatalog, scylla::ScyllaCatalog},
    config::Profile,
    limiter::{embedded::EmbeddedLimiter, redis::RedisLimiter},
    relay::{embedded::EmbeddedRelay, redis::RedisRelay},
    store::{embedded::EmbeddedStore, scylla::ScyllaStore},
};
use switchboard_schemas::secret::InstallationSecret;

use crate::{config::Config, data_dir::DataDir};

/// The outside world, and what keeps it ours.
pub struct Opened {
    /// The backends.
    pub backends: Backends,
    /// The installation secret.
    pub secret: InstallationSecret,
    /// The embedded profile's directory.
    pub data_dir: Option<DataDir>,
}
