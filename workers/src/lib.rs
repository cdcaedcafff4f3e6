//! Jobs in, replies out: the routing and the inference role (steps 5 to 9 of the path of a message).
//!
//! Reading order: [`job_loop`] takes records, runs them one at a time per conversation and commits what is finished;
//! [`routing`] turns a team's message into work of one agent; [`inference`] makes a reply and brings it to its one
//! final state; [`model`] speaks to providers, of which [`demo_model`] is the built-in one; [`tools`] are what a model may
//! call, and [`products`] what the first of them searches. [`config`] holds every bound, [`metrics`] what an operator sees.

pub mod config;
mod dead_letter;
pub mod demo_model;
mod embedding;
#[cfg(feature = "evaluation")]
pub mod evaluation;
mod inference;
mod job_loop;
pub mod metrics;
mod model;
mod plain_text;
pub mod products;
pub mod replay;
mod retry;
mod routing;
#[cfg(test)]
mod testing;
mod tools;
mod trace;
mod trial;

use std::sync::Arc;

use secrecy::SecretString;
use switchboard_backends::{Backends, catalog::cache::CatalogCache, vault::SecretVault};
use tokio_util::sync::CancellationToken;

use crate::{config::WorkersConfig, job_loop::JobLoop, metrics::WorkerMetrics};

/// What a worker needs of the process that starts it.
#[derive(Clone)]
pub struct WorkerContext {
    /// The outside world.
    pub backends: Backends,
    /// Configured things, cached.
    pub catalog: CatalogCache,
    /// Opens provider keys.
    pub vault: SecretVault,
    /// Answers for agents that name no provider.
    pub default_provider: DefaultProvider,
    /// Bounds.
    pub config: WorkersConfig,
    /// What is measured.
    pub metrics: Arc<WorkerMetrics>,
}

/// The installation's own model endpoint.
#[derive(Clone, Debug)]
pub struct DefaultProvider {
    /// Base of the OpenAI-compatible API.
    pub base_url: String,
    /// Its key, if it wants one.
    pub api_key: Option<SecretString>,
    /// Model for agents that name none.
    pub model: String,
    /// Whether it continues an unfinished assistant message.
    pub continues_prefix: bool,
    /// Answers when this one cannot, before the first token.
    pub fallback: Option<Box<DefaultProvider>>,
}

/// Answers messages until `shutdown`, then drains. Errors: the model client cannot be built.
pub async fn run_inference(ctx: WorkerContext, shutdown: CancellationToken) -> anyhow::Result<()> {
    let parts = (
        ctx.backends.bus.clone(),
        ctx.config.clone(),
        ctx.metrics.clone(),
    );
    let handler = Arc::new(inference::Inference::new(ctx)?);
    JobLoop::new(handler, parts.0, parts.1, parts.2)
        .run(shutdown)
        .await;
    Ok(())
}

/// Chooses agents for teams' messages until `shutdown`, then drains. Errors: the model client cannot be built, or the
/// embedding model not be loaded.
pub async fn run_routing(ctx: WorkerContext, shutdown: CancellationToken) -> anyhow::Result<()> {
    let parts = (
        ctx.backends.bus.clone(),
        ctx.config.clone(),
        ctx.metrics.clone(),
    );
    let handler = Arc::new(routing::Routing::new(ctx)?);
    handler.warm_up().await;
    JobLoop::new(handler, parts.0, parts.1, parts.2)
        .run(shutdown)
        .await;
    Ok(())
}

/// Fetches the feeds of products that are due until `shutdown`. Errors: the client of feeds cannot be built.
pub async fn run_feeds(ctx: WorkerContext, shutdown: CancellationToken) -> anyhow::Result<()> {
    products::feeds::Feeds::new(ctx.backends, ctx.config.products)?
        .run(shutdown)
        .await;
    Ok(())
}
