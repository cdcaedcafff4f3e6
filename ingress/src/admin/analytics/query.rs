//! The query of a request for analytics.

use http::{HeaderMap, header};
use serde::Deserialize;
use switchboard_backends::analytics::{DayRange, totals::TotalsGroup};
use switchboard_schemas::{
    day::Day,
    ids::{AgentId, TeamId},
};
use utoipa::{IntoParams, ToSchema};

use crate::http::{ApiError, ApiResult};

/// The number of days without `from`, the last day included.
const DAYS_DEFAULT: i64 = 30;
/// The most days of one request: a year, and the month before it to compare with.
const DAYS_MAX: i64 = 400;

/// The range, the filters and the format of analytics.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(in crate::admin) struct AnalyticsQuery {
    /// The first day: by default 29 days before `to`, at most 399.
    #[param(format = Date)]
    from: Option<String>,
    /// The last day, today by default.
    #[param(format = Date)]
    to: Option<String>,
    /// The id of an agent.
    agent: Option<String>,
    /// The id of a team.
    team: Option<String>,
    /// The format of the answer; by default the one that `Accept` names first.
    #[param(value_type = Option<AnalyticsFormat>, inline)]
    format: Option<String>,
}

/// The agent and the team whose replies are counted.
#[derive(Debug)]
pub(super) struct AnalyticsFilter {
    agent: Option<AgentId>,
    team: Option<TeamId>,
}

/// The format of analytics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum AnalyticsFormat {
    Json,
    Csv,
}

impl AnalyticsQuery {
    /// Returns the days, both ends included.
    pub(super) fn days(&self, today: Day) -> ApiResult<DayRange> {
        let last = parse_day("to", self.to.as_deref())?.unwrap_or(today);
        let first =
            parse_day("from", self.from.as_deref())?.unwrap_or_else(|| last.plus(1 - DAYS_DEFAULT));
        match last.number() - first.number() {
            ..0 => Err(ApiError::field("to", "must not be before from")),
            0..DAYS_MAX => Ok(DayRange { first, last }),
            _ => Err(ApiError::field(
                "from",
                format!("must be less than {DAYS_MAX} days before to"),
            )),
        }
    }

    /// Returns the filters.
    pub(super) fn filter(&self) -> ApiResult<AnalyticsFilter> {
        let agent = self.agent.as_deref().map(str::parse).transpose();
        let team = self.team.as_deref().map(str::parse).transpose();
        Ok(AnalyticsFilter {
            agent: agent.map_err(|_| ApiError::field("agent", "must be the id of an agent"))?,
            team: team.map_err(|_| ApiError::field("team", "must be the id of a team"))?,
        })
    }

    /// Returns the format. The query takes precedence over `Accept`, so that a link in a browser gives CSV.
    pub(super) fn format(&self, headers: &HeaderMap) -> ApiResult<AnalyticsFormat> {
        match self.format.as_deref() {
            Some("json") => Ok(AnalyticsFormat::Json),
            Some("csv") => Ok(AnalyticsFormat::Csv),
            Some(_) => Err(ApiError::field("format", "must be json or csv")),
            None => {
                let accept = headers
                    .get(header::ACCEPT)
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default();
                let first = accept.split([',', ';']).next().unwrap_or_default().trim();
                Ok(if first.eq_ignore_ascii_case("text/csv") {
                    AnalyticsFormat::Csv
                } else {
                    AnalyticsFormat::Json
                })
            }
        }
    }
}

impl AnalyticsFilter {
    /// Returns whether a group of replies is counted.
    pub(super) fn matches(&self, group: &TotalsGroup) -> bool {
        self.agent
            .as_ref()
            .is_none_or(|agent| group.agent_id.as_ref() == Some(agent))
            && self
                .team
                .as_ref()
                .is_none_or(|team| group.team_id.as_ref() == Some(team))
    }
}

fn parse_day(param: &str, text: Option<&str>) -> ApiResult<Option<Day>> {
    let day = text.map(str::parse).transpose();
    day.map_err(|_| ApiError::field(param, "must be a day such as 2026-01-31"))
}
