//! Feeds of products that are fetched again and again: one process at a time fetches each, what changed replaces the
//! products whole, and what fails leaves them and says why.
//!
//! Reading order: [`Feeds`] looks which are due; `schedule` says when that is and who makes it, `turns` whose is next;
//! `refresh` makes one fetch; `fetch`, `resolver` and `address` see to it that it leads nowhere but to the web.

mod address;
mod fetch;
mod refresh;
mod resolver;
mod schedule;
#[cfg(test)]
mod tests;
mod turns;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use switchboard_backends::{
    Backends,
    catalog::{CatalogEntry, EntryKind},
    products::config::ProductsConfig,
    store::StoreError,
};
use switchboard_schemas::{
    ids::{AgentId, OrgId, RequestId},
    time::Timestamp,
};
use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use self::{
    fetch::Fetcher,
    refresh::Refresher,
    resolver::{Lookup, SystemLookup},
    schedule::{Attempt, due_since},
    turns::{Due, Turns},
};

/// What storing and noting may take beside the fetch.
const NOTE_TIME_MAX: Duration = Duration::from_secs(20);

/// Agents whose feed is being fetched here, and whose they are.
type Fetching = HashMap<AgentId, OrgId>;

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
        Self::with_lookup(
            backends,
            config,
            &(Arc::new(SystemLookup) as Arc<dyn Lookup>),
        )
    }

    fn with_lookup(
        backends: Backends,
        config: ProductsConfig,
        lookup: &Arc<dyn Lookup>,
    ) -> Result<Self, reqwest::Error> {
        let fetcher = Fetcher::new(&config, lookup)?;
        let refresher = Refresher {
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
        let (mut running, mut agents) = (JoinSet::new(), Fetching::new());
        loop {
            tokio::select! {
                Some(done) = running.join_next() => match done {
                    Ok(agent) => {
                        agents.remove(&agent);
                    }
                    // It does not say whose it was; the notes keep the others from being fetched twice.
                    Err(_) => agents.clear(),
                },
                // At once for whoever asks in this process; elsewhere the next look will do.
                () = self.backends.products.asked() => scans.reset_immediately(),
                _ = scans.tick() => {
                    if let Err(error) = self.scan(&mut running, &mut agents).await {
                        tracing::warn!(%error, "feeds of products are not looked after");
                    }
                }
            }
        }
    }

    async fn scan(
        &self,
        running: &mut JoinSet<AgentId>,
        agents: &mut Fetching,
    ) -> Result<(), StoreError> {
        let places = self.config.feeds_at_once_max;
        if running.len() >= places {
            return Ok(());
        }
        let (waiting, organizations) = self.due(agents).await?;
        let mut turns = Turns::new(waiting, agents.values(), places, organizations > 1);
        // What finds no place is still due at the next look, and then for longer than others.
        while running.len() < places
            && let Some(due) = turns.next()
        {
            if self.is_ours(&due).await {
                let agent = due.agent;
                turns.took(&agent.org_id);
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

    /// The feeds that are due and not being fetched here, and how many organizations have feeds at all.
    async fn due(&self, agents: &Fetching) -> Result<(Vec<Due>, usize), StoreError> {
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
                    .status(&agent.org_id, &agent.id)
                    .await?;
                if let Some(since) = due_since(&status, feed, Timestamp::now()) {
                    waiting.push(Due {
                        agent,
                        status,
                        since,
                    });
                }
            }
        }
        Ok((waiting, organizations.len()))
    }

    /// Whether no other process fetches it.
    async fn is_ours(&self, due: &Due) -> bool {
        let Some(feed) = &due.agent.settings.ecommerce.feed else {
            return false;
        };
        let time_max = Duration::from_millis(self.config.feed_timeout_ms) + NOTE_TIME_MAX;
        let attempt = Attempt {
            agent: &due.agent.id,
            feed,
            status: &due.status,
            due_since: due.since,
            time_max,
        };
        attempt
            .is_ours(self.backends.relay.as_ref(), &self.process)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "a feed waits until it is known who fetches it");
                false
            })
    }
}
