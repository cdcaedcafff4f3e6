//! Teams in the dashboard, and the routing decision of a message.

use serde_json::json;

use super::Person;
use crate::support::{OrganizationDocument, PATIENCE, Script, eventually};

#[tokio::test]
async fn new_team_routes_a_message_to_its_member() {
    let organization = OrganizationDocument::new()
        .agent("orders", json!({"name": "Orders"}))
        .agent("wine", json!({"name": "Wine"}))
        .apply_to_shared()
        .await;
    let service = organization.service();
    organization.script(Script::says("At your service."));
    let person = Person::owner_at(&organization, "/teams").await;
    person.does("await shows('Create your first team'); await press('New team'); await type('Name', 'Front desk'); await press('Create');").await;
    let steps = "
        for (const [name, skill] of input) {
            await choose('Add a member', name);
            await type('Specialization of ' + name, skill);
        }
        await choose('Default agent', 'Wine');
        await press('Publish'); await shows('Front desk is live');";
    person
        .does_with(
            steps,
            json!([
                ["Orders", "orders, delivery, refunds"],
                ["Wine", "red and white wine"]
            ]),
        )
        .await;
    let teams = service
        .admin()
        .get(&organization.admin_path("/teams"))
        .await
        .json();
    let team = teams["items"][0]["id"].as_str().unwrap();
    let reply = eventually("the team answers", PATIENCE, async || {
        let reply = organization
            .client()
            .team_chat(team, "s", "Where is the delivery of my order?")
            .await;
        (reply.status == 200).then_some(reply)
    })
    .await;
    assert_eq!(
        reply.required_header("x-agent-id"),
        organization.agent("orders")
    );
    assert_eq!(reply.complete(), "At your service.");
}

#[tokio::test]
async fn team_without_an_agent_that_answers_is_not_published() {
    let organization = OrganizationDocument::new()
        .agent("wine", json!({"name": "Wine", "status": "active"}))
        .apply_to_shared()
        .await;
    let person = Person::owner_at(&organization, "/teams").await;
    person
        .does("await press('New team'); await type('Name', 'Front desk'); await press('Create');")
        .await;
    person
        .does(
            "await press('Publish');
             const bar = await until('the bar', () => document.querySelector('[aria-label=Changes]'));
             await until('the field', () => bar.innerText.includes('“members”')); await shows('Draft');
             await choose('Add a member', 'Wine'); await press('Publish'); await shows('Front desk is live');",
        )
        .await;
    // Its last agent goes offline later.
    let agent = organization.admin_path(&format!("/agents/{}", organization.agent("wine")));
    let offline = json!({"status": "inactive"});
    assert_eq!(
        organization
            .service()
            .admin()
            .patch(&agent, &offline)
            .await
            .status,
        200
    );
    let path = person.does("return location.pathname;").await;
    let path = path.as_str().unwrap().trim_start_matches("/dashboard");
    person.goes_to(path).await;
    person
        .does("await shows('Nobody can answer'); await shows('gets no messages until it is published and public');")
        .await;
}
