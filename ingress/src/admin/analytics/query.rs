//! The query of a request for analytics.

use http::{HeaderMap, header};
use serde::Deserialize;
use switchboard_backends::analytics::{DayRange, totals::TotalsGroup};
use switchboard_schemas::{
    day::UtcDay,
    ids::{AgentId, TeamId},
};
use utoipa::{IntoParams, ToSchema};

use crate::{
    admin::pages::parse_parameter,
    http::{ApiError, ApiResult},
};

/// The number of days without `from`, the last day included.
const DAYS_DEFAULT: i64 = 30;
/// The largest number of days of one request: a year and a month to compare with.
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
    /// The format of the response; by default the first one in `Accept`.
    #[param(value_type = Option<AnalyticsFormat>, inline)]
    format: Option<String>,
}

/// The agent and the team to include.
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
    pub(super) fn days(&self, today: UtcDay) -> ApiResult<DayRange> {
        let last = parse_day("to", self.to.as_deref())?.unwrap_or(today);
        let first = parse_day("from", self.from.as_deref())?
            .unwrap_or_else(|| last.plus_days(1 - DAYS_DEFAULT));
        match last.number() - first.number() {
            ..0 => Err(ApiError::field("to", "must not be before from")),
            0..DAYS_MAX => Ok(DayRange { first, last }),
            _ => {
                let rule = format!("must be less than {DAYS_MAX} days before to");
                Err(ApiError::field("from", rule))
            }
        }
    }

    pub(super) fn filter(&self) -> ApiResult<AnalyticsFilter> {
        let (agent, team) = (self.agent.as_deref(), self.team.as_deref());
        Ok(AnalyticsFilter {
            agent: parse_parameter("agent", agent, "must be the id of an agent")?,
            team: parse_parameter("team", team, "must be the id of a team")?,
        })
    }

    /// Returns the format. The query takes precedence over `Accept`, so that a link in a browser
    /// gives CSV.
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
                let is_csv = first.eq_ignore_ascii_case("text/csv");
                Ok(if is_csv {
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
        let is_agent = self.agent.is_none() || self.agent == group.agent_id;
        is_agent && (self.team.is_none() || self.team == group.team_id)
    }
}

fn parse_day(param: &str, text: Option<&str>) -> ApiResult<Option<UtcDay>> {
    parse_parameter(param, text, "must be a day such as 2026-01-31")
}
