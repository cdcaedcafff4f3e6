//! Facts on ScyllaDB or Cassandra: one partition for each hour of an organization, about 300 bytes
//! per turn.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicI64, Ordering},
};

use async_trait::async_trait;
use scylla::statement::prepared::PreparedStatement;
use switchboard_schemas::{
    day::UtcDay,
    ids::{OrgId, RequestId},
};

use super::scylla::ScyllaStore;
use crate::{
    analytics::{
        AnalyticsStore, ChangeMarks, DayRange,
        facts::{FactRow, FactWrite},
    },
    error::StoreError,
    scylla_link::ScyllaLink,
};

const PUT_FACT: &str =
    "INSERT INTO switchboard.facts (org_id, hour, id, body) VALUES (?, ?, ?, ?) USING TIMESTAMP ?";
const CLEAR_FACT: &str =
    "DELETE body FROM switchboard.facts USING TIMESTAMP ? WHERE org_id = ? AND hour = ? AND id = ?";
const PUT_MARK: &str = "INSERT INTO switchboard.fact_marks (org_id, day, writer, changes) VALUES (?, ?, ?, ?) USING TIMESTAMP ?";
const GET_MARKS: &str = "SELECT day, writer, changes FROM switchboard.fact_marks WHERE org_id = ? AND day >= ? AND day <= ?";
const GET_FACTS: &str =
    "SELECT id, body FROM switchboard.facts WHERE org_id = ? AND hour = ? AND id > ? LIMIT ?";
const PUT_TOTALS: &str = "INSERT INTO switchboard.day_figures (org_id, day, body) VALUES (?, ?, ?)";
const GET_TOTALS: &str =
    "SELECT day, body FROM switchboard.day_figures WHERE org_id = ? AND day >= ? AND day <= ?";

/// Prepared statements for facts, and this process as a writer of change marks.
pub(super) struct FactStatements {
    put_fact: PreparedStatement,
    clear_fact: PreparedStatement,
    put_mark: PreparedStatement,
    get_marks: PreparedStatement,
    get_facts: PreparedStatement,
    put_totals: PreparedStatement,
    get_totals: PreparedStatement,
    writer: String,
    changes: AtomicI64,
}

impl FactStatements {
    pub(super) async fn new(link: &ScyllaLink) -> Result<Self, StoreError> {
        Ok(Self {
            put_fact: link.prepare_write(PUT_FACT).await?,
            clear_fact: link.prepare_write(CLEAR_FACT).await?,
            put_mark: link.prepare_write(PUT_MARK).await?,
            get_marks: link.prepare_read(GET_MARKS).await?,
            get_facts: link.prepare_read(GET_FACTS).await?,
            put_totals: link.prepare_write(PUT_TOTALS).await?,
            get_totals: link.prepare_read(GET_TOTALS).await?,
            writer: RequestId::random().to_string(),
            changes: AtomicI64::new(0),
        })
    }

    /// Writes a fact and changes the marks of its day.
    pub(super) async fn put_fact(
        &self,
        link: &ScyllaLink,
        org: &OrgId,
        fact: &FactWrite,
    ) -> Result<(), StoreError> {
        let (id, stamp) = (fact.id.as_str(), fact.stamp);
        match &fact.body {
            Some(body) => {
                link.write(&self.put_fact, (org.as_str(), fact.hour, id, body, stamp))
                    .await?
            }
            None => {
                link.write(&self.clear_fact, (stamp, org.as_str(), fact.hour, id))
                    .await?
            }
        }
        // Count after the write, so that a reader of this mark or a higher one of this process
        // finds the fact. The stamp is the mark itself: of two reordered writes the higher one
        // stays.
        let changes = 1 + self.changes.fetch_add(1, Ordering::SeqCst);
        let values = (
            org.as_str(),
            fact.day().number(),
            &self.writer,
            changes,
            changes,
        );
        link.write(&self.put_mark, values).await
    }
}

#[async_trait]
impl AnalyticsStore for ScyllaStore {
    async fn marked_days(
        &self,
        org: &OrgId,
        days: DayRange,
    ) -> Result<BTreeMap<UtcDay, ChangeMarks>, StoreError> {
        let (link, prepared) = self.fact_statements().await?;
        let values = (org.as_str(), days.first.number(), days.last.number());
        let mut marked: BTreeMap<UtcDay, ChangeMarks> = BTreeMap::new();
        for (day, writer, changes) in link
            .query_rows::<(i64, String, i64)>(&prepared.get_marks, values)
            .await?
        {
            marked
                .entry(UtcDay::from_number(day))
                .or_default()
                .insert(writer, changes);
        }
        Ok(marked)
    }

    async fn hour_facts(
        &self,
        org: &OrgId,
        hour: i64,
        behind: &str,
        limit: u32,
    ) -> Result<Vec<FactRow>, StoreError> {
        let (link, prepared) = self.fact_statements().await?;
        let values = (
            org.as_str(),
            hour,
            behind,
            i32::try_from(limit).unwrap_or(i32::MAX),
        );
        let rows = link
            .query_rows::<(String, Option<String>)>(&prepared.get_facts, values)
            .await?;
        Ok(rows
            .into_iter()
            .map(|(id, body)| FactRow { id, body })
            .collect())
    }

    async fn stored_totals(
        &self,
        org: &OrgId,
        days: DayRange,
    ) -> Result<BTreeMap<UtcDay, String>, StoreError> {
        let (link, prepared) = self.fact_statements().await?;
        let values = (org.as_str(), days.first.number(), days.last.number());
        let rows = link
            .query_rows::<(i64, String)>(&prepared.get_totals, values)
            .await?;
        Ok(rows
            .into_iter()
            .map(|(day, body)| (UtcDay::from_number(day), body))
            .collect())
    }

    async fn put_totals(&self, org: &OrgId, day: UtcDay, body: String) -> Result<(), StoreError> {
        let (link, prepared) = self.fact_statements().await?;
        link.write(&prepared.put_totals, (org.as_str(), day.number(), body))
            .await
    }
}
