//! Analytics of an organization by day, agent and team, as JSON or as CSV.

mod csv;
mod query;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use axum::{Json, extract::Query};
use http::HeaderMap;
use switchboard_backends::{
    analytics::{
        DayRange,
        reader::{AnalyticsError, read_totals},
        totals::GroupedTotals,
    },
    catalog::{CatalogEntry, EntryKind},
};
use switchboard_schemas::{day::UtcDay, ids::OrgId, organization::Organization, time::Timestamp};

use self::{
    query::{AnalyticsFormat, AnalyticsQuery},
    report::AnalyticsReport,
};
use super::{authorization::Admin, permissions::ReadConversations, responses::TableResponse};
use crate::{
    http::{ApiError, ApiResult},
    state::AppState,
};

/// The totals of a range of days, and the names of agents and teams.
#[derive(Debug)]
struct AnalyticsData {
    days: DayRange,
    counted: BTreeMap<UtcDay, GroupedTotals>,
    /// The names of existing agents and teams, by id.
    names: BTreeMap<String, String>,
}

/// Reads the analytics of a range of days.
pub(super) async fn read(
    Admin { state, subject, .. }: Admin<ReadConversations>,
    Query(query): Query<AnalyticsQuery>,
    headers: HeaderMap,
) -> ApiResult<TableResponse<AnalyticsReport>> {
    let Organization { id: org, slug, .. } = subject;
    let (days, filter) = (
        query.days(UtcDay::from_timestamp(Timestamp::now()))?,
        query.filter()?,
    );
    let format = query.format(&headers)?;
    let mut counted = read_totals(&*state.backends.analytics, &org, days).await?;
    for totals in counted.values_mut() {
        totals.0.retain(|group, _| filter.matches(group));
    }
    let data = AnalyticsData {
        days,
        counted,
        names: load_names(&state, &org).await?,
    };
    Ok(match format {
        AnalyticsFormat::Json => TableResponse::Json(Json(AnalyticsReport::new(&data))),
        AnalyticsFormat::Csv => TableResponse::Csv(csv::response(&data, &slug)),
    })
}

async fn load_names(state: &AppState, org: &OrgId) -> ApiResult<BTreeMap<String, String>> {
    let mut names = BTreeMap::new();
    for kind in [EntryKind::Agent, EntryKind::Team] {
        for entry in state.apply.catalog.list(kind, Some(org)).await? {
            let name = match &entry {
                CatalogEntry::Agent(agent) => &agent.name,
                CatalogEntry::Team(team) => &team.name,
                _ => continue,
            };
            names.insert(entry.id().to_owned(), name.clone());
        }
    }
    Ok(names)
}

impl From<AnalyticsError> for ApiError {
    fn from(error: AnalyticsError) -> Self {
        match error {
            AnalyticsError::Store(error) => error.into(),
            AnalyticsError::Unfinished => {
                Self::unavailable("the totals of this range are still being computed; try again")
            }
        }
    }
}
