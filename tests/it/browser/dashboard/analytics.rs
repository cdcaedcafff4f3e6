//! Analytics in the dashboard: charts, tables and CSV.

use serde_json::json;

use super::Person;
use crate::support::{Organization, OrganizationDocument, Script, shop_saying, shop_with_settings};

/// Reads the table under a chart once its last day has this value.
const LAST_DAY: &str = "
    const [title, wanted] = input;
    if (title !== (await field('Measure')).value) await choose('Measure', title);
    const table = () => document.querySelector(`[aria-label=\"${title}, day by day\"]`);
    const details = await until('the table of ' + title, () => table()?.closest('details'));
    details.open = true;
    const cells = () => [...table().querySelectorAll('tbody tr:last-child > *')].map(cell => cell.textContent);
    await until(title + ' ' + JSON.stringify(wanted), () => JSON.stringify(cells().slice(1)) === JSON.stringify(wanted));
    await until('the drawing of ' + title, () => details.parentElement.querySelector('svg .chart-mark, svg circle'));
    return {days: table().querySelectorAll('tbody tr').length, marks: details.parentElement.querySelectorAll('svg .chart-mark, svg circle').length};";

async fn talk(organization: &Organization, agent: &str, sessions: &[&str]) {
    for session in sessions {
        organization
            .client()
            .chat(organization.agent(agent), session, "hi")
            .await
            .complete();
    }
}

#[tokio::test]
async fn charts_tables_and_csv_show_the_recorded_totals() {
    let organization = shop_saying("First answer").await;
    talk(&organization, "shop", &["one", "one", "two"]).await;
    let rated = organization.path("/conversations/one");
    assert_eq!(
        organization
            .client()
            .patch(&rated, &json!({"rating": 4}))
            .await
            .status,
        200
    );
    let person = Person::owner_at(&organization, "/agents").await;
    person
        .does("await press('Analytics'); await shows('Time to first token');")
        .await;
    for (title, wanted, marks) in [
        ("Messages", json!(["3", "0", "0"]), 1),
        ("Conversations", json!(["2"]), 1),
        ("Ratings", json!(["4.0"]), 1),
    ] {
        let found = person.does_with(LAST_DAY, json!([title, wanted])).await;
        assert_eq!(found, json!({"days": 30, "marks": marks}), "{title}");
    }
    let file = "const link = await control('Download CSV');
        if (!link.hasAttribute('download')) return 'it would be shown, and not kept';
        return await (await fetch(link.href)).text();";
    let file = person.does(file).await;
    let lines: Vec<&str> = file.as_str().unwrap().lines().collect();
    assert_eq!(lines.len(), 2, "{file}");
    assert!(
        lines[0].starts_with("day,agentId,agentName,")
            && lines[1].contains("\"Agent shop\",,,2,3,3,0,0,0,"),
        "{file}"
    );
}

#[tokio::test]
async fn filters_by_day_and_agent_are_kept_in_the_url() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .agent("help", json!({}))
        .apply_to_shared()
        .await;
    organization.script(Script::says("ok"));
    talk(&organization, "shop", &["one"]).await;
    talk(&organization, "help", &["two", "three"]).await;
    let person = Person::owner_at(&organization, "/analytics").await;
    person
        .does_with(LAST_DAY, json!(["Messages", ["3", "0", "0"]]))
        .await;
    person
        .does("await choose('Agent or team', 'Agent help');")
        .await;
    person
        .does_with(LAST_DAY, json!(["Messages", ["2", "0", "0"]]))
        .await;
    person.does("await choose('Days', 'Last 7 days');").await;
    let seven = "await until('seven days', () => document.querySelectorAll('[aria-label=\"Messages, day by day\"] tbody tr').length === 7);
        return location.search;";
    let address = person.does(seven).await;
    let wanted = format!("?agent={}&days=7d", organization.agent("help"));
    assert_eq!(address.as_str().map(sorted), Some(sorted(&wanted)));
    // A shared link shows the same, and custom days are used as given.
    person.goes_to(&format!("/analytics{wanted}")).await;
    person.does(seven).await;
    person
        .does(
            "await choose('Days', 'Custom range'); await type('From', '2020-01-01'); await type('To', '2020-01-02');",
        )
        .await;
    person.does("await shows('No messages match');").await;
    person
        .does(
            "await press('Show all agents and teams'); await shows('No messages in this period');",
        )
        .await;
    person.does("await press('Show 90 days');").await;
    person
        .does_with(LAST_DAY, json!(["Messages", ["3", "0", "0"]]))
        .await;
}

#[tokio::test]
async fn empty_page_offers_a_next_step() {
    let organization = shop_with_settings(json!({})).await;
    let person = Person::owner_at(&organization, "/analytics").await;
    person
        .does("await shows('No messages in this period'); await press('Go to agents'); await shows('Agent shop');")
        .await;
}

fn sorted(query: &str) -> Vec<String> {
    let mut fields: Vec<String> = query
        .trim_start_matches('?')
        .split('&')
        .map(str::to_owned)
        .collect();
    fields.sort();
    fields
}
