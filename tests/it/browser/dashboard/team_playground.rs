//! Playground of a team: scores of the members and the reason of the choice.

use serde_json::json;

use super::Person;
use crate::support::{OrganizationDocument, Script};

#[tokio::test]
async fn scores_of_the_unsaved_form_are_bars_with_a_reason() {
    let members = json!([
        {"agent": "orders", "specialization": "orders, delivery, refunds"},
        {"agent": "wine", "specialization": "red and white wine"}
    ]);
    let organization = OrganizationDocument::new()
        .agent("orders", json!({"name": "Orders"}))
        .agent("wine", json!({"name": "Wine"}))
        .team("desk", json!({"members": members, "status": "draft"}))
        .apply_to_shared()
        .await;
    let service = organization.service();
    organization.script(Script::says("{}"));
    let person = Person::owner_at(
        &organization,
        &format!("/teams/{}", organization.team("desk")),
    )
    .await;
    let ask = "await type('Message', 'Where is the delivery of my order?'); await press('Who would answer?');
        const chosen = await until('the choice of ' + input, () => { const part = document.querySelector('[data-testid=chosen-agent]'); return part?.innerText === input && part; });
        const bars = [...document.querySelectorAll('[role=progressbar]')].map(bar => [bar.getAttribute('aria-label'), Number(bar.getAttribute('aria-valuenow'))]);
        return [bars, chosen.nextElementSibling.innerText];";
    let seen = person.does_with(ask, json!("Orders")).await;
    let score = |name: &str| {
        let bars = seen[0].as_array().unwrap();
        bars.iter()
            .find(|bar| bar[0] == format!("Score of {name}"))
            .and_then(|bar| bar[1].as_f64())
            .unwrap()
    };
    assert!(score("Orders") > score("Wine"), "{seen}");
    assert!(!seen[1].as_str().unwrap().is_empty());

    // The run uses the form as typed, saved or not.
    person
        .does("await type('Specialization of Orders', 'red and white wine'); await type('Specialization of Wine', 'orders, delivery, refunds');")
        .await;
    person.does_with(ask, json!("Wine")).await;
    let keys = service
        .admin()
        .get(&organization.admin_path("/keys"))
        .await
        .json();
    assert_eq!(keys["total"], 1, "no key was made for it");
}
