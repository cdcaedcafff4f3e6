//! Opens the outside world as the configuration says; the only place that knows the names of all twins.

use std::sync::Arc;

use anyhow::Context;
use secrecy::ExposeSecret;
use switchboard_backends::{
    Backends,
    accounts::{AccountStore, embedded::EmbeddedAccounts, scylla::ScyllaAccounts},
    bus::{MessageBus, embedded::EmbeddedBus, kafka::KafkaBus},
    catalog::{CatalogStore, embedded::EmbeddedCatalog, scylla::ScyllaCatalog},
    config::BackendProfile,
    limiter::{embedded::EmbeddedLimiter, redis::RedisLimiter},
    products::{embedded::EmbeddedProducts, scylla::ScyllaProducts},
    relay::{embedded::EmbeddedRelay, redis::RedisRelay},
    scylla_link::{self, ScyllaLink},
    store::{embedded::EmbeddedStore, scylla::ScyllaStore},
};
use switchboard_schemas::secret::InstallationSecret;

use crate::{config::Config, data_dir::DataDir};

/// The outside world, and what keeps it ours.
pub(crate) struct Opened {
    /// The backends.
    pub(crate) backends: Backends,
    /// The installation secret.
    pub(crate) secret: InstallationSecret,
    /// The embedded profile's directory.
    pub(crate) data_dir: Option<DataDir>,
}

const BUS_FILE: &str = "bus.db";
const STORE_FILE: &str = "store.db";
const CATALOG_FILE: &str = "catalog.db";
const PRODUCTS_FILE: &str = "products.db";
const CLAIMS_FILE: &str = "claims.db";
const ACCOUNTS_FILE: &str = "accounts.db";

/// Opens all of it.
pub(crate) async fn open(config: &Config, role: &str) -> anyhow::Result<Opened> {
    match config.backends.profile {
        BackendProfile::Embedded => open_embedded(config),
        BackendProfile::Cluster => open_cluster(config, role).await,
    }
}

fn open_embedded(config: &Config) -> anyhow::Result<Opened> {
    let data_dir = DataDir::open(&config.backends.data_dir)?;
    let secret = match &config.secret {
        Some(secret) => InstallationSecret::parse(secret.expose_secret())?,
        None => data_dir.secret()?,
    };
    let store = Arc::new(EmbeddedStore::open(&data_dir.join(STORE_FILE))?);
    let backends = Backends {
        bus: embedded_bus(config)?,
        relay: Arc::new(EmbeddedRelay::open(Some(&data_dir.join(CLAIMS_FILE)))?),
        store: store.clone(),
        analytics: store,
        catalog: Arc::new(EmbeddedCatalog::open(&data_dir.join(CATALOG_FILE))?),
        products: Arc::new(EmbeddedProducts::open(&data_dir.join(PRODUCTS_FILE))?),
        limiter: Arc::new(EmbeddedLimiter::new()),
        accounts: Arc::new(EmbeddedAccounts::open(&data_dir.join(ACCOUNTS_FILE))?),
    };
    Ok(Opened {
        backends,
        secret,
        data_dir: Some(data_dir),
    })
}

async fn open_cluster(config: &Config, role: &str) -> anyhow::Result<Opened> {
    let secret = config
        .secret
        .as_ref()
        .context("the cluster profile needs SWITCHBOARD__SECRET")?;
    let secret = InstallationSecret::parse(secret.expose_secret())?;
    let (parts, namespace) = (&config.backends, config.backends.namespace.as_str());
    let scylla = ScyllaLink::new(parts.scylla.clone(), namespace);
    let store = Arc::new(ScyllaStore::connect(scylla.clone()));
    let backends = Backends {
        bus: Arc::new(KafkaBus::connect(
            &parts.bus,
            namespace,
            &format!("switchboard-{role}"),
        )?),
        relay: Arc::new(RedisRelay::connect(&parts.redis, namespace).await?),
        store: store.clone(),
        analytics: store,
        catalog: Arc::new(ScyllaCatalog::connect(scylla.clone())),
        products: Arc::new(ScyllaProducts::connect(scylla.clone())),
        accounts: Arc::new(ScyllaAccounts::connect(scylla)),
        limiter: Arc::new(RedisLimiter::connect(&parts.redis, namespace).await?),
    };
    Ok(Opened {
        backends,
        secret,
        data_dir: None,
    })
}

/// The bus alone, for commands that need nothing else.
pub(crate) fn bus(config: &Config) -> anyhow::Result<Arc<dyn MessageBus>> {
    match config.backends.profile {
        BackendProfile::Embedded => {
            let path = &config.backends.data_dir;
            anyhow::ensure!(
                path.join(BUS_FILE).exists(),
                "there are no data of a service in {}",
                path.display()
            );
            let _free = DataDir::open(path)?;
            embedded_bus(config)
        }
        BackendProfile::Cluster => {
            let parts = &config.backends;
            Ok(Arc::new(KafkaBus::connect(
                &parts.bus,
                &parts.namespace,
                "switchboard-command",
            )?))
        }
    }
}

/// What is known of people and organizations, for a command that runs beside the service: their files are made for
/// several processes, unlike those of the bus.
pub(crate) struct Registers {
    /// Organizations and accounts.
    pub(crate) catalog: Arc<dyn CatalogStore>,
    /// The audit log.
    pub(crate) accounts: Arc<dyn AccountStore>,
    /// The installation secret.
    pub(crate) secret: InstallationSecret,
}

/// Opens the registers alone.
pub(crate) fn registers(config: &Config) -> anyhow::Result<Registers> {
    let secret = config
        .secret
        .as_ref()
        .map(|secret| InstallationSecret::parse(secret.expose_secret()))
        .transpose()?;
    match config.backends.profile {
        BackendProfile::Embedded => {
            let directory = &config.backends.data_dir;
            let kept = DataDir::kept_secret(directory)
                .context("no service has been started with this data directory");
            Ok(Registers {
                secret: secret.map_or(kept, Ok)?,
                catalog: Arc::new(EmbeddedCatalog::open(&directory.join(CATALOG_FILE))?),
                accounts: Arc::new(EmbeddedAccounts::open(&directory.join(ACCOUNTS_FILE))?),
            })
        }
        BackendProfile::Cluster => {
            let link = ScyllaLink::new(config.backends.scylla.clone(), &config.backends.namespace);
            Ok(Registers {
                secret: secret.context("the cluster profile needs SWITCHBOARD__SECRET")?,
                catalog: Arc::new(ScyllaCatalog::connect(link.clone())),
                accounts: Arc::new(ScyllaAccounts::connect(link)),
            })
        }
    }
}

/// Topics, keyspace and tables; the embedded twins make theirs when they are opened.
pub(crate) async fn migrate(config: &Config) -> anyhow::Result<()> {
    bus(config)?
        .migrate()
        .await
        .context("cannot make the topics")?;
    if config.backends.profile == BackendProfile::Cluster {
        let parts = &config.backends;
        scylla_link::migrate(&parts.scylla, &parts.namespace)
            .await
            .context("cannot make the tables")?;
    }
    Ok(())
}

fn embedded_bus(config: &Config) -> anyhow::Result<Arc<dyn MessageBus>> {
    let path = config.backends.data_dir.join(BUS_FILE);
    Ok(Arc::new(
        EmbeddedBus::open(&path, config.backends.bus.partitions).context("cannot open the bus")?,
    ))
}
