//! What every handler can reach.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use secrecy::SecretString;
use switchboard_backends::{Backends, catalog::cache::CatalogCache};
use switchboard_schemas::{
    ids::{AgentId, IngressId},
    secret::InstallationSecret,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    accounts::Passwords, admin::apply::ApplyContext, config::IngressConfig, key_uses::KeyUses,
    limits::Limits, metrics::Metrics, reply::registry::Registry,
};

/// Shared by all requests of a process.
#[derive(Clone)]
pub(crate) struct AppState(Arc<StateFields>);

/// The fields of [`AppState`].
pub(crate) struct StateFields {
    /// The outside world.
    pub(crate) backends: Backends,
    /// Configuration of organizations, as it is read on each request.
    pub(crate) catalog: CatalogCache,
    /// Pepper of key hashes and root of derived ids.
    pub(crate) secret: InstallationSecret,
    /// Opens the administrative API; without one it stays shut.
    pub(crate) admin_token: Option<SecretString>,
    /// Figures.
    pub(crate) config: IngressConfig,
    /// How much may be asked for.
    pub(crate) limits: Limits,
    /// When keys were last used.
    pub(crate) key_uses: KeyUses,
    /// Counters.
    pub(crate) metrics: Metrics,
    /// Who waits for which reply.
    pub(crate) registry: Arc<Registry>,
    /// This process's address for replies.
    pub(crate) ingress_id: IngressId,
    /// Small work that outlives its request.
    pub(crate) background: TaskTracker,
    /// Cancelled when open replies are broken off because the process ends.
    pub(crate) aborting: CancellationToken,
    /// Where passwords are hashed.
    pub(crate) passwords: Passwords,
    /// What it takes to apply a document.
    pub(crate) apply: ApplyContext,
    /// Whose widget stands on the demo page, where there is one.
    pub(crate) demo_agent: OnceLock<AgentId>,
}

impl AppState {
    pub(crate) fn new(fields: StateFields) -> Self {
        Self(Arc::new(fields))
    }
}

impl Deref for AppState {
    type Target = StateFields;

    fn deref(&self) -> &StateFields {
        &self.0
    }
}
