//! What signed-in people leave behind: their sessions, and the log of what they changed. The accounts themselves lie in
//! the catalogue.
//!
//! # Contract
//! - **Visibility**: a read that begins after a write returned sees it, on any process. There is no cache: an ended
//!   session is refused everywhere at once.
//! - **An end is an end**: no [`AccountStore::touch_session`], however late it arrives, opens an ended session again.
//! - **Expiry**: a session that is past its end is not found, and nothing of it is kept for long.
//! - **Append-only**: an entry of the log is never changed and never removed; recording it again changes nothing.
//! - **Order**: the log is read latest first, by the entries' ids.
//! - **Tenancy**: the log of one organization never shows another's. A session is found by its hash alone, because that
//!   read is how the service finds out whose it is; hashes cannot be guessed.
//! - **Durability**: as in [`crate::store`].

#[cfg(test)]
mod conformance;
pub mod embedded;
pub mod scylla;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    audit::AuditEntry,
    ids::{AuditId, OrgId, UserId},
    random_token::TokenHash,
    time::Timestamp,
};

use crate::error::StoreError;

/// Where sessions and the audit log are kept.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Keeps a new session under the hash of its token.
    async fn begin_session(
        &self,
        hash: &TokenHash,
        session: &DashboardSession,
    ) -> Result<(), StoreError>;

    /// The session with this hash.
    async fn session(&self, hash: &TokenHash) -> Result<Option<DashboardSession>, StoreError>;

    /// Notes that `session` was used at its `seen_at`.
    async fn touch_session(
        &self,
        hash: &TokenHash,
        session: &DashboardSession,
    ) -> Result<(), StoreError>;

    /// Ends a session; one that is not there has ended already.
    async fn end_session(&self, hash: &TokenHash) -> Result<(), StoreError>;

    /// Appends to the log.
    async fn record(&self, entry: &AuditEntry) -> Result<(), StoreError>;

    /// At most `limit` entries of an organization's log, latest first; those before `before`, if it is given.
    async fn log(
        &self,
        org: &OrgId,
        before: Option<&AuditId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError>;

    /// Whether both can be reached.
    async fn check(&self) -> Result<(), StoreError>;
}

/// A person who signed in, on one browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DashboardSession {
    /// Who.
    pub user: UserId,
    /// The account's [`switchboard_schemas::user::UserAccount::session_epoch`] when it began.
    pub epoch: u64,
    /// When it began.
    pub began_at: Timestamp,
    /// When it was used last, roughly.
    pub seen_at: Timestamp,
    /// Its end, however busy it is.
    pub expires_at: Timestamp,
}
