//! Analytics as JSON: in total, by day, by agent and by team.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;
use switchboard_backends::analytics::{
    histogram::DurationHistogram,
    totals::{RATING_PARTS, TotalsGroup, UsageTotals},
};
use utoipa::ToSchema;

use super::AnalyticsData;

const RATING_MAX: u64 = 5;

/// Analytics of a range of days.
#[derive(Serialize, ToSchema)]
pub(in crate::admin) struct AnalyticsReport {
    /// The first day.
    #[schema(format = Date)]
    from: String,
    /// The last day.
    #[schema(format = Date)]
    to: String,
    /// The time zone of the days, always `UTC`.
    timezone: &'static str,
    /// The totals of all days.
    totals: AnalyticsTotals,
    /// The totals of each day.
    days: Vec<DayTotals>,
    /// The totals of each agent, sorted by the number of messages.
    agents: Vec<AgentTotals>,
    /// The totals of each team, sorted by the number of messages.
    teams: Vec<TeamTotals>,
}

/// The totals of one day.
#[derive(Serialize, ToSchema)]
struct DayTotals {
    /// The day.
    #[schema(format = Date)]
    day: String,
    #[serde(flatten)]
    totals: AnalyticsTotals,
}

/// The totals of one agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AgentTotals {
    /// The id of the agent.
    agent_id: String,
    /// The name of the agent; `null` if it no longer exists.
    #[schema(required)]
    agent_name: Option<String>,
    #[serde(flatten)]
    totals: AnalyticsTotals,
}

/// The totals of one team.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TeamTotals {
    /// The id of the team.
    team_id: String,
    /// The name of the team; `null` if it no longer exists.
    #[schema(required)]
    team_name: Option<String>,
    #[serde(flatten)]
    totals: AnalyticsTotals,
}

/// Counts of conversations and replies.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AnalyticsTotals {
    /// Conversations that began.
    conversations: u64,
    /// Messages of visitors.
    messages: u64,
    /// Replies by their final state.
    replies: ReplyCounts,
    /// Times from acceptance to the end of replies with text.
    response_time: TimeStatistics,
    /// Times from acceptance to the first text.
    first_text_time: TimeStatistics,
    /// Tokens that were used.
    tokens: TokenCounts,
    /// Ratings of the conversations that began.
    ratings: RatingStatistics,
    /// Conversations that began and have a lead.
    leads: u64,
}

/// Replies by their final state.
#[derive(Serialize, ToSchema)]
struct ReplyCounts {
    completed: u64,
    incomplete: u64,
    failed: u64,
    cancelled: u64,
}

/// Statistics of times, in milliseconds; `null` without any.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TimeStatistics {
    /// The number of times.
    count: u64,
    #[schema(required)]
    average_ms: Option<u64>,
    #[schema(required)]
    p50_ms: Option<u64>,
    #[schema(required)]
    p95_ms: Option<u64>,
}

/// Tokens of all replies.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TokenCounts {
    /// Tokens that models read.
    prompt: u64,
    /// Tokens that models wrote.
    completion: u64,
    /// Replies whose tokens are estimates, because the provider reported none.
    estimated_replies: u64,
}

/// Ratings of conversations.
#[derive(Serialize, ToSchema)]
struct RatingStatistics {
    /// The number of ratings.
    count: u64,
    /// The average, from 1 to 5; `null` without ratings.
    #[schema(required)]
    average: Option<f64>,
    /// The ratings nearest to each whole number from 1 to 5.
    stars: Vec<u64>,
}

impl AnalyticsReport {
    /// Creates the report of the counted replies.
    pub(super) fn new(data: &AnalyticsData) -> Self {
        let mut totals = UsageTotals::default();
        let mut days = Vec::new();
        for day in data.days.iter() {
            let mut of_day = UsageTotals::default();
            let groups = data
                .counted
                .get(&day)
                .into_iter()
                .flat_map(|totals| totals.0.values());
            groups.for_each(|group| of_day.merge(group));
            totals.merge(&of_day);
            days.push(DayTotals {
                day: day.to_string(),
                totals: AnalyticsTotals::from(&of_day),
            });
        }
        let agents = busiest_first(data, |group| group.agent_id.as_ref().map(|id| id.as_str()));
        let teams = busiest_first(data, |group| group.team_id.as_ref().map(|id| id.as_str()));
        let agents = agents.into_iter().map(|(id, usage)| AgentTotals {
            agent_id: id.to_owned(),
            agent_name: data.names.get(id).cloned(),
            totals: AnalyticsTotals::from(&usage),
        });
        let teams = teams.into_iter().map(|(id, usage)| TeamTotals {
            team_id: id.to_owned(),
            team_name: data.names.get(id).cloned(),
            totals: AnalyticsTotals::from(&usage),
        });
        Self {
            from: data.days.first.to_string(),
            to: data.days.last.to_string(),
            timezone: "UTC",
            totals: AnalyticsTotals::from(&totals),
            days,
            agents: agents.collect(),
            teams: teams.collect(),
        }
    }
}

/// Returns a rating in stars. Hundredths are precise enough to distinguish two averages.
#[expect(clippy::cast_precision_loss, reason = "at most 500")]
pub(super) fn stars_of(hundredths: u64) -> f64 {
    hundredths as f64 / f64::from(RATING_PARTS)
}

/// Returns the totals of each agent, or of each team, by the number of messages.
fn busiest_first(
    data: &AnalyticsData,
    id_of: impl Fn(&TotalsGroup) -> Option<&str>,
) -> Vec<(&str, UsageTotals)> {
    let mut totals: BTreeMap<&str, UsageTotals> = BTreeMap::new();
    for (group, usage) in data.counted.values().flat_map(|totals| &totals.0) {
        if let Some(id) = id_of(group) {
            totals.entry(id).or_default().merge(usage);
        }
    }
    let mut sorted: Vec<_> = totals.into_iter().collect();
    sorted.sort_by_key(|(_, usage)| Reverse(usage.messages()));
    sorted
}

impl From<&UsageTotals> for AnalyticsTotals {
    fn from(usage: &UsageTotals) -> Self {
        Self {
            conversations: usage.conversations,
            messages: usage.messages(),
            replies: ReplyCounts {
                completed: usage.completed,
                incomplete: usage.incomplete,
                failed: usage.failed,
                cancelled: usage.cancelled,
            },
            response_time: TimeStatistics::from(&usage.response_time),
            first_text_time: TimeStatistics::from(&usage.first_text),
            tokens: TokenCounts {
                prompt: usage.prompt_tokens,
                completion: usage.completion_tokens,
                estimated_replies: usage.estimated,
            },
            ratings: RatingStatistics {
                count: usage.rated(),
                average: usage.average_rating().map(stars_of),
                stars: (1..=RATING_MAX)
                    .map(|star| ratings_near(usage, star))
                    .collect(),
            },
            leads: usage.leads,
        }
    }
}

impl From<&DurationHistogram> for TimeStatistics {
    fn from(times: &DurationHistogram) -> Self {
        Self {
            count: times.count(),
            average_ms: times.average_ms(),
            p50_ms: times.percentile_ms(50),
            p95_ms: times.percentile_ms(95),
        }
    }
}

/// Returns the number of ratings nearest to a whole number.
fn ratings_near(usage: &UsageTotals, star: u64) -> u64 {
    let parts = u64::from(RATING_PARTS);
    let nearest = |rating: u64| ((rating + parts / 2) / parts).clamp(1, RATING_MAX);
    let near = usage
        .ratings
        .iter()
        .filter(|(rating, _)| nearest(**rating) == star);
    near.map(|(_, count)| count).sum()
}
