//! What a request for figures asks for.

use http::{HeaderMap, header};
use serde::Deserialize;
use switchboard_backends::analytics::{DayRange, totals::TotalsGroup};
use switchboard_schemas::{
    day::Day,
    ids::{AgentId, TeamId},
};

use crate::http::{ApiError, ApiResult};

/// Days of a request that does not say which, today included.
const DAYS_DEFAULT: i64 = 30;
/// Days of one request: a year, and the month before it to compare with.
const DAYS_MAX: i64 = 400;

/// The query.
#[derive(Debug, Default, Deserialize)]
pub(in crate::admin) struct Wanted {
    from: Option<String>,
    to: Option<String>,
    agent: Option<String>,
    team: Option<String>,
    format: Option<String>,
}

/// Whose figures.
#[derive(Debug)]
pub(super) struct Filter {
    agent: Option<AgentId>,
    team: Option<TeamId>,
}

/// How they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Csv,
}

impl Wanted {
    /// The days, both ends included.
    pub(super) fn days(&self, today: Day) -> ApiResult<DayRange> {
        let last = day("to", self.to.as_deref())?.unwrap_or(today);
        let first =
            day("from", self.from.as_deref())?.unwrap_or_else(|| last.plus(1 - DAYS_DEFAULT));
        match last.number() - first.number() {
            ..0 => Err(ApiError::field("to", "must not be before from")),
            0..DAYS_MAX => Ok(DayRange { first, last }),
            _ => Err(ApiError::field(
                "from",
                format!("must be less than {DAYS_MAX} days before to"),
            )),
        }
    }

    pub(super) fn filter(&self) -> ApiResult<Filter> {
        let agent = self.agent.as_deref().map(str::parse).transpose();
        let team = self.team.as_deref().map(str::parse).transpose();
        Ok(Filter {
            agent: agent.map_err(|_| ApiError::field("agent", "must be the id of an agent"))?,
            team: team.map_err(|_| ApiError::field("team", "must be the id of a team"))?,
        })
    }

    /// The query wins: an address that is pasted into a browser says what it wants.
    pub(super) fn form(&self, headers: &HeaderMap) -> ApiResult<Form> {
        match self.format.as_deref() {
            Some("json") => Ok(Form::Json),
            Some("csv") => Ok(Form::Csv),
            Some(_) => Err(ApiError::field("format", "must be json or csv")),
            None => {
                let accept = headers
                    .get(header::ACCEPT)
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default();
                let first = accept.split([',', ';']).next().unwrap_or_default().trim();
                Ok(if first.eq_ignore_ascii_case("text/csv") {
                    Form::Csv
                } else {
                    Form::Json
                })
            }
        }
    }
}

impl Filter {
    pub(super) fn passes(&self, group: &TotalsGroup) -> bool {
        self.agent
            .as_ref()
            .is_none_or(|agent| group.agent_id.as_ref() == Some(agent))
            && self
                .team
                .as_ref()
                .is_none_or(|team| group.team_id.as_ref() == Some(team))
    }
}

fn day(param: &str, text: Option<&str>) -> ApiResult<Option<Day>> {
    let day = text.map(str::parse).transpose();
    day.map_err(|_| ApiError::field(param, "must be a day such as 2026-01-31"))
}
