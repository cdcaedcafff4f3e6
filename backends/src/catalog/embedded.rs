//! The catalog of the embedded backend, in one SQLite table with a single writer.

use std::path::Path;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyHash},
    ids::{AgentId, OrgId},
    time::Timestamp,
};

use super::{
    CatalogEntry, CatalogEntryStore, EntryKind, KeyUse, KeyUseStore, PageSighting,
    PageSightingStore, VersionedEntry,
    page_sightings::{PAGES_MAX, latest_first},
};
use crate::{
    error::StoreError,
    json::{decode, encode},
    sqlite::{FileSharing, SqliteDatabase},
};

/// Schema migrations, oldest first.
const MIGRATIONS: &[&str] = &[
    include_str!("embedded.sql"),
    include_str!("embedded_versions.sql"),
    include_str!("embedded_key_uses.sql"),
    include_str!("embedded_page_sightings.sql"),
];

/// Versions are clock times, as on Scylla. A replaced entry may have been written by a clock that
/// was ahead.
const PUT: &str = "INSERT INTO entries (kind, id, org_id, key_hash, body, version) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO UPDATE SET org_id = excluded.org_id, key_hash = excluded.key_hash, body = excluded.body,
        version = max(excluded.version, version + 1)";
const REMOVE: &str = "DELETE FROM entries WHERE kind = ?1 AND id = ?2 AND org_id = ?3";
const GET: &str = "SELECT body FROM entries WHERE kind = ?1 AND id = ?2";
const GET_VERSIONED: &str = "SELECT body, version FROM entries WHERE kind = ?1 AND id = ?2";
const GET_KEY: &str = "SELECT body FROM entries WHERE key_hash = ?1";
const LIST: &str = "SELECT body FROM entries WHERE kind = ?1 AND org_id = ?2 ORDER BY id";
const LIST_ORGANIZATIONS: &str = "SELECT body FROM entries WHERE kind = ?1 ORDER BY id";
const PUT_USE: &str = "INSERT INTO key_uses VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET used_at = max(used_at, excluded.used_at)";
const REMOVE_USE: &str = "DELETE FROM key_uses WHERE org_id = ?1 AND key_id = ?2";
const LIST_USES: &str = "SELECT key_id, used_at FROM key_uses WHERE org_id = ?1";
const PUT_PAGE: &str = "INSERT INTO page_sightings VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)";
const REMOVE_OLD_PAGES: &str = "DELETE FROM page_sightings WHERE org_id = ?1 AND agent_id = ?2 AND origin NOT IN
    (SELECT origin FROM page_sightings WHERE org_id = ?1 AND agent_id = ?2 ORDER BY seen_at DESC LIMIT ?3)";
const LIST_PAGES: &str =
    "SELECT origin, seen_at FROM page_sightings WHERE org_id = ?1 AND agent_id = ?2";

/// Configuration in a local file.
#[derive(Clone)]
pub struct EmbeddedCatalog {
    database: SqliteDatabase,
}

impl EmbeddedCatalog {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the file cannot be used, [`StoreError::Malformed`] if a newer
    /// version wrote it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            database: SqliteDatabase::open(path, FileSharing::Commands, MIGRATIONS)?,
        })
    }
}

#[async_trait]
impl CatalogEntryStore for EmbeddedCatalog {
    async fn get(&self, kind: EntryKind, id: &str) -> Result<Option<CatalogEntry>, StoreError> {
        let id = id.to_owned();
        let body = self
            .database
            .read(move |connection| select_one(connection, GET, params![kind.name(), id]));
        body.await?.map(|body| decode(&body)).transpose()
    }

    async fn versioned(
        &self,
        kind: EntryKind,
        id: &str,
    ) -> Result<Option<VersionedEntry>, StoreError> {
        let id = id.to_owned();
        let row: Option<(String, i64)> = self
            .database
            .read(move |connection| {
                let mut statement = connection.prepare_cached(GET_VERSIONED)?;
                let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
                Ok(statement
                    .query_row(params![kind.name(), id], read)
                    .optional()?)
            })
            .await?;
        row.map(|(body, version)| {
            Ok(VersionedEntry {
                entry: decode(&body)?,
                version,
            })
        })
        .transpose()
    }

    async fn key_by_hash(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError> {
        let hash = hash.0;
        let body = self
            .database
            .read(move |connection| select_one(connection, GET_KEY, params![hash]))
            .await?;
        match body.map(|body| decode(&body)).transpose()? {
            Some(CatalogEntry::Key { key, .. }) => Ok(Some(key)),
            Some(_) => Err(StoreError::Malformed(
                "the entry of a key hash is not a key".into(),
            )),
            None => Ok(None),
        }
    }

    async fn put(&self, entry: &CatalogEntry) -> Result<(), StoreError> {
        let (kind, id, org, body) = (
            entry.kind(),
            entry.id().to_owned(),
            entry.org_id().clone(),
            encode(entry)?,
        );
        let hash = match entry {
            CatalogEntry::Key { hash, .. } => Some(*hash),
            _ => None,
        };
        self.database
            .write(move |connection| {
                let values = params![
                    kind.name(),
                    id,
                    org.as_str(),
                    hash,
                    body,
                    Timestamp::now().micros()
                ];
                connection.prepare_cached(PUT)?.execute(values)?;
                Ok(())
            })
            .await
    }

    async fn remove(&self, kind: EntryKind, org: &OrgId, id: &str) -> Result<(), StoreError> {
        let (org, id) = (org.clone(), id.to_owned());
        self.database
            .write(move |connection| {
                let removed = connection.prepare_cached(REMOVE)?.execute(params![
                    kind.name(),
                    id,
                    org.as_str()
                ])?;
                if removed > 0 && kind == EntryKind::Key {
                    connection
                        .prepare_cached(REMOVE_USE)?
                        .execute(params![org.as_str(), id])?;
                }
                Ok(())
            })
            .await
    }

    async fn list(
        &self,
        kind: EntryKind,
        org: Option<&OrgId>,
    ) -> Result<Vec<CatalogEntry>, StoreError> {
        let org = org.cloned();
        let bodies = self.database.read(move |connection| match org {
            Some(org) => select_all(connection, LIST, params![kind.name(), org.as_str()]),
            None => select_all(
                connection,
                LIST_ORGANIZATIONS,
                params![EntryKind::Organization.name()],
            ),
        });
        bodies.await?.iter().map(|body| decode(body)).collect()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.database
            .write(|connection| Ok(connection.query_row("SELECT 1", [], |_| Ok(()))?))
            .await
    }
}

#[async_trait]
impl KeyUseStore for EmbeddedCatalog {
    async fn record_key_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError> {
        let uses = uses.to_vec();
        self.database
            .write(move |connection| {
                let mut put = connection.prepare_cached(PUT_USE)?;
                for KeyUse { org_id, key_id, at } in &uses {
                    put.execute(params![org_id.as_str(), key_id.as_str(), at.micros()])?;
                }
                Ok(())
            })
            .await
    }

    async fn key_uses(&self, org: &OrgId) -> Result<Vec<KeyUse>, StoreError> {
        let owner = org.clone();
        let rows: Vec<(String, i64)> = self
            .database
            .read(move |connection| {
                let mut select = connection.prepare_cached(LIST_USES)?;
                let rows = select.query_map(params![owner.as_str()], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await?;
        let read = |(key, at): (String, i64)| {
            Some(KeyUse {
                org_id: org.clone(),
                key_id: key.parse().ok()?,
                at: Timestamp::from_micros(at),
            })
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }
}

#[async_trait]
impl PageSightingStore for EmbeddedCatalog {
    async fn record_page(&self, page: &PageSighting) -> Result<(), StoreError> {
        let page = page.clone();
        self.database
            .write(move |connection| {
                let (org, agent) = (page.org_id.as_str(), page.agent_id.as_str());
                let row = params![org, agent, page.origin, page.at.micros()];
                connection.prepare_cached(PUT_PAGE)?.execute(row)?;
                let kept = params![org, agent, PAGES_MAX];
                connection.prepare_cached(REMOVE_OLD_PAGES)?.execute(kept)?;
                Ok(())
            })
            .await
    }

    async fn pages(&self, org: &OrgId, agent: &AgentId) -> Result<Vec<PageSighting>, StoreError> {
        let key = [org.to_string(), agent.to_string()];
        let rows: Vec<(String, i64)> = self
            .database
            .read(move |connection| {
                let mut select = connection.prepare_cached(LIST_PAGES)?;
                let rows = select.query_map(key, |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await?;
        Ok(latest_first((org, agent), rows))
    }
}

fn select_one(
    connection: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<Option<String>, StoreError> {
    Ok(connection
        .prepare_cached(sql)?
        .query_row(values, |row| row.get(0))
        .optional()?)
}

fn select_all(
    connection: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement
        .query_map(values, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::{super::conformance::organization, *};

    #[tokio::test]
    async fn entries_survive_reopening() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("catalog.db");
        let entry = organization("acme");
        EmbeddedCatalog::open(&path)
            .unwrap()
            .put(&entry)
            .await
            .unwrap();
        let reopened = EmbeddedCatalog::open(&path).unwrap();
        assert_eq!(
            reopened
                .get(EntryKind::Organization, entry.id())
                .await
                .unwrap(),
            Some(entry)
        );
    }
}
