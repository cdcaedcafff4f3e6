//! The embedded backend of [`super::AccountActivityStore`]: dashboard sessions and the audit log,
//! in two SQLite tables.

use std::path::Path;

use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use switchboard_schemas::{
    audit::AuditEntry,
    ids::{AuditId, OrgId},
    random_token::TokenHash,
    time::Timestamp,
};

use super::{AccountActivityStore, DashboardSession};
use crate::{
    error::StoreError,
    json::{decode, encode},
    sqlite::{FileSharing, SqliteDatabase},
};

/// Schema migrations, oldest first.
const MIGRATIONS: &[&str] = &[include_str!("embedded.sql")];

const BEGIN: &str =
    "INSERT OR REPLACE INTO sessions (hash, body, seen_at, expires_at) VALUES (?1, ?2, ?3, ?4)";
const SWEEP: &str = "DELETE FROM sessions WHERE expires_at <= ?1";
const GET: &str = "SELECT body, seen_at FROM sessions WHERE hash = ?1 AND expires_at > ?2";
const TOUCH: &str = "UPDATE sessions SET seen_at = max(seen_at, ?2) WHERE hash = ?1";
const END: &str = "DELETE FROM sessions WHERE hash = ?1";
const RECORD: &str = "INSERT OR IGNORE INTO audit_log (org_id, id, body) VALUES (?1, ?2, ?3)";
const LOG: &str = "SELECT body FROM audit_log WHERE org_id = ?1 AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3";

/// Sessions and the audit log in a local file.
#[derive(Clone)]
pub struct EmbeddedAccounts {
    pub(crate) database: SqliteDatabase,
}

impl EmbeddedAccounts {
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
impl AccountActivityStore for EmbeddedAccounts {
    async fn begin_session(
        &self,
        hash: &TokenHash,
        session: &DashboardSession,
    ) -> Result<(), StoreError> {
        let (hash, body) = (hash.0, encode(session)?);
        let (seen_at, expires_at) = (session.seen_at.micros(), session.expires_at.micros());
        self.database
            .write(move |connection| {
                connection
                    .prepare_cached(SWEEP)?
                    .execute([Timestamp::now().micros()])?;
                connection
                    .prepare_cached(BEGIN)?
                    .execute(params![hash, body, seen_at, expires_at])?;
                Ok(())
            })
            .await
    }

    async fn find_session(&self, hash: &TokenHash) -> Result<Option<DashboardSession>, StoreError> {
        let hash = hash.0;
        let row: Option<(String, i64)> = self
            .database
            .read(move |connection| {
                let values = params![hash, Timestamp::now().micros()];
                let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
                Ok(connection
                    .prepare_cached(GET)?
                    .query_row(values, read)
                    .optional()?)
            })
            .await?;
        let Some((body, seen_at)) = row else {
            return Ok(None);
        };
        Ok(Some(DashboardSession {
            seen_at: Timestamp::from_micros(seen_at),
            ..decode(&body)?
        }))
    }

    async fn touch_session(
        &self,
        hash: &TokenHash,
        session: &DashboardSession,
    ) -> Result<(), StoreError> {
        let (hash, seen_at) = (hash.0, session.seen_at.micros());
        self.database
            .write(move |connection| {
                connection
                    .prepare_cached(TOUCH)?
                    .execute(params![hash, seen_at])?;
                Ok(())
            })
            .await
    }

    async fn end_session(&self, hash: &TokenHash) -> Result<(), StoreError> {
        let hash = hash.0;
        self.database
            .write(move |connection| {
                connection.prepare_cached(END)?.execute([hash])?;
                Ok(())
            })
            .await
    }

    async fn append_entry(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let (org, id, body) = (entry.org_id.clone(), entry.id.clone(), encode(entry)?);
        self.database
            .write(move |connection| {
                connection.prepare_cached(RECORD)?.execute(params![
                    org.as_str(),
                    id.as_str(),
                    body
                ])?;
                Ok(())
            })
            .await
    }

    async fn log_entries(
        &self,
        org: &OrgId,
        before: Option<&AuditId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let (org, before) = (org.clone(), before.cloned());
        let bodies: Vec<String> = self
            .database
            .read(move |connection| {
                let before = before.as_ref().map(AuditId::as_str);
                let mut statement = connection.prepare_cached(LOG)?;
                let rows =
                    statement.query_map(params![org.as_str(), before, limit], |row| row.get(0))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await?;
        bodies.iter().map(|body| decode(body)).collect()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.database
            .write(|connection| Ok(connection.query_row("SELECT 1", [], |_| Ok(()))?))
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::conformance::{entry, org, session},
        *,
    };

    #[tokio::test]
    async fn sessions_and_the_log_survive_reopening() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("accounts.db");
        let (hash, session, entry) = (TokenHash([1; 32]), session(), entry(&org()));
        let accounts = EmbeddedAccounts::open(&path).unwrap();
        accounts.begin_session(&hash, &session).await.unwrap();
        accounts.append_entry(&entry).await.unwrap();
        let reopened = EmbeddedAccounts::open(&path).unwrap();
        assert_eq!(reopened.find_session(&hash).await.unwrap(), Some(session));
        assert_eq!(
            reopened.log_entries(&entry.org_id, None, 9).await.unwrap(),
            [entry]
        );
    }
}
