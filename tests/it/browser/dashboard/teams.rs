//! Teams are made in the dashboard, and a message shows who answers and why.

use serde_json::json;

use super::Person;
use crate::support::{OrganizationDocument, PATIENCE, Script, SharedService, eventually};

#[tokio::test]
async fn a_team_is_made_and_a_message_finds_its_member() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .agent("orders", json!({"name": "Orders"}))
        .agent("wine", json!({"name": "Wine"}))
        .apply(&service)
        .await;
    organization.script(Script::says("At your service."));
    let person = Person::owner_at(&service, &organization, "/teams").await;
    person.does("await shows('Let agents share the work'); await press('New team'); await type('Name', 'Front desk'); await press('Create');").await;
    let steps = "
        for (const [name, skill] of input) {
            await choose('Add a member', name);
            await type('Specialization of ' + name, skill);
        }
        await choose('Default agent', 'Wine');
        await press('Active'); await press('Save'); await shows('Saved.');
        await type('Message', 'Where is the delivery of my order?'); await press('Send');
        await shows('Orders was chosen'); await shows('At your service.');";
    person.does_with(steps, json!([["Orders", "orders, delivery, refunds"], ["Wine", "red and white wine"]])).await;
    let keys = format!("/api/admin/organizations/{}/keys", organization.id);
    let count = async || service.admin().get(&keys).await.json()["total"].as_u64().unwrap();
    assert_eq!(count().await, 2, "a short-lived key is there");
    person.does("await press('Agents');").await;
    eventually("the key of the trial is gone", PATIENCE, async || (count().await == 1).then_some(())).await;
}
