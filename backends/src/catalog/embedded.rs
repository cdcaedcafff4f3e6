//! The catalog of the embedded backend, in SQLite tables with a single writer. Lists are read from
//! a table of summaries, so that their time does not depend on the size of entries.

use std::path::Path;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyHash},
    ids::{AgentId, OrgId},
    time::Timestamp,
};

use super::{
    CatalogEntry, CatalogEntryStore, EntryKind, EntryPage, KeyUse, KeyUseStore, PageSighting,
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
    include_str!("embedded_summaries.sql"),
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
const PUT_SUMMARY: &str = "INSERT INTO entry_summaries VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET org_id = excluded.org_id, label = excluded.label, summary = excluded.summary";
const REMOVE_SUMMARY: &str =
    "DELETE FROM entry_summaries WHERE kind = ?1 AND id = ?2 AND org_id = ?3";
/// Lists without an organization have the entries of the installation, whatever their own one is.
const LIST: &str =
    "SELECT summary FROM entry_summaries WHERE kind = ?1 AND org_id = ?2 ORDER BY id";
const LIST_ALL: &str = "SELECT summary FROM entry_summaries WHERE kind = ?1 ORDER BY id";
const PAGE: &str = "SELECT summary FROM entry_summaries WHERE kind = ?1 AND org_id = ?2
    ORDER BY label, id LIMIT ?3 OFFSET ?4";
const PAGE_OF_ALL: &str = "SELECT summary FROM entry_summaries WHERE kind = ?1
    ORDER BY label, id LIMIT ?2 OFFSET ?3";
const COUNT: &str = "SELECT count(*) FROM entry_summaries WHERE kind = ?1 AND org_id = ?2";
const COUNT_ALL: &str = "SELECT count(*) FROM entry_summaries WHERE kind = ?1";
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
    pub(crate) database: SqliteDatabase,
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
        self.database
            .read(move |connection| select_one(connection, GET, params![kind.name(), id]))
            .await
    }

    async fn versioned(
        &self,
        kind: EntryKind,
        id: &str,
    ) -> Result<Option<VersionedEntry>, StoreError> {
        let id = id.to_owned();
        self.database
            .read(move |connection| {
                let mut statement = connection.prepare_cached(GET_VERSIONED)?;
                let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
                let row: Option<(String, i64)> = statement
                    .query_row(params![kind.name(), id], read)
                    .optional()?;
                row.map(|(body, version)| {
                    Ok(VersionedEntry {
                        entry: decode(&body)?,
                        version,
                    })
                })
                .transpose()
            })
            .await
    }

    async fn key_by_hash(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError> {
        let hash = hash.0;
        let entry = self
            .database
            .read(move |connection| select_one(connection, GET_KEY, params![hash]))
            .await?;
        match entry {
            Some(CatalogEntry::Key { key, .. }) => Ok(Some(key)),
            Some(_) => Err(StoreError::Malformed(
                "the entry of a key hash is not a key".into(),
            )),
            None => Ok(None),
        }
    }

    async fn put(&self, entry: &CatalogEntry) -> Result<(), StoreError> {
        let (kind, id, org, label) = (
            entry.kind(),
            entry.id().to_owned(),
            entry.org_id().clone(),
            entry.label().to_owned(),
        );
        let (body, summary) = (encode(entry)?, encode(&entry.summary())?);
        let hash = match entry {
            CatalogEntry::Key { hash, .. } => Some(*hash),
            _ => None,
        };
        self.database
            .write(move |connection| {
                let (kind, org) = (kind.name(), org.as_str());
                let values = params![kind, id, org, hash, body, Timestamp::now().micros()];
                connection.prepare_cached(PUT)?.execute(values)?;
                let values = params![kind, id, org, label, summary];
                connection.prepare_cached(PUT_SUMMARY)?.execute(values)?;
                Ok(())
            })
            .await
    }

    async fn remove(&self, kind: EntryKind, org: &OrgId, id: &str) -> Result<(), StoreError> {
        let (org, id) = (org.clone(), id.to_owned());
        self.database
            .write(move |connection| {
                let values = params![kind.name(), id, org.as_str()];
                let removed = connection.prepare_cached(REMOVE)?.execute(values)?;
                connection.prepare_cached(REMOVE_SUMMARY)?.execute(values)?;
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
        self.database
            .read(move |connection| match org {
                Some(org) => select_all(connection, LIST, params![kind.name(), org.as_str()]),
                None => select_all(connection, LIST_ALL, params![kind.name()]),
            })
            .await
    }

    async fn page(
        &self,
        kind: EntryKind,
        org: Option<&OrgId>,
        offset: u64,
        limit: u32,
    ) -> Result<EntryPage, StoreError> {
        let (org, offset) = (org.cloned(), i64::try_from(offset).unwrap_or(i64::MAX));
        self.database
            .read(move |connection| {
                let (kind, org) = (kind.name(), org.as_ref().map(OrgId::as_str));
                let (entries, total) = match org {
                    Some(org) => (
                        select_all(connection, PAGE, params![kind, org, limit, offset])?,
                        count(connection, COUNT, params![kind, org])?,
                    ),
                    None => (
                        select_all(connection, PAGE_OF_ALL, params![kind, limit, offset])?,
                        count(connection, COUNT_ALL, params![kind])?,
                    ),
                };
                Ok(EntryPage { entries, total })
            })
            .await
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

/// Reads and parses an entry, on the thread of the read.
fn select_one(
    connection: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<Option<CatalogEntry>, StoreError> {
    let body: Option<String> = connection
        .prepare_cached(sql)?
        .query_row(values, |row| row.get(0))
        .optional()?;
    body.map(|body| decode(&body)).transpose()
}

/// Reads and parses entries, on the thread of the read.
fn select_all(
    connection: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<Vec<CatalogEntry>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(decode(row.get_ref(0)?.as_str().unwrap_or_default())?);
    }
    Ok(entries)
}

fn count(
    connection: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<usize, StoreError> {
    let count: i64 = connection
        .prepare_cached(sql)?
        .query_row(values, |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{
        super::conformance::{
            account, key,
            lists::{large_agent, team},
            organization, provider,
        },
        *,
    };

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

    #[tokio::test]
    async fn summaries_of_older_files_are_filled_in() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("catalog.db");
        let org = organization("acme");
        let large = large_agent(org.org_id(), "shop");
        let entries = [
            org.clone(),
            large.clone(),
            team(org.org_id(), "front"),
            provider(org.org_id(), &[1]),
            key(org.org_id(), [7; 32]),
            account(org.org_id(), "ada@example.org", "Ada"),
        ];
        let older = SqliteDatabase::open(&path, FileSharing::Commands, &MIGRATIONS[..4]).unwrap();
        for entry in &entries {
            let (kind, id, org) = (entry.kind().name(), entry.id(), entry.org_id().as_str());
            let values = (kind, id.to_owned(), org.to_owned(), encode(entry).unwrap());
            let put = move |connection: &Connection| {
                let (kind, id, org, body) = values;
                let values = params![kind, id, org, None::<Vec<u8>>, body, 1];
                Ok(connection.execute(PUT, values).map(|_| ())?)
            };
            older.write(put).await.unwrap();
        }
        drop(older);
        let catalog = EmbeddedCatalog::open(&path).unwrap();
        for entry in &entries {
            let page = catalog.page(entry.kind(), Some(entry.org_id()), 0, 9).await;
            let page = page.unwrap();
            assert_eq!((page.entries, page.total), (vec![older_summary(entry)], 1));
            let whole = catalog.get(entry.kind(), entry.id()).await.unwrap();
            assert_eq!(whole.as_ref(), Some(entry));
        }
    }

    /// Returns the summary that the migration makes: it keeps the texts of lead forms.
    fn older_summary(entry: &CatalogEntry) -> CatalogEntry {
        let mut summary = entry.summary();
        if let (CatalogEntry::Agent(summary), CatalogEntry::Agent(agent)) = (&mut summary, entry) {
            summary.settings.lead_form = agent.settings.lead_form.clone();
        }
        summary
    }
}
