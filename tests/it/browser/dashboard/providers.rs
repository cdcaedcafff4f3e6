//! Providers in the dashboard: the test of a connection in words, and deletion.

use serde_json::json;

use super::Person;
use crate::support::{Organization, PATIENCE, Script, eventually, shop_saying, shop_with};

#[tokio::test]
async fn connection_test_says_what_the_provider_said() {
    let organization = shop_with(Script::refuses(401)).await;
    let person = Person::owner_at(&organization, "/settings/providers").await;
    person
        .does("await press('Edit main'); await press('Test connection'); await shows('Agents cannot answer with this provider.'); await shows('refused by script');")
        .await;
    assert!(
        person
            .browser
            .findings("provider-test-failed")
            .await
            .is_empty()
    );
    organization.script(Script::says("OK"));
    person
        .does(
            "await press('Test connection'); await shows('Agents can answer with this provider.');",
        )
        .await;
}

async fn slugs(organization: &Organization) -> Vec<String> {
    let path = organization.admin_path("/providers");
    let list = organization.service().admin().get(&path).await.json();
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["slug"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn deletion_is_asked_and_can_be_undone_for_a_while() {
    let organization = shop_saying("ok").await;
    let spare = json!({"slug": "spare", "baseUrl": "https://api.openai.com/v1", "model": "m"});
    let path = organization.admin_path("/providers");
    let made = organization.service().admin().post(&path, &spare).await;
    made.assert_status(201);
    let person = Person::owner_at(&organization, "/settings/providers").await;
    person
        .does("await press('Edit main'); await press('Delete'); await shows('Still in use'); await shows('agent shop');")
        .await;
    person.goes_to("/settings/providers").await;
    let deletes = "await press('Edit spare'); await press('Delete'); await press('Delete provider');
        await shows('spare will be deleted.'); await until('it is off the list', () => all('button', 'Edit spare').length === 0);";
    person.does(deletes).await;
    person
        .does("await press('Undo'); await control('Edit spare');")
        .await;
    assert!(slugs(&organization).await.contains(&"spare".to_owned()));
    // Whoever leaves the page has decided.
    person.does(deletes).await;
    person.goes_to("/agents").await;
    eventually("it is deleted", PATIENCE, async || {
        (!slugs(&organization).await.contains(&"spare".to_owned())).then_some(())
    })
    .await;
}
