//! Facts of the embedded backend, in tables of the conversation store's file and written in the
//! same transaction.

use std::collections::BTreeMap;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchboard_schemas::{day::UtcDay, ids::OrgId};

use super::embedded::EmbeddedStore;
use crate::{
    analytics::{
        AnalyticsStore, ChangeMarks, DayRange,
        facts::{FactRow, FactWrite},
    },
    error::StoreError,
};

const PUT_FACT: &str = "INSERT INTO facts (org_id, hour, id, body, stamp) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET body = excluded.body, stamp = excluded.stamp
    WHERE excluded.stamp > stamp
    OR (excluded.stamp = stamp AND body IS NOT NULL AND (excluded.body IS NULL OR excluded.body > body))";
const PUT_MARK: &str = "INSERT INTO fact_marks (org_id, day, changes) VALUES (?1, ?2, 1)
    ON CONFLICT DO UPDATE SET changes = changes + 1";
const GET_MARKS: &str =
    "SELECT day, changes FROM fact_marks WHERE org_id = ?1 AND day BETWEEN ?2 AND ?3";
const GET_FACTS: &str = "SELECT id, body FROM facts
    WHERE org_id = ?1 AND hour = ?2 AND id > ?3 ORDER BY id LIMIT ?4";
const PUT_TOTALS: &str =
    "INSERT OR REPLACE INTO day_figures (org_id, day, body) VALUES (?1, ?2, ?3)";
const GET_TOTALS: &str =
    "SELECT day, body FROM day_figures WHERE org_id = ?1 AND day BETWEEN ?2 AND ?3";
/// Name of the only writer of a file.
const WRITER: &str = "";

/// Records a fact within the transaction of the turn that it describes.
pub(super) fn put_fact(
    connection: &Connection,
    org: &OrgId,
    fact: &FactWrite,
) -> Result<(), StoreError> {
    let values = params![org.as_str(), fact.hour, fact.id, fact.body, fact.stamp];
    connection.prepare_cached(PUT_FACT)?.execute(values)?;
    connection
        .prepare_cached(PUT_MARK)?
        .execute(params![org.as_str(), fact.day().number()])?;
    Ok(())
}

#[async_trait]
impl AnalyticsStore for EmbeddedStore {
    async fn marked_days(
        &self,
        org: &OrgId,
        days: DayRange,
    ) -> Result<BTreeMap<UtcDay, ChangeMarks>, StoreError> {
        let marks: BTreeMap<UtcDay, i64> = self
            .rows_of_days(GET_MARKS, org, days, |row| row.get(1))
            .await?;
        Ok(marks
            .into_iter()
            .map(|(day, changes)| (day, ChangeMarks::from([(WRITER.to_owned(), changes)])))
            .collect())
    }

    async fn hour_facts(
        &self,
        org: &OrgId,
        hour: i64,
        behind: &str,
        limit: u32,
    ) -> Result<Vec<FactRow>, StoreError> {
        let (org, behind) = (org.clone(), behind.to_owned());
        self.database
            .read(move |connection| {
                let mut statement = connection.prepare_cached(GET_FACTS)?;
                let read = |row: &Row<'_>| {
                    Ok(FactRow {
                        id: row.get(0)?,
                        body: row.get(1)?,
                    })
                };
                let rows = statement.query_map(params![org.as_str(), hour, behind, limit], read)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    async fn stored_totals(
        &self,
        org: &OrgId,
        days: DayRange,
    ) -> Result<BTreeMap<UtcDay, String>, StoreError> {
        self.rows_of_days(GET_TOTALS, org, days, |row| row.get(1))
            .await
    }

    async fn put_totals(&self, org: &OrgId, day: UtcDay, body: String) -> Result<(), StoreError> {
        let org = org.clone();
        self.database
            .write(move |connection| {
                connection.prepare_cached(PUT_TOTALS)?.execute(params![
                    org.as_str(),
                    day.number(),
                    body
                ])?;
                Ok(())
            })
            .await
    }
}

impl EmbeddedStore {
    async fn rows_of_days<T: Send + 'static>(
        &self,
        sql: &'static str,
        org: &OrgId,
        days: DayRange,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<BTreeMap<UtcDay, T>, StoreError> {
        let org = org.clone();
        self.database
            .read(move |connection| {
                let mut statement = connection.prepare_cached(sql)?;
                let values = params![org.as_str(), days.first.number(), days.last.number()];
                let rows = statement.query_map(values, |row| {
                    Ok((UtcDay::from_number(row.get(0)?), read(row)?))
                })?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }
}
