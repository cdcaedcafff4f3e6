//! Dashboard sessions and the audit log. The accounts themselves are stored in the catalog.
//!
//! # Contract
//! - **Visibility**: a read that begins after a write has returned sees the write, on any process.
//!   There is no cache: an ended session is rejected everywhere at once.
//! - **Finality**: no [`AccountActivityStore::touch_session`], however late it arrives, reopens an
//!   ended session.
//! - **Expiry**: an expired session is not found, and its data is deleted soon after.
//! - **Append-only**: an entry of the log is never changed or removed; recording it again has no
//!   effect.
//! - **Order**: the log is read latest first, in the order of entry ids.
//! - **Tenancy**: the log of an organization never contains entries of another one. A session is
//!   found by its hash alone, because that lookup resolves its organization; hashes cannot be
//!   guessed.
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

/// A store for the dashboard sessions of users and for the audit log of their organizations.
#[async_trait]
pub trait AccountActivityStore: Send + Sync {
    /// Stores a new session under the hash of its token.
    async fn begin_session(
        &self,
        hash: &TokenHash,
        session: &DashboardSession,
    ) -> Result<(), StoreError>;

    /// Returns the session with this hash.
    async fn find_session(&self, hash: &TokenHash) -> Result<Option<DashboardSession>, StoreError>;

    /// Records that `session` was used at its `seen_at`.
    async fn touch_session(
        &self,
        hash: &TokenHash,
        session: &DashboardSession,
    ) -> Result<(), StoreError>;

    /// Ends a session. Ending an unknown session has no effect.
    async fn end_session(&self, hash: &TokenHash) -> Result<(), StoreError>;

    /// Appends an entry to the audit log.
    async fn append_entry(&self, entry: &AuditEntry) -> Result<(), StoreError>;

    /// Returns at most `limit` entries of an organization's log, latest first, starting before
    /// `before` if given.
    async fn log_entries(
        &self,
        org: &OrgId,
        before: Option<&AuditId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError>;

    /// Fails if the store does not respond.
    async fn check(&self) -> Result<(), StoreError>;
}

/// A signed-in user on one browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DashboardSession {
    /// Id of the signed-in user.
    pub user: UserId,
    /// Value of [`switchboard_schemas::user::UserAccount::session_epoch`] at the start of the
    /// session.
    pub epoch: u64,
    /// Time of the sign-in.
    pub began_at: Timestamp,
    /// Approximate time of the last use.
    pub seen_at: Timestamp,
    /// Time at which the session ends, regardless of its use.
    pub expires_at: Timestamp,
}
