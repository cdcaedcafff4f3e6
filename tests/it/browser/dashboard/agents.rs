//! Agents in the dashboard: creation, changes, conflicts and permissions.

use reqwest::Method;
use serde_json::{Value, json};

use super::Person;
use crate::support::{
    Organization, OrganizationDocument, PATIENCE, Script, TestService, eventually, shop_saying,
    shop_with,
};

/// Returns an agent of the organization from the admin API.
async fn agent(organization: &Organization, slug: &str) -> Value {
    let path = organization.admin_path("/agents");
    let admin = organization.service().admin();
    let agents = admin.get(&path).await.json();
    let found = agents["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|agent| agent["slug"] == slug);
    let found = found.unwrap_or_else(|| panic!("no {slug} in {agents}"));
    let id = found["id"].as_str().unwrap();
    admin.get(&format!("{path}/{id}")).await.json()
}

async fn patch(service: &TestService, organization: &Organization, changes: Value) {
    let path = organization.admin_path(&format!("/agents/{}", organization.shop()));
    assert_eq!(service.admin().patch(&path, &changes).await.status, 200);
}

#[tokio::test]
async fn new_agent_is_activated_and_answers_in_the_playground() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    organization.script(Script::says("Tea it is."));
    let person = Person::owner_at(&organization, "/agents").await;
    person.does("await shows('Create your first agent'); await press('New agent'); await type('Name', 'Tea Shop'); await press('Create');").await;
    person
        .does(
            "await type('Instructions', 'Sell tea.'); await choose('Provider', 'main'); await press('Save'); await shows('Saved.');
             await press('Saved'); await type('Message', 'Coffee?'); await press('Send');
             await shows('Tea it is.'); await until('the facts', () => document.querySelector('[data-testid=turn-facts]'));
             await press('Publish'); await shows('Tea Shop is live');",
        )
        .await;
    let made = eventually("the agent is active", PATIENCE, async || {
        let made = agent(&organization, "tea-shop").await;
        (made["status"] == "active").then_some(made)
    })
    .await;
    assert_eq!(
        (&made["status"], &made["instructions"]),
        (&json!("active"), &json!("Sell tea."))
    );
    let asked = organization.requests();
    assert_eq!(asked[0].question(), "Coffee?");
    assert!(
        asked[0].messages[0].1.contains("Sell tea."),
        "{:?}",
        asked[0].messages
    );
}

#[tokio::test]
async fn playground_reply_streams_into_the_page() {
    let (script, gate) = Script::says("one   two   ").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let person = Person::owner_at(&organization, &format!("/agents/{}", organization.shop())).await;
    gate.open(1);
    person
        .does("await type('Message', 'Count'); await press('Send'); await shows('one');")
        .await;
    let early = person
        .does("return document.body.innerText.includes('two');")
        .await;
    gate.open(1);
    person.does("await shows('two');").await;
    assert_eq!(early, false);
}

#[tokio::test]
async fn only_changed_fields_are_saved_and_conflicts_offer_a_choice() {
    let organization = shop_saying("ok").await;
    let person = Person::owner_at(&organization, &format!("/agents/{}", organization.shop())).await;
    person.does("await type('Description', 'Mine');").await;
    patch(
        organization.service(),
        &organization,
        json!({"description": "Theirs", "welcomeMessage": "Also theirs"}),
    )
    .await;
    person.does("await press('Save'); await shows('Someone else saved changes'); await shows('You both changed one field');").await;
    assert_eq!(agent(&organization, "shop").await["description"], "Theirs");
    person
        .does("await press('Save my changes'); await shows('Saved.');")
        .await;
    let saved = agent(&organization, "shop").await;
    assert_eq!(
        (&saved["description"], &saved["welcomeMessage"]),
        (&json!("Mine"), &json!("Also theirs"))
    );
}

#[tokio::test]
async fn invalid_domain_is_explained_and_a_valid_one_is_enforced() {
    let organization = shop_saying("ok").await;
    let path = format!("/agents/{}?tab=access", organization.shop());
    let person = Person::owner_at(&organization, &path).await;
    for (entry, says) in [
        ("shop.example/cart", "without a path"),
        ("*.com", "top-level domain"),
        ("ftp://shop.example", "Only http and https"),
        ("shop_!.example", "not a host name"),
    ] {
        let steps =
            "await type('Domain to allow', input[0]); await press('Add'); await shows(input[1]);";
        person.does_with(steps, json!([entry, says])).await;
    }
    person.does("await type('Domain to allow', '*.shop.example'); await press('Add'); await press('Save'); await shows('Saved.');").await;
    assert_eq!(
        agent(&organization, "shop").await["allowedDomains"],
        json!(["*.shop.example"])
    );
    let token = async |origin: &str| {
        let request = organization
            .service()
            .client()
            .request(Method::POST, "/api/widget/token")
            .header("origin", origin);
        request
            .json(&json!({"agentId": organization.shop()}))
            .send()
            .await
            .unwrap()
            .status()
    };
    eventually("other sites are refused", PATIENCE, async || {
        (token("https://other.example").await == 403).then_some(())
    })
    .await;
    assert_eq!(token("https://www.shop.example").await, 200);
}

#[tokio::test]
async fn invalid_color_is_named_and_cannot_be_saved() {
    let organization = shop_saying("ok").await;
    let path = format!("/agents/{}?tab=appearance", organization.shop());
    let person = Person::owner_at(&organization, &path).await;
    person
        .does("await type('Header', 'red;'); await shows('header is not a color');")
        .await;
    let disabled = person.does("return all('button', 'Save').concat([...document.querySelectorAll('button')].filter(b => b.textContent.startsWith('Save'))).every(b => b.disabled);").await;
    assert_eq!(disabled, true);
}

#[tokio::test]
async fn viewer_sees_everything_and_is_offered_no_edits() {
    let organization = shop_saying("ok").await;
    let person = Person::at(organization.service(), &organization, "viewer", "/agents").await;
    person.does("await control('Agent shop');").await;
    let offered = "return ['New agent', 'New team', 'New key', 'Members', 'Audit log'].filter(name => all(PRESSED, name).length > 0);";
    assert_eq!(person.does(offered).await, json!([]));
    person
        .goes_to(&format!("/agents/{}", organization.shop()))
        .await;
    let enabled = "await field('Name'); return all('input, textarea', 'Name').concat(all('input, textarea', 'Description')).filter(element => !element.readOnly).length;";
    assert_eq!(person.does(enabled).await, 0);
    person.goes_to("/settings/keys").await;
    person.does("await shows('all');").await;
    assert_eq!(person.does(offered).await, json!([]));
}
