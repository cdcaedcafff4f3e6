//! From a new agent to one on a page: names, templates, publication and code to copy.

use futures::future::join_all;
use serde_json::{Value, json};

use super::Person;
use crate::support::{Organization, OrganizationDocument, shop_saying};

const CREATES: &str = "
    await press('New agent'); await type('Name', input); await press('Create');
    await until('the agent', () => location.pathname.includes('/agents/agt_'));";

async fn agents(organization: &Organization) -> Vec<Value> {
    let path = organization.admin_path("/agents");
    let admin = organization.service().admin();
    let list = admin.get(&path).await.json();
    let items = list["items"].as_array().unwrap().iter();
    let whole = items.map(async |item| {
        let id = item["id"].as_str().unwrap();
        admin.get(&format!("{path}/{id}")).await.json()
    });
    join_all(whole).await
}

#[tokio::test]
async fn slug_is_free_whatever_the_script_of_the_name() {
    let organization = shop_saying("ok").await;
    let person = Person::owner_at(&organization, "/agents").await;
    for name in ["自転車", "Поддержка", "Shop", "Größe & Maß", "Shop"] {
        person.goes_to("/agents").await;
        person.does_with(CREATES, json!(name)).await;
    }
    let mut slugs: Vec<_> = agents(&organization)
        .await
        .iter()
        .map(|agent| agent["slug"].as_str().unwrap().to_owned())
        .collect();
    slugs.sort();
    assert_eq!(
        slugs,
        [
            "agent-2",
            "agent-3",
            "grosse-mass",
            "shop",
            "shop-2",
            "shop-3"
        ]
    );
}

#[tokio::test]
async fn template_fills_the_agent_and_publish_saves_with_it() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let person = Person::owner_at(&organization, "/agents").await;
    person
        .does("await press('New agent'); await press('FAQ'); await type('Name', 'Answers'); await press('Create'); await shows('From new to live');")
        .await;
    person
        .does(
            "await type('Instructions', 'Answer.'); await press('Publish'); await shows('Answers is live');
             await shows('These changes went live with it'); await press('Install it'); await shows('Put it on your page');",
        )
        .await;
    let made = agents(&organization).await;
    assert_eq!(
        [&made[0]["status"], &made[0]["instructions"]],
        [&json!("active"), &json!("Answer.")]
    );
    assert_eq!(
        made[0]["welcomeMessage"],
        "Hello! Ask me anything about us."
    );
    // It can be taken offline in the same place.
    person
        .does("await press('More actions'); await press('Take offline'); await control('Publish');")
        .await;
    assert_eq!(agents(&organization).await[0]["status"], "inactive");
}

#[tokio::test]
async fn install_tab_warns_and_has_code_for_each_place() {
    let organization = shop_saying("ok").await;
    let path = format!("/agents/{}?tab=install", organization.shop());
    let person = Person::owner_at(&organization, &path).await;
    person
        .does("await shows('works on this computer only'); await shows('Every page may use this agent');")
        .await;
    let code = "await choose('Where', input); return (await until('the code', () => document.querySelector('pre'))).textContent;";
    for (place, part) in [
        ("HTML", "<script async src="),
        ("React, Next.js", "useEffect"),
        ("Shopify", "<script async src="),
        ("WordPress, WooCommerce", "wp_footer"),
        ("Google Tag Manager", "setAttribute(\"data-agent-id\""),
    ] {
        let code = person.does_with(code, json!(place)).await;
        let code = code.as_str().unwrap();
        assert!(
            code.contains(part) && code.contains(organization.shop()),
            "{place}: {code}"
        );
    }
    person
        .does("await choose('Language', 'Python'); await shows('urllib.request');")
        .await;
}
