//! Feeds of products that are fetched again and again: one process at a time fetches each, what changed replaces the
//! products whole, and what fails leaves them and says why.
//!
//! Reading order: [`Feeds`] looks which are due; `schedule` says when that is and who makes it; `refresh` makes one fetch;
//! `fetch`, `resolver` and `address` see to it that it leads nowhere but to the web.

mod address;
mod fetch;
mod refresh;
mod resolver;
mod schedule;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, sync::Arc, time::Duration};

use switchboard_backends::{
    Backends,
    catalog::{Entry, EntryKind},
    products::config::ProductsConfig,
    store::StoreError,
};
use switchboard_schemas::{
    agent::Agent,
    ids::{AgentId, RequestId},
    time::Timestamp,
};
use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use self::{
    fetch::Fetcher,
    refresh::Refresher,
    resolver::{Lookup, SystemLookup},
    schedule::{Attempt, due_since},
};

/// What storing and noting may take beside the fetch.
const NOTE_TIME_MAX: Duration = Duration::from_secs(20);

/// The feeds of all organizations, as one process looks after them.
pub(crate) struct Feeds {
    refresher: Arc<Refresher>,
    backends: Backends,
    config: ProductsConfig,
    process: RequestId,
}

impl Feeds {
    /// Errors: no TLS provider is installed.
    pub(crate) fn new(backends: Backends, config: ProductsConfig) -> Result<Self, reqwest::Error> {
        Self::with_lookup(backends, config, &(Arc::new(SystemLookup) as Arc<dyn Lookup>))
    }

    fn with_lookup(
        backends: Backends,
        config: ProductsConfig,
        lookup: &Arc<dyn Lookup>,
    ) -> Result<Self, reqwest::Error> {
        let fetcher = Fetcher::new(&config, lookup)?;
        let refresher = Refresher { backends: backends.clone(), config: config.clone(), fetcher };
        Ok(Self { refresher: Arc::new(refresher), backends, config, process: RequestId::random() })
    }

    /// Fetches what is due until `shutdown`. What is not finished then is given up: the old products are still there.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.look_after() => {}
        }
    }

    async fn look_after(&self) {
        let mut scans = time::interval(Duration::from_millis(self.config.feed_scan_ms));
        scans.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let (mut running, mut agents) = (JoinSet::new(), HashSet::new());
        loop {
            tokio::select! {
                Some(done) = running.join_next() => match done {
                    Ok(agent) => {
                        agents.remove(&agent);
                    }
                    // It does not say whose it was; the notes keep the others from being fetched twice.
                    Err(_) => agents.clear(),
                },
                _ = scans.tick() => {
                    if let Err(error) = self.scan(&mut running, &mut agents).await {
                        tracing::warn!(%error, "feeds of products are not looked after");
                    }
                }
            }
        }
    }

    async fn scan(&self, running: &mut JoinSet<AgentId>, agents: &mut HashSet<AgentId>) -> Result<(), StoreError> {
        for organization in self.backends.catalog.list(EntryKind::Organization, None).await? {
            for entry in self.backends.catalog.list(EntryKind::Agent, Some(organization.org_id())).await? {
                let Entry::Agent(agent) = entry else { continue };
                // The others are still due at the next look.
                if running.len() >= self.config.feeds_at_once_max {
                    return Ok(());
                }
                if !agents.contains(&agent.id) && self.is_ours(&agent).await? {
                    agents.insert(agent.id.clone());
                    let refresher = Arc::clone(&self.refresher);
                    running.spawn(async move {
                        refresher.refresh(&agent).await;
                        agent.id
                    });
                }
            }
        }
        Ok(())
    }

    /// Whether the agent has a feed that is due and that no other process fetches.
    async fn is_ours(&self, agent: &Agent) -> Result<bool, StoreError> {
        let Some(feed) = &agent.settings.ecommerce.feed else { return Ok(false) };
        let status = self.backends.products.status(&agent.org_id, &agent.id).await?;
        let Some(due_since) = due_since(&status, feed, Timestamp::now()) else { return Ok(false) };
        let time_max = Duration::from_millis(self.config.feed_timeout_ms) + NOTE_TIME_MAX;
        let attempt = Attempt { agent: &agent.id, feed, status: &status, due_since, time_max };
        match attempt.is_ours(self.backends.relay.as_ref(), &self.process).await {
            Ok(ours) => Ok(ours),
            Err(error) => {
                tracing::warn!(%error, "a feed waits until it is known who fetches it");
                Ok(false)
            }
        }
    }
}
