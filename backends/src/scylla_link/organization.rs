//! The erasure of all partitions of an organization.
//!
//! It reads the keys of all partitions of the keyspace, since not every row has a list that leads
//! to it. Removals of organizations are rare, and nothing can be forgotten.

use std::{collections::BTreeMap, ops::ControlFlow, time::Duration};

use futures::{TryStreamExt, stream};
use scylla::{
    response::PagingState,
    value::{CqlValue, Row},
};
use switchboard_schemas::{ids::OrgId, time::Timestamp};

use super::{ScyllaLink, malformed};
use crate::error::StoreError;

/// Time by which a deletion is stamped ahead, so that it covers late writes too, also of processes
/// with a fast clock. ScyllaDB accepts stamps of up to three days ahead.
const STAMP_LEAD: Duration = Duration::from_secs(24 * 60 * 60);
/// Partitions that are deleted at the same time.
const DELETIONS_MAX: usize = 16;

const COLUMNS: &str = "SELECT table_name, column_name, kind, position FROM system_schema.columns
    WHERE keyspace_name = ?";

impl ScyllaLink {
    /// Deletes all partitions whose keys begin with the organization.
    pub(crate) async fn erase_partitions(&self, org: &OrgId) -> Result<(), StoreError> {
        for (table, key) in self.tables_with_organizations().await? {
            self.erase_in(&table, &key, org).await?;
        }
        Ok(())
    }

    /// Returns the tables whose partition keys begin with an organization, with these keys.
    async fn tables_with_organizations(&self) -> Result<BTreeMap<String, Vec<String>>, StoreError> {
        let select = self.prepare_read(COLUMNS).await?;
        let columns = self
            .query_rows::<(String, String, String, i32)>(&select, (self.keyspace.as_str(),))
            .await?;
        let mut keys: BTreeMap<String, BTreeMap<i32, String>> = BTreeMap::new();
        for (table, column, kind, position) in columns {
            if kind == "partition_key" {
                keys.entry(table).or_default().insert(position, column);
            }
        }
        let keys = keys.into_iter();
        let keys = keys.map(|(table, columns)| (table, columns.into_values().collect()));
        let begins_with_org = |(_, key): &(String, Vec<String>)| key[0] == "org_id";
        Ok(keys.filter(begins_with_org).collect())
    }

    async fn erase_in(&self, table: &str, key: &[String], org: &OrgId) -> Result<(), StoreError> {
        let columns = key.join(", ");
        let select = format!("SELECT DISTINCT {columns} FROM switchboard.{table}");
        let select = self.prepare_read(&select).await?;
        let condition = key.join(" = ? AND ");
        let delete =
            format!("DELETE FROM switchboard.{table} USING TIMESTAMP ? WHERE {condition} = ?");
        let delete = self.prepare_write(&delete).await?;
        let org = CqlValue::Text(org.as_str().to_owned());
        let stamp = CqlValue::BigInt(Timestamp::now().after(STAMP_LEAD).micros());
        let mut page = PagingState::start();
        loop {
            let (rows, next) = self.query_page::<Row>(&select, &(), page).await?;
            let keys = rows.into_iter().map(|row| row.columns);
            let of_org = keys.filter(|key| key.first() == Some(&Some(org.clone())));
            let deletions = of_org.map(|key| {
                let key: Option<Vec<_>> = key.into_iter().collect();
                let key = key.ok_or_else(|| malformed(&"a partition without a key"));
                key.map(|key| [vec![stamp.clone()], key].concat())
            });
            stream::iter(deletions)
                .try_for_each_concurrent(DELETIONS_MAX, |values| self.write(&delete, values))
                .await?;
            match next {
                ControlFlow::Break(()) => return Ok(()),
                ControlFlow::Continue(next) => page = next,
            }
        }
    }
}
