//! Sessions and the audit log on ScyllaDB or Cassandra.
//!
//! The cells of a session expire with it. Its end is written into its body, while a touch writes
//! another cell, so that the end wins in any order of arrival.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_schemas::{
    audit::AuditEntry,
    ids::{AuditId, OrgId},
    random_token::TokenHash,
    time::Timestamp,
};
use tokio::sync::OnceCell;

use super::{AccountActivityStore, DashboardSession};
use crate::{
    error::StoreError,
    json::{decode, encode},
    scylla_link::{ScyllaLink, statements},
};

/// Body of an ended session.
const ENDED: &str = "";
/// Greater than every id, whose digits end at `z`.
const BEHIND_ALL: &str = "aud_~";
/// Period whose changes share a partition: about 20 MB at one change per minute.
const PERIOD_MICROS: i64 = 30 * 24 * 3_600_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
/// Maximum TTL of a cell in the database, 20 years.
const TTL_SECONDS_MAX: i32 = 630_720_000;

/// Sessions and the audit log in a cluster.
pub struct ScyllaAccounts {
    link: Arc<ScyllaLink>,
    prepared: OnceCell<AccountStatements>,
}

statements! {
    struct AccountStatements {
        prepare_write begin =
            "INSERT INTO switchboard.sessions (hash, body, seen_at) VALUES (?, ?, ?)
                USING TIMESTAMP ? AND TTL ?",
        prepare_write touch =
            "UPDATE switchboard.sessions USING TIMESTAMP ? AND TTL ? SET seen_at = ? WHERE hash = ?",
        prepare_write end =
            "UPDATE switchboard.sessions USING TIMESTAMP ? AND TTL ? SET body = ? WHERE hash = ?",
        prepare_read get =
            "SELECT body, seen_at, writetime(body) FROM switchboard.sessions WHERE hash = ?",
        prepare_write record =
            "INSERT INTO switchboard.audit_log (org_id, period, id, body) VALUES (?, ?, ?, ?)",
        prepare_write record_period =
            "INSERT INTO switchboard.audit_periods (org_id, period) VALUES (?, ?)",
        prepare_read get_periods = "SELECT period FROM switchboard.audit_periods WHERE org_id = ?",
        prepare_read get_log =
            "SELECT body FROM switchboard.audit_log WHERE org_id = ? AND period = ? AND id < ? ORDER BY id DESC LIMIT ?",
    }
}

/// The row of a session. Cells may outlive an expired body for a moment.
type SessionRow = (Option<String>, Option<i64>, Option<i64>);

impl ScyllaAccounts {
    /// Creates the store on a link. The cluster need not be reachable yet.
    pub fn connect(link: Arc<ScyllaLink>) -> Self {
        Self {
            link,
            prepared: OnceCell::new(),
        }
    }

    async fn prepared_statements(&self) -> Result<&AccountStatements, StoreError> {
        self.prepared
            .get_or_try_init(|| Box::pin(AccountStatements::new(&self.link)))
            .await
    }

    /// Returns the session and the time at which its body was written.
    async fn read(&self, hash: &TokenHash) -> Result<Option<(DashboardSession, i64)>, StoreError> {
        let rows = self
            .link
            .query_rows::<SessionRow>(&self.prepared_statements().await?.get, (hash.0.as_slice(),))
            .await?;
        let Some((Some(body), seen_at, Some(written_at))) = rows.into_iter().next() else {
            return Ok(None);
        };
        if body == ENDED {
            return Ok(None);
        }
        let session: DashboardSession = decode(&body)?;
        let seen_at = seen_at.map_or(session.seen_at, Timestamp::from_micros);
        let session = DashboardSession { seen_at, ..session };
        Ok((session.expires_at > Timestamp::now()).then_some((session, written_at)))
    }
}

#[async_trait]
impl AccountActivityStore for ScyllaAccounts {
    async fn begin_session(
        &self,
        hash: &TokenHash,
        session: &DashboardSession,
    ) -> Result<(), StoreError> {
        let (stamp, body) = (Timestamp::now().micros(), encode(session)?);
        let values = (
            hash.0.as_slice(),
            body,
            session.seen_at.micros(),
            stamp,
            ttl_seconds(session),
        );
        self.link
            .write(&self.prepared_statements().await?.begin, values)
            .await
    }

    async fn find_session(&self, hash: &TokenHash) -> Result<Option<DashboardSession>, StoreError> {
        Ok(self.read(hash).await?.map(|(session, _)| session))
    }

    async fn touch_session(
        &self,
        hash: &TokenHash,
        session: &DashboardSession,
    ) -> Result<(), StoreError> {
        let seen_at = session.seen_at.micros();
        let values = (seen_at, ttl_seconds(session), seen_at, hash.0.as_slice());
        self.link
            .write(&self.prepared_statements().await?.touch, values)
            .await
    }

    /// Writes with a later timestamp than the body that it replaces, even if that was written by a
    /// clock that is ahead.
    async fn end_session(&self, hash: &TokenHash) -> Result<(), StoreError> {
        let Some((session, written_at)) = self.read(hash).await? else {
            return Ok(());
        };
        let stamp = Timestamp::now().micros().max(written_at + 1);
        let values = (stamp, ttl_seconds(&session), ENDED, hash.0.as_slice());
        self.link
            .write(&self.prepared_statements().await?.end, values)
            .await
    }

    async fn append_entry(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let (prepared, period) = (self.prepared_statements().await?, period_of(&entry.id));
        let org = entry.org_id.as_str();
        // Write the entry before its period is announced to readers.
        self.link
            .write(
                &prepared.record,
                (org, period, entry.id.as_str(), encode(entry)?),
            )
            .await?;
        self.link
            .write(&prepared.record_period, (org, period))
            .await
    }

    async fn log_entries(
        &self,
        org: &OrgId,
        before: Option<&AuditId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let prepared = self.prepared_statements().await?;
        let periods = self
            .link
            .query_rows::<(i64,)>(&prepared.get_periods, (org.as_str(),))
            .await?;
        let last = before.map_or(i64::MAX, period_of);
        let place = before.map_or(BEHIND_ALL, AuditId::as_str);
        let mut entries = Vec::new();
        for (period,) in periods.into_iter().filter(|(period,)| *period <= last) {
            let wanted = limit.saturating_sub(u32::try_from(entries.len()).unwrap_or(u32::MAX));
            if wanted == 0 {
                break;
            }
            let values = (
                org.as_str(),
                period,
                place,
                i32::try_from(wanted).unwrap_or(i32::MAX),
            );
            for (body,) in self
                .link
                .query_rows::<(String,)>(&prepared.get_log, values)
                .await?
            {
                entries.push(decode(&body)?);
            }
        }
        Ok(entries)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.read(&TokenHash([0; 32])).await.map(|_| ())
    }
}

fn period_of(id: &AuditId) -> i64 {
    id.created_at().micros().div_euclid(PERIOD_MICROS)
}

/// Returns the remaining lifetime of a session in seconds, at least one because 0 means no expiry.
fn ttl_seconds(session: &DashboardSession) -> i32 {
    let left = session
        .expires_at
        .micros()
        .saturating_sub(Timestamp::now().micros())
        / MICROS_PER_SECOND
        + 1;
    i32::try_from(left).map_or(TTL_SECONDS_MAX, |left| left.clamp(1, TTL_SECONDS_MAX))
}
