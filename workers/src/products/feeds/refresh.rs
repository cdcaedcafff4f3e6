//! Refreshes one agent's products from its feed and records the result.

use std::{sync::Arc, time::Duration};

use http::header;
use reqwest::Response;
use switchboard_backends::{
    Backends, StoreError,
    catalog::{CatalogEntry, EntryKind},
    products::{
        FeedRefresh, ProductSource, ProductsStatus,
        config::ProductsConfig,
        feed::{FeedError, FeedFile, ReadFeed, read_products},
        replacement::{ReplacementConsent, ReplacementRisk},
        writer::ProductsWriter,
    },
};
use switchboard_schemas::{
    agent::{Agent, ProductFeed},
    time::Timestamp,
};
use tokio::time;

use super::{
    fetch::{FeedFetcher, FeedResponse, FetchError, validator},
    schedule::last_of,
};

/// Refreshes the products of agents from their feeds.
pub(super) struct FeedRefresher {
    pub(super) backends: Backends,
    pub(super) config: ProductsConfig,
    pub(super) fetcher: FeedFetcher,
}

/// The reason why the products were not replaced, with a message for the shop's administrator.
#[derive(Debug, thiserror::Error)]
enum RefreshError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Feed(#[from] FeedError),
    #[error("the feed did not arrive in time")]
    Late,
    #[error("the products could not be stored")]
    Store(#[from] StoreError),
    #[error("the feed did not replace the products: {0}; confirm if this is right")]
    Unconfirmed(ReplacementRisk),
    #[error("the agent's feed was changed meanwhile")]
    Changed,
}

/// Validators of a successful fetch, sent with the next one.
struct FeedValidators {
    etag: Option<String>,
    last_modified: Option<String>,
}

impl FeedValidators {
    /// Returns the validators of an earlier fetch.
    fn of(last: Option<&FeedRefresh>) -> Self {
        Self {
            etag: last.and_then(|last| last.etag.clone()),
            last_modified: last.and_then(|last| last.last_modified.clone()),
        }
    }
}

impl FeedRefresher {
    /// Fetches an agent's feed, replaces its products and records the result.
    pub(super) async fn refresh(&self, agent: &Agent) {
        let Some(feed) = &agent.settings.ecommerce.feed else {
            return;
        };
        let attempted_at = Timestamp::now();
        let status = match self
            .backends
            .products
            .read_status(&agent.org_id, &agent.id)
            .await
        {
            Ok(status) => status,
            Err(error) => {
                tracing::warn!(%error, agent = agent.id.as_str(), "feed status unavailable");
                return;
            }
        };
        let timeout = Duration::from_millis(self.config.feed_timeout_ms);
        let outcome = time::timeout(timeout, self.replace_products(agent, feed, &status))
            .await
            .unwrap_or(Err(RefreshError::Late));
        let last = last_of(&status, feed);
        let consent = if matches!(outcome, Err(RefreshError::Unconfirmed(_))) {
            ReplacementConsent::Needed
        } else {
            ReplacementConsent::Unneeded
        };
        let (succeeded_at, error, validators) = match outcome {
            Ok(validators) => (Some(attempted_at), None, validators),
            // The new feed must be fetched at once; a recorded result of the old one would delay
            // it.
            Err(RefreshError::Changed) => return self.request_current_feed(agent).await,
            Err(error) => {
                tracing::warn!(%error, agent = agent.id.as_str(), "feed refresh failed");
                let succeeded_at = last.and_then(|last| last.succeeded_at);
                (
                    succeeded_at,
                    Some(error.to_string()),
                    FeedValidators::of(last),
                )
            }
        };
        let refresh = FeedRefresh {
            url: feed.url.clone(),
            attempted_at,
            ended_at: Some(Timestamp::now()),
            succeeded_at,
            error,
            etag: validators.etag,
            last_modified: validators.last_modified,
            consent,
        };
        if let Err(error) = self
            .backends
            .products
            .record_refresh(&agent.org_id, &agent.id, &refresh)
            .await
        {
            tracing::warn!(%error, agent = agent.id.as_str(), "feed result not recorded");
        }
    }

    /// Requests a fetch of the agent's current feed. Without it, a feed that was changed back
    /// during the fetch would wait until this attempt, which records no result, counts as lost.
    async fn request_current_feed(&self, agent: &Agent) {
        let asked = match self
            .backends
            .catalog
            .get(EntryKind::Agent, agent.id.as_str())
            .await
        {
            Ok(Some(CatalogEntry::Agent(now))) if now.settings.ecommerce.feed.is_some() => {
                self.backends
                    .products
                    .request_refresh(&agent.org_id, &agent.id, Timestamp::now())
                    .await
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = asked {
            tracing::warn!(%error, agent = agent.id.as_str(), "changed feed not requested at once");
        }
    }

    async fn replace_products(
        &self,
        agent: &Agent,
        feed: &ProductFeed,
        status: &ProductsStatus,
    ) -> Result<FeedValidators, RefreshError> {
        // Validators apply only if the stored products came from this feed.
        let source = ProductSource::Feed {
            url: feed.url.clone(),
        };
        let is_kept = status
            .kept
            .as_ref()
            .is_some_and(|kept| kept.source == source);
        let last = last_of(status, feed).filter(|_| is_kept);
        let response = match self.fetcher.fetch(&feed.url, last).await? {
            FeedResponse::Feed(response) => response,
            FeedResponse::Unchanged => return Ok(FeedValidators::of(last)),
        };
        let validators = FeedValidators {
            etag: validator(&response, header::ETAG),
            last_modified: validator(&response, header::LAST_MODIFIED),
        };
        let products = Arc::clone(&self.backends.products);
        let mut writer =
            ProductsWriter::begin(products, agent.org_id.clone(), agent.id.clone()).await?;
        match self
            .write_products(*response, agent, feed, &mut writer)
            .await
            .and_then(|read| check_risk(status, feed, read))
        {
            Ok(read) => {
                writer.publish(source, read.report).await?;
                Ok(validators)
            }
            Err(error) => {
                writer.discard().await;
                Err(error)
            }
        }
    }

    async fn write_products(
        &self,
        mut response: Response,
        agent: &Agent,
        feed: &ProductFeed,
        writer: &mut ProductsWriter,
    ) -> Result<ReadFeed, RefreshError> {
        let mut file = FeedFile::new(self.config.bytes_max);
        while let Some(piece) = response.chunk().await.map_err(|_| FetchError::BrokenOff)? {
            file.push(&piece).await?;
        }
        let format = (feed.format, self.config.products_max);
        let read = read_products::<RefreshError>(file, format, Some(writer), 0).await?;
        self.check_feed_unchanged(agent, feed).await?;
        Ok(read)
    }

    /// Fails if the agent was deleted or has another feed since the fetch began.
    async fn check_feed_unchanged(
        &self,
        agent: &Agent,
        feed: &ProductFeed,
    ) -> Result<(), RefreshError> {
        match self
            .backends
            .catalog
            .get(EntryKind::Agent, agent.id.as_str())
            .await?
        {
            Some(CatalogEntry::Agent(now))
                if now.settings.ecommerce.feed.as_ref() == Some(feed) =>
            {
                Ok(())
            }
            _ => Err(RefreshError::Changed),
        }
    }
}

/// Fails if what was read would probably replace a good catalog by mistake and nobody has confirmed
/// it.
fn check_risk(
    status: &ProductsStatus,
    feed: &ProductFeed,
    read: ReadFeed,
) -> Result<ReadFeed, RefreshError> {
    let is_confirmed =
        last_of(status, feed).is_some_and(|last| last.consent == ReplacementConsent::Given);
    match ReplacementRisk::of_feed(status.kept.as_ref(), &read) {
        Some(risk) if !is_confirmed => Err(RefreshError::Unconfirmed(risk)),
        _ => Ok(read),
    }
}
