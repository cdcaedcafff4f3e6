//! Analytics as CSV: one row for each day, agent and team with replies.

use axum::response::{IntoResponse, Response};
use http::header;
use switchboard_backends::analytics::totals::{TotalsGroup, UsageTotals};
use switchboard_schemas::day::UtcDay;

use super::{AnalyticsData, report::stars_of};
use crate::admin::csv::push_row;

const HEAD: [&str; 23] = [
    "day",
    "agentId",
    "agentName",
    "teamId",
    "teamName",
    "conversations",
    "messages",
    "completed",
    "incomplete",
    "failed",
    "cancelled",
    "promptTokens",
    "completionTokens",
    "repliesWithEstimatedTokens",
    "responseTimeAverageMs",
    "responseTimeP50Ms",
    "responseTimeP95Ms",
    "firstTextTimeAverageMs",
    "firstTextTimeP50Ms",
    "firstTextTimeP95Ms",
    "ratings",
    "averageRating",
    "leads",
];

/// Returns the table as a download; the file name begins with `slug`.
pub(super) fn response(data: &AnalyticsData, slug: &str) -> Response {
    let (first, last) = (data.days.first, data.days.last);
    let name = format!("attachment; filename=\"{slug}-{first}-{last}.csv\"");
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    (headers, table(data)).into_response()
}

fn table(data: &AnalyticsData) -> String {
    let mut table = String::new();
    push_row(&mut table, HEAD);
    for (day, totals) in &data.counted {
        for (group, usage) in &totals.0 {
            let cells = cells(data, *day, group, usage);
            push_row(&mut table, cells.iter().map(String::as_str));
        }
    }
    table
}

fn cells(
    data: &AnalyticsData,
    day: UtcDay,
    group: &TotalsGroup,
    usage: &UsageTotals,
) -> Vec<String> {
    let name_of = |id: &str| data.names.get(id).cloned().unwrap_or_default();
    let agent = group
        .agent_id
        .as_ref()
        .map(|id| id.as_str())
        .unwrap_or_default();
    let team = group
        .team_id
        .as_ref()
        .map(|id| id.as_str())
        .unwrap_or_default();
    let mut cells = vec![
        day.to_string(),
        agent.to_owned(),
        name_of(agent),
        team.to_owned(),
        name_of(team),
    ];
    let counts = [
        usage.conversations,
        usage.messages(),
        usage.completed,
        usage.incomplete,
        usage.failed,
        usage.cancelled,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.estimated,
    ];
    cells.extend(counts.map(|count| count.to_string()));
    for times in [&usage.response_time, &usage.first_text] {
        let statistics = [
            times.average_ms(),
            times.percentile_ms(50),
            times.percentile_ms(95),
        ];
        cells.extend(statistics.map(|ms| ms.map(|ms| ms.to_string()).unwrap_or_default()));
    }
    let average = usage
        .average_rating()
        .map(|rating| stars_of(rating).to_string());
    cells.extend([
        usage.rated().to_string(),
        average.unwrap_or_default(),
        usage.leads.to_string(),
    ]);
    cells
}
