//! Records of erasures on ScyllaDB or Cassandra.

use switchboard_schemas::{
    erasure::Erasure,
    ids::{ErasureId, OrgId},
};

use super::{erasures::LAST, rows::position_column};
use crate::{
    error::StoreError,
    json::{decode, encode},
    scylla_link::{ScyllaLink, statements},
};

statements! {
    /// Prepared statements of erasures.
    pub(super) struct PreparedErasures {
        prepare_write put =
            "INSERT INTO switchboard.erasures (org_id, erasure_id, body) VALUES (?, ?, ?) USING TIMESTAMP ?",
        prepare_read get =
            "SELECT body FROM switchboard.erasures WHERE org_id = ? AND erasure_id = ?",
        prepare_read list =
            "SELECT body FROM switchboard.erasures WHERE org_id = ? AND erasure_id < ? LIMIT ?",
    }
}

impl PreparedErasures {
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
