//! Product feeds that are fetched on a schedule. One process at a time fetches a feed; a changed
//! feed replaces all products of its agent; a failed fetch keeps them and records the reason.
//!
//! Reading order: [`FeedScheduler`] scans for due feeds; `schedule` computes due times and claims a
//! fetch for one process, `queue` chooses the next feed; `refresh` makes one fetch; `fetch`
//! confines it to the public web.

mod fetch;
mod queue;
mod refresh;
mod schedule;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use switchboard_backends::{
    Backends, StoreError,
    catalog::{CatalogEntry, EntryKind},
    products::config::ProductsConfig,
};
use switchboard_schemas::{
    ids::{AgentId, OrgId, RequestId},
    time::Timestamp,
};
use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use self::{
    fetch::FeedFetcher,
    queue::{DueFeed, FeedQueue},
    refresh::FeedRefresher,
    schedule::{FetchAttempt, due_since},
};
use crate::outgoing::{HostLookup, SystemLookup};

/// Longest time for storing products and the result, beside the fetch.
const STORE_TIME_MAX: Duration = Duration::from_secs(20);

/// Agents whose feeds are being fetched by this process, with their organizations.
type RunningFetches = HashMap<AgentId, OrgId>;

/// The scheduler of all organizations' feeds in one process.
pub(crate) struct FeedScheduler {
    refresher: Arc<FeedRefresher>,
    backends: Backends,
    config: ProductsConfig,
    process: RequestId,
}

impl FeedScheduler {
    /// Creates a scheduler. Fails if no TLS provider is installed.
    pub(crate) fn new(backends: Backends, config: ProductsConfig) -> Result<Self, reqwest::Error> {
        Self::with_lookup(
            backends,
            config,
            &(Arc::new(SystemLookup) as Arc<dyn HostLookup>),
        )
    }

    fn with_lookup(
        backends: Backends,
        config: ProductsConfig,
        lookup: &Arc<dyn HostLookup>,
    ) -> Result<Self, reqwest::Error> {
        let fetcher = FeedFetcher::new(&config, lookup)?;
        let refresher = FeedRefresher {
            backends: backends.clone(),
            config: config.clone(),
            fetcher,
        };
        Ok(Self {
            refresher: Arc::new(refresher),
            backends,
            config,
            process: RequestId::random(),
        })
    }

    /// Fetches due feeds until `shutdown`. Unfinished fetches are aborted and leave the old
    /// products in place.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.run_scans() => {}
        }
    }

    async fn run_scans(&self) {
        let mut scans = time::interval(Duration::from_millis(self.config.feed_scan_ms));
        scans.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let (mut running, mut agents) = (JoinSet::new(), RunningFetches::new());
        loop {
            tokio::select! {
                Some(done) = running.join_next() => match done {
                    Ok(agent) => {
                        agents.remove(&agent);
                    }
                    // A panicked task does not return its agent; the recorded claims prevent
                    // duplicate fetches.
                    Err(_) => agents.clear(),
                },
                // A request in this process starts a scan at once; other processes see it at their
                // next scan.
                () = self.backends.products.refresh_requested() => scans.reset_immediately(),
                _ = scans.tick() => {
                    if let Err(error) = self.scan(&mut running, &mut agents).await {
                        tracing::warn!(%error, "feed scan failed");
                    }
                }
            }
        }
    }

    async fn scan(
        &self,
        running: &mut JoinSet<AgentId>,
        agents: &mut RunningFetches,
    ) -> Result<(), StoreError> {
        let places = self.config.feeds_at_once_max;
        if running.len() >= places {
            return Ok(());
        }
        let (waiting, organizations) = self.due(agents).await?;
        let mut queue = FeedQueue::new(waiting, agents.values(), places, organizations > 1);
        // Feeds without a slot are still due at the next scan and have then been due longer than
        // others.
        while running.len() < places
            && let Some(due) = queue.next()
        {
            if self.claim_fetch(&due).await {
                let agent = due.agent;
                queue.count_running(&agent.org_id);
                agents.insert(agent.id.clone(), agent.org_id.clone());
                let refresher = Arc::clone(&self.refresher);
                running.spawn(async move {
                    refresher.refresh(&agent).await;
                    agent.id
                });
            }
        }
        Ok(())
    }

    /// Returns the due feeds that are not being fetched here, and the number of organizations with
    /// feeds.
    async fn due(&self, agents: &RunningFetches) -> Result<(Vec<DueFeed>, usize), StoreError> {
        let (mut waiting, mut organizations) = (Vec::new(), HashSet::new());
        for organization in self
            .backends
            .catalog
            .list(EntryKind::Organization, None)
            .await?
        {
            for entry in self
                .backends
                .catalog
                .list(EntryKind::Agent, Some(organization.org_id()))
                .await?
            {
                let CatalogEntry::Agent(agent) = entry else {
                    continue;
                };
                let Some(feed) = &agent.settings.ecommerce.feed else {
                    continue;
                };
                organizations.insert(agent.org_id.clone());
                if agents.contains_key(&agent.id) {
                    continue;
                }
                let status = self
                    .backends
                    .products
                    .read_status(&agent.org_id, &agent.id)
                    .await?;
                if let Some(since) = due_since(&status, feed, Timestamp::now()) {
                    waiting.push(DueFeed {
                        agent,
                        status,
                        since,
                    });
                }
            }
        }
        Ok((waiting, organizations.len()))
    }

    /// Returns true if this process has the claim to fetch the feed.
    async fn claim_fetch(&self, due: &DueFeed) -> bool {
        let Some(feed) = &due.agent.settings.ecommerce.feed else {
            return false;
        };
        let time_max = Duration::from_millis(self.config.feed_timeout_ms) + STORE_TIME_MAX;
        let attempt = FetchAttempt {
            agent: &due.agent.id,
            feed,
            status: &due.status,
            due_since: due.since,
            time_max,
        };
        attempt
            .claim_fetch(self.backends.relay.as_ref(), &self.process)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "feed claim unavailable, fetch postponed");
                false
            })
    }
}
