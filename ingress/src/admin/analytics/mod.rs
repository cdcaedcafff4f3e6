//! `/api/admin/organizations/{org}/analytics`: what was counted of conversations, by day, agent and team; as JSON, or as a
//! table for spreadsheets.

mod answer;
mod csv;
#[cfg(test)]
mod tests;
mod wanted;

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
};
use http::HeaderMap;
use switchboard_backends::{
    analytics::{
        DayRange,
        reader::{AnalyticsError, read},
        totals::GroupedTotals,
    },
    catalog::{CatalogEntry, EntryKind},
};
use switchboard_schemas::{day::Day, ids::OrgId, organization::Organization, time::Timestamp};

use self::wanted::{Form, Wanted};
use super::{
    administrator::{Action, Administrator},
    things::organization,
};
use crate::{
    http::{ApiError, ApiResult},
    state::AppState,
};

/// What a request asks for, read.
#[derive(Debug)]
struct Report {
    days: DayRange,
    counted: BTreeMap<Day, GroupedTotals>,
    names: Names,
}

/// What agents and teams are called now, by their ids; those that are gone have no name.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, String>);

/// Figures of the wanted days.
pub(super) async fn get(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let Organization { id: org, slug, .. } =
        organization(&state, &administrator, &org, Action::ReadConversations).await?;
    let (days, filter) = (wanted.days(Day::of(Timestamp::now()))?, wanted.filter()?);
    let form = wanted.form(&headers)?;
    let mut counted = read(&*state.backends.analytics, &org, days).await?;
    for tallies in counted.values_mut() {
        tallies.0.retain(|group, _| filter.passes(group));
    }
    let report = Report {
        days,
        counted,
        names: names(&state, &org).await?,
    };
    Ok(match form {
        Form::Json => Json(answer::of(&report)).into_response(),
        Form::Csv => csv::response(&report, &slug),
    })
}

async fn names(state: &AppState, org: &OrgId) -> ApiResult<Names> {
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
    Ok(Names(names))
}

impl Names {
    fn of(&self, id: Option<&str>) -> Option<&str> {
        self.0.get(id?).map(String::as_str)
    }
}

impl From<AnalyticsError> for ApiError {
    fn from(error: AnalyticsError) -> Self {
        match error {
            AnalyticsError::Store(error) => error.into(),
            AnalyticsError::Unfinished => {
                Self::unavailable("so many days are still being counted; ask again")
            }
        }
    }
}
