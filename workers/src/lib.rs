//! Worker roles: routing, inference and feeds.
//!
//! Reading order: [`job_loop`] consumes records, runs them in order per conversation and commits
//! finished offsets; [`routing`] chooses the agent for a team's message; [`inference`] generates a
//! reply and gives the turn its final state; [`model`] calls providers, of which [`demo_model`] is
//! the built-in one; [`tools`] may be called by models, and [`products`] is the catalog that they
//! search; [`outgoing`] confines connections. [`config`] contains all bounds, [`metrics`] all
//! metrics.

pub mod config;
mod dead_letter;
pub mod demo_model;
mod embedding;
#[cfg(feature = "evaluation")]
pub mod evaluation;
mod file_sweep;
pub mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
mod inference;
mod job_loop;
mod memory;
pub mod metrics;
mod model;
mod outgoing;
mod plain_text;
mod playground_history;
pub mod products;
mod removals;
pub mod replay;
mod retry;
mod routing;
#[cfg(test)]
mod testing;
mod text;
mod tools;

use std::{sync::Arc, time::Duration};

use switchboard_backends::{Backends, catalog::cache::CatalogCache, vault::SecretVault};
use tokio_util::sync::CancellationToken;

pub use self::{
    files::ReaderPlace,
    model::{connection_test::ProviderTester, providers::DefaultProvider},
    outgoing::AddressChecker,
};
use crate::{config::WorkersConfig, job_loop::JobLoop, metrics::WorkerMetrics};

/// Dependencies of a worker role.
#[derive(Clone)]
pub struct WorkerContext {
    /// Storage, bus and relay.
    pub backends: Backends,
    /// Cached agents, teams and providers.
    pub catalog: CatalogCache,
    /// Vault that decrypts provider keys.
    pub vault: SecretVault,
    /// Provider for agents that name none.
    pub default_provider: DefaultProvider,
    /// Bounds and time-outs of the roles.
    pub config: WorkersConfig,
    /// Place where files of visitors are read.
    pub file_reader: ReaderPlace,
    /// Metrics of the process.
    pub metrics: Arc<WorkerMetrics>,
}

/// Runs the inference role until `shutdown`, then drains it.
///
/// # Errors
/// The model client cannot be built.
pub async fn run_inference(ctx: WorkerContext, shutdown: CancellationToken) -> anyhow::Result<()> {
    let parts = (
        ctx.backends.bus.clone(),
        ctx.config.clone(),
        ctx.metrics.clone(),
    );
    let handler = Arc::new(inference::InferenceHandler::new(ctx)?);
    JobLoop::new(handler, parts.0, parts.1, parts.2)
        .run_until(shutdown)
        .await;
    Ok(())
}

/// The routing role, ready to run.
pub struct RoutingWorker(JobLoop<routing::RoutingHandler>);

impl RoutingWorker {
    /// Loads the embedding model, if there is one.
    ///
    /// # Errors
    /// The model client cannot be built or the embedding model cannot be loaded.
    pub fn new(ctx: WorkerContext) -> anyhow::Result<Self> {
        let parts = (
            ctx.backends.bus.clone(),
            ctx.config.clone(),
            ctx.metrics.clone(),
        );
        let handler = Arc::new(routing::RoutingHandler::new(ctx)?);
        Ok(Self(JobLoop::new(handler, parts.0, parts.1, parts.2)))
    }

    /// Runs the role until `shutdown`, then drains it.
    pub async fn run(self, shutdown: CancellationToken) {
        self.0.run_until(shutdown).await;
    }
}

/// Removes expired uploads at this interval until `shutdown`.
///
/// # Errors
/// None; the other roles have some.
pub async fn run_file_sweep(
    backends: Backends,
    interval: Duration,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    file_sweep::sweep_until(&backends, interval, shutdown).await;
    Ok(())
}

/// Completes the removals of organizations until `shutdown`. A closed organization is erased after
/// `delay`, when none of its replies is running any more.
///
/// # Errors
/// None; the other roles have some.
pub async fn run_removals(
    backends: Backends,
    delay: Duration,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let runner = removals::RemovalRunner::new(backends, delay);
    runner.run_until(shutdown).await;
    Ok(())
}

/// Runs the feeds role, which fetches due product feeds, until `shutdown`.
///
/// # Errors
/// The HTTP client for feeds cannot be built.
pub async fn run_feeds(ctx: WorkerContext, shutdown: CancellationToken) -> anyhow::Result<()> {
    products::feeds::FeedScheduler::new(ctx.backends, ctx.config.products)?
        .run(shutdown)
        .await;
    Ok(())
}
