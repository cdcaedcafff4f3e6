//! Analytics: daily totals of conversations by agent and team.
//!
//! The conversation store itself records one fact for each finished turn and for the rating of each
//! conversation, under keys that every retry computes again. Totals are counts of these facts, so
//! that they equal a recount of the store even after duplicate deliveries, late events and crashes.
//!
//! # Contract
//! - **Facts**: a fact can be read before the reply that it describes is final, and exists once
//!   however often it is written. Of two different writes the one wins that wins in the store.
//! - **Change marks**: the marks of a day change with each of its facts, after the fact can be
//!   read. Totals that were counted after their marks were read are valid as long as the marks are
//!   the same.
//! - **Cost**: writing a fact costs the same whatever is stored already; reading a page of facts
//!   costs work in proportion to the page.
//! - **Tenancy**: facts are stored under their organization, and no other organization finds them.
//! - **Durability**: as in [`crate::store`].
//!
//! Reading order: [`facts`] defines the records, [`totals`] adds them up, [`histogram`] summarizes
//! durations and [`reader`] answers queries. The conformance tests of the store cover both
//! backends.

pub mod facts;
pub mod histogram;
pub mod reader;
pub mod totals;

use std::collections::BTreeMap;

use async_trait::async_trait;
use switchboard_schemas::{day::UtcDay, ids::OrgId};

use crate::error::StoreError;

/// Number of facts that each writer recorded for a day. Every process is a writer of its own, so
/// that no two share a counter and no clocks are compared.
pub type ChangeMarks = BTreeMap<String, i64>;

/// An inclusive range of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayRange {
    /// First day of the range.
    pub first: UtcDay,
    /// Last day of the range, inclusive.
    pub last: UtcDay,
}

/// The store of facts and daily totals.
#[async_trait]
pub trait AnalyticsStore: Send + Sync {
    /// Returns the days with facts and their change marks.
    async fn marked_days(
        &self,
        org: &OrgId,
        days: DayRange,
    ) -> Result<BTreeMap<UtcDay, ChangeMarks>, StoreError>;

    /// Returns the facts of an hour (see [`switchboard_schemas::day::hour_of`]) in the order of
    /// ids, starting after `behind`.
    async fn hour_facts(
        &self,
        org: &OrgId,
        hour: i64,
        behind: &str,
        limit: u32,
    ) -> Result<Vec<facts::FactRow>, StoreError>;

    /// Returns the totals that were stored for these days, in the reader's own format.
    async fn stored_totals(
        &self,
        org: &OrgId,
        days: DayRange,
    ) -> Result<BTreeMap<UtcDay, String>, StoreError>;

    /// Stores the totals of a day.
    async fn put_totals(&self, org: &OrgId, day: UtcDay, body: String) -> Result<(), StoreError>;
}

impl DayRange {
    /// Returns all days of the range in order.
    pub fn iter(self) -> impl Iterator<Item = UtcDay> {
        (self.first.number()..=self.last.number()).map(UtcDay::from_number)
    }
}
