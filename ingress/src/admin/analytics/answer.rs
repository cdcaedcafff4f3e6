//! Figures as JSON: all together, day by day, agent by agent and team by team.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use switchboard_backends::analytics::{
    histogram::DurationHistogram,
    totals::{DailyTotals, TotalsGroup},
};

use super::Report;

/// Ratings are counted in hundredths.
const PARTS_OF_RATING: u64 = 100;
const RATING_MAX: u64 = 5;

pub(super) fn of(report: &Report) -> Value {
    let mut totals = DailyTotals::default();
    let mut days = Vec::new();
    for day in report.days.iter() {
        let mut of_day = DailyTotals::default();
        let tallies = report
            .counted
            .get(&day)
            .into_iter()
            .flat_map(|tallies| tallies.0.values());
        tallies.for_each(|tally| of_day.merge(tally));
        totals.merge(&of_day);
        days.push(with_figures(json!({ "day": day.to_string() }), &of_day));
    }
    json!({
        "from": report.days.first.to_string(),
        "to": report.days.last.to_string(),
        "timezone": "UTC",
        "totals": with_figures(json!({}), &totals),
        "days": days,
        "agents": by(report, "agent", |group| group.agent_id.as_ref().map(|id| id.as_str())),
        "teams": by(report, "team", |group| group.team_id.as_ref().map(|id| id.as_str())),
    })
}

/// A rating as people write it; hundredths of the scale are enough to tell any two averages apart.
#[expect(clippy::cast_precision_loss, reason = "at most 500")]
pub(super) fn rating(hundredths: u64) -> f64 {
    hundredths as f64 / PARTS_OF_RATING as f64
}

/// The figures of each agent, or of each team, busiest first.
fn by(report: &Report, kind: &str, id_of: impl Fn(&TotalsGroup) -> Option<&str>) -> Vec<Value> {
    let mut tallies: BTreeMap<&str, DailyTotals> = BTreeMap::new();
    for (group, tally) in report.counted.values().flat_map(|tallies| &tallies.0) {
        if let Some(id) = id_of(group) {
            tallies.entry(id).or_default().merge(tally);
        }
    }
    let mut busiest_first: Vec<_> = tallies.into_iter().collect();
    busiest_first.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.messages()));
    let shown = busiest_first.into_iter().map(|(id, tally)| {
        let (id_key, name_key) = (format!("{kind}Id"), format!("{kind}Name"));
        with_figures(
            json!({ id_key: id, name_key: report.names.of(Some(id)) }),
            &tally,
        )
    });
    shown.collect()
}

fn with_figures(mut about: Value, tally: &DailyTotals) -> Value {
    about["conversations"] = tally.conversations.into();
    about["messages"] = tally.messages().into();
    about["replies"] = json!({
        "completed": tally.completed,
        "incomplete": tally.incomplete,
        "failed": tally.failed,
        "cancelled": tally.cancelled,
    });
    about["responseTime"] = times(&tally.response_time);
    about["firstTextTime"] = times(&tally.first_text);
    about["tokens"] = json!({ "prompt": tally.prompt_tokens, "completion": tally.completion_tokens, "estimatedReplies": tally.estimated });
    about["ratings"] = json!({ "count": tally.rated(), "average": tally.average_rating().map(rating), "stars": stars(tally) });
    about
}

fn times(times: &DurationHistogram) -> Value {
    json!({
        "count": times.count(),
        "averageMs": times.average_ms(),
        "p50Ms": times.percentile_ms(50),
        "p95Ms": times.percentile_ms(95),
    })
}

/// How many ratings are nearest to each whole number, from 1 to 5.
fn stars(tally: &DailyTotals) -> Vec<u64> {
    let nearest = |hundredths: u64| {
        ((hundredths + PARTS_OF_RATING / 2) / PARTS_OF_RATING).clamp(1, RATING_MAX)
    };
    let of_star = |star: u64| {
        tally
            .ratings
            .iter()
            .filter(move |(rating, _)| nearest(**rating) == star)
    };
    (1..=RATING_MAX)
        .map(|star| of_star(star).map(|(_, count)| count).sum())
        .collect()
}
