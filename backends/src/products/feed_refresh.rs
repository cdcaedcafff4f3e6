//! Refreshes of feeds: requests to fetch one, and the outcome of the last fetch.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    ids::{AgentId, OrgId},
    time::Timestamp,
};

use super::replacement::ReplacementConsent;
use crate::error::StoreError;

/// Refreshes of feeds.
///
/// # Contract
/// Of two outcomes, and of two requests, the later write is kept. Both are part of the status and
/// are removed with the products.
#[async_trait]
pub trait FeedRefreshStore: Send + Sync {
    /// Records the outcome of the last fetch of a feed.
    async fn record_refresh(
        &self,
        org: &OrgId,
        agent: &AgentId,
        refresh: &FeedRefresh,
    ) -> Result<(), StoreError>;

    /// Requests that a feed is fetched soon.
    async fn request_refresh(
        &self,
        org: &OrgId,
        agent: &AgentId,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Waits until a fetch was requested in this process since the last return. Requests in other
    /// processes are only visible in the status.
    async fn refresh_requested(&self) {
        std::future::pending().await
    }
}

/// The outcome of the last fetch of a feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedRefresh {
    /// Fetched URL.
    pub url: String,
    /// Time at which the fetch began.
    pub attempted_at: Timestamp,
    /// Time at which the fetch ended; absent in records of older versions.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
    /// Time at which this URL was last fetched successfully, with or without changes.
    pub succeeded_at: Option<Timestamp>,
    /// Reason of the failure; absent if the fetch succeeded.
    pub error: Option<String>,
    /// `ETag` of the stored products, sent to ask for changes.
    pub etag: Option<String>,
    /// `Last-Modified` of the stored products, sent to ask for changes.
    pub last_modified: Option<String>,
    /// Consent to a replacement that is probably a mistake.
    #[serde(default)]
    pub consent: ReplacementConsent,
}
