//! State that all handlers share.

pub(crate) mod advisory_lock;
pub(crate) mod apply_context;
pub(crate) mod passwords;
pub(crate) mod pending_replies;
pub(crate) mod recent_uses;
pub(crate) mod refused_publishes;
pub(crate) mod shared_reads;
pub(crate) mod upload_bounds;

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use futures::future::BoxFuture;
use secrecy::SecretString;
use switchboard_backends::{Backends, catalog::cache::CatalogCache};
use switchboard_schemas::{
    ids::{AgentId, IngressId},
    provider::{Provider, ProviderTestReport},
    secret::InstallationSecret,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    apply_context::ApplyContext, passwords::PasswordHashing, pending_replies::PendingReplies,
    recent_uses::RecentUses, refused_publishes::RefusedPublishes, upload_bounds::UploadBounds,
};
use crate::{config::IngressConfig, limits::RateLimits, metrics::IngressMetrics};

/// Tests a provider with its key.
pub type ProviderTest = Arc<
    dyn Fn(Provider, Option<SecretString>) -> BoxFuture<'static, ProviderTestReport> + Send + Sync,
>;

/// The use of an address that an organization configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressUsage {
    /// The base URL of a model provider.
    Provider,
    /// The URL of a product feed.
    Feed,
}

/// Returns the reason for which workers may not connect to an address.
pub type AddressCheck =
    Arc<dyn Fn(AddressUsage, String) -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// Cheaply cloneable handle to the state of one process.
#[derive(Clone)]
pub(crate) struct AppState(Arc<StateFields>);

/// The fields of [`AppState`].
pub(crate) struct StateFields {
    /// Store, bus, limiter and other backends.
    pub(crate) backends: Backends,
    /// Cached configuration of organizations.
    pub(crate) catalog: CatalogCache,
    /// Pepper of key hashes and root of derived ids.
    pub(crate) secret: InstallationSecret,
    /// Token of the admin API; without one the API is disabled.
    pub(crate) admin_token: Option<SecretString>,
    pub(crate) config: IngressConfig,
    pub(crate) limits: RateLimits,
    /// Recent uses of API keys, and of the widget on pages.
    pub(crate) recent_uses: RecentUses,
    pub(crate) metrics: IngressMetrics,
    /// Requests that wait for replies.
    pub(crate) pending_replies: Arc<PendingReplies>,
    /// Publishes that were refused and may still be delivered.
    pub(crate) refused_publishes: RefusedPublishes,
    /// Address of this process for replies.
    pub(crate) ingress_id: IngressId,
    /// Background tasks that outlive their request.
    pub(crate) background: TaskTracker,
    /// Canceled when open replies are aborted at shutdown.
    pub(crate) aborting: CancellationToken,
    /// Bounds of uploads.
    pub(crate) uploads: UploadBounds,
    /// Hashing of passwords within bounded memory.
    pub(crate) passwords: PasswordHashing,
    /// Dependencies of catalog changes.
    pub(crate) apply: ApplyContext,
    /// Calls providers in order to test them.
    pub(crate) provider_test: OnceLock<ProviderTest>,
    /// Agent of the demo page, if it is enabled.
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

impl AsRef<IngressConfig> for AppState {
    fn as_ref(&self) -> &IngressConfig {
        &self.config
    }
}

impl AsRef<IngressMetrics> for AppState {
    fn as_ref(&self) -> &IngressMetrics {
        &self.metrics
    }
}
