//! The last uses of API keys.

use async_trait::async_trait;
use switchboard_schemas::{
    ids::{KeyId, OrgId},
    time::Timestamp,
};

use crate::error::StoreError;

/// Last uses of API keys.
///
/// # Contract
/// The last use of a key is stored beside it and does not change its version. Of several uses the
/// latest is kept, in any order of arrival. It is removed with its key.
#[async_trait]
pub trait KeyUseStore: Send + Sync {
    /// Records uses of keys.
    async fn record_key_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError>;

    /// Returns the recorded last uses of the organization's keys.
    async fn key_uses(&self, org: &OrgId) -> Result<Vec<KeyUse>, StoreError>;
}

/// The last use of an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// Organization of the key.
    pub org_id: OrgId,
    /// Id of the key.
    pub key_id: KeyId,
    /// Time of the use.
    pub at: Timestamp,
}
