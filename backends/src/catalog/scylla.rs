//! The catalog on ScyllaDB or Cassandra. Each change writes all tables with one timestamp, so that
//! two simultaneous changes end the same everywhere, and in one logged batch, if it is not too long
//! for one.
//!
//! The table that lists are read from contains summaries. Rows that an older version wrote are
//! whole entries until their next change; both are parsed into the same type.
//!
//! The timestamp is greater than that of the replaced entry, because the next command of an admin
//! may reach a process whose clock is behind. A removal writes an empty text: its timestamp can be
//! read, that of a deletion cannot.

use std::sync::Arc;

use async_trait::async_trait;
use scylla::statement::batch::BatchType;
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyHash},
    ids::{AgentId, KeyId, OrgId},
    time::Timestamp,
};
use tokio::sync::OnceCell;

use super::{
    CatalogEntry, CatalogEntryStore, EntryKind, KeyUse, KeyUseStore, PageSighting,
    PageSightingStore, VersionedEntry,
    page_sightings::{PAGES_MAX, latest_first},
};
use crate::{
    error::StoreError,
    json::{decode, decode_all, encode},
    scylla_link::{ScyllaLink, statements},
};

/// Text of a removed entry.
const REMOVED: &str = "";
/// Largest text of an entry that is written together with its summary, in bytes. Cassandra refuses
/// batches of more than 50 KB.
const BATCHED_BYTES_MAX: usize = 24 << 10;
/// Owner under which organizations and their removals are listed.
const INSTALLATION: &str = "";

/// Configuration in a cluster.
pub struct ScyllaCatalog {
    link: Arc<ScyllaLink>,
    prepared: OnceCell<CatalogStatements>,
}

statements! {
    struct CatalogStatements {
        prepare_write put =
            "INSERT INTO switchboard.catalog (kind, id, body) VALUES (?, ?, ?) USING TIMESTAMP ?",
        prepare_write put_by_org =
            "INSERT INTO switchboard.catalog_by_org (org_id, kind, id, body) VALUES (?, ?, ?, ?) USING TIMESTAMP ?",
        prepare_write put_hash =
            "INSERT INTO switchboard.keys_by_hash (hash, key_id) VALUES (?, ?) USING TIMESTAMP ?",
        prepare_read get =
            "SELECT body, writetime(body) FROM switchboard.catalog WHERE kind = ? AND id = ?",
        prepare_read get_hash = "SELECT key_id FROM switchboard.keys_by_hash WHERE hash = ?",
        prepare_read list =
            "SELECT body FROM switchboard.catalog_by_org WHERE org_id = ? AND kind = ?",
        prepare_write put_use =
            "INSERT INTO switchboard.key_uses (org_id, key_id, used_at) VALUES (?, ?, ?) USING TIMESTAMP ?",
        prepare_write remove_use =
            "DELETE FROM switchboard.key_uses USING TIMESTAMP ? WHERE org_id = ? AND key_id = ?",
        prepare_read list_uses =
            "SELECT key_id, used_at FROM switchboard.key_uses WHERE org_id = ?",
        prepare_write put_page = "INSERT INTO switchboard.page_sightings
                (org_id, agent_id, origin, seen_at) VALUES (?, ?, ?, ?) USING TIMESTAMP ?",
        prepare_write remove_page = "DELETE FROM switchboard.page_sightings USING TIMESTAMP ?
                WHERE org_id = ? AND agent_id = ? AND origin = ?",
        prepare_read list_pages = "SELECT origin, seen_at FROM switchboard.page_sightings
                WHERE org_id = ? AND agent_id = ?",
    }
}

/// The stored entry of an id and its write time.
#[derive(Default)]
struct StoredEntry {
    entry: Option<CatalogEntry>,
    written_at: Option<i64>,
}

impl ScyllaCatalog {
    /// Creates the catalog on a link. The cluster need not be reachable yet.
    pub fn connect(link: Arc<ScyllaLink>) -> Self {
        Self {
            link,
            prepared: OnceCell::new(),
        }
    }

    async fn prepared_statements(&self) -> Result<&CatalogStatements, StoreError> {
        self.prepared
            .get_or_try_init(|| Box::pin(CatalogStatements::new(&self.link)))
            .await
    }

    async fn read_current(&self, kind: EntryKind, id: &str) -> Result<StoredEntry, StoreError> {
        let rows = self
            .link
            .query_rows::<(String, i64)>(&self.prepared_statements().await?.get, (kind.name(), id))
            .await?;
        let Some((body, written_at)) = rows.into_iter().next() else {
            return Ok(StoredEntry::default());
        };
        Ok(StoredEntry {
            entry: read(&body)?,
            written_at: Some(written_at),
        })
    }

    /// Writes `body` for an entry and `summary` for its list, or [`REMOVED`] for both.
    async fn write(
        &self,
        entry: &CatalogEntry,
        (body, summary): (&str, &str),
        current: &StoredEntry,
    ) -> Result<(), StoreError> {
        let prepared = self.prepared_statements().await?;
        let stamp = Timestamp::now()
            .micros()
            .max(current.written_at.unwrap_or(0) + 1);
        let (kind, id) = (entry.kind(), entry.id());
        let put = (kind.name(), id, body, stamp);
        let put_by_org = (
            list_owner(kind, entry.org_id()),
            kind.name(),
            id,
            summary,
            stamp,
        );
        let mut statements = vec![&prepared.put, &prepared.put_by_org];
        match entry {
            CatalogEntry::Key { hash, .. } if body != REMOVED => {
                statements.push(&prepared.put_hash);
                let put_hash = (hash.as_slice(), id, stamp);
                self.link
                    .write_together(BatchType::Logged, statements, (put, put_by_org, put_hash))
                    .await
            }
            // The list first: an entry that is not in it could not be found to be repaired.
            _ if body.len() > BATCHED_BYTES_MAX => {
                self.link.write(&prepared.put_by_org, put_by_org).await?;
                self.link.write(&prepared.put, put).await
            }
            _ => {
                self.link
                    .write_together(BatchType::Logged, statements, (put, put_by_org))
                    .await
            }
        }
    }
}

#[async_trait]
impl CatalogEntryStore for ScyllaCatalog {
    async fn get(&self, kind: EntryKind, id: &str) -> Result<Option<CatalogEntry>, StoreError> {
        Ok(self.read_current(kind, id).await?.entry)
    }

    async fn versioned(
        &self,
        kind: EntryKind,
        id: &str,
    ) -> Result<Option<VersionedEntry>, StoreError> {
        let StoredEntry { entry, written_at } = self.read_current(kind, id).await?;
        Ok(entry.map(|entry| VersionedEntry {
            entry,
            version: written_at.unwrap_or_default(),
        }))
    }

    async fn key_by_hash(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError> {
        let rows = self
            .link
            .query_rows::<(String,)>(
                &self.prepared_statements().await?.get_hash,
                (hash.0.as_slice(),),
            )
            .await?;
        let Some((id,)) = rows.into_iter().next() else {
            return Ok(None);
        };
        // The entry decides: it may be gone or have another hash by now.
        match self.get(EntryKind::Key, &id).await? {
            Some(CatalogEntry::Key { key, hash: current }) if current == hash.0 => Ok(Some(key)),
            _ => Ok(None),
        }
    }

    async fn put(&self, entry: &CatalogEntry) -> Result<(), StoreError> {
        let current = self.read_current(entry.kind(), entry.id()).await?;
        let texts = (&*encode(entry)?, &*encode(&entry.summary())?);
        self.write(entry, texts, &current).await
    }

    async fn remove(&self, kind: EntryKind, org: &OrgId, id: &str) -> Result<(), StoreError> {
        let current = self.read_current(kind, id).await?;
        match &current.entry {
            Some(entry) if entry.org_id() == org => {
                self.write(entry, (REMOVED, REMOVED), &current).await?;
            }
            Some(_) => return Ok(()),
            // A crash between the writes of a long entry leaves its row in the list.
            None => {
                let stamp = Timestamp::now().micros();
                let row = (list_owner(kind, org), kind.name(), id, REMOVED, stamp);
                let prepared = self.prepared_statements().await?;
                return self.link.write(&prepared.put_by_org, row).await;
            }
        }
        if kind == EntryKind::Key {
            let values = (Timestamp::now().micros(), org.as_str(), id);
            self.link
                .write(&self.prepared_statements().await?.remove_use, values)
                .await?;
        }
        Ok(())
    }

    async fn list(
        &self,
        kind: EntryKind,
        org: Option<&OrgId>,
    ) -> Result<Vec<CatalogEntry>, StoreError> {
        let values = match org {
            Some(org) if kind.is_of_installation() => {
                return Ok(self.get(kind, org.as_str()).await?.into_iter().collect());
            }
            Some(org) => (org.as_str(), kind.name()),
            None => (INSTALLATION, kind.name()),
        };
        let rows = self
            .link
            .query_rows::<(String,)>(&self.prepared_statements().await?.list, values)
            .await?;
        let texts = rows.into_iter().map(|(summary,)| summary);
        // A removed entry has an empty text.
        decode_all(texts.filter(|text| text != REMOVED).collect()).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.read_current(EntryKind::Organization, "check")
            .await
            .map(|_| ())
    }
}

#[async_trait]
impl KeyUseStore for ScyllaCatalog {
    async fn record_key_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError> {
        let prepared = self.prepared_statements().await?;
        for KeyUse { org_id, key_id, at } in uses {
            let values = (org_id.as_str(), key_id.as_str(), at.micros(), at.micros());
            self.link.write(&prepared.put_use, values).await?;
        }
        Ok(())
    }

    async fn key_uses(&self, org: &OrgId) -> Result<Vec<KeyUse>, StoreError> {
        let rows = self
            .link
            .query_rows::<(String, i64)>(
                &self.prepared_statements().await?.list_uses,
                (org.as_str(),),
            )
            .await?;
        Ok(rows
            .iter()
            .filter_map(|(key, at)| read_use(org, key, *at))
            .collect())
    }
}

#[async_trait]
impl PageSightingStore for ScyllaCatalog {
    async fn record_page(&self, page: &PageSighting) -> Result<(), StoreError> {
        let prepared = self.prepared_statements().await?;
        let (org, agent, at) = (
            page.org_id.as_str(),
            page.agent_id.as_str(),
            page.at.micros(),
        );
        let values = (org, agent, page.origin.as_str(), at, at);
        self.link.write(&prepared.put_page, values).await?;
        for old in self
            .pages(&page.org_id, &page.agent_id)
            .await?
            .iter()
            .skip(PAGES_MAX as usize)
        {
            let values = (old.at.micros(), org, agent, old.origin.as_str());
            self.link.write(&prepared.remove_page, values).await?;
        }
        Ok(())
    }

    async fn pages(&self, org: &OrgId, agent: &AgentId) -> Result<Vec<PageSighting>, StoreError> {
        let rows = self
            .link
            .query_rows::<(String, i64)>(
                &self.prepared_statements().await?.list_pages,
                (org.as_str(), agent.as_str()),
            )
            .await?;
        Ok(latest_first((org, agent), rows))
    }
}

fn read(body: &str) -> Result<Option<CatalogEntry>, StoreError> {
    if body == REMOVED {
        Ok(None)
    } else {
        decode(body).map(Some)
    }
}

/// Parses the use of a key. A text that is not an id belongs to no listed key.
fn read_use(org: &OrgId, key: &str, at: i64) -> Option<KeyUse> {
    let key_id: KeyId = key.parse().ok()?;
    Some(KeyUse {
        org_id: org.clone(),
        key_id,
        at: Timestamp::from_micros(at),
    })
}

fn list_owner(kind: EntryKind, org: &OrgId) -> &str {
    if kind.is_of_installation() {
        INSTALLATION
    } else {
        org.as_str()
    }
}

#[cfg(test)]
#[cfg(feature = "real-services")]
mod real_tests {
    use super::{
        super::conformance::{agent, organization},
        *,
    };
    use crate::scylla_link::testing::link;

    /// One hour, in microseconds.
    const AHEAD_MICROS: i64 = 3_600_000_000;

    #[tokio::test]
    async fn later_change_wins_despite_a_clock_that_is_ahead() {
        let catalog = ScyllaCatalog::connect(link().await);
        let org = organization("acme").org_id().clone();
        let (old, new) = (agent(&org, "shop", "Old"), agent(&org, "shop", "New"));
        let ahead = StoredEntry {
            entry: None,
            written_at: Some(Timestamp::now().micros() + AHEAD_MICROS),
        };
        for body in [encode(&old).unwrap(), REMOVED.to_owned()] {
            catalog.write(&old, (&body, &body), &ahead).await.unwrap();
            catalog.put(&new).await.unwrap();
            assert_eq!(
                catalog
                    .get(EntryKind::Agent, new.id())
                    .await
                    .unwrap()
                    .as_ref(),
                Some(&new)
            );
            assert_eq!(
                catalog.list(EntryKind::Agent, Some(&org)).await.unwrap(),
                [new.summary()]
            );
        }
    }

    #[tokio::test]
    async fn removal_clears_the_list_of_an_entry_that_was_half_written() {
        let catalog = ScyllaCatalog::connect(link().await);
        let org = organization("acme").org_id().clone();
        let entry = agent(&org, "shop", "Shop");
        let summary = encode(&entry.summary()).unwrap();
        let none = StoredEntry::default();
        catalog
            .write(&entry, (REMOVED, &summary), &none)
            .await
            .unwrap();
        let list = async || catalog.list(EntryKind::Agent, Some(&org)).await.unwrap();
        assert_eq!(list().await, [entry.summary()]);
        catalog
            .remove(EntryKind::Agent, &org, entry.id())
            .await
            .unwrap();
        assert_eq!(list().await, []);
    }
}
