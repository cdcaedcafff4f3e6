//! One fetch of one agent's feed, from the first byte to the note of how it ended.

use std::{sync::Arc, time::Duration};

use http::header;
use reqwest::Response;
use switchboard_backends::{
    Backends,
    catalog::{CatalogEntry, EntryKind},
    products::{
        FeedRefresh, FeedRejections, ProductSource, ProductsStatus, PublishedProducts,
        config::ProductsConfig,
        feed::{FeedError, FeedReader},
        writer::ProductsWriter,
    },
    store::StoreError,
};
use switchboard_schemas::{
    agent::{Agent, ProductFeed},
    time::Timestamp,
};
use tokio::time;

use super::{
    fetch::{FetchError, Fetched, Fetcher, validator},
    schedule::last_of,
};

/// Makes fetches.
pub(super) struct Refresher {
    pub(super) backends: Backends,
    pub(super) config: ProductsConfig,
    pub(super) fetcher: Fetcher,
}

/// Why the products stayed as they were, in words for the shop's administrator.
#[derive(Debug, thiserror::Error)]
enum RefreshError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Feed(#[from] FeedError),
    #[error("the feed has more than {0} bytes")]
    TooLarge(u64),
    #[error("the feed did not arrive in time")]
    Late,
    #[error("the products could not be stored")]
    Store(#[from] StoreError),
    #[error("the agent's feed was changed meanwhile")]
    Changed,
}

/// What a fetch brought.
struct Brought {
    etag: Option<String>,
    last_modified: Option<String>,
}

impl Refresher {
    /// Fetches an agent's feed and notes how that ended.
    pub(super) async fn refresh(&self, agent: &Agent) {
        let Some(feed) = &agent.settings.ecommerce.feed else {
            return;
        };
        let attempted_at = Timestamp::now();
        let status = match self
            .backends
            .products
            .status(&agent.org_id, &agent.id)
            .await
        {
            Ok(status) => status,
            Err(error) => {
                tracing::warn!(%error, agent = agent.id.as_str(), "a feed is not fetched");
                return;
            }
        };
        let timeout = Duration::from_millis(self.config.feed_timeout_ms);
        let outcome = time::timeout(timeout, self.replace(agent, feed, &status))
            .await
            .unwrap_or(Err(RefreshError::Late));
        let last = last_of(&status, feed);
        let refresh = match outcome {
            Ok(brought) => FeedRefresh {
                url: feed.url.clone(),
                attempted_at,
                ended_at: Some(Timestamp::now()),
                succeeded_at: Some(attempted_at),
                error: None,
                etag: brought.etag,
                last_modified: brought.last_modified,
            },
            // Whoever changed the feed wants the new one to be fetched, which no note of this one must hold up.
            Err(RefreshError::Changed) => return self.ask_anew(agent).await,
            Err(error) => {
                tracing::warn!(%error, agent = agent.id.as_str(), "a feed was not taken");
                FeedRefresh {
                    url: feed.url.clone(),
                    attempted_at,
                    ended_at: Some(Timestamp::now()),
                    succeeded_at: last.and_then(|last| last.succeeded_at),
                    error: Some(error.to_string()),
                    etag: last.and_then(|last| last.etag.clone()),
                    last_modified: last.and_then(|last| last.last_modified.clone()),
                }
            }
        };
        if let Err(error) = self
            .backends
            .products
            .note_refresh(&agent.org_id, &agent.id, &refresh)
            .await
        {
            tracing::warn!(%error, agent = agent.id.as_str(), "how a feed ended is not noted");
        }
    }

    /// Asks for the feed that the agent has now: whoever changed it back meanwhile would else wait until this attempt, which
    /// leaves no note, counts as lost.
    async fn ask_anew(&self, agent: &Agent) {
        let asked = match self
            .backends
            .catalog
            .get(EntryKind::Agent, agent.id.as_str())
            .await
        {
            Ok(Some(CatalogEntry::Agent(now))) if now.settings.ecommerce.feed.is_some() => {
                self.backends
                    .products
                    .ask_refresh(&agent.org_id, &agent.id, Timestamp::now())
                    .await
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = asked {
            tracing::warn!(%error, agent = agent.id.as_str(), "a feed that was changed waits for its turn");
        }
    }

    async fn replace(
        &self,
        agent: &Agent,
        feed: &ProductFeed,
        status: &ProductsStatus,
    ) -> Result<Brought, RefreshError> {
        // Only the products of this very feed can be unchanged.
        let source = status.kept.as_ref().map(|kept| &kept.source);
        let is_kept = source
            == Some(&ProductSource::Feed {
                url: feed.url.clone(),
            });
        let last = last_of(status, feed).filter(|_| is_kept);
        let response = match self.fetcher.fetch(&feed.url, last).await? {
            Fetched::Feed(response) => response,
            Fetched::Unchanged => {
                let last = last.cloned();
                let (etag, last_modified) = last
                    .map(|last| (last.etag, last.last_modified))
                    .unwrap_or_default();
                return Ok(Brought {
                    etag,
                    last_modified,
                });
            }
        };
        let brought = Brought {
            etag: validator(&response, header::ETAG),
            last_modified: validator(&response, header::LAST_MODIFIED),
        };
        let products = Arc::clone(&self.backends.products);
        let mut writer =
            ProductsWriter::begin(products, agent.org_id.clone(), agent.id.clone()).await?;
        match self.write(*response, agent, feed, &mut writer).await {
            Ok(rejected) => self.publish(writer, feed, rejected).await.map(|_| brought),
            Err(error) => {
                writer.discard().await;
                Err(error)
            }
        }
    }

    async fn publish(
        &self,
        writer: ProductsWriter,
        feed: &ProductFeed,
        rejected: FeedRejections,
    ) -> Result<PublishedProducts, RefreshError> {
        Ok(writer
            .publish(
                ProductSource::Feed {
                    url: feed.url.clone(),
                },
                rejected,
            )
            .await?)
    }

    async fn write(
        &self,
        mut response: Response,
        agent: &Agent,
        feed: &ProductFeed,
        writer: &mut ProductsWriter,
    ) -> Result<FeedRejections, RefreshError> {
        let mut reader = FeedReader::new(feed.format, self.config.products_max);
        let mut bytes = 0;
        while let Some(piece) = response.chunk().await.map_err(|_| FetchError::BrokenOff)? {
            bytes += piece.len() as u64;
            if bytes > self.config.bytes_max {
                return Err(RefreshError::TooLarge(self.config.bytes_max));
            }
            for product in reader.push(&piece)? {
                writer.push(&product).await?;
            }
        }
        let (rest, rejected) = reader.finish()?;
        for product in rest {
            writer.push(&product).await?;
        }
        self.still_wanted(agent, feed).await?;
        Ok(rejected)
    }

    /// The agent may have lost this feed, or itself be gone, while it was fetched.
    async fn still_wanted(&self, agent: &Agent, feed: &ProductFeed) -> Result<(), RefreshError> {
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
