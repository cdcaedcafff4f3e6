//! Records of erasures on ScyllaDB or Cassandra.

use scylla::statement::prepared::PreparedStatement;
use switchboard_schemas::{
    erasure::Erasure,
    ids::{ErasureId, OrgId},
};

use super::{erasures::LAST, rows::position_column};
use crate::{
    error::StoreError,
    json::{decode, encode},
    scylla_link::ScyllaLink,
};

const PUT: &str = "INSERT INTO switchboard.erasures (org_id, erasure_id, body) VALUES (?, ?, ?) USING TIMESTAMP ?";
const GET: &str = "SELECT body FROM switchboard.erasures WHERE org_id = ? AND erasure_id = ?";
const LIST: &str =
    "SELECT body FROM switchboard.erasures WHERE org_id = ? AND erasure_id < ? LIMIT ?";

/// Prepared statements of erasures.
pub(super) struct PreparedErasures {
    put: PreparedStatement,
    get: PreparedStatement,
    list: PreparedStatement,
}

impl PreparedErasures {
    pub(super) async fn new(link: &ScyllaLink) -> Result<Self, StoreError> {
        Ok(Self {
            put: link.prepare_write(PUT).await?,
            get: link.prepare_read(GET).await?,
            list: link.prepare_read(LIST).await?,
        })
    }

    /// Stores the state of an erasure.
    pub(super) async fn put(&self, link: &ScyllaLink, erasure: &Erasure) -> Result<(), StoreError> {
        // The number of steps is the stamp, so that no clocks are compared.
        let stamp = erasure
            .began_at
            .micros()
            .saturating_add(position_column(erasure.steps)?);
        let values = (
            erasure.org_id.as_str(),
            erasure.id.as_str(),
            encode(erasure)?,
            stamp,
        );
        link.write(&self.put, values).await
    }

    /// Returns the latest state of an erasure.
    pub(super) async fn get(
        &self,
        link: &ScyllaLink,
        org: &OrgId,
        id: &ErasureId,
    ) -> Result<Option<Erasure>, StoreError> {
        let rows = link
            .query_rows::<(String,)>(&self.get, (org.as_str(), id.as_str()))
            .await?;
        rows.first().map(|(body,)| decode(body)).transpose()
    }

    /// Returns a page of erasures, latest first.
    pub(super) async fn list(
        &self,
        link: &ScyllaLink,
        org: &OrgId,
        before: Option<&ErasureId>,
        limit: u32,
    ) -> Result<Vec<Erasure>, StoreError> {
        let before = before.map_or(LAST, ErasureId::as_str);
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let rows = link
            .query_rows::<(String,)>(&self.list, (org.as_str(), before, limit))
            .await?;
        rows.iter().map(|(body,)| decode(body)).collect()
    }
}
