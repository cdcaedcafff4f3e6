//! What is counted of conversations, by day, agent and team.
//!
//! The store itself notes one fact of each turn that ends, and the rating of each conversation, beside what it stores
//! and under keys that any repeat computes again. Figures are counts of these facts, so that they equal a recount of the
//! store whatever was delivered twice, came late, or died on the way.
//!
//! # Contract
//! - **Facts**: a fact is there before the reply whose end it tells is final, and is single, however often it is written;
//!   of two different writes the one wins that wins in the store.
//! - **Marks**: a day's marks change with every fact of it, after the fact can be read. Figures that were counted after
//!   their marks were read are right as long as the marks are the same.
//! - **Work**: a fact costs the same whatever is there already; a page of facts costs work in proportion to the page.
//! - **Tenancy**: facts lie under their organization; another one finds none.
//! - **Durability**: as in [`crate::store`].
//!
//! Reading order: [`fact`] is what is noted, [`tally`] how it is added up, [`histogram`] how times are, and [`reading`]
//! what a reader does. Both twins are held to this by the store's conformance suite.

mod embedded;
pub mod facts;
pub mod histogram;
pub mod reader;
mod scylla;
pub mod totals;

use std::collections::BTreeMap;

use async_trait::async_trait;
use switchboard_schemas::{day::Day, ids::OrgId};

pub(crate) use self::{embedded::put_fact, facts::FactWrite, scylla::PreparedAnalytics};
use crate::error::StoreError;

/// How often each writer noted something of a day. Every process is a writer of its own, so that no two of them share a
/// count, and no clock is asked what came first.
pub type ChangeMarks = BTreeMap<String, i64>;

/// Days, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayRange {
    /// The first.
    pub first: Day,
    /// The last.
    pub last: Day,
}

/// Where facts lie, and what was counted of them.
#[async_trait]
pub trait AnalyticsStore: Send + Sync {
    /// The days of which something was noted, with their marks.
    async fn marked_days(
        &self,
        org: &OrgId,
        days: DayRange,
    ) -> Result<BTreeMap<Day, ChangeMarks>, StoreError>;

    /// Facts of an hour (see [`switchboard_schemas::day::hour_of`]) by their ids, from behind `behind` on.
    async fn facts(
        &self,
        org: &OrgId,
        hour: i64,
        behind: &str,
        limit: u32,
    ) -> Result<Vec<facts::FactRow>, StoreError>;

    /// What was counted of days before, in the counter's own words.
    async fn kept(&self, org: &OrgId, days: DayRange) -> Result<BTreeMap<Day, String>, StoreError>;

    /// Keeps what was counted of a day.
    async fn keep(&self, org: &OrgId, day: Day, body: String) -> Result<(), StoreError>;
}

impl DayRange {
    /// All of them, in order.
    pub fn iter(self) -> impl Iterator<Item = Day> {
        (self.first.number()..=self.last.number()).map(Day::from_number)
    }
}
