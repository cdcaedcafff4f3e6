//! Figures as a table: a row for each day, agent and team that has any.

use axum::response::{IntoResponse, Response};
use http::header;
use switchboard_backends::analytics::totals::{DailyTotals, TotalsGroup};
use switchboard_schemas::day::Day;

use super::{Report, answer::rating};
use crate::admin::csv::push_row;

const HEAD: [&str; 22] = [
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
];

pub(super) fn response(report: &Report, slug: &str) -> Response {
    let name = format!(
        "attachment; filename=\"{slug}-{}-{}.csv\"",
        report.days.first, report.days.last
    );
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    (headers, table(report)).into_response()
}

fn table(report: &Report) -> String {
    let mut table = String::new();
    push_row(&mut table, HEAD);
    for (day, tallies) in &report.counted {
        for (group, tally) in &tallies.0 {
            push_row(
                &mut table,
                cells(report, *day, group, tally).iter().map(String::as_str),
            );
        }
    }
    table
}

fn cells(report: &Report, day: Day, group: &TotalsGroup, tally: &DailyTotals) -> Vec<String> {
    let (agent, team) = (
        group.agent_id.as_ref().map(|id| id.as_str()),
        group.team_id.as_ref().map(|id| id.as_str()),
    );
    let name = |id| report.names.of(id).unwrap_or_default().to_owned();
    let text = |id: Option<&str>| id.unwrap_or_default().to_owned();
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let (response, first) = (&tally.response_time, &tally.first_text);
    let average = tally
        .average_rating()
        .map(|hundredths| rating(hundredths).to_string())
        .unwrap_or_default();
    [
        day.to_string(),
        text(agent),
        name(agent),
        text(team),
        name(team),
    ]
    .into_iter()
    .chain(
        [
            tally.conversations,
            tally.messages(),
            tally.completed,
            tally.incomplete,
            tally.failed,
            tally.cancelled,
            tally.prompt_tokens,
            tally.completion_tokens,
            tally.estimated,
        ]
        .map(|count| count.to_string()),
    )
    .chain([response, first].into_iter().flat_map(move |times| {
        [
            times.average_ms(),
            times.percentile_ms(50),
            times.percentile_ms(95),
        ]
        .map(number)
    }))
    .chain([tally.rated().to_string(), average])
    .collect()
}
