//! Figures as a table: a row for each day, agent and team that has any (RFC 4180).

use axum::response::{IntoResponse, Response};
use http::header;
use switchboard_backends::figures::tally::{Group, Tally};
use switchboard_schemas::day::Day;

use super::{Report, answer::rating};

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
/// With these a spreadsheet would take a name for a formula and run it.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

pub(super) fn response(report: &Report, slug: &str) -> Response {
    let name = format!("attachment; filename=\"{slug}-{}-{}.csv\"", report.days.first, report.days.last);
    let headers = [(header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (header::CONTENT_DISPOSITION, name)];
    (headers, table(report)).into_response()
}

fn table(report: &Report) -> String {
    let mut table = line(HEAD.iter().map(ToString::to_string));
    for (day, tallies) in &report.counted {
        for (group, tally) in &tallies.0 {
            table.push_str(&line(cells(report, *day, group, tally)));
        }
    }
    table
}

fn cells(report: &Report, day: Day, group: &Group, tally: &Tally) -> impl Iterator<Item = String> {
    let (agent, team) = (group.agent_id.as_ref().map(|id| id.as_str()), group.team_id.as_ref().map(|id| id.as_str()));
    let name = |id| quoted(report.names.of(id).unwrap_or_default());
    let text = |id: Option<&str>| id.unwrap_or_default().to_owned();
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let (response, first) = (&tally.response_time, &tally.first_text);
    let average = tally.average_rating().map(|hundredths| rating(hundredths).to_string()).unwrap_or_default();
    [day.to_string(), text(agent), name(agent), text(team), name(team)]
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
        .chain(
            [response, first].into_iter().flat_map(move |times| {
                [times.average_ms(), times.percentile_ms(50), times.percentile_ms(95)].map(number)
            }),
        )
        .chain([tally.rated().to_string(), average])
        .collect::<Vec<_>>()
        .into_iter()
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(",") + "\r\n"
}

/// A name that someone chose.
fn quoted(name: &str) -> String {
    let guard = if name.starts_with(FORMULA_STARTS) { "'" } else { "" };
    if name.is_empty() { String::new() } else { format!("\"{guard}{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_name_stays_one_cell_and_is_never_a_formula() {
        for (name, cell) in [
            ("", ""),
            ("Shop, Berlin", "\"Shop, Berlin\""),
            ("the \"best\"\nshop", "\"the \"\"best\"\"\nshop\""),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("-1", "\"'-1\""),
            ("@cmd", "\"'@cmd\""),
        ] {
            assert_eq!(quoted(name), cell);
        }
    }
}
