//! The products of the embedded backend, in three SQLite tables. A publish and the removal of
//! replaced versions are one transaction.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};
use serde::de::DeserializeOwned;
use switchboard_schemas::{
    ids::{AgentId, OrgId},
    time::Timestamp,
};
use tokio::sync::Notify;

use super::{
    FeedRefresh, FeedRefreshStore, ProductReader, ProductVersionStore, ProductsStatus,
    ProductsVersion, PublishedProducts, UPLOAD_TIME_MAX,
};
use crate::{
    error::StoreError,
    json::{decode, encode},
    sqlite::{FileSharing, SqliteDatabase},
};

/// Schema migrations, oldest first.
const MIGRATIONS: &[&str] = &[include_str!("embedded.sql")];

const STATUS: &str =
    "SELECT kept, refresh, asked_at FROM products WHERE org_id = ?1 AND agent_id = ?2";
const BEGIN: &str =
    "INSERT OR IGNORE INTO product_versions (org_id, agent_id, version) VALUES (?1, ?2, ?3)";
const PUT_CHUNK: &str = "INSERT OR REPLACE INTO product_chunks (org_id, agent_id, version, number, body) VALUES (?1, ?2, ?3, ?4, ?5)";
const CHUNK: &str = "SELECT body FROM product_chunks WHERE org_id = ?1 AND agent_id = ?2 AND version = ?3 AND number = ?4";
const PUBLISH: &str = "INSERT INTO products (org_id, agent_id, kept) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET kept = excluded.kept";
const NOTE_REFRESH: &str = "INSERT INTO products (org_id, agent_id, refresh) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET refresh = excluded.refresh";
const ASK_REFRESH: &str = "INSERT INTO products (org_id, agent_id, asked_at) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET asked_at = excluded.asked_at";
const REMOVE: &str = "DELETE FROM products WHERE org_id = ?1 AND agent_id = ?2";
const VERSIONS: &str = "SELECT version FROM product_versions WHERE org_id = ?1 AND agent_id = ?2";
const DISCARD_CHUNKS: &str =
    "DELETE FROM product_chunks WHERE org_id = ?1 AND agent_id = ?2 AND version = ?3";
const DISCARD: &str =
    "DELETE FROM product_versions WHERE org_id = ?1 AND agent_id = ?2 AND version = ?3";

/// Products in a local file.
#[derive(Clone)]
pub struct EmbeddedProducts {
    pub(crate) database: SqliteDatabase,
    asked: Arc<Notify>,
}

impl EmbeddedProducts {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the file cannot be used, [`StoreError::Malformed`] if a newer
    /// version wrote it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            database: SqliteDatabase::open(path, FileSharing::Commands, MIGRATIONS)?,
            asked: Arc::default(),
        })
    }

    async fn write<T, F>(&self, org: &OrgId, agent: &AgentId, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &str, &str) -> Result<T, StoreError> + Send + 'static,
    {
        let (org, agent) = (org.clone(), agent.clone());
        self.database
            .write(move |connection| work(connection, org.as_str(), agent.as_str()))
            .await
    }
}

#[async_trait]
impl ProductReader for EmbeddedProducts {
    async fn read_status(
        &self,
        org: &OrgId,
        agent: &AgentId,
    ) -> Result<ProductsStatus, StoreError> {
        let (org, agent) = (org.clone(), agent.clone());
        self.database
            .read(move |connection| read_status(connection, org.as_str(), agent.as_str()))
            .await
    }

    async fn read_chunk(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
        number: u32,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let (org, agent, version) = (org.clone(), agent.clone(), version.clone());
        self.database
            .read(move |connection| {
                let values = params![org.as_str(), agent.as_str(), version.as_str(), number];
                Ok(connection
                    .prepare_cached(CHUNK)?
                    .query_row(values, |row| row.get(0))
                    .optional()?)
            })
            .await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.database
            .read(|connection| Ok(connection.query_row("SELECT 1", [], |_| Ok(()))?))
            .await
    }
}

#[async_trait]
impl ProductVersionStore for EmbeddedProducts {
    async fn begin_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
    ) -> Result<(), StoreError> {
        let version = version.clone();
        self.write(org, agent, move |connection, org, agent| {
            execute(connection, BEGIN, params![org, agent, version.as_str()])
        })
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
        let version = version.clone();
        self.write(org, agent, move |connection, org, agent| {
            execute(
                connection,
                PUT_CHUNK,
                params![org, agent, version.as_str(), number, body.as_ref()],
            )
        })
        .await
    }

    async fn publish_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        kept: &PublishedProducts,
    ) -> Result<PublishedProducts, StoreError> {
        let kept = kept.clone();
        self.write(org, agent, move |connection, org, agent| {
            let replaced = read_status(connection, org, agent)?.kept;
            publish(connection, (org, agent), &kept, replaced.as_ref())
        })
        .await
    }

    async fn restore_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: Option<&ProductsVersion>,
    ) -> Result<Option<PublishedProducts>, StoreError> {
        let version = version.cloned();
        self.write(org, agent, move |connection, org, agent| {
            let current = read_status(connection, org, agent)?.kept;
            let previous = current
                .as_ref()
                .and_then(|current| current.previous_version(version.as_ref()));
            previous
                .map(|previous| publish(connection, (org, agent), previous, current.as_ref()))
                .transpose()
        })
        .await
    }

    async fn discard_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
    ) -> Result<(), StoreError> {
        let version = version.clone();
        self.write(org, agent, move |connection, org, agent| {
            discard_version(connection, (org, agent), &version)
        })
        .await
    }

    async fn remove_products(&self, org: &OrgId, agent: &AgentId) -> Result<(), StoreError> {
        self.write(org, agent, |connection, org, agent| {
            let removed = read_status(connection, org, agent)?.kept;
            execute(connection, REMOVE, params![org, agent])?;
            sweep(connection, (org, agent), None, removed.as_ref())
        })
        .await
    }
}

#[async_trait]
impl FeedRefreshStore for EmbeddedProducts {
    async fn record_refresh(
        &self,
        org: &OrgId,
        agent: &AgentId,
        refresh: &FeedRefresh,
    ) -> Result<(), StoreError> {
        let body = encode(refresh)?;
        self.write(org, agent, move |connection, org, agent| {
            execute(connection, NOTE_REFRESH, params![org, agent, body])
        })
        .await
    }

    async fn request_refresh(
        &self,
        org: &OrgId,
        agent: &AgentId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(org, agent, move |connection, org, agent| {
            execute(connection, ASK_REFRESH, params![org, agent, at.micros()])
        })
        .await?;
        self.asked.notify_one();
        Ok(())
    }

    async fn refresh_requested(&self) {
        self.asked.notified().await;
    }
}

fn read_status(
    connection: &Connection,
    org: &str,
    agent: &str,
) -> Result<ProductsStatus, StoreError> {
    type StatusColumns = (Option<String>, Option<String>, Option<i64>);
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let row: Option<StatusColumns> = connection
        .prepare_cached(STATUS)?
        .query_row(params![org, agent], read)
        .optional()?;
    let (kept, refresh, asked_at) = row.unwrap_or_default();
    Ok(ProductsStatus {
        kept: decode_column(kept)?,
        refresh: decode_column(refresh)?,
        asked_at: asked_at.map(Timestamp::from_micros),
    })
}

fn decode_column<T: DeserializeOwned>(body: Option<String>) -> Result<Option<T>, StoreError> {
    body.map(|body| decode(&body)).transpose()
}

/// Makes a version the successor of `replaced`.
fn publish(
    connection: &Connection,
    place: (&str, &str),
    kept: &PublishedProducts,
    replaced: Option<&PublishedProducts>,
) -> Result<PublishedProducts, StoreError> {
    let kept = kept.succeeding(replaced);
    execute(
        connection,
        PUBLISH,
        params![place.0, place.1, encode(&kept)?],
    )?;
    sweep(connection, place, Some(&kept), replaced)?;
    Ok(kept)
}

/// Deletes versions that `replaced` kept and abandoned uploads, except for what `current` keeps.
fn sweep(
    connection: &Connection,
    place: (&str, &str),
    current: Option<&PublishedProducts>,
    replaced: Option<&PublishedProducts>,
) -> Result<(), StoreError> {
    let now = Timestamp::now();
    let mut statement = connection.prepare_cached(VERSIONS)?;
    let versions = statement.query_map(params![place.0, place.1], |row| row.get(0))?;
    for version in versions.collect::<rusqlite::Result<Vec<String>>>()? {
        let version = ProductsVersion::from_kept(version);
        let left_behind = replaced.is_some_and(|replaced| replaced.keeps(&version))
            || version.is_older_than(UPLOAD_TIME_MAX, now);
        if left_behind && !current.is_some_and(|current| current.keeps(&version)) {
            discard_version(connection, place, &version)?;
        }
    }
    Ok(())
}

fn discard_version(
    connection: &Connection,
    (org, agent): (&str, &str),
    version: &ProductsVersion,
) -> Result<(), StoreError> {
    execute(
        connection,
        DISCARD_CHUNKS,
        params![org, agent, version.as_str()],
    )?;
    execute(connection, DISCARD, params![org, agent, version.as_str()])
}

fn execute(
    connection: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<(), StoreError> {
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}
