//! Opens the backends of the configured profile. No other file names both implementations of a
//! backend.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use secrecy::ExposeSecret;
use switchboard_backends::{
    Backends, StoreError,
    accounts::{AccountActivityStore, embedded::EmbeddedAccounts, scylla::ScyllaAccounts},
    bus::{MessageBus, embedded::EmbeddedBus, kafka::KafkaBus},
    catalog::{CatalogEntryStore, embedded::EmbeddedCatalog, scylla::ScyllaCatalog},
    config::BackendProfile,
    files::FileStore,
    limiter::{embedded::EmbeddedLimiter, redis::RedisLimiter},
    organization_eraser::EmbeddedEraser,
    products::{embedded::EmbeddedProducts, scylla::ScyllaProducts},
    relay::{embedded::EmbeddedRelay, redis::RedisRelay},
    scylla_link::{self, ScyllaLink},
    store::{embedded::EmbeddedStore, scylla::ScyllaStore},
};
use switchboard_schemas::secret::InstallationSecret;

use crate::{config::ServiceConfig, data_dir::DataDir};

/// Open backends together with the installation secret and the lock on the data directory.
pub(crate) struct OpenInstallation {
    pub(crate) backends: Backends,
    /// Secret from which ids, key hashes and encryption keys are derived.
    pub(crate) secret: InstallationSecret,
    /// Data directory of the embedded profile, locked for this process.
    pub(crate) data_dir: Option<DataDir>,
}

/// Time for which a start waits for the store.
const STORE_WAIT: Duration = Duration::from_secs(3);

const BUS_FILE: &str = "bus.db";
const STORE_FILE: &str = "store.db";
const CATALOG_FILE: &str = "catalog.db";
const PRODUCTS_FILE: &str = "products.db";
const CLAIMS_FILE: &str = "claims.db";
const ACCOUNTS_FILE: &str = "accounts.db";
const FILES_FOLDER: &str = "files";

/// Opens all backends of the configured profile; `role` names this process to Kafka.
pub(crate) async fn open_backends(
    config: &ServiceConfig,
    role: &str,
) -> anyhow::Result<OpenInstallation> {
    match config.backends.profile {
        BackendProfile::Embedded => open_embedded(config),
        BackendProfile::Cluster => open_cluster(config, role).await,
    }
}

fn open_embedded(config: &ServiceConfig) -> anyhow::Result<OpenInstallation> {
    let data_dir = DataDir::open(&config.backends.data_dir)?;
    let secret = match &config.secret {
        Some(secret) => InstallationSecret::parse(secret.expose_secret())?,
        None => data_dir.load_or_create_secret()?,
    };
    let store = Arc::new(EmbeddedStore::open(&data_dir.file_path(STORE_FILE))?);
    let catalog = Arc::new(EmbeddedCatalog::open(&data_dir.file_path(CATALOG_FILE))?);
    let products = Arc::new(EmbeddedProducts::open(&data_dir.file_path(PRODUCTS_FILE))?);
    let accounts = Arc::new(EmbeddedAccounts::open(&data_dir.file_path(ACCOUNTS_FILE))?);
    let eraser = EmbeddedEraser::new(&store, &catalog, &products, &accounts);
    let backends = Backends {
        bus: embedded_bus(config)?,
        relay: Arc::new(EmbeddedRelay::open(Some(&data_dir.file_path(CLAIMS_FILE)))?),
        store: store.clone(),
        analytics: store,
        catalog,
        products,
        limiter: Arc::new(EmbeddedLimiter::new()),
        accounts,
        files: Arc::new(FileStore::open_folder(
            &data_dir.file_path(FILES_FOLDER),
            &config.backends.files,
            &secret,
        )?),
        eraser: Arc::new(eraser),
    };
    Ok(OpenInstallation {
        backends,
        secret,
        data_dir: Some(data_dir),
    })
}

async fn open_cluster(config: &ServiceConfig, role: &str) -> anyhow::Result<OpenInstallation> {
    let secret = config
        .secret
        .as_ref()
        .context("the cluster profile needs SWITCHBOARD__SECRET")?;
    let secret = InstallationSecret::parse(secret.expose_secret())?;
    let (parts, namespace) = (&config.backends, config.backends.namespace.as_str());
    let scylla = ScyllaLink::new(parts.scylla.clone(), namespace);
    check_tables(&scylla).await?;
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
        accounts: Arc::new(ScyllaAccounts::connect(scylla.clone())),
        eraser: scylla,
        limiter: Arc::new(RedisLimiter::connect(&parts.redis, namespace).await?),
        files: Arc::new(FileStore::open_bucket(&parts.files, namespace, &secret)?),
    };
    Ok(OpenInstallation {
        backends,
        secret,
        data_dir: None,
    })
}

/// Fails if the store answers and its tables are not those of this program. While it is away, the
/// process starts without it.
async fn check_tables(scylla: &ScyllaLink) -> anyhow::Result<()> {
    match tokio::time::timeout(STORE_WAIT, scylla.wait_until_connected()).await {
        Ok(Err(error @ StoreError::Refused(_))) => Err(error.into()),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the store is away at start");
            Ok(())
        }
        Ok(Ok(())) | Err(_) => Ok(()),
    }
}

/// Opens the bus alone, for commands that need nothing else.
pub(crate) fn open_bus(config: &ServiceConfig) -> anyhow::Result<Arc<dyn MessageBus>> {
    match config.backends.profile {
        BackendProfile::Embedded => {
            let path = &config.backends.data_dir;
            anyhow::ensure!(
                path.join(BUS_FILE).exists(),
                "no data of a service in {}",
                path.display()
            );
            // Fails if a running service holds the lock.
            let _lock = DataDir::open(path)?;
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

/// Stores of organizations and accounts, for commands that run beside the service. Unlike the bus,
/// their files can be opened by several processes.
pub(crate) struct AccountStores {
    /// Catalog of organizations and users.
    pub(crate) catalog: Arc<dyn CatalogEntryStore>,
    /// Audit log and sessions.
    pub(crate) accounts: Arc<dyn AccountActivityStore>,
    pub(crate) secret: InstallationSecret,
}

/// Opens the stores of organizations and accounts alone. Waits for a store that is slow to connect,
/// because a command makes each call once.
pub(crate) async fn open_account_stores(config: &ServiceConfig) -> anyhow::Result<AccountStores> {
    let secret = config
        .secret
        .as_ref()
        .map(|secret| InstallationSecret::parse(secret.expose_secret()))
        .transpose()?;
    match config.backends.profile {
        BackendProfile::Embedded => {
            let directory = &config.backends.data_dir;
            let stored = DataDir::read_secret(directory)
                .with_context(|| {
                    format!(
                        "no service has been started with the data directory {} (SWITCHBOARD__DATA_DIR)",
                        directory.display()
                    )
                });
            Ok(AccountStores {
                secret: secret.map_or(stored, Ok)?,
                catalog: Arc::new(EmbeddedCatalog::open(&directory.join(CATALOG_FILE))?),
                accounts: Arc::new(EmbeddedAccounts::open(&directory.join(ACCOUNTS_FILE))?),
            })
        }
        BackendProfile::Cluster => {
            let link = ScyllaLink::new(config.backends.scylla.clone(), &config.backends.namespace);
            link.wait_until_connected().await?;
            Ok(AccountStores {
                secret: secret.context("the cluster profile needs SWITCHBOARD__SECRET")?,
                catalog: Arc::new(ScyllaCatalog::connect(link.clone())),
                accounts: Arc::new(ScyllaAccounts::connect(link)),
            })
        }
    }
}

/// Creates missing topics, keyspace and tables. Embedded backends create theirs when they are
/// opened.
pub(crate) async fn migrate_backends(config: &ServiceConfig) -> anyhow::Result<()> {
    open_bus(config)?
        .migrate()
        .await
        .context("cannot create the topics")?;
    if config.backends.profile == BackendProfile::Cluster {
        let parts = &config.backends;
        scylla_link::migrate(&parts.scylla, &parts.namespace)
            .await
            .context("cannot create the tables")?;
    }
    Ok(())
}

fn embedded_bus(config: &ServiceConfig) -> anyhow::Result<Arc<dyn MessageBus>> {
    let path = config.backends.data_dir.join(BUS_FILE);
    Ok(Arc::new(
        EmbeddedBus::open(&path, config.backends.bus.partitions).context("cannot open the bus")?,
    ))
}
