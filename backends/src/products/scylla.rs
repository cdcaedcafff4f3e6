//! The products on ScyllaDB or Cassandra. The current version is one cell, so that a publish is one
//! write; the chunks of a version are a partition, bounded by the limits of an agent.
//!
//! The timestamp of the cell is greater than that of the value it replaces, and a removal writes an
//! empty text, for the reasons given in [`crate::catalog::scylla`].

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use switchboard_schemas::{
    ids::{AgentId, OrgId},
    time::Timestamp,
};
use tokio::sync::OnceCell;

use super::{
    FeedRefresh, FeedRefreshStore, ProductReader, ProductVersionStore, ProductsStatus,
    ProductsVersion, PublishedProducts, UPLOAD_TIME_MAX,
};
use crate::{
    error::StoreError,
    json::{decode, encode},
    scylla_link::{ScyllaLink, statements},
};

/// Text of a removed entry.
const REMOVED: &str = "";
/// Time of a removed entry.
const NEVER: i64 = 0;

/// Products in a cluster.
pub struct ScyllaProducts {
    link: Arc<ScyllaLink>,
    prepared: OnceCell<ProductStatements>,
}

statements! {
    struct ProductStatements {
        prepare_read status =
            "SELECT kept, writetime(kept), refresh, writetime(refresh), asked_at, writetime(asked_at)
                FROM switchboard.products WHERE org_id = ? AND agent_id = ?",
        prepare_write put_kept =
            "INSERT INTO switchboard.products (org_id, agent_id, kept) VALUES (?, ?, ?) USING TIMESTAMP ?",
        prepare_write put_refresh =
            "INSERT INTO switchboard.products (org_id, agent_id, refresh) VALUES (?, ?, ?) USING TIMESTAMP ?",
        prepare_write put_asked =
            "INSERT INTO switchboard.products (org_id, agent_id, asked_at) VALUES (?, ?, ?) USING TIMESTAMP ?",
        prepare_write begin =
            "INSERT INTO switchboard.product_versions (org_id, agent_id, version) VALUES (?, ?, ?)",
        prepare_read versions =
            "SELECT version FROM switchboard.product_versions WHERE org_id = ? AND agent_id = ?",
        prepare_write forget =
            "DELETE FROM switchboard.product_versions WHERE org_id = ? AND agent_id = ? AND version = ?",
        prepare_write put_chunk =
            "INSERT INTO switchboard.product_chunks (org_id, agent_id, version, number, body) VALUES (?, ?, ?, ?, ?)",
        prepare_read chunk =
            "SELECT body FROM switchboard.product_chunks WHERE org_id = ? AND agent_id = ? AND version = ? AND number = ?",
        prepare_write discard =
            "DELETE FROM switchboard.product_chunks WHERE org_id = ? AND agent_id = ? AND version = ?",
    }
}

/// The row of a status: three cells, each with its timestamp.
type StatusRow = (
    Option<String>,
    Option<i64>,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
);

/// The stored status of an agent's products and the write times that later writes must exceed.
#[derive(Default)]
struct StoredStatus {
    status: ProductsStatus,
    kept_at: i64,
    refresh_at: i64,
    asked_at: i64,
}

impl ScyllaProducts {
    /// Creates the store on a link. The cluster need not be reachable yet.
    pub fn connect(link: Arc<ScyllaLink>) -> Self {
        Self {
            link,
            prepared: OnceCell::new(),
        }
    }

    async fn prepared_statements(&self) -> Result<&ProductStatements, StoreError> {
        self.prepared
            .get_or_try_init(|| Box::pin(ProductStatements::new(&self.link)))
            .await
    }

    async fn read_current(&self, org: &OrgId, agent: &AgentId) -> Result<StoredStatus, StoreError> {
        let statement = &self.prepared_statements().await?.status;
        let rows = self
            .link
            .query_rows::<StatusRow>(statement, (org.as_str(), agent.as_str()))
            .await?;
        let Some((kept, kept_at, refresh, refresh_at, asked, asked_at)) = rows.into_iter().next()
        else {
            return Ok(StoredStatus::default());
        };
        let asked = asked.filter(|moment| *moment != NEVER);
        let status = ProductsStatus {
            kept: read(kept)?,
            refresh: read(refresh)?,
            asked_at: asked.map(Timestamp::from_micros),
        };
        let at = Option::unwrap_or_default;
        Ok(StoredStatus {
            status,
            kept_at: at(kept_at),
            refresh_at: at(refresh_at),
            asked_at: at(asked_at),
        })
    }

    /// Makes a version the successor of the one in `current`.
    async fn put_current(
        &self,
        (org, agent): (&OrgId, &AgentId),
        kept: &PublishedProducts,
        current: &StoredStatus,
    ) -> Result<PublishedProducts, StoreError> {
        let kept = kept.succeeding(current.status.kept.as_ref());
        let values = (
            org.as_str(),
            agent.as_str(),
            encode(&kept)?,
            later_than(current.kept_at),
        );
        self.link
            .write(&self.prepared_statements().await?.put_kept, values)
            .await?;
        Ok(kept)
    }

    /// Deletes versions that `replaced` kept and abandoned uploads, except for what is kept now.
    async fn sweep(
        &self,
        (org, agent): (&OrgId, &AgentId),
        replaced: Option<&PublishedProducts>,
    ) -> Result<(), StoreError> {
        let now = Timestamp::now();
        let statement = &self.prepared_statements().await?.versions;
        let versions = self
            .link
            .query_rows::<(String,)>(statement, (org.as_str(), agent.as_str()))
            .await?;
        // Read after the versions, so that a version that was restored meanwhile stays.
        let current = self.read_current(org, agent).await?.status.kept;
        for (version,) in versions {
            let version = ProductsVersion::from_kept(version);
            let left_behind = replaced.is_some_and(|replaced| replaced.keeps(&version))
                || version.is_older_than(UPLOAD_TIME_MAX, now);
            if left_behind
                && !current
                    .as_ref()
                    .is_some_and(|current| current.keeps(&version))
            {
                self.discard_version(org, agent, &version).await?;
            }
        }
        Ok(())
    }

    /// Deletes replaced versions and logs a failure, which is harmless: the next publish tries
    /// again.
    async fn sweep_or_warn(&self, place: (&OrgId, &AgentId), replaced: Option<&PublishedProducts>) {
        if let Err(error) = self.sweep(place, replaced).await {
            tracing::warn!(%error, "replaced products not deleted");
        }
    }
}

#[async_trait]
impl ProductReader for ScyllaProducts {
    async fn read_status(
        &self,
        org: &OrgId,
        agent: &AgentId,
    ) -> Result<ProductsStatus, StoreError> {
        Ok(self.read_current(org, agent).await?.status)
    }

    async fn read_chunk(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
        number: u32,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let values = (
            org.as_str(),
            agent.as_str(),
            version.as_str(),
            i64::from(number),
        );
        let rows = self
            .link
            .query_rows::<(Vec<u8>,)>(&self.prepared_statements().await?.chunk, values)
            .await?;
        Ok(rows.into_iter().next().map(|(body,)| body))
    }

    async fn check(&self) -> Result<(), StoreError> {
        let values = ("check", "check");
        self.link
            .query_rows::<StatusRow>(&self.prepared_statements().await?.status, values)
            .await
            .map(|_| ())
    }
}

#[async_trait]
impl ProductVersionStore for ScyllaProducts {
    async fn begin_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
    ) -> Result<(), StoreError> {
        self.link
            .write(
                &self.prepared_statements().await?.begin,
                (org.as_str(), agent.as_str(), version.as_str()),
            )
            .await
    }

    async fn put_chunk(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
        number: u32,
        body: Bytes,
    ) -> Result<(), StoreError> {
        let values = (
            org.as_str(),
            agent.as_str(),
            version.as_str(),
            i64::from(number),
            body.as_ref(),
        );
        self.link
            .write(&self.prepared_statements().await?.put_chunk, values)
            .await
    }

    async fn publish_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        kept: &PublishedProducts,
    ) -> Result<PublishedProducts, StoreError> {
        let current = self.read_current(org, agent).await?;
        let kept = self.put_current((org, agent), kept, &current).await?;
        self.sweep_or_warn((org, agent), current.status.kept.as_ref())
            .await;
        Ok(kept)
    }

    async fn restore_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: Option<&ProductsVersion>,
    ) -> Result<Option<PublishedProducts>, StoreError> {
        let current = self.read_current(org, agent).await?;
        let kept = current.status.kept.as_ref();
        let Some(previous) = kept.and_then(|kept| kept.previous_version(version)) else {
            return Ok(None);
        };
        let restored = self.put_current((org, agent), previous, &current).await?;
        // A publish at the same time may have deleted the version before it was current again.
        let last = restored.chunks.saturating_sub(1);
        let chunk = self.read_chunk(org, agent, &restored.version, last).await?;
        if chunk.is_some() {
            return Ok(Some(restored));
        }
        if let Some(kept) = kept {
            let now = self.read_current(org, agent).await?;
            let undone = StoredStatus {
                status: ProductsStatus::default(),
                ..now
            };
            self.put_current((org, agent), kept, &undone).await?;
        }
        let error = "the products were replaced at the same time";
        Err(StoreError::Unavailable(error.into()))
    }

    async fn discard_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
    ) -> Result<(), StoreError> {
        let prepared = self.prepared_statements().await?;
        let values = (org.as_str(), agent.as_str(), version.as_str());
        self.link.write(&prepared.discard, values).await?;
        self.link.write(&prepared.forget, values).await
    }

    async fn remove_products(&self, org: &OrgId, agent: &AgentId) -> Result<(), StoreError> {
        let (prepared, current) = (
            self.prepared_statements().await?,
            self.read_current(org, agent).await?,
        );
        let place = (org.as_str(), agent.as_str());
        let write = |statement, cell: &'static str, stamp| {
            self.link
                .write(statement, (place.0, place.1, cell, later_than(stamp)))
        };
        write(&prepared.put_kept, REMOVED, current.kept_at).await?;
        write(&prepared.put_refresh, REMOVED, current.refresh_at).await?;
        let never = (place.0, place.1, NEVER, later_than(current.asked_at));
        self.link.write(&prepared.put_asked, never).await?;
        self.sweep_or_warn((org, agent), current.status.kept.as_ref())
            .await;
        Ok(())
    }
}

#[async_trait]
impl FeedRefreshStore for ScyllaProducts {
    async fn record_refresh(
        &self,
        org: &OrgId,
        agent: &AgentId,
        refresh: &FeedRefresh,
    ) -> Result<(), StoreError> {
        let current = self.read_current(org, agent).await?;
        let values = (
            org.as_str(),
            agent.as_str(),
            encode(refresh)?,
            later_than(current.refresh_at),
        );
        self.link
            .write(&self.prepared_statements().await?.put_refresh, values)
            .await
    }

    async fn request_refresh(
        &self,
        org: &OrgId,
        agent: &AgentId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let current = self.read_current(org, agent).await?;
        let values = (
            org.as_str(),
            agent.as_str(),
            at.micros(),
            later_than(current.asked_at),
        );
        self.link
            .write(&self.prepared_statements().await?.put_asked, values)
            .await
    }
}

fn later_than(stamp: i64) -> i64 {
    Timestamp::now().micros().max(stamp + 1)
}

fn read<T: DeserializeOwned>(body: Option<String>) -> Result<Option<T>, StoreError> {
    body.filter(|body| body != REMOVED)
        .map(|body| decode(&body))
        .transpose()
}
